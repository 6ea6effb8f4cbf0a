"""Lattice laws convolve to what exact arithmetic says, within the stated bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import flint
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.profiles.composed import Composed
from dalenius.profiles.convolution import LAYER, convolve
from dalenius.profiles.lattice import Lattice, OnLattice, point
from dalenius.profiles.saddle import Plan, Sketch, plan

Whole = tuple[Lattice, list[int], int]
"""A law, its masses as whole numbers of shares, and their total, infinite losses included."""


def law(weights: list[int], step: Fraction, start: int, infinite: int = 0) -> Whole:
    total = sum(weights) + infinite
    share = infinite / total
    ends = (math.nextafter(share, 0), math.nextafter(share, 1)) if infinite else (0.0, 0.0)
    masses = np.array([w / total for w in weights])
    return Lattice(point(step), point(0), start, masses, error=2.0**-52, infinite=ends), weights, total


def truth(laws: list[tuple[Whole, int]], at: float) -> arb:
    """δ(at), by multiplying generating polynomials in whole numbers."""
    poly, start, everything = flint.fmpz_poly([1]), 0, flint.fmpz(1)
    for (lattice, whole, total), count in laws:
        poly *= flint.fmpz_poly(whole) ** count
        start += count * lattice.start
        everything *= flint.fmpz(total) ** count
    step = laws[0][0][0].step[0]
    value = arb(everything - sum(poly.coeffs(), flint.fmpz(0)))
    for k, mass in enumerate(poly.coeffs()):
        loss = arb((start + k) * step.numerator) / step.denominator
        if mass and loss > arb(at):
            value += arb(mass) * (1 - (arb(at) - loss).exp())
    return value / arb(everything)


def sketches(laws: list[tuple[Whole, int]]) -> list[Sketch]:
    return [Sketch.of(lattice.estimates, lattice.masses, n) for (lattice, _, _), n in laws]


def check(laws: list[tuple[Whole, int]], planned: Plan, at: float) -> tuple[float, float]:
    """The enclosure, having seen that it is one. Not every law here is a pair's: it may be below 1 − e^ε."""
    terms = [(whole[0], count) for whole, count in laws]
    window = convolve(terms, planned)
    assert window is not None
    lower, upper = Composed.of(terms, window).delta(at)
    with flint.ctx.workprec(600):
        value = truth(laws, at)
        assert not value > arb(upper)
        assert not value < arb(lower) or not 1 - arb(at).exp() < arb(lower)
    return lower, upper


weights = st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any)


@settings(max_examples=80, deadline=None)
@given(
    weights,
    weights,
    st.integers(1, 6),
    st.integers(0, 4),
    st.integers(-4, 1),
    st.floats(-3, 6),
    st.booleans(),
)
def test_composition_encloses_the_exact_law(
    one: list[int], two: list[int], n: int, m: int, start: int, hundredths: int, some: bool
) -> None:
    step, at = Fraction(3, 10), hundredths / 100
    laws = [(law(one, step, start, infinite=int(some)), n)]
    if m:
        laws.append((law(two, step, -1), m))
    check(laws, plan(sketches(laws), epsilon=at), at)


@pytest.mark.parametrize("count", [40, 400])
def test_far_tails_keep_their_digits_though_the_window_is_short(count: int) -> None:
    """δ from 1e-2 to 1e-60, the window a fraction of the support, so that masses wrap around."""
    laws = [(law([1] + [0] * 98 + [60, 40, 3], Fraction(1, 100), -99), count)]
    for power in (-2, -10, -30, -60):
        planned = plan(sketches(laws), log_delta=power * math.log(10))
        lower, upper = check(laws, planned, planned.epsilon)
        assert upper - lower <= 1e-8 * upper


@pytest.mark.parametrize("tilt", [0.0, 0.5, 4.0])
def test_whatever_the_plan_the_answer_is_enclosed(tilt: float) -> None:
    """A poor window and a poor tilt cost width, never truth."""
    laws = [(law([5, 0, 3, 1], Fraction(1, 2), -2), 20)]
    for low, high, at in product((-21.0, -3.0), (0.0, 2.0), (-25.0, -5.0, -1.0, 0.0, 3.0, 9.0)):
        check(laws, Plan(tilt, at, 0.0, 1.0, (low, high), (-1.0, 1.0), True), at)


@pytest.mark.parametrize("layers", [4, 9, 14, 18])
def test_transform_keeps_to_its_bound(layers: int) -> None:
    """Against the same transform in extended precision, whose own error is 2,000 times smaller."""
    length = 2**layers
    k = np.arange(length)
    for values in (np.exp(-(((k - length / 3) / (length / 50 + 1)) ** 2)), 1.0 / (1 + k), np.cos(k * k % 97)):
        fine = np.fft.rfft(values.astype(np.longdouble))
        rough = np.fft.rfft(values)
        distance = float(np.linalg.norm(rough - fine))
        assert distance <= layers * LAYER * float(np.linalg.norm(fine))
        back = np.fft.irfft(rough, length) - np.fft.irfft(rough.astype(np.clongdouble), length)
        assert float(np.linalg.norm(back)) <= layers * LAYER * float(np.linalg.norm(values)) * 1.01


def test_a_pair_says_that_it_lives_on_a_lattice() -> None:
    class Somewhere:
        def lattice(self) -> Lattice | None:
            return None

    assert isinstance(Somewhere(), OnLattice)
    assert not isinstance(3, OnLattice)
