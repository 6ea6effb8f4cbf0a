"""From a sketch to a certified reading of δ near ε: a contour, and the shares of δ beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dalenius.profiles.arm import Arm, sum_bound
from dalenius.profiles.contour import Contour, lay, log_kappa
from dalenius.profiles.cutoff import Cutoff
from dalenius.profiles.gaussian_pairs import MixturePair
from dalenius.profiles.layout import Guess, Spacing, fine, least_left_out, likely, reach, spaced, windows_for
from dalenius.profiles.moments import log_most
from dalenius.profiles.pair import Floats
from dalenius.profiles.plan import Saddle, Sketch
from dalenius.profiles.proof import jumps_in_balls, lay_in_balls
from dalenius.profiles.rounding import TINY
from dalenius.profiles.shares import Lower, Upper, taken
from dalenius.profiles.splitting import Split, balanced, split_at, valley
from dalenius.profiles.window import Window

MOST_NODES = 1 << 13
"""The most nodes in Im z that a contour may have."""
LOOSE = 7.0
"""By how much the integrand may exceed δ, in logarithms, before bulk and jumps are read separately."""
CELLS = 64
"""Of the upper sum beyond the end of a bulk's grid."""
SPLIT_FROM = 300
"""A lower cutoff is tried once a contour without one would need more nodes than this."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A contour with the shares of δ beside it; `lost` bounds what none of them holds."""

    contour: Contour
    upper: Upper
    lower: Lower | Bulk | None
    lost: tuple[Beyond, ...] = ()

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
        high = high + sum((beyond.most(epsilon) for beyond in self.lost), np.zeros_like(epsilon))
        slack = 4e-15 * np.abs(high) + self.upper.left
        low = np.where(low <= high, low, math.nan)
        high = np.where(np.isnan(low), math.nan, high)
        return np.maximum(0.0, np.nan_to_num(low - slack, nan=0.0)), np.minimum(
            1.0, np.nan_to_num(high + slack, nan=1.0)
        )


@dataclass(frozen=True)
class Beyond:
    """A bound on what lies beyond the end of a grid: Chernoff's to nine widths, then the mass itself."""

    rest: float
    log_size: float
    c: float

    def most(self, epsilon: Floats) -> Floats:
        """At least its share of δ."""
        return np.asarray(self.rest + 1.01 * np.exp(self.log_size - self.c * epsilon))


@dataclass(frozen=True, eq=False)
class Bulk:
    """The share of outcomes without any jump, read from a contour of its own."""

    contour: Contour
    window: Window

    def share(self, epsilon: float) -> tuple[float, float]:
        """Enclose it."""
        return self.contour.read(epsilon)


@dataclass(frozen=True)
class Exactly:
    """The exact parameters, for an evaluation in balls."""

    pairs: list[MixturePair]
    squared: Fraction


def read_at(
    sketch: Sketch, epsilon: float, exactly: Exactly | None = None, *, balance: bool = False
) -> Reading | None:
    """Lay a contour for ε; None where it would need too many nodes. Overflow only widens a bound.

    Bulk and jumps are told apart in the valley between them or, at more nodes, so as to balance them.
    """
    with np.errstate(all="ignore"):
        try:
            return _read_at(sketch, epsilon, exactly, balance)
        except (ArithmeticError, ValueError):
            return None


def _read_at(sketch: Sketch, epsilon: float, exactly: Exactly | None, balance: bool) -> Reading | None:
    point = sketch.saddle(epsilon)
    plain = spaced(sketch, point, lambda c: sketch.cumulants(c, point.ends)[0])
    loose = point.k - point.c * epsilon - sketch.log_delta + _rounding(sketch) > LOOSE
    if loose and alone(sketch):
        split = (balanced if balance else valley)(sketch, point)
        reading = None if split is None else _read_jumps(sketch, point, split, exactly)
        if reading is not None:
            return reading
    moved = replace(point, c=plain.c)
    found = likely(sketch, moved) or _searched(sketch, moved, plain)
    if isinstance(found, Split):
        return _read_jumps(sketch, point, found, exactly)
    laid = _laid(sketch, plain, found, exactly)
    return None if laid is None else Reading(laid, _upper(sketch, point, found[1]), None)


def alone(sketch: Sketch) -> bool:
    """Whether bulk and jumps may be told apart: one part, removed, and nothing else."""
    return len(sketch.parts) == 1 and not sketch.squared and sketch.sign > 0


def _rounding(sketch: Sketch) -> float:
    """How much sooner many releases call for a split: their round-off adds up."""
    return max(0.0, math.log(max(part.times for part in sketch.parts) / 1e5))


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
    most = sum(
        n * log_most(Arm(w, sketch.exponent(steeper))) for w, (_, n) in zip(windows, arms, strict=True)
    )
    alias = (steeper, most + sketch.squared * steeper * (steeper + 1) / 2)
    return Contour(laid[0], laid[1], plain.c, step, laid[2], laid[3], far + 0.01, alias)


