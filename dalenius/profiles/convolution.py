"""Convolution of lattice laws by the fast Fourier transform, exponentially tilted, with its error bound.

Every law U is multiplied by e^{τ(k−c)−m}, so that it sums to about one and its T-fold convolution is
centred at the losses asked about; the convolution r of the tilted laws determines that of the laws.

Theorem (Higham 2002, Theorem 24.2; written for radix 2, of which the radices 4 and 8 are two and
three layers with fewer roundings; a real transform computes half of the same butterflies). For
N = 2^t the computed transform has ‖ŷ − y‖₂ ≤ ρ‖y‖₂, ρ = tη/(1 − tη), η = μ + γ₄(√2 + μ), where μ
bounds the error of the roots of unity. With y_i the transforms of the tilted laws a_i,
g_i = max(1, Σa_i + ρ√N‖a_i‖₂), G = Πg_i^{n_i}, n = Σn_i, and 3U for one complex product, the computed
convolution r̂ (cyclic, of length N) has
    ‖r̂ − r‖₂ ≤ (1 + ρ)(1 + 3U)^n·G·((ρ + 3U)·Σ n_i‖a_i‖₂ + ρ·min‖a_i‖₂).
Wrap-around only adds to r, and by no more than the mass outside the window, which is Chernoff's:
at most e^{κ(s)−sB} beyond B, κ(s) = Σ n_i log Σ_k a_i(k)e^{sk}, and likewise below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.profiles.lattice import Interval, Lattice, total_offset
from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import ULPS, U
from dalenius.profiles.saddle import Plan

ROOT_OF_UNITY = 4 * U
"""μ: bounds the error of a computed root of unity."""
LAYER = ROOT_OF_UNITY + 4 * U / (1 - 4 * U) * (math.sqrt(2) + ROOT_OF_UNITY)
"""η: one layer of butterflies."""
PRODUCT = 3 * U
"""One complex product (Brent, Percival and Zimmermann 2007: √5·U)."""
FINITE = 700.0
"""Exponents from here on count as infinite."""
VANISHING = 1e-270
"""More than underflow, and masses dropped for being below 1e-300 of the largest, can add up to."""
LONGEST = 2**22
"""No window is longer than this."""


@dataclass(frozen=True, eq=False)
class Tilted:
    """One law times e^{tilt·(k − centre) − log_total}, the masses within a relative `rounding`."""

    masses: Floats
    first: int
    log_total: float
    centre: int
    rounding: float
    count: int

    def log_moment(self, exponent: float) -> float:
        """An upper bound on count·log Σ a(k) e^{exponent·(k − centre)}."""
        there = np.flatnonzero(self.masses)
        exponents = exponent * (there + (self.first - self.centre))
        top = float(exponents.max())
        value = top + math.log(max(float(np.sum(self.masses[there] * np.exp(exponents - top))), 1e-300))
        largest = max(top, -float(exponents.min()))
        slack = self.rounding + (2 * largest + 40 + len(self.masses).bit_length()) * 2 * U
        return self.count * (value + slack + abs(value) * 4 * U)


@dataclass(frozen=True, eq=False)
class Window:
    """The tilted convolution r on N consecutive indices from `first`, and what is certified of it.

    The mass at index k is values[k − first]·e^{log_scale − tilt·(k − centre)}, where the values are
    within `distance` of the tilted masses in the ℓ² norm, up to a factor within 1 ± `relative` and the
    wrapped mass, of which there is at most `outside`.
    """

    first: int
    values: Floats
    tilt: float
    log_scale: float
    centre: int
    relative: float
    distance: float
    outside: float
    step: Interval
    offset: Interval


def growth(exponent: float) -> float:
    """e^exponent, infinite rather than an overflow: a bound stays one."""
    return math.exp(exponent) if exponent < FINITE else math.inf


def surplus(exponent: float) -> float:
    """e^exponent − 1, likewise."""
    return math.expm1(exponent) if exponent < FINITE else math.inf


def convolve(terms: Sequence[tuple[Lattice, int]], plan: Plan) -> Window | None:
    """The convolution of all laws over the plan's window; None where that is too long."""
    step = float(terms[0][0].step[0])
    offset = total_offset(terms)
    tilted = [_tilt(law, n, plan.tilt * step) for law, n in terms]
    lowest = sum(n * law.start for law, n in terms)
    full = sum(n * (len(law.masses) - 1) for law, n in terms) + 1
    first, length = _extent(plan, step, float(offset[0]), lowest, full)
    if length > LONGEST or max(len(law.masses) for law, _ in terms) > LONGEST:
        return None
    values, distance = _transform(tilted, length, (first - lowest) % length)
    centre = sum(part.count * part.centre for part in tilted)
    before = first - 1 - centre if first > lowest else None
    after = first + length - centre if first + length < lowest + full else None
    outside = _outside(tilted, plan, step, (before, after))
    folding = [len(part.masses) // length * U for part in tilted]
    drift = sum(part.count * (part.rounding + fold) for part, fold in zip(tilted, folding, strict=True))
    scale = math.fsum(part.count * part.log_total for part in tilted)
    return Window(
        first=first,
        values=values,
        tilt=plan.tilt * step,
        log_scale=scale,
        centre=centre,
        relative=surplus(drift * (1 + 8 * U)),
        distance=distance,
        outside=outside + VANISHING,
        step=terms[0][0].step,
        offset=offset,
    )


def _tilt(law: Lattice, count: int, tilt: float) -> Tilted:
    """The exponent carries 2|tilt·(k − centre)|U + |m|U; what is 1e-300 below the largest is VANISHING."""
    indices = np.arange(law.start, law.end + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(law.masses) + tilt * indices
    weights = np.exp(logs - logs.max())
    centre = int(float(weights @ indices) / float(weights.sum()) + 0.5)
    exponents = tilt * (indices - centre)
    log_total = float(logs.max()) + math.log(float(weights.sum())) - tilt * centre
    there = weights > 1e-300
    largest = float(np.abs(exponents[there]).max()) + abs(log_total)
    # In two steps, as a mass near the least float may take a factor beyond the largest.
    half = np.exp(0.5 * np.where(there, exponents - log_total, 0.0))
    masses = np.where(there, law.masses * half * half, 0.0)
    return Tilted(masses, law.start, log_total, centre, (3 * largest + 3 * ULPS + 5) * U, count)


def _extent(plan: Plan, step: float, offset: float, lowest: int, full: int) -> tuple[int, int]:
    """First index and length, a power of two, that cover the plan's window or the whole support."""
    first = max(lowest, math.floor((plan.window[0] - offset) / step) - 1)
    last = min(lowest + full - 1, math.ceil((plan.window[1] - offset) / step) + 1)
    length = 1 << max(int(max(last - first, 1)).bit_length(), 4)
    return (lowest if length >= full else first), length


def _transform(tilted: Sequence[Tilted], length: int, shift: int) -> tuple[Floats, float]:
    """The cyclic convolution, its bins renumbered from `shift`, and the bound of the module."""
    layers = length.bit_length() - 1
    rho = layers * LAYER / (1 - layers * LAYER)
    spectrum: NDArray[np.complex128] | None = None
    largest, drift, least, count = 0.0, 0.0, math.inf, 0
    for part in tilted:
        folded, norm, total = _fold(part.masses, length)
        power = _power(np.fft.rfft(folded), part.count)
        spectrum = power if spectrum is None else spectrum * power
        largest += part.count * math.log(max(1.0, total + rho * math.sqrt(length) * norm))
        drift += part.count * norm
        least, count = min(least, norm), count + part.count
    assert spectrum is not None
    values = np.maximum(np.roll(np.fft.irfft(spectrum, length), -shift), 0.0)
    bound = (1 + rho) * growth(largest + count * PRODUCT) * ((rho + PRODUCT) * drift + rho * least)
    return values, bound * (1 + 64 * U) + VANISHING


def _fold(masses: Floats, length: int) -> tuple[Floats, float, float]:
    """The masses modulo `length`, and upper bounds on their ℓ² norm and sum, rounding included."""
    rows = -(-len(masses) // length)
    folded = np.zeros(rows * length)
    folded[: len(masses)] = masses
    folded = folded.reshape(rows, length).sum(axis=0)
    slack = 1 + 1e-8 + rows * 2 * U  # a norm of 2²² numbers, summed in any order, and the folding
    return folded, float(np.linalg.norm(folded)) * slack, float(folded.sum()) * slack


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """By squaring: the result carries at most exponent − 1 products' errors."""
    result = None
    while True:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        base = base * base


def _outside(tilted: Sequence[Tilted], plan: Plan, step: float, ends: tuple[int | None, int | None]) -> float:
    """Chernoff's bound on the tilted mass at or beyond the ends, counted from the centre; None has none."""
    total = 0.0
    for exponent, end in zip(plan.exponents, ends, strict=True):
        if end is None:
            continue
        moment = sum(part.log_moment(exponent * step) for part in tilted)
        reach = exponent * step * end
        total += growth(moment - reach + 4 * U * abs(reach))
    return total * (1 + 64 * U)
