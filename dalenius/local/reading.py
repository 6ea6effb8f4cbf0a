"""What is handed to `encode`: one value of each person, told by its type and its shape alone.

A list has an entry for each person, whatever the entry is. An array, a column of a frame or a frame of one
column has a row for each. A number alone is one person's. Whatever else comes is refused: nothing, a set, an
iterator, several columns of which a person would send a report each, an array that hides some of its cells.
Types and shapes are facts of the schema, the same for all values; what is in the cells is private, and
nothing here is refused by it.

Vectors are rows of one length, or one such row alone for one person. How long they are is of the schema, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument

Array = NDArray[Any]
Floats = NDArray[np.float64]
NUMERIC = "biuf"
TEXTS = ("object", "category", "str", "string", "utf8", "large_string", "string_view")
"""What frames call their columns of texts, or of anything."""


def column(values: Any) -> list[Any] | Array:
    """A value of each person: a list, or an array of one dimension that has no objects in it."""
    given = _taken(values)
    if isinstance(given, list):
        return given
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        raise InvalidArgument(
            "A person has one value, and this array is not one column.",
            remedy="Pass one column, such as values[:, 0]; or [value] for one person.",
        )
    return given.tolist() if given.dtype.kind in "OT" else given


def numeric_column(values: Any, what: str, remedy: str) -> list[Any] | Array:
    """The same of numbers: a column that its frame calls texts is refused, as an array of texts is."""
    given = column(values)
    if _declared(values) in TEXTS or (not isinstance(given, list) and given.dtype.kind not in NUMERIC):
        raise InvalidArgument(f"{what}, by their type.", remedy=remedy)
    return given


def vectors(values: Any, dimension: int) -> Floats:
    """Rows of so many numbers, a row for each person; what is in a cell and no number is 0."""
    given = _taken(values)
    if not isinstance(given, list) and given.dtype.kind == "O":
        given = given.tolist()
    table = _table(given) if isinstance(given, list) else given
    if table is not None and table.dtype.kind not in NUMERIC:
        raise InvalidArgument("Vectors must be rows of numbers, by their type.", remedy="Convert them first.")
    if table is None or (table.size and table.shape not in ((dimension,), (len(table), dimension))):
        raise InvalidArgument(
            f"Vectors have {dimension} entries, and people a row each.",
            remedy=f"Pass an array of the shape (people, {dimension}), or ({dimension},) for one person.",
        )
    return np.nan_to_num(floats(table).reshape(-1, dimension), nan=0.0, posinf=0.0, neginf=0.0)


def floats(array: Array) -> Floats:
    """As floats, without a warning for what is beyond them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float64)


def number(value: object) -> float:
    """One value as a float; what is no number is NaN."""
    if not isinstance(value, int | float | Fraction | Decimal | np.integer | np.floating | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def _taken(values: Any) -> list[Any] | Array:
    """As a list, or as an array of any shape."""
    if isinstance(values, list | tuple):
        return list(values)
    if isinstance(values, Real | Decimal | np.bool_):
        return [values]
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidArgument(
            "A masked array hides some of its cells.", remedy="Say what they count as: values.filled(0)."
        )
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        return np.asarray(values)
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray | memoryview):
        return list(values)
    raise InvalidArgument(
        f"Values of people come as a list, an array or a column, not as {type(values).__name__}.",
        remedy="Pass [value] for one person, or list(values) for many.",
    )


def _declared(values: Any) -> str:
    """What a column of a frame calls its type, in small letters; nothing for arrays and lists."""
    if isinstance(values, np.ndarray | list | tuple):
        return ""
    for name in ("dtype", "type"):
        if hasattr(values, name):
            return str(getattr(values, name)).lower()
    return " ".join(str(kind).lower() for kind in getattr(values, "dtypes", ()))


def _table(rows: list[Any]) -> Array | None:
    """Numbers of a list of rows, or of one row; None where it is neither."""
    try:
        quick = np.asarray(rows)
    except (TypeError, ValueError, OverflowError):
        quick = np.empty(0, object)
    if quick.dtype.kind in NUMERIC:
        return quick
    split = [_cells(row) for row in rows]
    lengths = {None if cells is None else len(cells) for cells in split}
    if lengths == {None}:
        return np.array([number(value) for value in rows])
    if len(lengths) > 1 or None in lengths:
        return None
    return np.array([[number(cell) for cell in cells or ()] for cells in split])


def _cells(row: object) -> list[Any] | None:
    if isinstance(row, list | tuple):
        return list(row)
    if hasattr(row, "__array__"):
        array = np.asarray(row)
        return array.tolist() if array.ndim == 1 else None
    return None
