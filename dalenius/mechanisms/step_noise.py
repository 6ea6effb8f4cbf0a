"""Noise in whole steps of a grid: its law, and what follows from it for bars, listings and attacks."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.mechanism import Floats, Law, Mechanism, risk
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.release import CONFIDENCE

MOST_LISTED = 2**15
"""How far from its centre a law is listed."""
LEFT_OUT = 1e-18
"""How much of a law `probabilities` may leave out."""
SURE = 1e9
"""The logarithm of a ratio to nothing."""


class StepNoise(Mechanism):
    """Independent noise on every entry, in steps of `grid`."""

    grid: Grid | None

    @abstractmethod
    def draw(self, size: int) -> Steps:
        """Noise, in steps."""

    @abstractmethod
    def masses(self, steps: Steps) -> NDArray[np.float64]:
        """P(noise = k) for each k, as floats."""

    @abstractmethod
    def beyond(self, steps: int) -> float:
        """At least P(|noise| > k)."""

    @property
    def step(self) -> Fraction:
        """The distance between grid points."""
        assert self.grid is not None
        return self.grid.step

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float:
        """The half-width of a number's error bar: P(|noise| > error) ≤ alpha, as near as the grid allows."""
        return float(self.reach(risk(alpha)) * self.step)

    def reach(self, alpha: Fraction) -> int:
        """The least k with P(|noise| > k) ≤ alpha, in steps."""
        if alpha not in self._reaches:
            self._reaches[alpha] = self._reach(alpha)
        return self._reaches[alpha]

    @cached_property
    def _reaches(self) -> dict[Fraction, int]:
        """Those already asked for: they depend on public parameters only."""
        return {}

    def _reach(self, alpha: Fraction) -> int:
        low, high = -1, 1
        while self.beyond(high) > alpha:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.beyond(middle) > alpha else (low, middle)
        return high

    def log_ratios(self, found: Steps, first: Steps, second: Steps) -> Floats:
        """The logarithm of how much likelier each row is about the first steps than about the second."""
        total = np.zeros(len(found))
        for i in np.flatnonzero(first != second).tolist():
            seen, place = np.unique(found[:, i], return_inverse=True)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log(self.masses(seen - first[i])) - np.log(self.masses(seen - second[i]))
            total += np.nan_to_num(ratio, nan=0.0, posinf=SURE, neginf=-SURE)[place]
        return total

    def listed(self, place: int, spare: int) -> Law | None:
        """The law about a place, and `spare` steps more at each end; None where that is too long."""
        reach = self.reach(Fraction(LEFT_OUT)) + spare
        if reach > MOST_LISTED:
            return None
        steps, step = np.arange(-reach, reach + 1), self.step
        outcomes = tuple((place + k) * step for k in steps.tolist())
        return Law(outcomes, self.masses(steps), LEFT_OUT)
