"""Where the values of a column lie, by noisy histograms, where to cut them, and what a cut takes at most.

First a histogram of magnitudes, by octaves of both signs, tells about where values lie; then, where it pays,
one of equal steps within that range tells it more closely. Each unit has one vote in either, spread evenly
over its rows. Ends are moved to where the honest interval of what is asked is narrowest: noise grows with the
range, and what lies outside, at most, is in the interval.

**What a range takes.** Let a share m of the rows of unit u have values in bin b: u's vote for b. Of its rows
in a group, at most s, at most s·m are taken to lie in b; of a unit in several groups one might have all that
do, which is assumed not to be the rule. So holding values below H takes from the sum of a group at most s
times Σ_b m_b·(end of b − H), with m_b the votes of all units, where s is the limit on units' rows, and not
more than twice what units have on average: units whose values lie far out are assumed to have no more rows
than that. Noisy votes are bounded as `tails` says, outward from the outermost bin that stands out, under the
assumption stated there; in bins beyond it values are taken at their middle, as more lie below it where they
become fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dalenius.tables.engines.engine import MAGNITUDES
from dalenius.tables.planning.deviations import Floats
from dalenius.tables.planning.seeing import Blur, Mask, seen
from dalenius.tables.planning.tails import Tail
from dalenius.tables.question import Interval

FAR_VALUE = 32.0
"""By how many bins from 1 the threshold for seeing grows by one standard deviation."""
FAR_STEP = 64.0
"""The same of steps from the middle of a range."""
FAR_LINE = 8.0
"""Steps that are as far apart as two octaves."""
BINS: Floats = np.arange(MAGNITUDES, dtype=np.float64) - MAGNITUDES // 2
HIGHS: Floats = np.where(BINS == 0, 0.0, np.sign(BINS) * 2.0 ** (np.abs(BINS) - (128 + (BINS < 0))))
LOWS: Floats = -HIGHS[::-1]
LINE: Floats = np.sign(BINS) * np.maximum(np.abs(BINS) - 128, 0)
"""Where octaves lie: all sizes below a half are one place."""
BEYOND, WIDER = 160, 8
"""Steps on either side of a range, into which votes may thin out: so many are twice as far away again."""
BESIDE = 1.5
"""Deviations by which a bin next to the outermost must stand out."""
FARTHER = 4
"""Octaves beyond the outermost that stands out at which a range may end."""
SMALL = 2.0**-12
"""Ends of a range that are so small beside the largest are zero."""
RISK = 0.02
"""At which what lies outside enters a choice."""
SAY = 8.0
"""How much more an error counts than the width of an interval."""


Amount = Callable[[Floats, Floats], Any]
"""What a vote at the end of a bin counts beyond a place."""


@dataclass(frozen=True, eq=False)
class Layer:
    """Votes of units in bins from the lowest values to the highest, and the bins that stand out."""

    lows: Floats
    highs: Floats
    counts: Floats
    blur: Blur
    first: int
    last: int
    octaves: bool = True
    """Whether bins are octaves, beyond which there is nothing; else steps."""

    @cached_property
    def upward(self) -> Tail:
        """Bins from the lowest to the highest."""
        return Tail(self.counts, self.blur, self.last, *self._widths(self.highs - self._centre))

    @cached_property
    def downward(self) -> Tail:
        """Bins from the highest to the lowest."""
        widths = self._widths((self._centre - self.lows)[::-1])
        return Tail(self.counts[::-1], self.blur, len(self.counts) - 1 - self.first, *widths)

    @cached_property
    def _centre(self) -> float:
        """The middle of the bin with the median of what stands out."""
        below = np.cumsum(np.maximum(self.counts[self.first : self.last + 1], 0.0))
        return float(self.middles[self.first + int(np.searchsorted(below, below[-1] / 2))])

    def _widths(self, distances: Floats) -> tuple[float, Floats | None]:
        """Return how many octaves a bin is wide, or how far the outer ends of steps are from the centre."""
        return (1.0, None) if self.octaves else (0.0, distances)

    @cached_property
    def middles(self) -> Floats:
        """Where values of bins are about; in a tail that falls more lie below."""
        return np.asarray((self.lows + self.highs) / 2)

    @property
    def end(self) -> float:
        """The value above which there is none."""
        at = self.upward.end
        return np.inf if at is None else float(self.highs[at])

    @property
    def start(self) -> float:
        """The value below which there is none."""
        at = self.downward.end
        return -np.inf if at is None else float(self.lows[len(self.counts) - 1 - at])

    def down(self, amounts: Floats, alpha: float) -> Floats:
        """Return what sums of amounts of low values are at most."""
        return self.downward.most(amounts[:, ::-1], alpha)

    @property
    def votes(self) -> float:
        """Of what stands out."""
        return max(float(self.counts[self.first : self.last + 1].sum()), 1.0)


@dataclass(frozen=True)
class Costs:
    """What a range costs: by noise for each unit of its size, and for each vote that it cuts off."""

    width: float
    """Of an interval, by noise."""
    error: float
    """The mean |error|, by noise."""
    votes: float
    """Rows for each vote, at most."""
    rows: float
    """Rows for each vote, about."""
    centred: bool
    """Whether values are counted from the middle of the range, else from zero."""


@dataclass(frozen=True, eq=False)
class Values:
    """Units by where their values lie: octaves, and steps of a range."""

    octaves: Layer | None
    """None where nothing stands out."""
    steps: Layer | None = None

    @property
    def some(self) -> bool:
        """Whether anything stands out."""
        return self.octaves is not None

    @property
    def whole(self) -> Interval:
        """The octaves that stand out."""
        if self.octaves is None:
            return Interval(Fraction(-1), Fraction(1))
        low, high = self.octaves.lows[self.octaves.first], self._upper.highs[self._upper.last]
        if low == high:
            low, high = min(low, -1.0), max(high, 1.0)
        return Interval(Fraction(float(low)), Fraction(float(high)))

    @cached_property
    def _upper(self) -> Layer:
        """Octaves, with positive ones of the sizes of negative ones that stand out alone.

        Columns of negative numbers alone are rare, and noise may hide positive ones.
        """
        assert self.octaves is not None
        at = self.octaves
        return at if at.last >= MAGNITUDES // 2 else replace(at, last=MAGNITUDES - 1 - at.first)

    def closer(self, steps: Layer | None) -> Values:
        """Return the same with steps of the whole range."""
        return replace(self, steps=steps)

    def range(self, costs: Costs | None) -> Interval:
        """Return where values are held; without costs, where all that stand out are within."""
        if self.octaves is None:
            return self.whole
        if costs is None:
            first, last = self._side(up=False), self._side(up=True)
            low, high = float(first.lows[first.first]), float(last.highs[last.last])
            return Interval(Fraction(low), Fraction(high)) if low < high else self.whole
        lows = highs = self._places()
        up, down = (
            costs.votes * _known(most, likely) + SAY * costs.rows * likely
            for most, likely in (
                (self.above(highs, RISK), self._likely(highs, up=True)),
                (self.below(lows, RISK), self._likely(lows, up=False)),
            )
        )
        far = np.maximum(np.abs(lows)[:, None], np.abs(highs)[None, :])
        half = (highs[None, :] - lows[:, None]) / 2 if costs.centred else far
        noise = (costs.width + SAY * costs.error) * half
        total = np.where(lows[:, None] < highs[None, :], noise + up[None, :] + down[:, None], np.inf)
        # Of ends that cost the same the narrowest.
        near = total <= total.min() * (1 + 1e-6)
        size = np.where(near, highs[None, :] - lows[:, None], np.inf)
        at, to = np.unravel_index(int(np.argmin(size)), size.shape)
        return Interval(Fraction(float(lows[at])), Fraction(float(highs[to])))

    def above(self, highs: Floats, alpha: float) -> Floats:
        """Return Σ votes · (value − high) of values above, at most, for each high."""
        return self._beyond(highs, alpha, lambda ends, high: ends - high, up=True)

    def below(self, lows: Floats, alpha: float) -> Floats:
        """Return Σ votes · (low − value) of values below, at most, for each low."""
        return self._beyond(lows, alpha, lambda ends, low: low - ends, up=False)

    def outside(self, interval: Interval, alpha: float) -> float:
        """Return the votes outside, at most."""
        ends = np.array([float(interval.upper)]), np.array([float(interval.lower)])
        above = self._beyond(ends[0], alpha / 2, lambda e, high: (e > high) * 1.0, up=True)
        below = self._beyond(ends[1], alpha / 2, lambda e, low: (e < low) * 1.0, up=False)
        return float(above[0] + below[0])

    def squares(self, interval: Interval, alpha: float) -> float:
        """Return Σ votes · (how far the square of a distance from within the range is cut), at most."""
        low, high = float(interval.lower), float(interval.upper)
        far = high - low
        above = self._beyond(np.array([high]), alpha / 2, lambda e, h: (e - h) * (e - h + 2 * far), up=True)
        below = self._beyond(np.array([low]), alpha / 2, lambda e, d: (d - e) * (d - e + 2 * far), up=False)
        return float(above[0] + below[0])

    @property
    def ends(self) -> tuple[float, float]:
        """The values beyond which there are none; infinite where no end is in sight."""
        return self._side(up=False).start, self._side(up=True).end

    @property
    def extremes(self) -> tuple[float, float]:
        """The same by octaves, as a least or largest value is often one of a few far from all others."""
        assert self.octaves is not None
        return self.octaves.start, self._upper.end

    @property
    def votes(self) -> float:
        """Of what stands out."""
        return 1.0 if self.octaves is None else self.octaves.votes

    def likely_outside(self, interval: Interval) -> float:
        """Return the share of votes that likely lie outside."""
        layer = self.octaves if self.steps is None else self.steps
        assert layer is not None
        shown = np.arange(len(layer.counts))
        inner = (shown >= layer.first) & (shown <= layer.last)
        out = inner & ((layer.lows >= float(interval.upper)) | (layer.highs <= float(interval.lower)))
        return min(max(float(layer.counts[out].sum()), 0.0) / layer.votes, 1.0)

    # What lies beyond a place: by the steps, or by octaves where these show values farther out.

    def _side(self, *, up: bool) -> Layer:
        octaves, steps = self.octaves, self.steps
        assert octaves is not None
        if steps is None:
            return self._upper if up else octaves
        # The outermost steps hold all that lies beyond them too.
        if up:
            within = steps.last < len(steps.counts) - 1 - BEYOND
            near = steps.highs[steps.last] > octaves.lows[octaves.last]
            return steps if within and near else self._upper
        within = steps.first > BEYOND
        return steps if within and steps.lows[steps.first] < octaves.highs[octaves.first] else octaves

    def _beyond(self, places: Floats, alpha: float, how: Amount, *, up: bool) -> Floats:
        layer = self._side(up=up)
        at = np.arange(len(layer.counts))
        outside = at > layer.last if up else at < layer.first
        ends = np.where(outside, layer.middles, layer.highs if up else layer.lows)
        beyond = ends[None, :] > places[:, None] if up else ends[None, :] < places[:, None]
        amounts = np.where(beyond, how(ends[None, :], places[:, None]), 0.0)
        return layer.upward.most(amounts, alpha) if up else layer.down(amounts, alpha)

    def _likely(self, places: Floats, *, up: bool) -> Floats:
        layer = self.octaves if self.steps is None else self.steps
        assert layer is not None
        middles = layer.middles
        away = middles[None, :] - places[:, None] if up else places[:, None] - middles[None, :]
        shown = np.arange(len(layer.counts))
        inner = (shown >= layer.first) & (shown <= layer.last)
        return np.maximum(np.where(inner, np.maximum(away, 0.0), 0.0) @ layer.counts, 0.0)

    def _places(self) -> Floats:
        """Where a range may begin and end."""
        at = self._upper
        first, last = max(at.first - FARTHER, 0), min(at.last + FARTHER, MAGNITUDES - 1)
        edges = np.concatenate([at.lows[first : last + 1], at.highs[first : last + 1], [0.0]])
        edges = np.unique(np.where(np.abs(edges) < SMALL * np.abs(edges).max(), 0.0, edges))
        between = (edges[1:] + edges[:-1]) / 2
        edges = np.unique(np.concatenate([edges, between]))
        if self.steps is not None:
            edges = np.unique(np.concatenate([edges, self.steps.lows[BEYOND:-BEYOND]]))
        return edges


def _known(most: Floats, likely: Floats) -> Floats:
    """Return what lies outside, at most; twice the estimate where nothing bounds it."""
    return most if np.isfinite(most).all() else 2 * likely


def seen_octaves(counts: Floats, *, blur: Blur) -> Values:
    """Return where values lie, by noisy votes in octaves."""
    places = np.abs(np.abs(BINS) - 129) / FAR_VALUE * (BINS != 0)
    clear = seen(counts, blur, places, np.ones(MAGNITUDES, bool), LINE)
    if not clear.any():
        return Values(None)
    ends = _beside(clear, counts, blur.scale)
    return Values(Layer(LOWS, HIGHS, counts, blur, *ends))


def seen_steps(counts: Floats, interval: Interval, *, blur: Blur) -> Layer | None:
    """Return where values lie in a range, by noisy votes in equal steps of it; None where none stands out."""
    places = np.abs(np.arange(len(counts)) - (len(counts) - 1) / 2) / FAR_STEP
    clear = seen(counts, blur, places, np.ones(len(counts), bool), np.arange(len(counts)) / FAR_LINE)
    if not clear.any():
        return None
    # The outermost steps hold all that lies beyond them, so that others beyond would hold nothing.
    at = np.flatnonzero(clear) + BEYOND
    low, high = float(interval.lower), float(interval.upper)
    away = (high - low) * (2.0 ** (np.arange(1, BEYOND + 1) / WIDER) - 1)
    steps = low + (high - low) * np.arange(len(counts) + 1) / len(counts)
    edges = np.concatenate([low - away[::-1], steps, high + away])
    padded = np.pad(counts, BEYOND)
    return Layer(edges[:-1], edges[1:], padded, blur, int(at[0]), int(at[-1]), octaves=False)


def _beside(clear: Mask, counts: Floats, scale: float) -> tuple[int, int]:
    """Return the outermost bins; outwards from those that stand out, less is enough."""
    at = np.flatnonzero(clear)
    found = []
    for end, step in ((int(at[0]), -1), (int(at[-1]), 1)):
        place = end
        while (place + step - MAGNITUDES // 2) * step > 0 and 0 <= place + step < MAGNITUDES:
            if counts[place + step] <= BESIDE * scale:
                break
            place += step
        found.append(place)
    return found[0], found[1]
