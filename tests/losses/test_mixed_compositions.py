"""Random compositions of many kinds: every answer is finite, and monotone, where that is known.

sums        ε(δ) is no more than the ε of all releases at equal shares of δ
inversion   δ(ε(δ)) is no more than δ
δ           a larger δ never costs more
count       one more release never costs less
q           sampling never costs more than none
"""

from __future__ import annotations

import math
import random
import warnings
from fractions import Fraction
from itertools import pairwise

import pytest

from dalenius.losses import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscretePair,
    Gaussian,
    Laplace,
    Loss,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
    compose,
)

HAIR = 1e-6
Terms = list[tuple[Loss, int]]


def number(source: random.Random, low: float, high: float) -> Fraction:
    """Draw a decimal between two powers of ten."""
    return Fraction(f"{10 ** source.uniform(low, high):.4g}")


def pair(source: random.Random) -> Loss:
    p, q = (Fraction(source.randint(1, 9), 10) for _ in range(2))
    return DiscretePair([p, 1 - p], [q, 1 - q])


KINDS = (
    lambda s: Pure(number(s, -4, 1)),
    lambda s: Laplace(number(s, -1, 5)),
    lambda s: Gaussian(number(s, -1, 4)),
    lambda s: DiscreteGaussian(number(s, -1, 2)),
    lambda s: DiscreteLaplace(number(s, -1, 2)),
    lambda s: RandomizedResponse(Fraction(s.randint(1, 999), 1000), categories=s.randint(2, 9)),
    lambda s: Approximate(number(s, -3, 0.5), delta=number(s, -12, -7)),
    lambda s: ZeroConcentrated(number(s, -5, 0)),
    pair,
)


def term(source: random.Random) -> tuple[Loss, int]:
    loss = source.choice(KINDS)(source)
    if source.random() < 0.45 and not isinstance(loss, ZeroConcentrated):
        loss = loss.poisson(number(source, source.choice([-10, -4, -4, -4]), -0.05))
    return loss, int(10 ** source.uniform(0, source.choice([0.01, 1, 3, 9])))


def check(terms: Terms, deltas: list[Fraction]) -> None:
    loss, count = compose(part * n for part, n in terms), sum(n for _, n in terms)
    uppers = []
    for delta in deltas:
        bound = loss.epsilon(delta)
        uppers.append(bound.upper)
        added = math.fsum(n * part.epsilon(delta / count).upper for part, n in terms)
        assert bound.upper <= added * (1 + HAIR) + HAIR or (not loss.tight and bound.upper < math.inf)
        assert not bound.tight or bound.upper <= bound.lower * 1.01 + 1e-9
        if 0 < bound.upper < math.inf:
            assert loss.delta(Fraction(bound.upper)).upper <= delta * Fraction(101, 100)
    assert all(b <= a * (1 + HAIR) + HAIR for a, b in pairwise(uppers))
    more = (loss + terms[0][0]).epsilon(deltas[-1]).upper
    assert more >= uppers[-1] * (1 - 0.01) - HAIR


def cases(source: random.Random, many: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(many):
            terms = [term(source) for _ in range(source.randint(1, 3))]
            deltas = sorted({number(source, -12, -0.3) for _ in range(2)})
            try:
                check(terms, deltas)
            except Exception as problem:
                raise AssertionError(f"{terms} at {deltas}") from problem


@pytest.mark.parametrize("seed", range(4))
def test_mixed_compositions_have_finite_and_monotone_answers(seed: int) -> None:
    cases(random.Random(seed), 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_ten_thousand_mixed_compositions_have_finite_and_monotone_answers(seed: int) -> None:
    cases(random.Random(seed), 1000)


@pytest.mark.parametrize("loss", [Gaussian(4), Laplace(2), Pure(1), DiscreteGaussian(3)])
def test_a_smaller_sample_never_costs_more(loss: Loss) -> None:
    rates = [Fraction(1, 10**k) for k in (6, 3, 2, 1, 0)]
    uppers = [((loss.poisson(rate) if rate < 1 else loss) * 30).epsilon(1e-6).upper for rate in rates]
    assert all(a <= b * (1 + HAIR) + HAIR for a, b in pairwise(uppers))
