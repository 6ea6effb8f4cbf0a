"""Calls E(S − z)₊ and puts E(z − S)₊ on a mean S = (1/t)ΣX of likelihood ratios, enclosed over a range of z.

One convolution on a grid of step h serves the range. What is certified: with U the floats of the grid law,
V the exact law of the split values and X the values held within the grid (see `law`),
    X ≤ U ≤ (1 + s)^t·V, up to additive terms,    V − √(ev)·E e^{−θ|·|} ≤ X ≤ V      (`reading`).
What values beyond the last point come to is in `tail`. A put that leaves them out is moved by no
more than c at that point, and a call by no more than p at the first, below which values are held.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dalenius.profiles.allocation.law import Spacing, SplitLaw, split_law
from dalenius.profiles.allocation.outline import Heights, gathered, outline, ranges, tilted
from dalenius.profiles.allocation.reading import Reading
from dalenius.profiles.allocation.tail import Tail, tail
from dalenius.profiles.convolution import Window, convolve, growth
from dalenius.profiles.lattice import Lattice, point
from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.rounding import U
from dalenius.profiles.saddle import Plan

ATTEMPTS = 2
BLIND = 1e-4
"""Share of δ that values beyond the grid may cost."""
MARGIN = 30.0
"""How far the grid goes on beyond the range, in units of √(t/4): there e^{−θ|·|} has vanished."""


@dataclass(frozen=True)
class Detail:
    """Most points of a window and of a grid, and the aim for v times the square of δ's rate of fall."""

    window: int
    grid: int
    aim: float


QUICK, MEDIUM, FINE = Detail(2**14, 2**13, 1e-3), Detail(2**18, 2**16, 1e-6), Detail(2**19, 2**17, 1e-7)
FINEST = Detail(2**21, 2**18, 1e-7)


@dataclass(frozen=True)
class Aim:
    """A range of z: log δ at its ends, how fast δ falls, and where values of X begin and end to matter."""

    least: float
    most: float
    heights: Heights
    slope: float
    start: float
    end: float
    open_top: bool

    @property
    def height(self) -> float:
        """The lesser log δ."""
        return min(height for _, height in self.heights)


@dataclass(frozen=True, eq=False)
class Panel:
    """A range of z served by one convolution."""

    reading: Reading | None
    law: SplitLaw
    steps: int
    calls: bool
    open_top: bool
    tail: Tail

    @np.errstate(all="ignore")
    def read(self, least: Floats, most: Floats) -> tuple[Floats, Floats]:
        """Enclose the call or the put at every z, each between `least` and `most`."""
        if self.reading is None:
            return np.zeros_like(least), np.full_like(least, math.inf)
        ratio, law, rise = self.steps / self.law.spacing.step, self.law, 8 * U
        low_m, high_m = least * ratio * (1 - rise), most * ratio * (1 + rise)
        if not self.calls:
            low_m, high_m = -high_m, -low_m
        low, high = (value / ratio for value in self.reading.at(low_m, high_m))
        rest = self._tail(least, most)
        low, high = (low + rest[0]) * (1 - rise), (high + rest[1]) * (1 + rise)
        split = low / growth(self._loose) - law.above * growth(self._loose)
        crossing = self.reading.crossing(high_m) + self.tail.near
        open_ = high + law.short * growth(self._loose) - split
        lower = split - math.sqrt(math.e * self.steps) / 2 / ratio * crossing - 3.3 * open_
        lost, more = (law.under, law.beyond) if self.calls else (law.beyond, law.under)
        lost = lost if self.calls or not self.open_top else 0.0
        more = (0.0 if self.calls else more) + law.short
        low, high = np.nan_to_num(lower - lost, nan=0.0, neginf=0.0), (high + more) * (1 + rise)
        return np.maximum(low, 0.0), np.where(np.isnan(high), math.inf, high)

    @property
    def _loose(self) -> float:
        return self.steps * math.log1p(self.law.looseness) * (1 + 8 * U)

    def _tail(self, least: Floats, most: Floats) -> tuple[Floats, Floats]:
        if not self.calls:
            return np.zeros_like(least), np.zeros_like(least)
        (mean_low, mean_high), (chance_low, chance_high) = self.tail.mean, self.tail.chance
        low, high = mean_low - most * chance_high, mean_high - least * chance_low
        slack = 8 * U * (mean_high + most * chance_high)
        return np.maximum(low - slack, 0.0), np.maximum(high + slack + self.tail.missed, 0.0) * growth(
            self._loose
        )


