"""The rounds of several quantiles: the middle level, then the levels on each side among the records there.

A part has the levels a < … < b of its ends; among its own records, a level q of all becomes (q − a)/(b − a).
Every part is released by rank errors over 2·max(q, 1 − q)·scale, q its own level, so that a record that comes
or goes costs each a range of 1/scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.mechanisms.ranks import Segments
from dalenius.privacy.quantized import Steps

Joint = dict[tuple[int, ...], float]
"""Outcomes and their probabilities."""


@dataclass(frozen=True)
class Halving:
    """The increasing `levels` of a part whose ends have the levels `left` and `right`."""

    levels: tuple[Fraction, ...]
    scale: Fraction
    left: Fraction = Fraction(0)
    right: Fraction = Fraction(1)

    def fill(self, found: Steps, records: Steps, low: int, high: int) -> None:
        """Release the levels of sorted records in [low, high], one draw a row of `found`."""
        if not self.levels:
            return
        middle, (before, after) = self._middle, self._sides()
        found[:, middle] = self._part(records, low, high).draw(len(found))
        for point in np.unique(found[:, middle]).tolist():
            rows = np.flatnonzero(found[:, middle] == point)
            block, cut = found[rows], int(np.searchsorted(records, point, side="right"))
            before.fill(block[:, :middle], records[:cut], low, point)
            after.fill(block[:, middle + 1 :], records[cut:], point, high)
            found[rows] = block

    def law(self, records: Steps, low: int, high: int) -> Joint:
        """The joint law of the same."""
        if not self.levels:
            return {(): 1.0}
        law: Joint = {}
        before, after = self._sides()
        points, masses = self._part(records, low, high).masses()
        for point, mass in zip(points.tolist(), masses.tolist(), strict=True):
            cut = int(np.searchsorted(records, point, side="right"))
            lefts = before.law(records[:cut], low, point)
            rights = after.law(records[cut:], point, high)
            law |= {(*a, point, *b): mass * p * q for a, p in lefts.items() for b, q in rights.items()}
        return law

    @property
    def own(self) -> Fraction:
        """The middle level among the records of this part."""
        return (self.levels[self._middle] - self.left) / (self.right - self.left)

    @property
    def widest(self) -> Fraction:
        """The largest scale of any part."""
        return max((self._scale, *(side.widest for side in self._sides() if side.levels)))

    @property
    def _middle(self) -> int:
        return len(self.levels) // 2

    @property
    def _scale(self) -> Fraction:
        return 2 * max(self.own, 1 - self.own) * self.scale

    def _part(self, records: Steps, low: int, high: int) -> Segments:
        return Segments.of(records, low=low, high=high, level=self.own, scale=self._scale)

    def _sides(self) -> tuple[Halving, Halving]:
        middle, mark = self._middle, self.levels[self._middle]
        return (
            Halving(self.levels[:middle], self.scale, self.left, mark),
            Halving(self.levels[middle + 1 :], self.scale, mark, self.right),
        )
