from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument
from dalenius.losses.raw import DiscretePair, PrivacyLossDistribution, TradeoffCurve

PAIRS = [
    ((1, 1, 2), (2, 1, 1)),
    ((1, 0, 3), (2, 1, 1)),
    ((1, 5, 0, 10), (0, 1, 7, 8)),
    ((1, 999_999), (999_999, 1)),
    ((3, 3, 2), (3, 3, 2)),
]


def shares(weights):
    return [Fraction(w, sum(weights)) for w in weights]


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_a_discrete_pair_is_enclosed_both_ways(p, q, ball, outcomes, encloses):
    p, q = shares(p), shares(q)
    truth = outcomes((ball(a), ball(b)) for a, b in zip(p, q, strict=True))
    directions = DiscretePair(p, q).directions()
    covered = [all(b > 0 for a, b in zip(x, y, strict=True) if a > 0) for x, y in ((p, q), (q, p))]
    for worst, side, finite in zip(directions, (truth, truth.reversed()), covered, strict=False):
        encloses(worst[0][0], side, orders=(0.01, 1.0, 7.5, 100.0) if finite else ())
        if not finite:
            assert worst[0][0].log_moment(1.0) == (float("inf"), float("inf"))


def test_a_symmetric_pair_has_one_direction():
    assert len(DiscretePair([0.3, 0.3, 0.4], [0.3, 0.3, 0.4]).directions()) == 1
    assert len(DiscretePair([0.2, 0.8], [0.5, 0.5]).directions()) == 2


def test_outcomes_of_one_ratio_are_one():
    split = DiscretePair([0.1, 0.2, 0.7], [0.2, 0.4, 0.4]).directions()
    assert split == DiscretePair([0.3, 0.7], [0.6, 0.4]).directions()


def test_a_privacy_loss_distribution_is_enclosed_both_ways(ball, outcomes, encloses):
    losses, masses = (
        (Fraction(1), Fraction(1, 4), Fraction(-1, 2)),
        (Fraction(1, 2), Fraction(3, 10), Fraction(1, 10)),
    )
    rows = [(ball(m), ball(m) * (-ball(x)).exp()) for x, m in zip(losses, masses, strict=True)]
    missing = 1 - sum((q for _, q in rows), ball(0))
    truth = outcomes([*rows, (ball(Fraction(1, 10)), ball(0)), (ball(0), missing)])
    remove, add = PrivacyLossDistribution(losses, masses, infinite=0.1).directions()
    encloses(remove[0][0], truth, orders=())
    encloses(add[0][0], truth.reversed(), orders=())


def test_a_tradeoff_curve_is_enclosed_both_ways(ball, outcomes, encloses):
    # Randomized response with ε = log 3 as its curve: (0, 1), (1/4, 1/4), (1, 0).
    curve = TradeoffCurve([0, 0.25, 1], [1, 0.25, 0])
    quarter, rest = ball(Fraction(1, 4)), ball(Fraction(3, 4))
    ((pair, _),) = curve.directions()[0]
    encloses(pair, outcomes([(rest, quarter), (quarter, rest)]))
    open_curve = TradeoffCurve([0, 0.5], [0.8, 0])
    remove, add = open_curve.directions()
    truth = outcomes(
        [
            (ball(Fraction(4, 5)), ball(Fraction(1, 2))),
            (ball(Fraction(1, 5)), ball(0)),
            (ball(0), ball(Fraction(1, 2))),
        ]
    )
    encloses(remove[0][0], truth, orders=())
    encloses(add[0][0], truth.reversed(), orders=())


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_every_pair_has_a_profile_between_its_limits(rows):
    p, q = [a for a, _ in rows], [b for _, b in rows]
    if sum(p) == 0 or sum(q) == 0:
        return
    import numpy as np

    for worst in DiscretePair(shares(p), shares(q)).directions():
        lo, hi = worst[0][0].hockey(np.linspace(-5, 5, 101))
        assert (lo <= hi).all() and (lo >= 0).all() and (hi <= 1).all()
        assert (np.diff(lo) <= 1e-12).all()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: DiscretePair([0.5, 0.4], [0.5, 0.5]), "p must add up to exactly 1"),
        (lambda: DiscretePair([1], [0.5, 0.5]), "p and q must be as long as each other"),
        (lambda: DiscretePair([1.5, -0.5], [0.5, 0.5]), r"p must be in \[0, 1\]"),
        (lambda: DiscretePair("10", [1]), "p must be a list of numbers"),
        (lambda: PrivacyLossDistribution([-1], [1]), "add up to more than 1"),
        (lambda: PrivacyLossDistribution([1], [0.5]), "probabilities and infinite must add up to exactly 1"),
        (lambda: PrivacyLossDistribution([1e9], [1]), "losses must be from -1e6 to 1e6"),
        (lambda: TradeoffCurve([0, 0.5, 1], [0.5, 0.4, 0]), "convex curve"),
        (lambda: TradeoffCurve([0, 1], [0.5, 0.1]), "convex curve"),
        (lambda: TradeoffCurve([0.1, 1], [0.5, 0]), "convex curve"),
    ],
)
def test_what_is_no_distribution_is_refused_by_name(make, match):
    with pytest.raises(InvalidArgument, match=match):
        make()
