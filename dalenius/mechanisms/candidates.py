"""Vectors of private numbers as grid steps, the public names of candidates, and fair choices among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.privacy import records
from dalenius.privacy.quantized import MOST, Grid, Steps
from dalenius.release import Cell


def whole_steps(values: Any, grid: Grid) -> Steps:
    """Return a vector of numbers as whole steps, rounded toward zero, and 0 for a cell that is no number.

    Its type and its shape are refused, never a cell.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        far = MOST * grid.step
        found = grid.quantize(values, lower=-far, upper=far)
    elif isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes):
        listed_cells = values if isinstance(values, Sequence) else records.shown(values)
        if getattr(listed_cells, "ndim", 1) != 1:
            raise _no_vector()
        found = np.array([records.steps(cell, grid) for cell in listed_cells], dtype=np.int64)
    else:
        raise _no_vector()
    if found.ndim != 1:
        raise _no_vector()
    return found


def listed(value: Any) -> Sequence[Any]:
    """Private values, one a candidate."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray) or not len(value):
        raise InvalidArgument("value must be a list, one a candidate.", remedy="Pass at least one.")
    return value if isinstance(value, Sequence) else list(value)


def named(candidates: Sequence[Cell] | None, count: int) -> Sequence[Cell]:
    """The candidates' names; without any, their indices."""
    if candidates is None:
        return range(count)
    if len(candidates) != count:
        raise InvalidArgument(
            f"There are {len(candidates)} candidates and {count} utilities.", remedy="Pass one for each."
        )
    return [c.item() if isinstance(c, np.generic) else c for c in candidates]


def one_of_each(flags: NDArray[np.bool_]) -> Steps:
    """For each row, one of the columns that are set, each with the same probability."""
    able = np.cumsum(flags, axis=1)
    place = np.zeros(len(flags), np.int64)
    for count in np.unique(able[:, -1]).tolist():
        rows = np.flatnonzero(able[:, -1] == count)
        place[rows] = noise.uniform(count, rows.size)
    # The first column whose count of flags exceeds the place is itself set.
    return np.asarray(np.argmax(able > place[:, np.newaxis], axis=1), np.int64)


def _no_vector() -> InvalidArgument:
    return InvalidArgument(
        "value must be a vector of numbers.", remedy="Pass a list, or an array of float64."
    )
