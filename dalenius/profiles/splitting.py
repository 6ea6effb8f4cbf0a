"""Where to take the bulk of a law out, so that its jumps can be read by themselves. It only chooses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dalenius.profiles.arm import Arm
from dalenius.profiles.cutoff import REACH, Cutoff
from dalenius.profiles.jumps import Jumps
from dalenius.profiles.layout import MOST_CELLS, Spacing, View, fine, spaced
from dalenius.profiles.nodes import Nodes
from dalenius.profiles.pair import Floats
from dalenius.profiles.plan import COARSE, Kept, Saddle, Sketch, log_sum
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
    calm: float
    """Shifts of the x-contour that show how the jumps decay, and the bulk."""

    def windows(self, sketch: Sketch, point: Saddle) -> Jumps:
        """Bulk and jumps, each on the grid it needs."""
        upper, s = point.cutoffs[0], sketch.exponent(self.spacing.c)
        part = sketch.parts[0]
        width = min(self.cutoff.width, upper.width)
        jumps = fine(sketch, 0, upper, self.extent, s, width, start=self.cutoff.middle - COARSE)
        step = jumps.nodes.step
        lower = self.cutoff.snapped(max(step, taken_step(self.cutoff)))
        depth = max(50.0, -sketch.target - self.spacing.c * point.epsilon)
        bulk = fine(sketch, 0, lower, self.extent, s, lower.width, keep=True, depth=depth)
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


@dataclass(frozen=True, eq=False)
class Apart:
    """Integrands of bulk and jumps for a cutoff at any edge of the coarse grid, and any c.

    Each of the two crosses the real axis where it likes; read together, both must where one takes over
    from the other, and the integrand may there exceed δ by far.
    """

    sketch: Sketch
    ends: Kept

    @cached_property
    def c(self) -> Floats:
        """Where either may cross the real axis."""
        least, most = self.sketch.sizes
        return np.geomspace(0.003 / most, 300 / least, 80)

    @cached_property
    def logs(self) -> tuple[Floats, Floats]:
        """T log A, and log T B (A + B)^{T−1}: rows for c, columns for cutoffs."""
        (part,), (grid,), (end, kept) = self.sketch.parts, self.sketch.grids, self.ends
        tilted = grid.log_density[:end] + kept + (1 + self.c)[:, None] * grid.log[0][:end]
        top = tilted.max(axis=1, keepdims=True)
        p = np.exp(tilted - top)
        before = top + np.log(np.cumsum(p, axis=1) + 1e-300)
        after = top + np.log(np.cumsum(p[:, ::-1], axis=1)[:, ::-1] + 1e-300)
        jumps = math.log(part.times) + after[:, 1:] + (part.times - 1) * before[:, -1:]
        return part.times * before[:, :-1], jumps

    def best(self, epsilon: float) -> tuple[float, int]:
        """The least that the larger of the two can be, in logarithms, and the cutoff's edge."""
        kernel = (self.c * epsilon + np.log(self.c) + np.log1p(self.c))[:, None]
        bulk, jumps = ((one - kernel).min(axis=0) for one in self.logs)
        larger = np.maximum(bulk, jumps)
        at = int(np.argmin(larger))
        return float(larger[at]), at + 1


def valley(sketch: Sketch, point: Saddle) -> Split | None:
    """A lower cutoff between the bulk and the jumps of the tilted law, where it has both."""
    (grid,), (end, kept) = sketch.grids, point.ends[0]
    tilted = grid.log_density[:end] + kept + sketch.exponent(point.c) * grid.log[0][:end]
    rises = np.diff(tilted) > 0
    peaks = np.flatnonzero(rises[:-1] & ~rises[1:]) + 1
    if len(peaks) < 2:
        return None
    return _split_below(sketch, point, int(peaks[0]) + int(np.argmin(tilted[peaks[0] : peaks[-1] + 1])))


def balanced(sketch: Sketch, point: Saddle) -> Split | None:
    """The lower cutoff that makes the larger integrand least, if that gains anything."""
    size, at = Apart(sketch, point.ends[0]).best(point.epsilon)
    return _split_below(sketch, point, at) if size < point.size else None


