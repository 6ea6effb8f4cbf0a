"""E(S − m)₊ for the sum S of t split laws on whole numbers, from one tilted convolution, on both sides.

Theorem (docs/proofs/allocation.md). Let S be the sum of t independent values and S′ that of the same
split between whole numbers. Then, with v = t/4 and θ = 1/√v,
    E(S′ − m)₊ ≥ E(S − m)₊ ≥ E(S′ − m)₊ − √(ev)·E e^{−θ|S′ − m|}.
Splitting keeps the mean, so it moves (S − m)₊ only where it carries S across m.

With the tilted masses r_k e^{−τ(k − c)} of a window, sums with fading weights are taken once for all m,
    A_k = Σ_{j≥k} r_j e^{−τ(j−k)},    B_k = Σ_{j≥k} r_j e^{−τ(j−k)}(j − k),
and the two sides of the last expectation with the rates τ + θ and θ − τ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalenius.profiles.convolution import FINITE, Window
from dalenius.profiles.pair import Floats, Indices
from dalenius.profiles.rounding import U

BLOCK = 300.0
"""Fading sums are cut into blocks over which a weight falls by e^{−300}."""
STEEP = 1.01
"""By how much θ must exceed the tilt."""
NORM = 1e-8
"""Relative error of an ℓ² norm of at most 2²² numbers, summed in any order."""


def faded(values: Floats, rate: float) -> Floats:
    """Σ_{j≥k} values_j e^{−rate(j−k)} for every k, rate > 0: sums of positive numbers from the right."""
    result = np.empty_like(values)
    size, carry, end = max(1, int(BLOCK / rate)), 0.0, len(values)
    while end > 0:
        start = max(0, end - size)
        weights = np.exp(-rate * np.arange(end - start))
        terms = values[start:end] * weights
        terms[-1] += carry * weights[-1] * math.exp(-rate)
        result[start:end] = np.cumsum(terms[::-1])[::-1] / weights
        carry, end = float(result[start]), start
    return result


@dataclass(frozen=True, eq=False)
class Reading:
    """Fading sums at the indices from `first` on, in one window, for `count` split laws."""

    window: Window
    count: int
    first: int
    mass: Floats
    excess: Floats
    right: Floats
    left: Floats

    @staticmethod
    def of(window: Window, count: int, first: int, last: int) -> Reading:
        """What is needed for m from first to last; past the window's end all mass lies to the left."""
        tilt, theta, values = window.tilt, 2 / math.sqrt(count), np.append(window.values, 0.0)
        start = min(max(first - window.first, 0), len(values) - 1)
        keep = slice(start, max(last + 2 - window.first, start + 1))
        mass = faded(values, tilt)
        excess = np.append(faded(mass, tilt)[1:], 0.0) * math.exp(-tilt)
        right, left = faded(values, tilt + theta), np.full_like(mass, math.inf)
        if theta > STEEP * tilt:
            left = np.append(0.0, faded(values[::-1], theta - tilt)[::-1][:-1])
        return Reading(
            window, count, window.first + start, *(row[keep].copy() for row in (mass, excess, right, left))
        )

    def at(self, least: Floats, most: Floats) -> tuple[Floats, Floats]:
        """Enclose E(S′ − m)₊ for m between `least` and `most`."""
        return self._value(most, -1), self._value(least, 1)

    def crossing(self, m: Floats) -> Floats:
        """At least E e^{−θ|S′ − m|}; infinite where the tilt is nearly as steep as θ."""
        theta, tilt = 2 / math.sqrt(self.count), self.window.tilt
        if theta <= STEEP * tilt:
            return np.full_like(m, math.inf)
        index, place, known = self._place(m)
        gap = index - m
        left = self.left[place] * np.exp(theta * gap - (theta - tilt))
        total = np.exp(-theta * gap) * self.right[place] + left
        norms = sum(1 / math.sqrt(-math.expm1(-2 * rate)) for rate in (theta + tilt, theta - tilt))
        hidden = norms * self.window.distance * (1 + NORM) + self.window.outside
        noise = np.exp(np.clip((theta + tilt) * (gap + 1), 0.0, FINITE)) * hidden
        moved = np.exp(theta * 64 * U * (1 + np.abs(m)))
        value = self._scale(index, 1) * (total * (1 + self._rounding) + noise) * moved
        return np.where(known, value, math.inf)

    def _value(self, m: Floats, side: int) -> Floats:
        """Σ r (k − m)₊, rounded to one side, with what the transform and the window may hide."""
        index, place, known = self._place(m)
        tilt, gap = self.window.tilt, index - m
        found = self.excess[place] + gap * self.mass[place]
        rest = -math.expm1(-2 * tilt)
        norm = math.sqrt(2 / rest**3) + gap / math.sqrt(rest)
        peak = np.exp(np.clip(tilt * gap, 0.0, FINITE)) / (math.e * tilt)
        noise = norm * self.window.distance * (1 + NORM) + peak * self.window.outside
        noise = noise + 8 * U * np.abs(m) * self.mass[place]
        value = found * (1 + side * self._rounding) + side * noise * (1 + 64 * U)
        scaled = np.maximum(self._scale(index, side) * value, 0.0)
        return np.where(known, scaled, 0.0 if side < 0 else math.inf)

    @property
    def _rounding(self) -> float:
        """Sums of at most N positive terms in blocks, exponents of at most BLOCK, and the masses' own."""
        return self.window.relative + (8 * len(self.window.values) + 16 * BLOCK + 64) * U

    def _place(self, m: Floats) -> tuple[Floats, Indices, Indices]:
        """The first index above m, not before the window; its place here; and whether it has one.

        Past the window's end the sums are those at the end, where nothing lies to the right.
        """
        index = np.maximum(np.floor(m) + 1, float(self.window.first))
        end = self.window.first + len(self.window.values)
        place = np.minimum(index, float(end)) - self.first
        known = (place >= 0) & (place < len(self.mass))
        return index, np.clip(place, 0, len(self.mass) - 1).astype(np.int64), known

    def _scale(self, index: Floats, side: int) -> Floats:
        """e^{log_scale − tilt·(k − centre)}, rounded to one side."""
        shifted = self.window.tilt * (index - self.window.centre)
        exponent = self.window.log_scale - shifted
        slack = (4 * (abs(self.window.log_scale) + np.abs(shifted)) + 16) * U
        return np.asarray(np.exp(np.minimum(exponent, FINITE)) * (1 + side * slack))
