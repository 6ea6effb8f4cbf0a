"""A common lattice for any pairs, chosen for one question about their composition.

The gap between the two sides in ε is about n·(λ + 1)·step² at tilt λ (see `composed`): the step makes
that small, until the lattice would have more points than `FINE` allows. Losses above the lattice cost a
share `BLIND` of δ, and those below it next to nothing of the tilted mass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dalenius.profiles.composed import Composed
from dalenius.profiles.convolution import convolve
from dalenius.profiles.dots import Mesh, law
from dalenius.profiles.inverse import invert
from dalenius.profiles.lattice import Lattice
from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.rounding import U
from dalenius.profiles.saddle import Plan, Sketch, plan, windowed

Terms = tuple[tuple[Pair, int], ...]

Fineness = tuple[float, int]
"""The relative gap in ε that the step aims for, and the most lattice points at which a pair's divergence is
asked for, which is half of the longest window."""
FINE: Fineness = (1e-9, 2**17)
"""For one question."""
COARSE: Fineness = (1e-6, 2**13)
"""For curves, between whose knots more is lost."""
NODES = np.geomspace(1e-9, 1e6, 500)
"""Where a pair is first looked at, on either side of zero."""
ENOUGH = 3e-7
"""Relative gap at which another attempt, tilted for the ε found, is not worth its time."""
ATTEMPTS = 2
VANISHED = 1e-280
"""Bounds on H below this are taken for zero when looking around: a tilt must not feel an underflow."""
ROUNDED, NEGLIGIBLE = 1 / 16, 8.0
"""Steps, and what is negligible, are powers of two to multiples of these."""
MOVED = 0.3
"""How far a coarse lattice may move the sum, in its standard deviations, without a new plan."""
WIDEST = 100.0
"""The longest step: losses that are farther apart are not told apart by any ε of interest."""
BLIND = 1e-13
"""Share of δ that the losses beyond the lattice may cost."""


@dataclass(frozen=True)
class Grid:
    """A composition of any pairs, each question on a lattice chosen for it."""

    terms: Terms

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        return self.reader(epsilon)[0].delta(epsilon)

    def reader(self, epsilon: float) -> tuple[Composed | Unknown, float]:
        """A convolution for ε, and how far from it it may be read without loss."""
        return self._reader(epsilon, FINE)

    def sketcher(self, epsilon: float) -> tuple[Composed | Unknown, float]:
        """Return a convolution on a coarser lattice, for curves, and how far from ε it may be read.

        The tilted sum is about normal around ε, so that two deviations away its mass is far above rounding.
        """
        return self._reader(epsilon, COARSE)

    def _reader(self, epsilon: float, fineness: Fineness) -> tuple[Composed | Unknown, float]:
        planned = plan(self._sketches, epsilon=epsilon)
        composed, final = self._composed(planned, planned.log_delta, fineness)
        return composed, 1 / (final.tilt + 1 / final.deviation) if fineness == FINE else 2 * final.deviation

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta, delta > 0."""
        planned = plan(self._sketches, log_delta=math.log(delta))
        lower, upper = 0.0, math.inf
        for _ in range(ATTEMPTS):
            composed, final = self._composed(planned, math.log(delta), FINE)
            scale = 1 / (final.tilt + 1 / final.deviation)
            found = invert(composed.delta, delta, guess=max(final.epsilon, 0.0), scale=scale, narrow=1e-12)
            lower, upper = max(lower, found[0]), min(upper, found[1])
            if math.isinf(upper) or upper - lower <= ENOUGH * upper:
                break
            planned = plan(self._sketches, epsilon=upper)
        return lower, upper

    @cached_property
    def _sketches(self) -> tuple[Sketch, ...]:
        return tuple(_sketch(pair, NODES, NODES, n) for pair, n in self.terms)

    def _composed(self, rough: Plan, log_delta: float, fineness: Fineness) -> tuple[Composed | Unknown, Plan]:
        """A finer look at the losses that matter, then the lattice, then the convolution."""
        count = sum(n for _, n in self.terms)
        negligible = _rounded(math.exp(min(max(log_delta, -650.0), 0.0)) * BLIND / count, NEGLIGIBLE)
        whole = self._reaches(self._sketches, 0.0, negligible)
        finer = [_refined(pair, reach, n) for (pair, n), reach in zip(self.terms, whole, strict=True)]
        final = plan(finer, epsilon=rough.epsilon) if rough.aimed else plan(finer, log_delta=log_delta)
        reaches = self._reaches(finer, final.tilt, negligible)
        step = _step(final, count, reaches, fineness)
        if step > WIDEST:
            return Unknown(), final
        meshes = [_mesh(step, reach, negligible) for reach in reaches]
        laws = [(_law(pair, mesh), n) for (pair, n), mesh in zip(self.terms, meshes, strict=True)]
        if count * step**2 * (0.125 + final.tilt / 4) > MOVED * final.deviation:
            finer = [Sketch.of(each.estimates, each.masses, n) for each, n in laws]
            final = plan(finer, epsilon=rough.epsilon) if rough.aimed else plan(finer, log_delta=log_delta)
        else:
            final = windowed(final, finer, max(final.deviation, math.sqrt(count) * step))
        window = convolve(laws, final)
        return (Unknown() if window is None else Composed.of(laws, window)), final

    def _reaches(
        self, sketches: Sequence[Sketch], tilt: float, negligible: float
    ) -> list[tuple[float, float]]:
        pairs = (pair for pair, _ in self.terms)
        return [_reach(pair, sketch, tilt, negligible) for pair, sketch in zip(pairs, sketches, strict=True)]


