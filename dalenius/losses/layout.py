"""From a sketch to a certified reading of δ near ε: grids, cutoffs and spacing, then contour and shares."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.losses.arm import Arm
from dalenius.losses.contour import Contour, lay, log_kappa
from dalenius.losses.cutoff import REACH, Cutoff
from dalenius.losses.gaussian_pairs import MixturePair
from dalenius.losses.moments import AT_ZERO
from dalenius.losses.nodes import Nodes, Part
from dalenius.losses.pair import Floats
from dalenius.losses.plan import Saddle, Sketch
from dalenius.losses.proof import lay_in_balls
from dalenius.losses.shares import Lower, Upper, taken, taken_step
from dalenius.losses.window import Window

NARROWEST = 0.003
"""The narrowest cutoff."""
MOST_CELLS = 1 << 16
"""The most cells of a grid in x."""
MOST_NODES = 1 << 13
"""The most nodes in Im z that a contour may have."""
FACTORS = np.array([0.6, 0.7, 0.8, 0.87, 0.94, 1.0, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0])
"""Candidates for c and for c′ of the aliasing bound, over the saddle point."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A contour with the shares of δ beside it."""

    contour: Contour
    upper: Upper
    lower: Lower | None

    def read(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        low, high = self.reads(np.array([epsilon]))
        return float(low[0]), float(high[0])

    def reads(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε of an array."""
        low, high = self.contour.reads(epsilon)
        for share in (self.upper, self.lower):
            if share is not None:
                more = np.array([share.share(e) for e in epsilon.tolist()])
                low, high = low + more[:, 0], high + more[:, 1]
        slack = 4e-15 * np.abs(high) + self.upper.left
        low = np.where(low <= high, low, math.nan)
        high = np.where(np.isnan(low), math.nan, high)
        return np.maximum(0.0, np.nan_to_num(low - slack, nan=0.0)), np.minimum(
            1.0, np.nan_to_num(high + slack, nan=1.0)
        )


@dataclass(frozen=True)
class Exactly:
    """The exact parameters, for an evaluation in balls."""

    pairs: list[MixturePair]
    squared: Fraction


def read_at(sketch: Sketch, epsilon: float, exactly: Exactly | None = None) -> Reading | None:
    """Lay a contour for ε; None where it would need too many nodes. Overflow only widens a bound."""
    with np.errstate(all="ignore"):
        try:
            return _read_at(sketch, epsilon, exactly)
        except ArithmeticError:
            return None


def _read_at(sketch: Sketch, epsilon: float, exactly: Exactly | None) -> Reading | None:
    point, steeper, wave = spacing(sketch, sketch.saddle(epsilon))
    guessed = _likely(sketch, point)
    if guessed is None:
        guessed = _searched(sketch, point, wave)
    extent, split, windows, far = guessed
    count = extent * wave / (2 * math.pi) + 2
    if not count < MOST_NODES:
        return None
    s = sketch.exponent(point.c)
    arms = [(Arm(w, s), part.times) for w, part in zip(windows, sketch.parts, strict=True)]
    lower = None
    if split is not None:
        lower = Lower(Window(windows[0].nodes, split.cutoff), arms[0][1], sketch.sign, split.exponent)
    below = None if lower is None else (Arm(lower.window, s), lower.times)
    nodes, step = math.ceil(count), extent / (math.ceil(count) - 1)
    laid = (
        lay(arms, below, sign=sketch.sign, c=point.c, step=step, count=nodes, squared=sketch.squared)
        if exactly is None
        else lay_in_balls(
            arms, below, pairs=exactly.pairs, c=point.c, step=step, count=nodes, squared=exactly.squared
        )
    )
    most = sum(n * log_most(w, sketch.exponent(steeper)) for w, (_, n) in zip(windows, arms, strict=True))
    alias = (steeper, most + sketch.squared * steeper * (steeper + 1) / 2)
    contour = Contour(laid[0], laid[1], point.c, step, laid[2], laid[3], far + 0.01, alias)
    return Reading(contour, _upper(sketch, point, windows), lower)


def _upper(sketch: Sketch, point: Saddle, windows: list[Window]) -> Upper:
    tails = zip(sketch.parts, windows, sketch.cuts, strict=True)
    return Upper(
        tuple(taken(part, w.cutoff, tail + 2) for part, w, (_, tail) in tails),
        tuple(part.times for part in sketch.parts),
        tuple((float(w.nodes.edges[0]), float(w.nodes.edges[-1])) for w in windows),
        sketch.sign,
        None if point.light else sketch.reserve[1],
        sketch.squared,
    )


Guess = tuple[float, "Split | None", list[Window], float]
"""How far to go in Im z, the lower cutoff, the windows, and the logarithm of what is left out."""


def _likely(sketch: Sketch, point: Saddle) -> Guess | None:
    """Where a normal law would need to go, if that is enough."""
    need = sketch.target + point.c * point.epsilon
    if not 0 < point.k2 < math.inf:
        return None
    extent = 1.05 * math.sqrt(2 * max(1.0, point.k - need) / point.k2)
    theta = extent * math.sqrt(point.k2 / sum(part.times for part in sketch.parts))
    if not point.light or theta > min(5.0, 0.5 / max(max(part.shifts) for part in sketch.parts)):
        return None
    windows = _windows(sketch, point, extent)
    far = _left_out(sketch, point, windows, extent, theta)
    return (extent, None, windows, far) if far < need else None


def _searched(sketch: Sketch, point: Saddle, wave: float) -> Guess:
    """The least extent found, with a lower cutoff if that pays."""
    extent, theta = reach(sketch, point, point.cutoffs)
    split = None
    if extent * wave > 2 * math.pi * SPLIT_FROM and len(sketch.parts) == 1 and not sketch.squared:
        split = split_at(sketch, point, point.cutoffs[0])
        if split is None or not split.extent < extent:
            split = None
    if split is None:
        if not extent * wave < 2 * math.pi * MOST_NODES:
            return math.inf, None, [], math.inf
        windows = _windows(sketch, point, extent)
        return extent, None, windows, _left_out(sketch, point, windows, extent, theta)
    windows = _windows(sketch, point, split.extent)
    split = replace(split, cutoff=split.cutoff.snapped(windows[0].nodes.step))
    ends = windows[0].nodes.edges
    if not split.cutoff.within(windows[0].cutoff, float(ends[0]), float(ends[-1])):
        return math.inf, None, [], math.inf
    arm, n = Arm(windows[0], sketch.exponent(point.c)), sketch.parts[0].times
    gap = arm.gap_decay(Window(windows[0].nodes, split.cutoff), split.extent, split.theta)
    far = (
        math.log(n * gap + 1e-300) + (n - 1) * log_most(windows[0], arm.s) - math.log(math.pi * split.extent)
    )
    return split.extent, split, windows, far


def _windows(sketch: Sketch, point: Saddle, extent: float) -> list[Window]:
    s = sketch.exponent(point.c)
    return [fine(sketch, i, cutoff, extent, s) for i, cutoff in enumerate(point.cutoffs)]


def _left_out(sketch: Sketch, point: Saddle, windows: list[Window], extent: float, theta: float) -> float:
    """log of what |Im z| > extent adds, e^{−cε} aside."""
    s = sketch.exponent(point.c)
    far = sum(
        part.times * math.log(Arm(w, s).decay(extent, theta) + 1e-300)
        for part, w in zip(sketch.parts, windows, strict=True)
    )
    return far + sketch.squared * (point.c * (point.c + 1) - extent**2) / 2 - math.log(math.pi * extent)


SPLIT_FROM = 300
"""A lower cutoff is tried once a contour without one would need more nodes than this."""


@dataclass(frozen=True)
class Split:
    """A lower cutoff, the exponent that bounds what is under it, and how far the rest reaches in Im z."""

    cutoff: Cutoff
    exponent: float
    extent: float
    theta: float


def split_at(sketch: Sketch, point: Saddle, upper: Cutoff) -> Split | None:
    """The highest lower cutoff under which all releases together leave the outcome settled."""
    (part,), (grid,) = sketch.parts, sketch.grids
    t = np.geomspace(point.c / 4, 400 * point.c + 100, 40)
    end = point.ends[0][0]
    log = grid.log[0][:end]
    exponent = grid.log_density[:end] + (1 + t)[:, None] * log
    top = np.maximum.accumulate(exponent, axis=1)[:, -1:]
    grown = part.times * (top + np.log(np.cumsum(np.exp(exponent - top), axis=1) + 1e-300))
    late = grown + (-t if sketch.sign > 0 else 1 + t)[:, None] * point.epsilon
    settled = np.nonzero(late.min(axis=0) < sketch.target)[0]
    if len(settled) == 0:
        return None
    slope = max(part.shifts)
    at = int(settled[-1])
    exponent_at = float(t[int(np.argmin(late[:, at]))])
    width = min(0.3, 0.15 / slope, 6.0 / (exponent_at * part.slope(float(grid.edges[at + 1])) + 1e-300))
    if width < NARROWEST:
        return None
    cutoff = Cutoff(float(grid.edges[at + 1]) - REACH * width, width)
    step = 2.0 ** math.floor(math.log2(width / 2))
    nodes = Nodes(
        part,
        step,
        math.floor(float(grid.edges[0]) / step),
        math.ceil((upper.middle + 9 * upper.width) / step),
    )
    s = sketch.exponent(point.c)
    arm, lower = Arm(Window(nodes, upper.snapped(step)), s), Window(nodes, cutoff.snapped(step))
    need = sketch.target + point.c * point.epsilon - math.log(part.times) - point.k * (1 - 1 / part.times)
    extents = 1.25 ** np.arange(60) / max(1e-12, float(log[at] - log[0]))
    best = (math.inf, 0.0)
    most = min(0.7 * math.pi / 2 / slope, 18 * min(width, upper.width))
    for theta in (0.4 * most, 0.7 * most, most):
        low, high = 0, len(extents) - 1
        while low < high:
            middle = (low + high) // 2
            size = arm.gap_decay(lower, float(extents[middle]), theta)
            low, high = (
                (low, middle)
                if math.log(size + 1e-300) - math.log(extents[middle]) - 1 < need
                else (middle + 1, high)
            )
        if high < len(extents) - 1:
            best = min(best, (float(extents[high]), theta))
    return Split(cutoff, exponent_at, *best)


def log_most(window: Window, s: float) -> float:
    """At least log ∫ φ χ wˢ."""
    arm = Arm(window, s)
    return math.log(arm.mass + float(arm.midpoint_error(AT_ZERO)[0])) + 2 * arm.mass_error


def spacing(sketch: Sketch, point: Saddle) -> tuple[Saddle, float, float]:
    """c near the saddle, c′ and Λ for which aliasing meets the target with the fewest nodes."""
    c = point.c * FACTORS
    k, _, k2 = sketch.cumulants(c, point.ends)
    size = k - c * point.epsilon
    kappa = np.array([log_kappa(v) for v in c.tolist()])
    best = (math.inf, 0, 1)
    for i in np.nonzero((FACTORS <= 1) & (size < size[FACTORS <= 1].min() + 2.5))[0].tolist():
        above = (kappa[i + 1 :] + size[i + 1 :] - sketch.target) / (c[i + 1 :] - c[i])
        j = int(np.argmin(above))
        best = min(best, (max(-sketch.target / float(c[i]), float(above[j])), i, i + 1 + j))
    wave, i, j = best
    exact = (1.0 + float(c[i])) - 1.0
    moved = replace(point, c=exact, k=float(k[i]), k2=float(k2[i]))
    return moved, float(c[j]), 1.05 * wave


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


def fine(sketch: Sketch, i: int, cutoff: Cutoff, extent: float, s: float) -> Window:
    """The window of part i on a grid fine enough for the midpoint rule."""
    part, coarse = sketch.parts[i], sketch.grids[i]
    tilted = coarse.log_density + s * coarse.log[0]
    kept = np.where(
        coarse.x < cutoff.middle + 9 * cutoff.width, tilted + cutoff.log_inside(coarse.x), -np.inf
    )
    near = np.nonzero(kept > kept.max() - 45)[0]
    right = float(coarse.x[near[-1]])
    ends = cutoff.middle + cutoff.width * np.arange(1.0, 9.5, 0.5)
    size = -ends * ends / 2 + s * part.log(ends) + cutoff.log_inside(ends)
    gone = np.flatnonzero(size < kept.max() - coarse.log_density.max() - 50 - math.log(part.times))
    last = float(ends[gone[0]] if len(gone) else ends[-1])
    t = min(math.pi / 2 / max(part.shifts), 4.0, 4 * cutoff.width)
    wanted = (
        2
        * math.pi
        / (extent * part.slope(right) + (48 + math.log(part.times)) / t + t * (0.5 + cutoff.width**-2))
    )
    step = 2.0 ** math.floor(math.log2(wanted))
    low = math.sqrt(2 * (sketch.cuts[i][0] ** 2 / 2 + max(0.0, s * float(coarse.log[0][0]))))
    if not (low + last) / step < MOST_CELLS:
        raise OverflowError("a grid would be too fine")
    nodes = Nodes(part, step, math.floor(-low / step), math.ceil(last / step))
    return Window(nodes, cutoff.snapped(max(step, taken_step(cutoff))))
