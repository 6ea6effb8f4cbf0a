"""Where the values of a column lie, by a noisy histogram of their magnitudes, and where to cut them.

With U the largest size of a value that counts, the noise of a sum grows with U, and values above U lose what
is above: U makes the sum of both least. The ends are then drawn in to the outermost values that stand out of
the noise. A range that lies well off zero does not begin at it.

What a range cuts off is told by `Cut`: by what stands out, and at most, by sums over noisy bins (`hidden`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.tables.engines.engine import MAGNITUDES
from dalenius.tables.planning.hidden import at_least, at_most
from dalenius.tables.planning.seeing import Blur, Floats, seen
from dalenius.tables.question import Interval

FAR_VALUE = 32.0
"""By how many bins from 1 the threshold for seeing grows by one standard deviation."""
BINS: Floats = np.arange(MAGNITUDES, dtype=np.float64) - MAGNITUDES // 2
PARTS = np.array([1.125, 1.375, 1.625, 1.875])
"""Where in its octave a value is taken to be, in four equal parts."""
NEAR = 8.0
"""A range begins at zero unless it lies within one in so many."""
BESIDE = 1.5
"""Deviations by which a bin next to the outermost must stand out."""
OCTAVES = 2
"""By how many bins beyond the outermost that stands out values are looked for."""


@dataclass(frozen=True)
class Cut:
    """What a range does to values: by estimate, and at most, as far as noise lets see."""

    outside: tuple[float, float]
    """The share of values that are not within."""
    shift: tuple[float, float]
    """How far their mean moves."""
    lost: tuple[float, float]
    """The share of the sum of their sizes that is cut off."""
    squares: tuple[float, float]
    """How far the mean of their squares moves."""


@dataclass(frozen=True, eq=False)
class Values:
    """Units by the magnitude of their values: what stands out of the noise, and all that it shows."""

    clear: Floats
    noisy: Floats
    scale: float

    @property
    def some(self) -> bool:
        """Whether anything does."""
        return bool(self.clear.any())

    def range(self, noise: float | None) -> Interval:
        """Where values are held; `noise` is the error of a sum of values of size 1, for each row of a unit.

        Without it, all that stand out are within.
        """
        at = BINS[self.clear > 0]
        if not at.any():
            return Interval(Fraction(-1), Fraction(1))
        upper, lower = _edge(int(at.max()), outer=at.max() > 0), _edge(int(at.min()), outer=at.min() < 0)
        largest = max(abs(upper), abs(lower))
        largest = largest if noise is None else Fraction(self.largest(noise, float(largest)))
        upper, lower = min(upper, largest), max(lower, -largest)
        if (lower > 0 and lower * NEAR > upper > lower) or (upper < 0 and upper * NEAR < lower < upper):
            return Interval(lower, upper)
        return Interval(min(lower, Fraction(0)), max(upper, Fraction(0)))

    def cut(self, interval: Interval) -> Cut:
        """What holding values within a range does."""
        size = np.where(BINS == 0, 0.0, np.sign(BINS) * 2.0 ** (np.abs(BINS) - 129.0))[:, None] * PARTS
        held = np.clip(size, float(interval.lower), float(interval.upper))
        outside = self._summed((size != held).mean(axis=1))
        shift = self._summed(np.abs(size - held).mean(axis=1))
        squares = self._summed(np.abs(size**2 - held**2).mean(axis=1))
        people = max(float(self.clear.sum()), 1e-300)
        kept = max(float((self.clear[:, None] / len(PARTS) * np.abs(held)).sum()), 1e-300)
        whole = [people + max(more - outside[0], 0.0) for more in outside]
        return Cut(
            (outside[0] / whole[0], min(outside[1] / whole[1], 1.0)),
            (shift[0] / whole[0], shift[1] / whole[0]),
            (shift[0] / (kept + shift[0]), shift[1] / (kept + shift[1])),
            (squares[0] / whole[0], squares[1] / whole[0]),
        )

    def _summed(self, each: Floats) -> tuple[float, float]:
        """Σ over values, by estimate and at most; those far beyond what stands out are left aside."""
        at = BINS[self.clear > 0]
        near = (at.min() - OCTAVES <= BINS) & (at.max() + OCTAVES >= BINS)
        each = np.where(near, each, 0.0)
        found = float((each * self.noisy).sum()), self.scale * float(np.sqrt(np.square(each).sum()))
        likely = max(float((each * self.clear).sum()), at_least(found), 0.0)
        return likely, at_most(found, likely)

    def largest(self, noise: float, most: float) -> float:
        """The size of values above which cutting costs less than noise."""
        tries = most * 2.0 ** (-np.arange(64) / 4)
        cost = [noise * limit + self._mean(np.inf) - self._mean(limit) for limit in tries]
        return float(tries[int(np.argmin(cost))])

    def peak(self, groups: int) -> float:
        """How many times the mean size the largest size is, where it is worth adding up at all."""
        if not self.clear[BINS != 0].any():
            return 1.0
        top = self.largest(float(groups), float(2.0 ** (np.abs(BINS[self.clear > 0]).max() - 128)))
        return top * float(self.clear.sum()) / max(self._mean(top), 1e-300)

    def _mean(self, limit: float) -> float:
        """The sum over units of the mean size of their values, held at a limit."""
        sizes = np.where(BINS == 0, 0.0, 2.0 ** (np.abs(BINS) - 129.0))[:, None] * PARTS
        return float((self.clear[:, None] / len(PARTS) * np.minimum(sizes, limit)).sum())


def clear_values(counts: Floats, *, blur: Blur) -> Values:
    """The histogram without its noise, where that can be told; both in units."""
    places = (np.abs(np.abs(BINS) - 129) / FAR_VALUE * (BINS != 0))[:, None]
    found = seen(counts[:, None], blur, places, np.ones((MAGNITUDES, 1), bool))
    clear = np.maximum(found[:, 0], 0.0)
    return Values(_beside(clear, counts, blur.scale), counts, blur.scale)


def _beside(clear: Floats, counts: Floats, scale: float) -> Floats:
    """Outwards from the outermost bins that stand out, less is enough: values thin out by and by."""
    wider, at = clear.copy(), np.nonzero(clear)[0]
    for end, step in ((at.max(initial=0), 1), (at.min(initial=0), -1)) if at.size else ():
        place = int(end) + step
        while (place - MAGNITUDES // 2) * step > 0 and 0 <= place < MAGNITUDES:
            if counts[place] <= BESIDE * scale:
                break
            wider[place], place = counts[place], place + step
    return wider


def _edge(place: int, *, outer: bool) -> Fraction:
    """The end of a bin: the one away from zero, or the one towards it."""
    if place == 0:
        return Fraction(0)
    power = Fraction(2) ** (abs(place) - (128 if outer else 129))
    return power if place > 0 else -power
