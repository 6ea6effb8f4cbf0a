"""Candidates by how far their utility is below the best, and the weights e^{−rate·distance}.

Utilities are private: what is refused here depends on their type and shape only, and integers of any
size are accepted. They are clipped to ±2⁶¹, which brings no two of them farther apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from dalenius.arithmetic import arb
from dalenius.errors import InvalidArgument
from dalenius.noise.law import Floats, Ints, exponentials
from dalenius.noise.lazy import ball

CLIP = 2**61
STEEPEST = Fraction(2**900)
"""Steeper rates than this are e^{−rate} = 0 to a double all the same."""


@dataclass(frozen=True)
class Weights:
    """e^{−rate·distance} of every candidate: doubles, what they may be off, and balls on demand."""

    distance: Ints
    rate: Fraction
    value: Floats
    off: Floats

    @classmethod
    def of(cls, utilities: ArrayLike, rate: Fraction) -> Weights:
        """The best candidate has distance 0 and weight 1."""
        clipped = integers(utilities)
        distance = clipped.max() - clipped
        return cls(distance, rate, *exponentials(distance * float(min(rate, STEEPEST))))

    def exact(self, i: int) -> arb:
        """The i-th, at the working precision."""
        return (-ball(self.rate * int(self.distance[i]))).exp()


def integers(utilities: ArrayLike) -> Ints:
    """A vector of integers, clipped to ±2⁶¹."""
    if isinstance(utilities, np.ma.MaskedArray):
        raise _refused()
    if isinstance(utilities, np.ndarray) and utilities.dtype.kind in "iu":
        array = utilities if utilities.dtype.itemsize < 8 else np.clip(utilities, -CLIP, CLIP)
        array = array.astype(np.int64)
    else:
        array = np.array([_clipped(u) for u in _listed(utilities)], np.int64)
    if array.ndim != 1 or array.size == 0:
        raise _refused()
    return array


def _listed(utilities: ArrayLike) -> Iterable[object]:
    if not isinstance(utilities, Iterable):
        raise _refused()
    return cast("Iterable[object]", utilities)


def _clipped(utility: object) -> int:
    if isinstance(utility, bool | np.bool_) or not isinstance(utility, Integral):
        raise _refused()
    return max(-CLIP, min(CLIP, int(utility)))


def _refused() -> InvalidArgument:
    return InvalidArgument(
        "utilities must be a vector of at least one integer.",
        remedy="Count utilities in steps of a grid, and the rate per step.",
    )