def _read_jumps(sketch: Sketch, point: Saddle, split: Split, exactly: Exactly | None) -> Reading | None:
    """The same where the bulk is taken out."""
    if not split.extent * split.spacing.wave < 2 * math.pi * MOST_NODES:
        return None
    nodes = math.ceil(split.extent * split.spacing.wave / (2 * math.pi)) + 2
    (part,), c = sketch.parts, split.spacing.c
    jumps = split.windows(sketch, point)
    edges = jumps.jumps.nodes.edges
    if not jumps.jumps.lower.within(jumps.jumps.cutoff, float(jumps.bulk.nodes.edges[0]), float(edges[-1])):
        return None
    step = split.extent / (nodes - 1)
    laid = (
        jumps.lay(c=c, step=step, count=nodes)
        if exactly is None
        else jumps_in_balls(jumps, pair=exactly.pairs[0], c=c, step=step, count=nodes)
    )
    far = jumps.log_far(split.extent, split.theta, split.calm) - math.log(math.pi * split.extent)
    alias = (split.spacing.steeper, replace(jumps, s=sketch.exponent(split.spacing.steeper)).log_most())
    contour = Contour(laid[0], laid[1], c, step, laid[2], laid[3], far + 0.01, alias)
    left = float(jumps.bulk.nodes.edges[0])
    lost = _beyond(jumps.bulk, part.times, c, jumps.log_whole)
    if split.exponent is not None:
        lower = Lower(jumps.bulk, part.times, split.exponent)
        low = _beyond(jumps.bulk, part.times, split.exponent, log_most(Arm(jumps.bulk, 1 + split.exponent)))
        return Reading(contour, _upper(sketch, point, [jumps.jumps], left), lower, (lost, low))
    bulk = _read_bulk(sketch, point.epsilon, jumps.bulk.cutoff, exactly)
    if bulk is None:
        return None
    left = max(left, float(bulk.window.nodes.edges[0]))
    low = _beyond(bulk.window, part.times, bulk.contour.c, log_most(Arm(bulk.window, 1 + bulk.contour.c)))
    return Reading(contour, _upper(sketch, point, [jumps.jumps], left), bulk, (lost, low))


def _beyond(bulk: Window, times: int, c: float, log_whole: float) -> Beyond:
    """What a lower cutoff keeps beyond the end of its grid, by a tilt c at which M(c) ≤ e^log_whole."""
    end, far = float(bulk.nodes.edges[-1]), bulk.cutoff.middle + 9 * bulk.cutoff.width
    part, edges = bulk.nodes.part, np.linspace(end, max(end, far), CELLS + 1)
    log = bulk.nodes.polar(0.0, edges)[0]
    sizes = -(edges[:-1] ** 2) / 2 + bulk.cutoff.log_inside(edges[:-1]) + (1 + c) * log[1:]
    more = sum_bound(sizes) * float(edges[1] - edges[0]) * 1.01
    whole = math.log(math.exp(log_whole) + more)
    log_size = log_kappa(c) + math.log(times * more + TINY) + (times - 1) * whole + 0.01
    last = float(edges[-1])
    rest = 1.01 * times * float(bulk.cutoff.inside(np.array([last]))[0]) * part.tail(last, 1)
    return Beyond(rest, log_size, c)


def _read_bulk(sketch: Sketch, epsilon: float, cutoff: Cutoff, exactly: Exactly | None) -> Bulk | None:
    """A contour of its own for outcomes without any jump."""
    point = sketch.under(epsilon, cutoff)
    plain = spaced(sketch, point, lambda c: sketch.cumulants(c, point.ends)[0])
    moved = replace(point, c=plain.c)
    extent, theta = reach(sketch, moved, [cutoff])
    if not extent * plain.wave < 2 * math.pi * MOST_NODES:
        return None
    window = fine(sketch, 0, cutoff, extent, sketch.exponent(plain.c), keep=True)
    far = least_left_out(sketch, moved, [window], extent, theta)
    laid = _laid(sketch, plain, (extent, [window], far), exactly)
    return None if laid is None else Bulk(laid, window)


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


def _searched(sketch: Sketch, point: Saddle, plain: Spacing) -> Guess | Split:
    """The least extent found, with the bulk taken out if that pays."""
    extent, theta = reach(sketch, point, point.cutoffs)
    if extent * plain.wave > 2 * math.pi * SPLIT_FROM and alone(sketch):
        split = split_at(sketch, point, point.cutoffs[0])
        if split is not None and split.extent * split.spacing.wave < extent * plain.wave:
            return split
    if not extent * plain.wave < 2 * math.pi * MOST_NODES:
        return math.inf, [], math.inf
    windows = windows_for(sketch, point, extent)
    return extent, windows, least_left_out(sketch, point, windows, extent, theta)
