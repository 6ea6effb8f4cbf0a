"""From a sketch to a certified reading of δ near ε: grids, cutoffs and spacing, then contour and shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.profiles.arm import Arm
from dalenius.profiles.contour import Contour, lay, log_kappa
from dalenius.profiles.cutoff import REACH, Cutoff
from dalenius.profiles.gaussian_pairs import MixturePair
from dalenius.profiles.jumps import Jumps
from dalenius.profiles.nodes import Nodes, Part
from dalenius.profiles.pair import Floats
from dalenius.profiles.plan import Saddle, Sketch, log_sum
from dalenius.profiles.proof import jumps_in_balls, lay_in_balls
from dalenius.profiles.shares import Lower, Upper, taken, taken_step
from dalenius.profiles.window import Gap, Window

MOST_MASS = 500.0
"""The logarithm of the largest moment of one release that is asked for."""
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
    lower: Lower | Bulk | None

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


@dataclass(frozen=True, eq=False)
class Bulk:
    """The share of outcomes without any jump, read from a contour of its own."""

    contour: Contour
    left: float

    def share(self, epsilon: float) -> tuple[float, float]:
        """Enclose it."""
        return self.contour.read(epsilon)


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
    point = sketch.saddle(epsilon)
    plain = spacing(sketch, point, lambda c: sketch.cumulants(c, point.ends)[0])
    loose = point.k - point.c * epsilon - sketch.log_delta > LOOSE
    if loose and len(sketch.parts) == 1 and not sketch.squared:
        split = valley(sketch, point)
        reading = None if split is None else _read_jumps(sketch, point, split, exactly)
        if reading is not None:
            return reading
    moved = replace(point, c=plain.c)
    found = _likely(sketch, moved) or _searched(sketch, moved, plain)
    if isinstance(found, Split):
        return _read_jumps(sketch, point, found, exactly)
    laid = _laid(sketch, plain, found, exactly)
    return None if laid is None else Reading(laid, _upper(sketch, point, found[1]), None)


def _laid(sketch: Sketch, plain: Spacing, found: Guess, exactly: Exactly | None) -> Contour | None:
    """The contour without a lower cutoff."""
    extent, windows, far = found
    count = extent * plain.wave / (2 * math.pi) + 2
    if not count < MOST_NODES:
        return None
    s, nodes = sketch.exponent(plain.c), math.ceil(count)
    arms = [(Arm(w, s), part.times) for w, part in zip(windows, sketch.parts, strict=True)]
    step = extent / (nodes - 1)
    laid = (
        lay(arms, sign=sketch.sign, c=plain.c, step=step, count=nodes, squared=sketch.squared)
        if exactly is None
        else lay_in_balls(
            arms, pairs=exactly.pairs, c=plain.c, step=step, count=nodes, squared=exactly.squared
        )
    )
    steeper = plain.steeper
    most = sum(n * log_most(w, sketch.exponent(steeper)) for w, (_, n) in zip(windows, arms, strict=True))
    alias = (steeper, most + sketch.squared * steeper * (steeper + 1) / 2)
    return Contour(laid[0], laid[1], plain.c, step, laid[2], laid[3], far + 0.01, alias)


def _read_jumps(sketch: Sketch, point: Saddle, split: Split, exactly: Exactly | None) -> Reading | None:
    """The same where the bulk is taken out."""
    nodes = math.ceil(split.extent * split.spacing.wave / (2 * math.pi)) + 2
    (part,), c = sketch.parts, split.spacing.c
    jumps = split.windows(sketch, point.cutoffs[0], sketch.exponent(c))
    edges = jumps.jumps.nodes.edges
    if nodes > MOST_NODES or not jumps.jumps.lower.within(
        jumps.jumps.cutoff, float(jumps.bulk.nodes.edges[0]), float(edges[-1])
    ):
        return None
    step = split.extent / (nodes - 1)
    laid = (
        jumps.lay(sign=sketch.sign, c=c, step=step, count=nodes)
        if exactly is None
        else jumps_in_balls(jumps, pair=exactly.pairs[0], c=c, step=step, count=nodes)
    )
    far = jumps.log_far(split.extent, split.theta) - math.log(math.pi * split.extent)
    alias = (split.spacing.steeper, replace(jumps, s=sketch.exponent(split.spacing.steeper)).log_most())
    contour = Contour(laid[0], laid[1], c, step, laid[2], laid[3], far + 0.01, alias)
    left = float(jumps.bulk.nodes.edges[0])
    if split.exponent is not None:
        lower: Lower | Bulk = Lower(jumps.bulk, part.times, sketch.sign, split.exponent)
        return Reading(contour, _upper(sketch, point, [jumps.jumps], left), lower)
    bulk = _read_bulk(sketch, point.epsilon, jumps.bulk.cutoff, exactly)
    if bulk is None:
        return None
    return Reading(contour, _upper(sketch, point, [jumps.jumps], max(left, bulk.left)), bulk)


def _read_bulk(sketch: Sketch, epsilon: float, cutoff: Cutoff, exactly: Exactly | None) -> Bulk | None:
    """A contour of its own for outcomes without any jump."""
    point = sketch.under(epsilon, cutoff)
    plain = spacing(sketch, point, lambda c: sketch.cumulants(c, point.ends)[0])
    moved = replace(point, c=plain.c)
    extent, theta = reach(sketch, moved, [cutoff])
    if not extent * plain.wave < 2 * math.pi * MOST_NODES:
        return None
    window = fine(sketch, 0, cutoff, extent, sketch.exponent(plain.c), keep=True)
    far = _left_out(sketch, moved, [window], extent, theta)
    laid = _laid(sketch, plain, (extent, [window], far), exactly)
    return None if laid is None else Bulk(laid, float(window.nodes.edges[0]))


def _upper(sketch: Sketch, point: Saddle, windows: Sequence[Window], left: float | None = None) -> Upper:
    tails = zip(sketch.parts, windows, sketch.cuts, strict=True)
    return Upper(
        tuple(taken(part, w.cutoff, tail + 2) for part, w, (_, tail) in tails),
        tuple(part.times for part in sketch.parts),
        tuple((float(w.nodes.edges[0]) if left is None else left, float(w.nodes.edges[-1])) for w in windows),
        sketch.sign,
        None if point.light else sketch.reserve[1],
        sketch.squared,
    )


Guess = tuple[float, list[Window], float]
"""How far to go in Im z, the windows, and the logarithm of what is left out."""


def _likely(sketch: Sketch, point: Saddle) -> Guess | None:
    """Where a normal law would need to go, if that is enough."""
    need = sketch.target + point.c * point.epsilon
    if not 0 < point.k2 < math.inf:
        return None
    normal = math.sqrt(2 * max(1.0, point.k - need) / point.k2)
    theta = normal * math.sqrt(point.k2 / sum(part.times for part in sketch.parts))
    if not point.light or theta > min(5.0, 0.5 / max(max(part.shifts) for part in sketch.parts)):
        return None
    for extent in (1.25 * normal, 1.6 * normal):
        windows = _windows(sketch, point, extent)
        far = _left_out(sketch, point, windows, extent, theta)
        if far < need:
            return extent, windows, far
    return None


def _searched(sketch: Sketch, point: Saddle, plain: Spacing) -> Guess | Split:
    """The least extent found, with the bulk taken out if that pays."""
    extent, theta = reach(sketch, point, point.cutoffs)
    if extent * plain.wave > 2 * math.pi * SPLIT_FROM and len(sketch.parts) == 1 and not sketch.squared:
        split = split_at(sketch, point, point.cutoffs[0])
        if split is not None and split.extent * split.spacing.wave < extent * plain.wave:
            return split
    if not extent * plain.wave < 2 * math.pi * MOST_NODES:
        return math.inf, [], math.inf
    windows = _windows(sketch, point, extent)
    return extent, windows, _left_out(sketch, point, windows, extent, theta)


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


LOOSE = 7.0
"""By how much the integrand may exceed δ, in logarithms, before bulk and jumps are read separately."""
SPLIT_FROM = 300
"""A lower cutoff is tried once a contour without one would need more nodes than this."""


@dataclass(frozen=True)
class Spacing:
    """Where the contour crosses the real axis, c′ of the aliasing bound, and Λ."""

    c: float
    steeper: float
    wave: float


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
        nodes = Nodes(part, step, max(start, jumps.nodes.left), jumps.nodes.right)
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
    late = grown + (-t if sketch.sign > 0 else 1 + t)[:, None] * point.epsilon
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
    width = min(0.3, 0.15 / max(part.shifts))
    return _split(sketch, point, Cutoff(float(grid.edges[at]), width), None, point.cutoffs[0])


def _split(sketch: Sketch, point: Saddle, cutoff: Cutoff, steep: float | None, upper: Cutoff) -> Split:
    (part,), (grid,), (end, kept) = sketch.parts, sketch.grids, point.ends[0]
    log = grid.log[0][:end]
    place = max(1, min(end - 1, int(np.searchsorted(grid.x, cutoff.middle))))

    def mass(c: Floats) -> Floats:
        """log T B (A + B)^{T−1} on the coarse grid."""
        tilted = grid.log_density[:end] + kept + (1 + c if sketch.sign > 0 else -c)[:, None] * log
        whole, jumped = log_sum(tilted), log_sum(tilted[:, place:])
        return np.asarray(math.log(part.times) + jumped + (part.times - 1) * whole)

    spaced = spacing(sketch, replace(point, c=_least(point, mass)), mass)
    need = sketch.target + spaced.c * point.epsilon
    extent, theta = _jump_reach(sketch, spaced.c, cutoff, upper, need, float(log[place] - log[0]))
    return Split(cutoff, steep, spaced, extent, theta)


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


def log_most(window: Window, s: float) -> float:
    """At least log ∫ φ χ wˢ."""
    arm = Arm(window, s)
    return math.log(arm.mass + arm.midpoint_zero) + 2 * arm.mass_error


def spacing(sketch: Sketch, point: Saddle, log_mass: Callable[[Floats], Floats]) -> Spacing:
    """c near the saddle, c′ and Λ for which aliasing meets the target with the fewest nodes."""
    c = point.c * FACTORS
    mass = log_mass(c)
    most = MOST_MASS * sum(part.times for part in sketch.parts)
    size = np.where(mass < most, mass - c * point.epsilon, np.inf)
    kappa = np.array([log_kappa(v) for v in c.tolist()])
    best = (math.inf, 5, 6)
    for i in np.nonzero((FACTORS <= 1) & (size < size[FACTORS <= 1].min() + 2.5))[0].tolist():
        above = (kappa[i + 1 :] + size[i + 1 :] - sketch.target) / (c[i + 1 :] - c[i])
        j = int(np.argmin(above))
        best = min(best, (max(-sketch.target / float(c[i]), float(above[j])), i, i + 1 + j))
    wave, i, j = best
    return Spacing((1.0 + float(c[i])) - 1.0, float(c[j]), 1.05 * wave)


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
) -> Window:
    """The window of part i on a grid fine enough for the midpoint rule, and for a cutoff of `width`.

    The cutoff is moved onto a cell edge, unless it is to be kept.
    """
    width = cutoff.width if width is None else width
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