class Unknown:
    """So many releases that no lattice is fine enough: what holds of every composition."""

    def delta(self, epsilon: float) -> tuple[float, float]:
        """δ(ε) is a probability; at least 1 − e^ε."""
        return (max(0.0, -math.expm1(min(epsilon, 0.0)) * (1 - 16 * U)), 1.0)


def _sketch(pair: Pair, right: Floats, left: Floats, count: int) -> Sketch:
    """The chords' masses on unequal nodes, without care for rounding."""
    ahead, back = _rough(pair, right), _rough(pair.reversed(), left)
    masses = np.concatenate([(back * np.exp(-left))[::-1], [0.0], ahead])
    masses[len(left)] = max(0.0, 1 - float(masses.sum()))
    return Sketch.of(np.concatenate([-left[::-1], [0.0], right]), masses, count)


def _rough(pair: Pair, nodes: Floats) -> Floats:
    heights = levels(pair, np.append(0.0, nodes))
    drops = np.maximum(heights[:-1] - heights[1:], 0.0)
    gaps = np.diff(np.append(0.0, nodes))
    with np.errstate(over="ignore"):
        flat = np.append(drops[1:] / np.expm1(gaps[1:]), 0.0)
    return np.asarray(np.maximum(drops / -np.expm1(-gaps) - flat, 0.0))


def levels(pair: Pair, nodes: Floats) -> Floats:
    """Upper bounds on H, for looking around: some nodes are far beyond what a pair was meant for."""
    with np.errstate(all="ignore"):
        heights = np.nan_to_num(pair.hockey(nodes)[1], nan=1.0)
    # H does not increase, though a bound on it may, far beyond what it was made for.
    return np.minimum.accumulate(np.where(heights > VANISHED, heights, 0.0))


def _reach(pair: Pair, sketch: Sketch, tilt: float, negligible: float) -> tuple[float, float]:
    """How far left and right of zero the losses matter: tilted mass on the left, δ itself on the right."""
    heights = levels(pair, NODES)
    floor = max(negligible, float(heights[-1]) * (1 + 1e-9))
    right = float(NODES[min(int(np.searchsorted(-heights, -floor)), len(NODES) - 1)])
    logs = sketch.logs + tilt * sketch.losses
    weights = np.cumsum(np.exp(logs - logs.max()))
    first = int(np.searchsorted(weights, weights[-1] * 1e-17 / sketch.count))
    left = -float(sketch.losses[max(first - 1, 0)])
    lowest, highest = pair.support
    return (min(max(left, right * 1e-3), max(-lowest, right * 1e-3)), min(right, max(highest, 1e-9)))


def _refined(pair: Pair, reach: tuple[float, float], count: int) -> Sketch:
    left, right = (np.union1d(np.linspace(0, r, 513)[1:], NODES[r > NODES]) for r in reach)
    return _sketch(pair, right, left, count)


def _step(final: Plan, count: int, reaches: Sequence[tuple[float, float]], fineness: Fineness) -> float:
    gap, points = fineness
    aim = math.sqrt(gap * max(final.epsilon, 1e-3 * final.deviation) / (count * (final.tilt + 1)))
    width = final.window[1] - final.window[0]
    least = max(width, 1e-300) / (2 * points - 16)
    # Questions next to each other are asked on one lattice: losses that repeat are split in the same way.
    return max(
        _rounded(aim, ROUNDED),
        max(map(sum, reaches)) / points,
        1 / _rounded(1 / least, ROUNDED) if least < math.inf else least,
    )


def _rounded(value: float, share: float) -> float:
    """Return the power of two to a multiple of `share` at or below a positive number; 0 and infinity stay."""
    return math.exp2(math.floor(math.log2(value) / share) * share) if 0 < value < math.inf else value


@lru_cache(maxsize=16)
def _law(pair: Pair, mesh: Mesh) -> Lattice:
    """Return the law of a pair on a mesh, which questions next to each other share."""
    return law(pair, mesh)


def _mesh(step: float, reach: tuple[float, float], negligible: float) -> Mesh:
    left, right = (max(2, math.ceil(r / step) + 1) for r in reach)
    return Mesh(math.expm1(step), left, right, negligible)
