"""Certified sensitivities against all patterns, signs and directions of contributions of short streams."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.losses.streams import (
    Banded,
    BandedSquareRoot,
    BandedToeplitz,
    BinaryTree,
    BufferedToeplitz,
    Factorization,
    Participation,
    SquareRoot,
    cyclic,
    min_separation,
    once,
)
from dalenius.losses.streams.certified import central_binomials, powers
from tests.losses.streams.dense import by_patterns, by_signs

SLACK = 1 + 1e-13
lengths = st.integers(1, 10)
participations = st.one_of(
    st.just(once()),
    st.builds(cyclic, st.integers(1, 12)),
    st.builds(lambda b, k: min_separation(b, most=k), st.integers(1, 12), st.none() | st.integers(1, 5)),
)
signed = st.floats(-2, 2).map(lambda x: round(x, 3))
columns = st.lists(signed, min_size=1, max_size=5).map(lambda tail: [1.0, *tail])


def check(stream: Factorization, participation: Participation) -> None:
    bound, encoder = stream.sensitivity(participation), stream.encoder()
    most, sure = by_patterns(encoder, participation), by_signs(encoder, participation)
    assert sure <= bound.upper * SLACK
    assert bound.lower <= sure * SLACK
    if bound.tight:
        assert bound.upper <= most * (1 + 1e-9) and sure == pytest.approx(most, rel=1e-12)
    else:
        assert most <= bound.upper * SLACK
    if participation.times(stream.length) == 1:
        assert bound.tight


@settings(max_examples=60, deadline=None)
@given(lengths, participations)
def test_streams_with_falling_coefficients(length, participation):
    for stream in (
        SquareRoot(length),
        BandedSquareRoot(length, 3),
        BufferedToeplitz(length, [0.9, 0.3], [0.2, 0.5]),
        BandedToeplitz(length, [2, 1.5, 1.5, 0.25]),
    ):
        assert stream.sensitivity(participation).tight
        check(stream, participation)


@settings(max_examples=60, deadline=None)
@given(lengths, participations, columns)
def test_any_toeplitz_encoder(length, participation, column):
    check(BandedToeplitz(length, column), participation)


@settings(max_examples=60, deadline=None)
@given(participations, st.lists(columns, min_size=1, max_size=9), st.booleans())
def test_any_banded_encoder(participation, matrix, positive):
    check(Banded([np.abs(column) for column in matrix] if positive else matrix), participation)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), participations)
def test_trees_are_exact_when_small(length, participation):
    stream = BinaryTree(length)
    assert stream.sensitivity(participation).tight
    check(stream, participation)


@given(st.integers(2, 60), st.integers(1, 9), st.integers(1, 9))
def test_the_bound_by_levels_holds_for_trees(length, gap, most):
    from dalenius.losses.streams import tree_patterns

    exact = tree_patterns._exact(length, min(gap, length), min_separation(gap, most=most).times(length))
    times = min_separation(gap, most=most).times(length)
    levels = range(length.bit_length())
    assert sum(tree_patterns._row(length, h, min(gap, length), times) for h in levels) <= exact
    assert exact <= sum(tree_patterns._level(length, h, min(gap, length), times) for h in levels)


def test_large_trees_keep_both_sides():
    bound = BinaryTree(10_000).sensitivity(min_separation(999, most=5))
    assert not bound.tight and 0.9 * bound.upper < bound.lower < bound.upper


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 9), participations, st.integers(2, 4))
def test_vectors_move_no_further_than_numbers(length, participation, dimension):
    """Random unit vectors at the steps of every pattern; any violation would be of the theorem."""
    stream, rng = SquareRoot(length), np.random.default_rng()
    upper = stream.sensitivity(participation).upper
    for steps in participation.patterns(length):
        units = rng.normal(size=(len(steps), dimension))
        units /= np.linalg.norm(units, axis=1)[:, None]
        assert np.linalg.norm(stream.encoder()[:, list(steps)] @ units) <= upper * SLACK


@given(st.integers(1, 40), participations, participations)
def test_more_freedom_never_lowers_the_sensitivity(length, one, two):
    wider = Participation(
        min(one.separation, two.separation), None if None in (one.most, two.most) else max(one.most, two.most)
    )
    for stream in (SquareRoot(length), BandedSquareRoot(length, 4)):
        assert stream.sensitivity(one).upper <= stream.sensitivity(wider).upper * SLACK


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 5000))
def test_central_binomials_are_enclosed(length):
    low, high = central_binomials(length)
    k = length - 1
    exact = Fraction(math.comb(2 * k, k), 4**k)
    assert Fraction(low[-1]) <= exact <= Fraction(high[-1])
    assert len(low) == length and np.all(high <= low * (1 + 2e-12))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3000), st.fractions(0, Fraction(999, 1000), max_denominator=1000))
def test_powers_are_enclosed(length, base):
    low, high = powers(base, length)
    exact = base ** (length - 1)
    assert Fraction(low[-1]) <= exact <= Fraction(high[-1])


def test_long_streams_are_quick_enough_to_try():
    """Norms of a million coefficients, against their known sum."""
    bound = SquareRoot(10**6).sensitivity()
    landau = (math.log(10**6) + np.euler_gamma + 4 * math.log(2)) / math.pi
    assert bound.upper**2 == pytest.approx(landau, abs=1e-6)
    assert bound.upper <= bound.lower * (1 + 1e-11)