def _split_below(sketch: Sketch, point: Saddle, at: int) -> Split:
    """At an edge of the coarse grid."""
    (part,), (grid,), upper = sketch.parts, sketch.grids, point.cutoffs[0]
    cutoff = Cutoff(float(grid.edges[at]), min(0.3, 0.15 / max(part.shifts)))
    if not cutoff.within(upper, float(grid.edges[0]), upper.middle + 9 * upper.width):
        cutoff = Cutoff(cutoff.middle, upper.width)
    return _split(sketch, point, cutoff, None, upper)


def balance_at(sketch: Sketch, epsilon: float) -> float:
    """About log δ(ε): the larger integrand at its least."""
    return _far(sketch).best(epsilon)[0]


def crossing(sketch: Sketch) -> float:
    """ε at which that comes down to log δ, found by halving."""
    apart = _far(sketch)
    low, high = 0.0, sketch.sizes[1]
    while apart.best(high)[0] > sketch.log_delta:
        low, high = high, 4 * high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if apart.best(middle)[0] < sketch.log_delta else (middle, high)
    return high


def _far(sketch: Sketch) -> Apart:
    return Apart(sketch, sketch.ends(sketch.far)[0])


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
    reach = _jump_reach(sketch, found.c, cutoff, upper, need, float(log[place] - log[0]))
    return Split(cutoff, steep, found, *reach)


def _least(point: Saddle, mass: Callable[[Floats], Floats]) -> float:
    """The c that makes the jumps' integrand least."""
    c = point.c * 2.0 ** np.linspace(-4, 4, 33)
    return float(c[int(np.argmin(mass(c) - c * point.epsilon - np.log(c) - np.log1p(c)))])


def _jump_reach(
    sketch: Sketch, c: float, lower: Cutoff, upper: Cutoff, need: float, size: float
) -> tuple[float, float, float]:
    """How far in Im z the jumps matter, and the shifts that show it for jumps and bulk."""
    part, s = sketch.parts[0], sketch.exponent(c)
    width = min(lower.width, upper.width)
    step = 2.0 ** math.floor(math.log2(width / 2))
    left = math.floor((lower.middle - 9 * lower.width) / step)
    nodes = Nodes(part, step, left, math.ceil((upper.middle + 9 * upper.width) / step))
    if nodes.right - nodes.left > MOST_CELLS:
        return math.inf, 0.0, 0.0
    arm = Arm(Gap(nodes, upper.snapped(step), lower=lower.snapped(step)), s)
    whole = log_sum(
        sketch.grids[0].log_density
        + s * np.minimum(sketch.grids[0].log[0], part.log(np.array([upper.middle]))[0])
    )
    bulk = _Calm(View(part, sketch.grids[0], lower, s))
    extents = 1.25 ** np.arange(60) / max(1e-12, size)

    def left_out(extent: float, theta: float) -> float:
        gap = math.log(arm.gap_decay(extent, theta) + 1e-300)
        rest = min(float(whole), float(np.logaddexp(bulk.log_size(extent), gap)))
        return math.log(part.times / extent) + gap + (part.times - 1) * rest

    best = (math.inf, 0.0)
    most = min(0.7 * math.pi / 2 / max(part.shifts), 18 * width)
    for theta in (0.4 * most, 0.7 * most, most):
        low, high = 0, len(extents) - 1
        while low < high:
            middle = (low + high) // 2
            enough = left_out(float(extents[middle]), theta) - 1 < need
            low, high = (low, middle) if enough else (middle + 1, high)
        if high < len(extents) - 1:
            best = min(best, (float(extents[high]), theta))
    return *best, bulk.shift(best[0])


@dataclass(frozen=True, eq=False)
class _Calm:
    """The bulk on a coarse grid, moved as far as a normal law would ask for."""

    view: View

    @cached_property
    def spread(self) -> float:
        """The root of the mean square of λ."""
        log = self.view.grid.log[0]
        density = np.exp(self.view.line(0.0)[0])
        return math.sqrt(float(density @ (log * log)) / float(density.sum()))

    def shift(self, extent: float) -> float:
        """θ for that extent."""
        most = min(5.0, 0.6 * math.pi / 2 / max(self.view.part.shifts), 18 * self.view.cutoff.width)
        return min(most, extent * self.spread)

    def log_size(self, extent: float) -> float:
        """log of the bound on one moment from Im z = extent on."""
        base, turn = self.view.line(self.shift(extent))
        return self.view.log_size(base, turn, extent) / self.view.part.times
