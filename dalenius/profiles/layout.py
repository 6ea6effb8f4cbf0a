"""Spacing, extent and grids of a contour. Nothing here is a claim: `reading` checks what is chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.profiles.arm import Arm
from dalenius.profiles.contour import log_kappa
from dalenius.profiles.cutoff import Cutoff
from dalenius.profiles.nodes import Nodes, Part
from dalenius.profiles.pair import Floats
from dalenius.profiles.plan import Saddle, Sketch
from dalenius.profiles.shares import taken_step
from dalenius.profiles.window import Window

MOST_MASS = 500.0
"""The logarithm of the largest moment of one release that is asked for."""
MOST_CELLS = 1 << 16
"""The most cells of a grid in x."""
FACTORS = np.array([0.6, 0.7, 0.8, 0.87, 0.94, 1.0, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0])
"""Candidates for c and for c′ of the aliasing bound, over the saddle point."""


@dataclass(frozen=True)
class Spacing:
    """Where the contour crosses the real axis, c′ of the aliasing bound, and Λ."""

    c: float
    steeper: float
    wave: float


Guess = tuple[float, list[Window], float]
"""How far to go in Im z, the windows, and the logarithm of what is left out."""


def likely(sketch: Sketch, point: Saddle) -> Guess | None:
    """Where a normal law would need to go, if that is enough."""
    need = sketch.target + point.c * point.epsilon
    if not 0 < point.k2 < math.inf:
        return None
    normal = math.sqrt(2 * max(1.0, point.k - need) / point.k2)
    theta = normal * math.sqrt(point.k2 / sum(part.times for part in sketch.parts))
    if not point.light or theta > min(5.0, 0.5 / max(max(part.shifts) for part in sketch.parts)):
        return None
    for extent in (1.25 * normal, 1.6 * normal):
        windows = windows_for(sketch, point, extent)
        far = left_out(sketch, point, windows, extent, theta)
        if far < need:
            return extent, windows, far
    return None


def windows_for(sketch: Sketch, point: Saddle, extent: float) -> list[Window]:
    """A window for each part, fine enough up to `extent`."""
    s = sketch.exponent(point.c)
    return [fine(sketch, i, cutoff, extent, s) for i, cutoff in enumerate(point.cutoffs)]


def left_out(sketch: Sketch, point: Saddle, windows: list[Window], extent: float, theta: float) -> float:
    """log of what |Im z| > extent adds, e^{−cε} aside."""
    s = sketch.exponent(point.c)
    far = sum(
        part.times * math.log(Arm(w, s).decay(extent, theta) + 1e-300)
        for part, w in zip(sketch.parts, windows, strict=True)
    )
    return far + sketch.squared * (point.c * (point.c + 1) - extent**2) / 2 - math.log(math.pi * extent)


def least_left_out(
    sketch: Sketch, point: Saddle, windows: list[Window], extent: float, theta: float
) -> float:
    """The same with a lesser shift θ where that of the coarse look was too bold."""
    far = left_out(sketch, point, windows, extent, theta)
    if far < sketch.target + point.c * point.epsilon:
        return far
    return min(far, *(left_out(sketch, point, windows, extent, share * theta) for share in (0.7, 0.45)))


def spacing(
    saddle: float,
    epsilon: float,
    target: float,
    log_mass: Callable[[Floats], Floats],
    *,
    most: float = math.inf,
) -> Spacing:
    """c near the saddle, c′ and Λ for which aliasing meets the target with the fewest nodes.

    K is not asked for where it is above `most`.
    """
    c = saddle * FACTORS
    mass = log_mass(c)
    size = np.where(mass < most, mass - c * epsilon, np.inf)
    kappa = np.array([log_kappa(v) for v in c.tolist()])
    best = (math.inf, 5, 6)
    for i in np.nonzero((FACTORS <= 1) & (size < size[FACTORS <= 1].min() + 2.5))[0].tolist():
        above = (kappa[i + 1 :] + size[i + 1 :] - target) / (c[i + 1 :] - c[i])
        j = int(np.argmin(above))
        best = min(best, (max(-target / float(c[i]), float(above[j])), i, i + 1 + j))
    wave, i, j = best
    return Spacing((1.0 + float(c[i])) - 1.0, float(c[j]), 1.05 * wave)


def spaced(sketch: Sketch, point: Saddle, log_mass: Callable[[Floats], Floats]) -> Spacing:
    """The same for a sketch."""
    most = MOST_MASS * sum(part.times for part in sketch.parts)
    return spacing(point.c, point.epsilon, sketch.target, log_mass, most=most)


def reach(sketch: Sketch, point: Saddle, cutoffs: list[Cutoff]) -> tuple[float, float]:
    """How far in Im z the integrand matters, and the shift θ of the x-contour that shows it."""
    need = sketch.target + point.c * point.epsilon
    if not 0 < point.k2 < math.inf:
        return math.inf, 0.0
    start = 0.95 * math.sqrt(2 * max(1.0, point.k - need) / point.k2)
    extents = start * 1.15 ** np.arange(60)
    total_slope = math.sqrt(point.k2 / sum(part.times for part in sketch.parts))
    most = min(
        5.0,
        0.6 * math.pi / 2 / max(max(part.shifts) for part in sketch.parts),
        18 * min(k.width for k in cutoffs),
    )
    likely = min(most, start * total_slope)
    s = sketch.exponent(point.c)
    views = [
        View(part, grid, cutoff, s)
        for part, grid, cutoff in zip(sketch.parts, sketch.grids, cutoffs, strict=True)
    ]
    best = (math.inf, likely)
    for theta in sorted(
        {min(most, likely * f) for f in (0.5, 1.0, 2.0, 4.0)}, key=lambda v: abs(math.log(v / likely))
    ):
        lines = [(v, *v.line(theta)) for v in views]
        low, high = 0, len(extents) - 1
        while low < high:
            middle = (low + high) // 2
            size = sum(v.log_size(lg, tn, float(extents[middle])) for v, lg, tn in lines)
            size += sketch.squared * (point.c * (point.c + 1) - extents[middle] ** 2) / 2
            if size - math.log(extents[middle]) - 1 < need:
                high = middle
            else:
                low = middle + 1
        if high < len(extents) - 1:
            best = min(best, (float(extents[high]), theta))
    return best


@dataclass(frozen=True, eq=False)
class View:
    """A part behind its cutoff on a coarse grid, for trying shifts."""

    part: Part
    coarse: Nodes
    cutoff: Cutoff
    s: float

    @cached_property
    def grid(self) -> Nodes:
        """Fine enough to see the cutoff."""
        step = min(self.coarse.step, 2.0 ** math.floor(math.log2(self.cutoff.width)))
        right = self.cutoff.middle + 9 * self.cutoff.width
        return Nodes(self.part, step, math.floor(float(self.coarse.edges[0]) / step), math.ceil(right / step))

    @cached_property
    def small(self) -> tuple[Floats, Floats]:
        """1 where χ counts as one, and what of it grows with a shift."""
        inner = self.grid.x < self.cutoff.middle
        return np.where(inner, 1.0, 0.0), np.where(
            inner, self.cutoff.outside(self.grid.x), self.cutoff.inside(self.grid.x)
        )

    def line(self, theta: float) -> tuple[Floats, Floats]:
        """log of the integrand's size at real z on the contour moved by θ, and arg w there."""
        log, turn = self.grid.polar(theta, self.grid.x)
        whole, small = self.small
        kept = whole + self.cutoff.growth(theta) * small
        base = self.grid.log_density + theta * theta / 2 + self.s * log + np.log(np.maximum(kept, 1e-300))
        return np.asarray(base), turn

    def log_size(self, base: Floats, turn: Floats, y: float) -> float:
        """log of the bound on the moment at Im z = y, to the power of the count."""
        exponent = base - y * turn
        top = float(exponent.max())
        return self.part.times * (top + math.log(float(np.exp(exponent - top).sum())))


