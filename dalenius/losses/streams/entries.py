"""Entries of a matrix as given: finite floats, the first of a column not zero, kept as they are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import listed

MOST_RATIO = 1e100
"""Entries beyond this, or first entries below its inverse, are taken to be mistakes."""


def read_entries(values: Iterable[object], name: str) -> tuple[float, ...]:
    """The entries of one column from the diagonal down, trailing zeros left out."""
    column = [_entry(value, name) for value in listed(values, name)]
    while column and column[-1] == 0:
        column.pop()
    if not column or abs(column[0]) * MOST_RATIO < 1:
        raise InvalidArgument(
            f"{name} must begin with a number that is not zero.",
            remedy=f"Pass {name} from the diagonal down.",
        )
    return tuple(column)


def _entry(value: object, name: str) -> float:
    number = float(value) if isinstance(value, Real) else math.nan
    if not abs(number) <= MOST_RATIO:
        raise InvalidArgument(f"{name} must be finite numbers.", remedy=f"Pass {name} as floats.")
    return number
