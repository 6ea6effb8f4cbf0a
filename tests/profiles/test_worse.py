from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from dalenius.profiles.atoms import Atoms, rational
from dalenius.profiles.gaussian_pairs import MixturePair, ShiftPair
from dalenius.profiles.worse import Worse, both_ways, worst

ROWS = ((Fraction(1, 2), Fraction(1, 4)), (Fraction(1, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(1, 2)))
THIN = MixturePair(((Fraction(0), Fraction(9, 10)), (Fraction(1), Fraction(1, 10))))


def test_a_finite_pair_is_mirrored_and_stays_finite(ball, outcomes, encloses):
    skewed = ((Fraction(3, 10), Fraction(1, 10)), (Fraction(7, 10), Fraction(9, 10)))
    pair = both_ways(rational(skewed))
    assert isinstance(pair, Atoms) and pair.reversed().hockey(np.zeros(1)) == pair.hockey(np.zeros(1))
    rows = [(Fraction(3, 10), Fraction(1, 10)), (Fraction(1, 10), Fraction(3, 10)), (Fraction(6, 10),) * 2]
    encloses(pair, outcomes((ball(p), ball(q)) for p, q in rows))


def test_what_leaks_one_way_leaks_the_other_way_too():
    leaking = rational(((Fraction(1, 5), Fraction(0)), (Fraction(4, 5), Fraction(1))))
    pair = both_ways(leaking)
    assert pair.infinite_exact == Fraction(1, 5) == pair.reversed().infinite_exact


def test_more_mass_than_there_is_is_left_to_the_greatest_of_both():
    # P(L > 0) + Q(L > 0) = 1.4: no pair has both sides, and their convex envelope is below the greatest.
    heavy = rational(((Fraction(9, 10), Fraction(1, 2)), (Fraction(1, 10), Fraction(1, 2))))
    assert isinstance(both_ways(heavy), Worse)


@settings(max_examples=25)
@given(st.floats(-5, 5))
def test_the_greatest_of_several_and_its_reverse(epsilon):
    parts = (rational(ROWS), ShiftPair(Fraction(1, 2)), THIN)
    pair, at = worst(*parts), np.array([epsilon])
    lo, hi = pair.hockey(at)
    assert lo[0] <= hi[0]
    assert all(part.hockey(at)[0][0] <= hi[0] for part in parts)
    assert hi[0] <= max(part.hockey(at)[1][0] for part in parts) + 1e-15
    back = pair.reversed().hockey(-at)
    expected = -math.expm1(-epsilon) + math.exp(-epsilon) * hi[0]
    assert back[1][0] == pytest.approx(expected, rel=1e-9, abs=1e-11 * math.exp(abs(epsilon)))


@pytest.mark.parametrize("order", [0.3, 1.0, 4.0, 12.0])
def test_moments_are_those_of_the_mirrored_profile(order):
    pair = both_ways(THIN)
    assert pair.reversed() == pair

    def weighted(epsilon):
        height = float(THIN.hockey(np.array([epsilon]))[1][0])
        return (math.exp(order * epsilon) + math.exp(-(1 + order) * epsilon)) * height

    top = 40.0
    area = sum(quad(weighted, a, a + top / 20)[0] for a in np.arange(0, top, top / 20))
    expected = math.log1p(order * (1 + order) * area)
    assert expected * (1 - 1e-6) <= pair.log_moment(order)[1] <= expected * (1 + 2e-3)


def test_the_moment_of_the_greatest_is_below_the_sum():
    pair = worst(THIN, ShiftPair(Fraction(1, 2)))
    each = [math.expm1(part.log_moment(2.0)[1]) for part in (THIN, ShiftPair(Fraction(1, 2)))]
    assert pair.log_moment(2.0)[1] == pytest.approx(math.log1p(sum(each)))
    assert worst(THIN) is THIN and worst(THIN, THIN) is THIN