def fine(
    sketch: Sketch,
    i: int,
    cutoff: Cutoff,
    extent: float,
    s: float,
    width: float | None = None,
    *,
    keep: bool = False,
    start: float = -math.inf,
    depth: float = 50.0,
) -> Window:
    """The window of part i on a grid fine enough for the midpoint rule, and for a cutoff of `width`.

    The cutoff is moved onto a cell edge, unless it is to be kept. Only what lies right of `start` is
    looked at; what is smaller than all by e^{−depth} is left out.
    """
    width = cutoff.width if width is None else width
    part, coarse = sketch.parts[i], sketch.grids[i]
    tilted = coarse.log_density + s * coarse.log[0]
    kept = np.where(
        (coarse.x < cutoff.middle + 9 * cutoff.width) & (coarse.x > start),
        tilted + cutoff.log_inside(coarse.x),
        -np.inf,
    )
    near = np.nonzero(kept > kept.max() - 45)[0]
    right = float(coarse.x[near[-1]])
    ends = cutoff.middle + cutoff.width * np.arange(1.0, 9.5, 0.5)
    size = -ends * ends / 2 + s * part.log(ends) + cutoff.log_inside(ends)
    gone = np.flatnonzero(size < kept.max() - coarse.log_density.max() - depth - math.log(part.times))
    last = float(ends[gone[0]] if len(gone) else ends[-1])
    t = min(math.pi / 2 / max(part.shifts), 4.0, 4 * width)
    wanted = (
        2 * math.pi / (extent * part.slope(right) + (48 + math.log(part.times)) / t + t * (0.5 + width**-2))
    )
    step = 2.0 ** math.floor(math.log2(wanted))
    low = math.sqrt(2 * (sketch.cuts[i][0] ** 2 / 2 + max(0.0, s * float(coarse.log[0][0]))))
    if not (low + last) / step < MOST_CELLS:
        raise OverflowError("a grid would be too fine")
    nodes = Nodes(part, step, math.floor(-low / step), math.ceil(last / step))
    return Window(nodes, cutoff if keep else cutoff.snapped(max(step, taken_step(cutoff))))
