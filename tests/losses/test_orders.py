"""Compositions against enumeration, for every relation and every order of the pairs.

Under add_remove and zero_out all releases are turned the same way. Under replace each may be turned by
itself, also by what earlier ones gave: `adaptive` is the greatest δ of any such choice.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dalenius as dp
from dalenius.errors import BudgetExceeded
from dalenius.losses import DiscretePair, Loss, Mixture, PrivacyLossDistribution, TradeoffCurve
from dalenius.losses.dominated import Dominated
from dalenius.profiles.worse import envelope

RELATIONS = ("add_remove", "zero_out", "replace")
HAIR = 1e-9
LATTICE = 1e-5
"""How far a tight answer may be above the truth, where it is computed on a lattice."""
Rows = tuple[tuple[Fraction, Fraction], ...]
THIRDS: Rows = (
    (Fraction(1, 5), Fraction(0)),
    (Fraction(11, 15), Fraction(1, 3)),
    (Fraction(1, 15), Fraction(2, 3)),
)
RARE: Rows = ((Fraction(1, 50), Fraction(1, 1000)), (Fraction(49, 50), Fraction(999, 1000)))


def turned(rows: Rows) -> Rows:
    return tuple((q, p) for p, q in rows)


def hockey(rows: Rows, ratio: float) -> float:
    """sup_E P(E) − ratio·Q(E)."""
    return math.fsum(max(float(p) - ratio * float(q), 0.0) for p, q in rows)


def joint(several: Sequence[Rows]) -> Rows:
    pairs = product(*several)
    return tuple((math.prod(p for p, _ in one), math.prod(q for _, q in one)) for one in pairs)


def fixed(several: Sequence[Rows], relation: str) -> Iterator[tuple[Rows, ...]]:
    """All orders that the relation allows."""
    if relation == "replace":
        yield from product(*((rows, turned(rows)) for rows in several))
    else:
        yield tuple(several)
        yield tuple(turned(rows) for rows in several)


def adaptive(several: Sequence[Rows], ratio: float) -> float:
    """The greatest P − ratio·Q where each release is turned by the outcomes of those before."""
    if not several:
        return max(1.0 - ratio, 0.0)
    first, *rest = several

    def value(p: float, q: float) -> float:
        if p == 0:
            return 0.0
        return p * adaptive(rest, ratio * q / p)

    cases = (first, turned(first))
    return max(math.fsum(value(float(p), float(q)) for p, q in rows) for rows in cases)


def pair_loss(rows: Rows, relation: str) -> Loss:
    return DiscretePair([p for p, _ in rows], [q for _, q in rows], relation=relation)


def curve_loss(rows: Rows, relation: str) -> Loss:
    """The trade-off curve of the same pair."""
    steps = sorted(rows, key=lambda row: (row[1] == 0, row[0] / row[1] if row[1] else 0), reverse=True)
    points = [(Fraction(0), Fraction(1))]
    for p, q in steps:
        points.append((points[-1][0] + q, points[-1][1] - p))
    points = [point for i, point in enumerate(points) if i + 1 == len(points) or points[i + 1][0] > point[0]]
    points = [point for i, point in enumerate(points) if i == 0 or points[i - 1][1] > 0]
    return TradeoffCurve([x for x, _ in points], [y for _, y in points], relation=relation)


def dominated_loss(rows: Rows, relation: str) -> Loss:
    return Dominated(pair_loss(rows, relation))


MAKERS = {"pair": pair_loss, "curve": curve_loss, "dominated": dominated_loss}


@st.composite
def rows_of(draw: st.DrawFn) -> Rows:
    """A random pair of up to four outcomes, some of which are impossible on one side."""
    many = draw(st.integers(2, 4))
    weights = st.lists(st.integers(0, 9), min_size=many, max_size=many).filter(any)
    p, q = draw(weights), draw(weights)
    rows = tuple((Fraction(a, sum(p)), Fraction(b, sum(q))) for a, b in zip(p, q, strict=True) if a or b)
    return rows if len(rows) > 1 else ((Fraction(1, 2), Fraction(1, 3)), (Fraction(1, 2), Fraction(2, 3)))


def check(several: list[Rows], relation: str, maker: str, epsilon: Fraction) -> None:
    total = MAKERS[maker](several[0], relation)
    for rows in several[1:]:
        total = total + MAKERS[maker](rows, relation)
    ratio = math.exp(epsilon)
    best = max(hockey(joint(order), ratio) for order in fixed(several, relation))
    most = max(best, adaptive(several, ratio)) if relation == "replace" else best
    bound = total.delta(epsilon)
    assert bound.lower <= most * (1 + HAIR) + HAIR
    assert bound.upper >= most * (1 - HAIR) - HAIR
    if bound.tight:
        assert bound.upper <= most * (1 + LATTICE) + LATTICE


CASES = {
    "several": st.lists(rows_of(), min_size=1, max_size=3),
    "relation": st.sampled_from(RELATIONS),
    "maker": st.sampled_from(sorted(MAKERS)),
    "epsilon": st.fractions(0, 3, max_denominator=8),
}
QUIET = list(HealthCheck)


@settings(max_examples=60, deadline=None, suppress_health_check=QUIET)
@given(**CASES)
def test_compositions_enclose_every_order_that_the_relation_allows(several, relation, maker, epsilon):
    check(several, relation, maker, epsilon)


def drawn(source: random.Random) -> tuple[list[Rows], str, str, Fraction]:
    """Draw a case as hypothesis does, in less time."""
    several = []
    for _ in range(source.randint(1, 3)):
        p, q = (source.choices(range(10), k=many) for many in [source.randint(2, 4)] for _ in range(2))
        if not any(p) or not any(q):
            p, q = [1, 1], [1, 2]
        pairs = zip(p, q, strict=True)
        several.append(tuple((Fraction(a, sum(p)), Fraction(b, sum(q))) for a, b in pairs if a or b))
    epsilon = Fraction(source.randint(0, 24), 8)
    return several, source.choice(RELATIONS), source.choice(sorted(MAKERS)), epsilon


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_thousand_compositions_against_enumeration(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(10_000):
        check(*drawn(source))


@settings(max_examples=30, deadline=None, suppress_health_check=QUIET)
@given(several=st.lists(rows_of(), min_size=2, max_size=2), relation=st.sampled_from(RELATIONS),
       epsilon=st.fractions(0, 3, max_denominator=8))  # fmt: skip
def test_mixtures_enclose_every_order_that_the_relation_allows(several, relation, epsilon):
    mixture = Mixture([pair_loss(rows, relation) for rows in several], [Fraction(1, 3), Fraction(2, 3)])
    ratio, weights = math.exp(epsilon), (1 / 3, 2 / 3)
    truth = max(
        math.fsum(w * hockey(rows, ratio) for w, rows in zip(weights, order, strict=True))
        for order in fixed(several, relation)
    )
    bound = mixture.delta(epsilon)
    assert bound.lower - HAIR <= truth <= bound.upper + HAIR


@given(rows_of(), st.floats(-3, 3))
def test_the_envelope_of_both_orders_is_the_greater_of_the_two(rows, epsilon):
    whole = envelope(rows, turned(rows))
    ratio = math.exp(epsilon)
    truth = max(hockey(rows, ratio), hockey(turned(rows), ratio))
    ends = [float(end) for (end,) in whole.hockey(np.array([epsilon]))]
    assert ends[0] - HAIR <= truth <= ends[1] + HAIR


def test_two_releases_turned_apart_cost_more_than_two_turned_together():
    loss = pair_loss(THIRDS, "replace") * 2
    truth = max(hockey(joint(order), math.exp(1.5)) for order in fixed([THIRDS] * 2, "replace"))
    assert truth == pytest.approx(0.5893, abs=1e-4)
    assert loss.delta(1.5).lower <= adaptive([THIRDS] * 2, math.exp(1.5)) <= loss.delta(1.5).upper
    assert (pair_loss(THIRDS, "add_remove") * 2).delta(1.5).upper == pytest.approx(0.4308, abs=1e-4)


def test_infinite_mass_is_not_counted_with_the_finite_one():
    rows: Rows = (
        (Fraction(0), Fraction(4, 5)),
        (Fraction(2, 3), Fraction(0)),
        (Fraction(1, 3), Fraction(1, 5)),
    )
    bound = (pair_loss(rows, "add_remove") * 2).delta(0)
    assert bound.lower <= Fraction(24, 25) <= bound.upper <= 0.96 * (1 + HAIR)


def test_one_release_may_be_turned_by_what_another_gave():
    """The one that gives is its own reverse."""
    even: Rows = tuple((Fraction(a, 9), Fraction(b, 9)) for a, b in ((2, 4), (3, 3), (4, 2)))
    odd: Rows = ((Fraction(0), Fraction(1, 2)), (Fraction(1), Fraction(1, 2)))
    truth = adaptive([even, odd], 1.0)
    assert truth > max(hockey(joint(order), 1.0) for order in fixed([even, odd], "replace")) + 0.1
    bound = (pair_loss(even, "replace") + pair_loss(odd, "replace")).delta(0)
    assert bound.lower <= truth <= bound.upper + HAIR


def test_swapped_pairs_under_replace_are_the_same_pair():
    one, two = pair_loss(RARE, "replace"), pair_loss(turned(RARE), "replace")
    bound = (one * 2 + two * 2).epsilon(1e-6)
    assert bound.lower == pytest.approx(8.941, abs=1e-3)
    assert bound.lower <= bound.upper <= 9
    assert not bound.tight


def test_an_account_refuses_releases_that_could_be_turned_apart(tmp_path):
    one, two = pair_loss(RARE, "replace"), pair_loss(turned(RARE), "replace")
    account = dp.Ledger(tmp_path / "l.ledger").open(
        "people", unit=dp.Unit("person", relation="replace"), budget=dp.Budget(epsilon=7.85, delta=1e-6)
    )
    with pytest.raises(BudgetExceeded):
        account.plan([one, one, two, two], by="ana")


def test_loss_distributions_are_turned_apart_too():
    law = PrivacyLossDistribution([Fraction(2), Fraction(-1, 20)], [Fraction(1, 10), Fraction(9, 10)],
                                  relation="replace")  # fmt: skip
    q = [Fraction(1, 10) * Fraction(math.exp(-2)), Fraction(9, 10) * Fraction(math.exp(0.05))]
    rows: Rows = (
        (Fraction(1, 10), q[0]),
        (Fraction(9, 10), q[1]),
        (Fraction(0), max(1 - sum(q), Fraction(0))),
    )
    truth = adaptive([rows] * 2, math.exp(0.5))
    bound = (law * 2).delta(0.5)
    assert bound.lower - 1e-9 <= truth <= bound.upper + 1e-9