@lru_cache(maxsize=96)
def panel(pair: Pair, steps: int, calls: bool, index: int, detail: Detail) -> Panel:
    """The panel of one range: its levels lie between two that follow each other in `ranges`."""
    aim = _aim(pair, steps, calls, index)
    step = _first_step(pair, steps, calls, aim, detail)
    for _ in range(ATTEMPTS):
        law = _law(pair, steps, calls, aim, step)
        found = _plan(law, steps, calls, aim)
        length = (found.window[1] - found.window[0]) * steps / step
        if length <= 2 * detail.window:
            break
        step = _short(step * length / detail.window)
    window = _convolved(law, steps, calls, found)
    ends = sorted((1 if calls else -1) * level * steps / step for level in (aim.least, aim.most))
    reading = None
    if window is not None:
        reading = Reading.of(window, steps, math.floor(ends[0] - 4), math.ceil(ends[1] + 4))
    return Panel(reading, law, steps, calls, aim.open_top, tail(law, steps, aim.most))


def _aim(pair: Pair, steps: int, calls: bool, index: int) -> Aim:
    levels, rough = ranges(pair, steps, calls)[index : index + 2], outline(pair)
    least, most = float(levels.min()), float(levels.max())
    sizes = [rough.size(steps, level, calls=calls) for level in (least, most)]
    height = min(size.log_delta for size in sizes)
    blind, slope = height + math.log(BLIND), max(size.slope for size in sizes)
    far = rough.jump(steps, most, blind) if calls else rough.end(blind)
    end = min(steps * most, max(far, 1.0))
    sign = 1 if calls else -1
    heights = tuple((sign * level, size.log_delta) for level, size in zip((least, most), sizes, strict=True))
    return Aim(least, most, heights, slope, rough.start(blind), end, calls or far >= steps * most)


def _first_step(pair: Pair, steps: int, calls: bool, aim: Aim, detail: Detail) -> float:
    """As fine as aimed for, or as the window and the grid allow."""
    sketch = outline(pair).sketch(steps, aim.end, calls=calls)
    found = tilted(sketch, aim.heights)
    width = (found.window[1] - found.window[0]) * steps
    wanted = 2 * math.sqrt(detail.aim * steps) / aim.slope
    return _short(max(wanted, width / detail.window, (aim.end - aim.start) / detail.grid))


def _law(pair: Pair, steps: int, calls: bool, aim: Aim, step: float) -> SplitLaw:
    margin = math.ceil(MARGIN * math.sqrt(steps) / 2) if aim.open_top else 0
    first = max(math.floor(aim.start / step), 0)
    last = max(math.ceil(aim.end / step) + margin + 2, first + 3)
    negligible = math.exp(aim.height) * BLIND
    return split_law(
        pair, Spacing(step, first, last), calls=calls, negligible=negligible, open_top=aim.open_top
    )


def _plan(law: SplitLaw, steps: int, calls: bool, aim: Aim) -> Plan:
    sign = 1 if calls else -1
    sketch = gathered(law.spacing.points[: len(law.masses)], law.masses, steps)
    mirrored = replace(sketch, losses=sign * sketch.losses[::sign], logs=sketch.logs[::sign])
    return tilted((mirrored,), aim.heights)


def _convolved(law: SplitLaw, steps: int, calls: bool, found: Plan) -> Window | None:
    """The sum of t values in units of the grid, mirrored for puts."""
    masses = np.append(law.masses, [] if law.open_top else law.top)
    start = law.spacing.first if calls else -(law.spacing.first + len(masses) - 1)
    lattice = Lattice(point(1), point(0), start, masses if calls else masses[::-1].copy())
    ratio = steps / law.spacing.step
    plan = replace(
        found,
        tilt=found.tilt / ratio,
        window=(found.window[0] * ratio - 4, found.window[1] * ratio + 4),
        exponents=(found.exponents[0] / ratio, found.exponents[1] / ratio),
    )
    return convolve([(lattice, steps)], plan)


def _short(step: float) -> float:
    """The next number up with eight digits, in base two."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.ceil(mantissa * 256), exponent - 8)
