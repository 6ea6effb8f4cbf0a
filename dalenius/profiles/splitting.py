"""Where to take the bulk of a law out, so that its jumps can be read by themselves. It only chooses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dalenius.profiles.arm import Arm
from dalenius.profiles.cutoff import REACH, Cutoff
from dalenius.profiles.jumps import Jumps
from dalenius.profiles.layout import MOST_CELLS, Spacing, fine, spaced
from dalenius.profiles.nodes import Nodes
from dalenius.profiles.pair import Floats
from dalenius.profiles.plan import Saddle, Sketch, log_sum
from dalenius.profiles.shares import taken_step
from dalenius.profiles.window import Gap

NARROWEST = 0.003
"""The narrowest cutoff."""


@dataclass(frozen=True)
class Split:
    """A lower cutoff, the exponent that bounds what is under it, and how far the jumps reach in Im z.

    Without an exponent, what is under the cutoff matters and is read from a contour of its own.
    """

    cutoff: Cutoff
    exponent: float | None
    spacing: Spacing
    extent: float
    theta: float

    def windows(self, sketch: Sketch, upper: Cutoff, s: float) -> Jumps:
        """Bulk and jumps, each on the grid it needs."""
        part = sketch.parts[0]
        width = min(self.cutoff.width, upper.width)
        jumps = fine(sketch, 0, upper, self.extent, s, width)
        step = jumps.nodes.step
        lower = self.cutoff.snapped(max(step, taken_step(self.cutoff)))
        bulk = fine(sketch, 0, lower, self.extent, s, lower.width, keep=True)
        start = math.floor((lower.middle - 9 * lower.width) / step)
        last = max(upper.middle + 9 * upper.width, float(bulk.nodes.edges[-1]))
        end = max(math.ceil(last / step), jumps.nodes.right)
        nodes = Nodes(part, step, max(start, jumps.nodes.left), end)
        return Jumps(bulk, Gap(nodes, jumps.cutoff, lower=lower), part.times, s)


def split_at(sketch: Sketch, point: Saddle, upper: Cutoff) -> Split | None:
    """The highest lower cutoff under which all releases together leave the outcome settled."""
    (part,), (grid,) = sketch.parts, sketch.grids
    t = np.geomspace(point.c / 4, 400 * point.c + 100, 40)
    end = point.ends[0][0]
    log = grid.log[0][:end]
    exponent = grid.log_density[:end] + (1 + t)[:, None] * log
    top = exponent.max(axis=1, keepdims=True)
    grown = part.times * (top + np.log(np.cumsum(np.exp(exponent - top), axis=1) + 1e-300))
    late = grown - t[:, None] * point.epsilon
    settled = np.nonzero(late.min(axis=0) < sketch.target)[0]
    if len(settled) == 0:
        return None
    at = int(settled[-1])
    steep = float(t[int(np.argmin(late[:, at]))])
    slope = max(part.shifts)
    width = min(0.3, 0.15 / slope, 6.0 / (steep * part.slope(float(grid.edges[at + 1])) + 1e-300))
    if width < NARROWEST:
        return None
    cutoff = Cutoff(float(grid.edges[at + 1]) - REACH * width, width)
    return _split(sketch, point, cutoff, steep, upper)


def valley(sketch: Sketch, point: Saddle) -> Split | None:
    """A lower cutoff between the bulk and the jumps of the tilted law, where it has both."""
    (part,), (grid,), (end, kept) = sketch.parts, sketch.grids, point.ends[0]
    tilted = grid.log_density[:end] + kept + sketch.exponent(point.c) * grid.log[0][:end]
    rises = np.diff(tilted) > 0
    peaks = np.flatnonzero(rises[:-1] & ~rises[1:]) + 1
    if len(peaks) < 2:
        return None
    at = int(peaks[0]) + int(np.argmin(tilted[peaks[0] : peaks[-1] + 1]))
    middle, upper = float(grid.edges[at]), point.cutoffs[0]
    cutoff = Cutoff(middle, min(0.3, 0.15 / max(part.shifts)))
    if not cutoff.within(upper, float(grid.edges[0]), upper.middle + 9 * upper.width):
        cutoff = Cutoff(middle, upper.width)
    return _split(sketch, point, cutoff, None, upper)


def _split(sketch: Sketch, point: Saddle, cutoff: Cutoff, steep: float | None, upper: Cutoff) -> Split:
    (part,), (grid,), (end, kept) = sketch.parts, sketch.grids, point.ends[0]
    log = grid.log[0][:end]
    place = max(1, min(end - 1, int(np.searchsorted(grid.x, cutoff.middle))))

    def mass(c: Floats) -> Floats:
        """log T B (A + B)^{T−1} on the coarse grid."""
        tilted = grid.log_density[:end] + kept + (1 + c)[:, None] * log
        whole, jumped = log_sum(tilted), log_sum(tilted[:, place:])
        return np.asarray(math.log(part.times) + jumped + (part.times - 1) * whole)

    found = spaced(sketch, replace(point, c=_least(point, mass)), mass)
    need = sketch.target + found.c * point.epsilon
    extent, theta = _jump_reach(sketch, found.c, cutoff, upper, need, float(log[place] - log[0]))
    return Split(cutoff, steep, found, extent, theta)


def _least(point: Saddle, mass: Callable[[Floats], Floats]) -> float:
    """The c that makes the jumps' integrand least."""
    c = point.c * 2.0 ** np.linspace(-4, 4, 33)
    return float(c[int(np.argmin(mass(c) - c * point.epsilon - np.log(c) - np.log1p(c)))])


def _jump_reach(
    sketch: Sketch, c: float, lower: Cutoff, upper: Cutoff, need: float, size: float
) -> tuple[float, float]:
    """How far in Im z the jumps matter, and the shift θ that shows it."""
    part = sketch.parts[0]
    width = min(lower.width, upper.width)
    step = 2.0 ** math.floor(math.log2(width / 2))
    left = math.floor((lower.middle - 9 * lower.width) / step)
    nodes = Nodes(part, step, left, math.ceil((upper.middle + 9 * upper.width) / step))
    if nodes.right - nodes.left > MOST_CELLS:
        return math.inf, 0.0
    arm = Arm(Gap(nodes, upper.snapped(step), lower=lower.snapped(step)), sketch.exponent(c))
    whole = log_sum(
        sketch.grids[0].log_density
        + sketch.exponent(c) * np.minimum(sketch.grids[0].log[0], part.log(np.array([upper.middle]))[0])
    )
    need -= math.log(part.times) + (part.times - 1) * float(whole)
    extents = 1.25 ** np.arange(60) / max(1e-12, size)
    best = (math.inf, 0.0)
    most = min(0.7 * math.pi / 2 / max(part.shifts), 18 * width)
    for theta in (0.4 * most, 0.7 * most, most):
        low, high = 0, len(extents) - 1
        while low < high:
            middle = (low + high) // 2
            gap = math.log(arm.gap_decay(float(extents[middle]), theta) + 1e-300)
            low, high = (low, middle) if gap - math.log(extents[middle]) - 1 < need else (middle + 1, high)
        if high < len(extents) - 1:
            best = min(best, (float(extents[high]), theta))
    return best
