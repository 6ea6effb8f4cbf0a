"""What is handed to a stream, cell by cell: what a cell becomes follows from that cell alone.

Were a list made an array at once, one text among whole numbers would make texts of them all, and one event
would change what others count as. So the cells of a list, and of an array of objects, are read one by one.
An array or a column that declares a type has cells of that type, and is refused by it, or taken as it is. The
type of a column is that of no rows of it: what it becomes in numpy may depend on whether a cell is missing.
Whatever has no cells is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument

Array = NDArray[Any]
ALONE = (str, bytes, bytearray, memoryview)
"""Sequences that are one cell."""


def cells(values: Any, kinds: str, what: str, remedy: str) -> list[Any] | Array:
    """A list, or an array of one dimension and of one of these kinds of numpy, O for cells of any type."""
    if isinstance(values, ALONE):
        return [values]
    if isinstance(values, np.ndarray) or (hasattr(values, "__array__") and _shape(values)):
        return _typed(values, kinds, f"{what}, by their type.", remedy)
    if hasattr(values, "__array__"):
        return [np.asarray(values)[()]]
    return list(values) if isinstance(values, Iterable) else [values]


def _shape(values: Any) -> tuple[int, ...]:
    """Of an array; columns that tell none have one dimension."""
    return tuple(getattr(values, "shape", (0,)))


def _typed(values: Any, kinds: str, refusal: str, remedy: str) -> list[Any] | Array:
    """An array as it is, where it has the type that was declared; its cells elsewhere."""
    if isinstance(values, np.ndarray):
        if values.size and values.dtype.kind not in kinds:
            raise InvalidArgument(refusal, remedy=remedy)
        flat = values.ravel()
        return list(flat.tolist()) if values.dtype.hasobject or np.ma.isMaskedArray(values) else flat
    if len(_shape(values)) != 1:
        raise InvalidArgument("These are several columns.", remedy="Pass one of them.")
    if str(getattr(values, "dtype", "")) == "category":
        values = values.astype(object)
    if np.asarray(getattr(values, "iloc", values)[:0]).dtype.kind not in kinds:
        raise InvalidArgument(refusal, remedy=remedy)
    array = np.asarray(values)
    return array if array.dtype.kind in kinds.replace("O", "") else _listed(values, array)


def _listed(values: Any, array: Array) -> list[Any]:
    """Each cell as its column has it, where numpy has made it another."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, name):
            return list(getattr(values, name)())
    return list(array.tolist())
