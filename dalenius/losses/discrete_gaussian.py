"""The discrete Gaussian mechanism: P(x) ∝ e^{−x²/2σ²} on the integers.

Theorem (Canonne, Kamath and Steinke 2020). With integer sensitivity Δ the worst
pair for a scalar is the law and its shift by Δ; a lesser shift is no worse, the law being log-concave. The
loss at x is (Δ² − 2xΔ)/(2σ²): it lives on a lattice of step Δ/σ². It is attained and its own reverse. With
Z(a) = Σ_x e^{−(x+a)²/2σ²},
    E e^{tL} = e^{t(t+1)Δ²/2σ²} · Z(tΔ)/Z(0) ≤ e^{t(t+1)Δ²/2σ²},
so it is Δ²/(2σ²)-zCDP; but its δ(ε) is not that of the continuous Gaussian and is at places above it.

Evaluation. The atoms with |x| ≤ 39σ + 1 are listed; beyond, with e^{−39²/2} < 2^−1097 and a ratio of
successive terms below e^{−39/σ}, lies less than TINY. By Poisson summation Z(a) is σ√(2π)(1 + 2Σ_j
e^{−2π²σ²j²} cos 2πja), so Z(a)/Z(0) lies within 5e^{−2π²σ²} below 1 for σ ≥ 1.

This is a scalar release: a vector has one such loss for every coordinate that may change. For values of
bounded L2 norm use the rounded Gaussian, whose loss is `Gaussian`. `scale` is σ; `sensitivity` is that
under the stated relation, in the same units.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Described, Parameter, check_distance, ratio, whole
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.enclosure import ELEMENTARY, Interval, around, interval
from dalenius.profiles.lattice import Lattice, point
from dalenius.profiles.law import Law
from dalenius.profiles.pair import Floats, Pair, Worst
from dalenius.profiles.rounding import TINY, U
from dalenius.profiles.spacing import on_lattice

MOST_SCALE = 10_000
"""The largest scale whose atoms are listed one by one."""


def _scale(value: object, name: str) -> Fraction:
    scale = ratio(value, name)
    if scale > MOST_SCALE:
        raise InvalidArgument(
            f"{name} must be at most {MOST_SCALE}, not {float(scale):.10g}.",
            remedy="Use a coarser grid, or the rounded Gaussian, whose loss is Gaussian(noise_multiplier).",
        )
    return scale


@dataclass(frozen=True)
class DiscreteGaussianPair(Pair):
    """Discrete Gaussian laws of one scale, `sensitivity` apart."""

    scale: Fraction
    sensitivity: int

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """By the knots of its atoms."""
        return _law(self.scale, self.sensitivity).hockey(epsilon)

    def log_moment(self, order: float) -> tuple[float, float]:
        """The closed form, in balls."""
        with workprec(BITS):
            t, ratio = ball(order), Fraction(self.sensitivity) ** 2 / (2 * self.scale**2)
            shift = Fraction(order) * self.sensitivity
            lo, hi = interval(t * (t + 1) * ball(ratio) + _theta(self.scale, shift - math.floor(shift)))
            return (max(lo, 0.0), hi)

    def mean(self) -> Interval:
        """E L = Δ²/(2σ²), as the law is centred."""
        return around(self.sensitivity**2 / (2 * self.scale**2))

    @property
    def support(self) -> tuple[float, float]:
        """All reals are reached."""
        return (-math.inf, math.inf)

    def reversed(self) -> DiscreteGaussianPair:
        """Itself, by reflection."""
        return self

    def lattice(self) -> Lattice:
        """x = −i at index i, so that losses increase."""
        masses, units = _masses(self.scale)
        step = self.sensitivity / self.scale**2
        start = -(len(masses) // 2)
        return on_lattice(point(step), point(step * self.sensitivity / 2), start, masses, units, TINY)


@lru_cache(maxsize=16)
def _masses(scale: Fraction) -> tuple[Floats, float]:
    """P(x) for |x| ≤ 39σ + 1, and the roundings in each: two exponentials, their product, the sum.

    1/(2σ²) is split so that x² times its head is exact; the tail's exponent is below 1 and its own two
    roundings count for less than two. So does the sum, whose terms carry as many.
    """
    reach = math.ceil(39 * scale) + 1
    squares = np.arange(-reach, reach + 1, dtype=np.float64) ** 2
    rate = 1 / (2 * scale**2)
    head = _head(rate, 52 - 2 * reach.bit_length())
    weights = np.exp(-squares * float(head)) * np.exp(-squares * float(rate - head))
    return weights / math.fsum(weights), 4 * ELEMENTARY + 16


def _head(number: Fraction, bits: int) -> Fraction:
    """The number cut to its first `bits` binary digits."""
    shift = number.numerator.bit_length() - number.denominator.bit_length() - bits
    unit = Fraction(2) ** shift
    return math.floor(number / unit) * unit


@lru_cache(maxsize=16)
def _law(scale: Fraction, sensitivity: int) -> Law:
    masses, units = _masses(scale)
    slack = 2 * U * (units + 4)
    step = float(sensitivity / scale**2)
    offset = float(Fraction(sensitivity) ** 2 / (2 * scale**2))
    steps = step * np.arange(-(len(masses) // 2), len(masses) // 2 + 1)
    losses, error = offset + steps, 4 * U * (offset + np.abs(steps))
    lost = TINY * 2.0**-40
    bounds = np.array([np.maximum(masses * (1 - slack) - lost, 0.0), masses * (1 + slack) + lost])
    return Law(np.array([losses - error, losses + error]), bounds, beyond=TINY)


@lru_cache(maxsize=16)
def _theta(scale: Fraction, shift: Fraction) -> arb:
    """log Z(shift)/Z(0) for a shift in [0, 1)."""
    if scale >= 4:
        below = 5 * (-2 * (arb.pi() * ball(scale)) ** 2).exp()
        return (1 - below).log().union(arb(0))
    return (_sum(scale, shift) / _sum(scale, Fraction(0))).log()


def _sum(scale: Fraction, shift: Fraction) -> arb:
    """Z(shift), term by term; the rest is at most two geometric sums from the first terms left out."""
    reach, half = math.ceil(20 * scale) + 8, -1 / (2 * ball(scale) ** 2)
    total = sum(((half * ball(x + shift) ** 2).exp() for x in range(-reach, reach + 1)), arb(0))
    first = (half * ball(Fraction(reach)) ** 2).exp()
    rest = 2 * first / (1 - (2 * half * reach).exp())
    return total + rest.union(arb(0))


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(Described, kind="discrete_gaussian"):
    """Discrete Gaussian noise of `scale` on an integer of `sensitivity`."""

    scale: Parameter[Fraction] = Parameter(_scale)
    _: KW_ONLY
    sensitivity: Parameter[int] = Parameter(whole, 1)
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_distance(self.scale, self.sensitivity)

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((DiscreteGaussianPair(self.scale, self.sensitivity), 1),),)

    def concentration(self) -> tuple[Fraction, Fraction]:
        """Δ²/(2σ²), attained at the orders where tΔ is whole."""
        rho = self.sensitivity**2 / (2 * self.scale**2)
        return (rho, rho)

    def enlarged(self, size: int) -> DiscreteGaussian:
        """A group of k has k times the sensitivity."""
        return DiscreteGaussian(self.scale, sensitivity=self.sensitivity * size, relation=self.relation)
