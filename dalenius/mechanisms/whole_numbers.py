"""Noise on whole numbers: what the mechanisms that are discrete by nature share.

Values are whole numbers unless told otherwise: `exact=True` on the grid of step 1. With `exact=False` a float
is rounded onto a grid so fine that this costs a small share of the sensitivity.

A vector is charged entry by entry. In whole steps the i-th largest of the entries that change is at most
min(linf, l1/i, l2/√i), and there are at most l0 of them. Where a lesser shift of one entry is no worse than a
greater one, the composition of the losses of these bounds dominates (Zhu, Dong and Wang 2022, Theorem 10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dalenius.losses.composition import compose
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.gridded import default_grid
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity

WIDEST = 10_000
"""Entries that may change by more steps than this are not told apart by their size."""
SLACK = Fraction(9, 8)
"""So much more of the squared L2 norm the entries together may have and still say more than the norm."""


class WholeNumbers(Additive):
    """Noise whose law is that of integers."""

    def __post_init__(self) -> None:
        if self.grid is None:
            grid = whole_grid(self.sensitivity, self.norm, self.fineness, exact=self.exact)
            object.__setattr__(self, "grid", grid)
        super().__post_init__()


def whole_grid(sensitivity: Sensitivity, norm: str, fineness: int, *, exact: bool) -> Grid:
    """Step 1 for whole numbers, else a share of 2^−fineness of the sensitivity."""
    return Grid(0) if exact else default_grid(sensitivity, norm, fineness)


def largest(bound: Sensitivity) -> int:
    """The most steps by which one entry may change."""
    return math.floor(bound.need("linf"))


def entries(bound: Sensitivity, least: int) -> int:
    """How many entries may change by `least` steps or more."""
    found = [] if bound.l0 is None else [bound.l0]
    found += [] if bound.l1 is None else [math.floor(bound.l1 / least)]
    found += [] if bound.l2 is None else [math.floor(bound.l2**2 / least**2)]
    return min(found) if found else math.floor(bound.need("l1"))


def by_entries(bound: Sensitivity, scalar: Callable[[int], Loss]) -> Loss | None:
    """The losses of the entries' bounds together; None where the L2 norm says more."""
    far, most = largest(bound), entries(bound, 1)
    if far > WIDEST and most > 1:
        return None
    parts, count, squares = [], 0, 0
    for size in range(far, 0, -1):
        more = entries(bound, size) - count
        if more:
            parts.append((size, more))
            count, squares = count + more, squares + more * size**2
        if most > 1 and squares > SLACK * bound.need("l2") ** 2:
            return None
        if count == most:
            break
    return compose(scalar(size) * times for size, times in parts)


def every_entry(bound: Sensitivity, scalar: Callable[[int], Loss]) -> Loss:
    """The loss of the largest change, once for every entry that may change."""
    return scalar(largest(bound)) * entries(bound, 1)
