"""The binomial route encloses the exact sum, however many releases there are."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.profiles.atoms import Atoms, rational
from dalenius.profiles.binomial import Binomial, two_point
from dalenius.profiles.lattice import point


def pure(epsilon: Fraction, count: int, infinite: Fraction = Fraction(0)) -> Binomial:
    """The composition of Kairouz, Oh and Viswanath's pair, its probability to 40 digits."""
    with flint.ctx.workprec(200):
        share = 1 / (1 + (-exact(epsilon)).exp())
        digits = 10**40
        low = Fraction(int((share * digits).floor().unique_fmpz()), digits)
    chance = (low, low + Fraction(1, digits))
    return Binomial(point(-epsilon), point(epsilon), chance, (float(infinite),) * 2, count)


def exact(number: Fraction) -> arb:
    return arb(number.numerator) / arb(number.denominator)


def truth(epsilon: Fraction, count: int, infinite: Fraction, at: float) -> arb:
    """The sum itself, term by term in balls."""
    share = 1 / (1 + (-exact(epsilon)).exp())
    total = arb(0)
    for j in range(count + 1):
        loss = exact((2 * j - count) * epsilon)
        if loss > arb(at):
            term = arb(flint.fmpz.bin_uiui(count, j)) * share**j * (1 - share) ** (count - j)
            total += term * (1 - (arb(at) - loss).exp())
    stays = (1 - exact(infinite)) ** count
    return 1 - stays + stays * total


def test_thousand_tenths_at_a_millionth() -> None:
    """Kairouz, Oh and Viswanath 2015, Theorem 3.3: 19.3446714480, by the sum in balls on both sides of it."""
    lower, upper = pure(Fraction(1, 10), 1000).epsilon(1e-6)
    assert f"{lower:.10f}" == f"{upper:.10f}" == "19.3446714480"
    assert upper - lower <= 1e-12 * upper
    with flint.ctx.workprec(300):
        above, below = (truth(Fraction(1, 10), 1000, Fraction(0), at) for at in (lower, upper))
        assert above >= arb(1e-6) >= below


@settings(max_examples=60, deadline=None)
@given(
    st.fractions(Fraction(1, 1000), 3, max_denominator=1000),
    st.integers(1, 150),
    st.sampled_from([Fraction(0), Fraction(1, 2**20), Fraction(1, 2**60)]),
    st.floats(-1.2, 1.2),
)
def test_encloses_the_exact_sum(epsilon: Fraction, count: int, infinite: Fraction, share: float) -> None:
    at = share * count * float(epsilon)
    lower, upper = pure(epsilon, count, infinite).delta(at)
    with flint.ctx.workprec(300):
        value = truth(epsilon, count, infinite, at)
        assert not value < arb(lower) and not value > arb(upper)  # both may be exactly one
    assert upper - lower <= 1e-12 * upper + 1e-300


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 10**12), st.integers(-25, 0), st.floats(1e-5, 3.0))
def test_epsilon_is_where_delta_says(count: int, power: int, scale: float) -> None:
    loss = pure(Fraction(scale / math.sqrt(count)).limit_denominator(10**15), min(count, 10**7))
    delta = 10.0**power / 2
    lower, upper = loss.epsilon(delta)
    assert 0 <= lower <= upper
    assert loss.delta(upper)[1] <= delta or upper == 0 or upper == float(loss.count * loss.high[1])
    assert lower == 0 or loss.delta(lower)[0] >= delta * (1 - 1e-9)


def test_no_delta_leaves_the_largest_sum_exactly() -> None:
    assert pure(Fraction(1, 10), 10).epsilon(0.0) == (1.0, 1.0)
    assert pure(Fraction(1, 10), 10, Fraction(1, 2)).epsilon(0.0) == (math.inf, math.inf)


@pytest.mark.parametrize("delta", [1e-6, 0.3])
def test_a_million_million_releases_are_enclosed(delta: float) -> None:
    lower, upper = pure(Fraction(1, 10**6), 10**12).epsilon(delta)
    assert 0 < lower <= upper < 6
    assert upper - lower < 1e-3 * upper


def test_lopsided_pairs_are_two_points_too() -> None:
    pair = rational([(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))])
    lopsided = rational([(Fraction(1, 10), Fraction(1, 1000)), (Fraction(9, 10), Fraction(999, 1000))])
    assert two_point(pair, 5) is not None
    composed = two_point(lopsided, 2)
    assert composed is not None
    expected = (
        0.01 * (1 - 1e-4) + 0.18 * (1 - 1 / 90.09009009009009) + 0.81 * (1 - 1 / 0.8116224332440547) * 0
    )
    assert composed.delta(0.0) == pytest.approx((expected, expected), rel=1e-12)
    assert two_point(Atoms(()), 3) is None
