"""What a table needs to know of a law on the integers: its weights, counted from its mode.

All laws here are unimodal and log-concave: away from the mode, the ratio of successive weights never
grows. A weight is a ball, as narrow as it is asked for; `estimate` is the same as a double with a bound
on its error, which docs/proofs/noise.md derives. Weights need not add up to one: only ratios matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import arb

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

RELATIVE = 2.0**-40
"""What rounding may amount to in an estimate, as a share of it; in truth it is below 2^−41."""
ABSOLUTE = 2.0**-300
"""And what it may amount to where the weight is below e^−256."""


class Law(ABC):
    """Weights f(k) of the integers k, counted from the mode. Frozen, hashable, compared by value."""

    @property
    def mode(self) -> int:
        """What is added to k in the end."""
        return 0

    @property
    def one_sided(self) -> bool:
        """Whether f(k) = 0 for all k < 0."""
        return False

    @property
    @abstractmethod
    def spread(self) -> float:
        """About the standard deviation. It decides on the layout of a table, never on the law."""

    @abstractmethod
    def weight(self, k: int) -> arb:
        """f(k), enclosed, at the working precision of the caller."""

    @abstractmethod
    def drop(self, k: int, step: int) -> arb:
        """Some x with f(k + step) ≤ e^{−x} f(k), where `step` leads away from the mode."""

    def estimate(self, k: Ints) -> tuple[Floats, Floats]:
        """f(k) as doubles, and what they may be off: infinite where only balls are known."""
        return np.zeros(k.size), np.full(k.size, np.inf)


def exponentials(exponents: Floats) -> tuple[Floats, Floats]:
    """e^{−x} for x ≥ 0 where x comes out of at most 8 roundings, and what it may be off."""
    value = np.exp(-exponents)
    return value, RELATIVE * value + ABSOLUTE
