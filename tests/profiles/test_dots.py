"""Any pair, through its divergence alone: the lattice law dominates, and both sides enclose the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

import flint
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.profiles.atoms import Atoms, rational
from dalenius.profiles.discrete import discrete_profile
from dalenius.profiles.dots import Mesh, law
from dalenius.profiles.grid import Grid
from dalenius.profiles.pair import Floats, Pair


@dataclass(frozen=True)
class Shift(Pair):
    """N(μ, 1) against N(0, 1), accurate to 1e-12 down to 1e-305."""

    mu: float

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        from scipy.special import erfcx, ndtr

        a, b = self.mu / 2 - epsilon / self.mu, -self.mu / 2 - epsilon / self.mu
        with np.errstate(over="ignore", invalid="ignore"):
            tail = np.exp(-a * a / 2) * (erfcx(-a / math.sqrt(2)) - erfcx(-b / math.sqrt(2))) / 2
            body = ndtr(a) - np.exp(np.minimum(epsilon, 700.0)) * ndtr(b)
        value = np.where(a < 0, tail, body)
        return value * (1 - 1e-12), np.minimum(value * (1 + 1e-12) + 1e-305, 1.0)

    def log_moment(self, order: float) -> tuple[float, float]:
        return (order * (order + 1) * self.mu**2 / 2,) * 2

    @property
    def support(self) -> tuple[float, float]:
        return (-math.inf, math.inf)

    def reversed(self) -> Pair:
        return self


def shift_truth(mu: arb, at: float) -> arb:
    def cdf(z: arb) -> arb:
        return (-z / arb(2).sqrt()).erfc() / 2

    epsilon = arb(at)
    return cdf(mu / 2 - epsilon / mu) - epsilon.exp() * cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(
    ("mu", "count", "delta"),
    [(1.0, 2, 1e-5), (0.25, 16, 1e-6), (1.0, 16, 1e-30), (2.0, 29, 1e-3), (0.05, 10, 1e-30), (5.0, 3, 1e-10)],
)
def test_gaussian_shifts_compose_to_the_closed_form(mu: float, count: int, delta: float) -> None:
    """Dong, Roth and Su 2022, Corollary 3.3: T shifts by μ are one by μ√T."""
    lower, upper = Grid(((Shift(mu), count),)).epsilon(delta)
    with flint.ctx.workprec(400):
        together = arb(mu) * arb(count).sqrt()
        assert shift_truth(together, upper) <= arb(delta) <= shift_truth(together, lower)
    assert upper - lower <= 1e-6 * upper


@settings(max_examples=12, deadline=None)
@given(st.floats(0.01, 3), st.integers(2, 40), st.floats(-1, 6))
def test_delta_is_enclosed_at_any_epsilon(mu: float, count: int, share: float) -> None:
    at = share * mu * math.sqrt(count)
    lower, upper = Grid(((Shift(mu), count),)).delta(at)
    with flint.ctx.workprec(400):
        value = shift_truth(arb(mu) * arb(count).sqrt(), at)
        assert arb(lower) <= value <= arb(upper)


def brute(terms: list[tuple[list[tuple[Fraction, Fraction]], int]], at: float) -> arb:
    """δ(at) of a composition of finite pairs, outcome by outcome: Σ (P − e^ε Q)₊."""
    outcomes = [(Fraction(1), Fraction(1))]
    for rows, count in terms:
        powers = []
        for chosen in combinations_with_replacement(rows, count):
            ways = math.factorial(count)
            for row in set(chosen):
                ways //= math.factorial(chosen.count(row))
            powers.append((ways * math.prod(r[0] for r in chosen), ways * math.prod(r[1] for r in chosen)))
        outcomes = [(p * a, q * b) for p, q in outcomes for a, b in powers]
    total, factor = arb(0), arb(at).exp()
    for p, q in outcomes:
        value = arb(flint.fmpq(p.numerator, p.denominator)) - factor * arb(
            flint.fmpq(q.numerator, q.denominator)
        )
        if value > 0:
            total += value
    return total


def distinct(rows: list[tuple[int, int]]) -> list[tuple[Fraction, Fraction]]:
    p, q = sum(r[0] for r in rows), sum(r[1] for r in rows)
    return list({(Fraction(a, p), Fraction(b, q)): None for a, b in rows}) if p and q else []


rows = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=4, unique=True).map(
    distinct
)
proper = rows.filter(lambda r: len(r) > 1 and sum(x[0] for x in r) == 1 and sum(x[1] for x in r) == 1)


@settings(max_examples=40, deadline=None)
@given(proper, proper, st.integers(1, 5), st.integers(0, 3), st.floats(-4, 4))
def test_finite_pairs_are_enclosed(
    one: list[tuple[Fraction, Fraction]], two: list[tuple[Fraction, Fraction]], n: int, m: int, at: float
) -> None:
    """Atoms anywhere, infinite losses either way: nothing smooth to lean on."""
    terms: tuple[tuple[Pair, int], ...] = ((rational(one), n),) + (((rational(two), m),) if m else ())
    for profile in (Grid(terms), discrete_profile(terms)):
        lower, upper = profile.delta(at)
        with flint.ctx.workprec(300):
            value = brute([(one, n), (two, m)], at)
            assert not value < arb(lower) and not value > arb(upper)  # both may be exactly one


@settings(max_examples=30, deadline=None)
@given(proper, st.integers(1, 40), st.floats(1e-12, 0.9))
def test_epsilon_brackets_where_delta_falls(
    one: list[tuple[Fraction, Fraction]], n: int, delta: float
) -> None:
    lower, upper = discrete_profile(((rational(one), n),)).epsilon(delta)
    assert 0 <= lower <= upper
    if n <= 6:
        with flint.ctx.workprec(300):
            assert upper == math.inf or brute([(one, n)], upper) <= arb(delta) * (1 + arb("1e-60"))
            assert lower in (0.0, math.inf) or brute([(one, n)], lower * (1 - 2.0**-52)) >= arb(delta)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.02, 4), st.integers(4, 400), st.integers(4, 400), st.floats(1e-4, 0.5), st.floats(-3, 3))
def test_the_law_dominates_its_pair_everywhere(
    mu: float, left: int, right: int, ratio: float, share: float
) -> None:
    found = law(Shift(mu), Mesh(ratio, left, right, 0.0))
    at = share * math.log1p(ratio) * (right if share > 0 else left)
    losses = np.arange(-left, right + 1) * math.log1p(ratio)
    profile = math.fsum(found.masses * np.maximum(-np.expm1(np.minimum(at - losses, 0.0)), 0.0))
    with flint.ctx.workprec(200):
        assert arb(profile + found.infinite[1]) * (1 + arb(1e-13)) >= shift_truth(arb(mu), at)


def test_no_delta_leaves_the_largest_loss() -> None:
    half = Fraction(1, 2)
    nothing = rational([(half, half)] * 2)
    assert discrete_profile(((nothing, 1000),)).epsilon(0.0) == (0.0, 0.0)
    revealed = rational([(half, half), (half, Fraction(0)), (Fraction(0), half)])
    assert discrete_profile(((revealed, 3),)).epsilon(0.0) == (math.inf, math.inf)
    assert discrete_profile(((revealed, 3),)).epsilon(0.5) == (math.inf, math.inf)
    assert discrete_profile(((Shift(1.0), 3),)).epsilon(0.0) == (math.inf, math.inf)
    third = rational(
        [(Fraction(1, 3), Fraction(2, 3)), (Fraction(1, 3), Fraction(1, 6)), (Fraction(1, 3), Fraction(1, 6))]
    )
    lower, upper = discrete_profile(((third, 7),)).epsilon(0.0)
    assert lower <= 7 * math.log(2) * (1 + 1e-15) and 7 * math.log(2) * (1 - 1e-15) <= upper <= lower * (
        1 + 1e-14
    )


def test_an_empty_pair_costs_everything() -> None:
    apart: Atoms = rational([(Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))])
    for epsilon in (-3.0, 0.0, 5.0):
        assert discrete_profile(((apart, 1000),)).delta(epsilon)[1] == 1.0


@dataclass(frozen=True)
class Bumpy(Shift):
    """The same; of its reverse an upper bound is known that is not convex: it falls late, and at once."""

    turned: bool = False

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        lower, upper = super().hockey(epsilon)
        if self.turned:
            upper = np.where(np.abs(epsilon) < 0.5, np.maximum(upper, super().hockey(np.zeros(1))[1]), upper)
        return lower, upper

    def reversed(self) -> Bumpy:
        return Bumpy(self.mu, not self.turned)


def test_bounds_that_are_not_convex_dominate_on_both_sides() -> None:
    """A negative mass that is raised must not be taken from the middle, where it would lower H for ε < 0."""
    pair, mesh = Bumpy(1.0), Mesh(2.0**-6, 800, 800, 0.0)
    found = law(pair, mesh)
    step = float(found.step[0] + found.step[1]) / 2
    losses = (found.start + np.arange(len(found.masses))) * step
    for epsilon in (-2.0, -1.0, -0.51, -0.3, -0.01, 0.0, 0.2, 0.6, 2.0):
        profile = np.sum(found.masses * np.maximum(-np.expm1(epsilon - losses), 0.0)) + found.infinite[1]
        assert profile >= Shift(1.0).hockey(np.array([epsilon]))[0][0] * (1 - 1e-12)
