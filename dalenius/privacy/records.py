"""Read private records cell by cell: what a cell becomes follows from that cell alone.

    >>> [number(cell) for cell in (3, "3", None, True)]
    [3.0, nan, nan, 1.0]
    >>> [identity(cell) for cell in ("ann", 7, 7.0, None)]
    ['str ann', 'int 7', None, None]

Privacy compares what is released about neighbouring data, so a record must change nothing but the released
value: an exception, a warning, a type or a shape that one record causes tells that this record is there.
Three rules keep every reader of the library to that.

1. Only public facts are refused: the kind of the container, the type that an array or a column declares, its
   number of columns. The type of a column is that of no rows of it, because what a column becomes in numpy
   may depend on whether one of its cells is missing. Neither cells nor the number of records are refused.
2. A list, and an array of objects, declares no type, so its cells are read one by one. Were it made an array
   at once, one text among numbers would make texts of them all.
3. A cell that cannot be read is the same as a missing one. It counts as the default that its reader documents
   or is left out, and it changes nothing for the other cells. A hidden cell of a masked array is missing.

No function here raises for a cell, whatever its methods do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.privacy.quantized import MOST, Grid, Steps

Array = NDArray[Any]
ALONE = (str, bytes, bytearray, memoryview)
"""Sequences that are one cell."""
NUMBER = int | float | Fraction | Decimal | np.integer | np.floating | np.bool_
"""Types of numbers. Durations of numpy are whole numbers to Python, and are none here."""
FARTHEST = 5000
"""Decimals of more digits than this before or after the point are infinite, or zero."""


def cells(values: Any, kinds: str, what: str, remedy: str) -> list[Any] | Array:
    """Return the cells of a column: a list, or an array of one dimension with a declared type.

    Args:
        values: A list or another iterable, an array, a column of a frame, or one cell alone.
        kinds: The kinds of numpy types that are accepted, with O for cells of any type.
        what: The refusal of another type, such as "Items must be texts".
        remedy: What to do instead.

    Raises:
        InvalidArgument: The declared type is none of `kinds`, or there are several columns.
    """
    if isinstance(values, ALONE):
        return [values]
    if isinstance(values, np.ndarray) or (hasattr(values, "__array__") and _shape(values)):
        return _typed(values, kinds, f"{what}, by their type.", remedy)
    if hasattr(values, "__array__"):
        return [np.asarray(values)[()]]
    return list(values) if isinstance(values, Iterable) else [values]


def shown(values: Any) -> Array:
    """Return an array as it is, or a masked array as objects with None for its hidden cells."""
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    found: Array = np.array(values.data, dtype=object)
    found[np.ma.getmaskarray(values)] = None
    return found


def declared(values: Any) -> np.dtype[Any]:
    """Return the numpy type that an array or a column declares: that of no rows of it."""
    if isinstance(values, np.ndarray) or not hasattr(values, "__getitem__"):
        return np.asarray(values).dtype
    return np.asarray(getattr(values, "iloc", values)[:0]).dtype


def number(cell: object) -> float:
    """Return a number as the nearest float, an infinity beyond all floats, and NaN for what is no number."""
    if type(cell) is float:
        return cell
    if isinstance(cell, np.timedelta64) or not isinstance(cell, NUMBER):
        return math.nan
    try:
        with np.errstate(all="ignore"):
            return float(cell)
    except OverflowError:
        return _infinite(cell)
    except Exception:
        return math.nan


def exact(cell: object) -> int | float | Fraction:
    """Return a number without rounding it, and NaN for what is no number."""
    if type(cell) is int or type(cell) is float:
        return cell
    if isinstance(cell, np.timedelta64) or not isinstance(cell, NUMBER):
        return math.nan
    try:
        return _exact(cell)
    except Exception:
        return math.nan


def whole(cell: object) -> int | None:
    """Return a whole number of any type, and None for what is no whole number, such as 0.5 or a text."""
    if type(cell) is int:
        return cell
    found = exact(cell)
    if isinstance(found, float):
        return int(found) if found.is_integer() else None
    return int(found) if found.denominator == 1 else None


def integer(cell: object) -> int | None:
    """Return a whole number that is one by its type, True and False among them, and None for all else."""
    if type(cell) is int:
        return cell
    if isinstance(cell, np.timedelta64) or not isinstance(cell, int | np.integer | np.bool_):
        return None
    try:
        return int(cell)
    except Exception:
        return None


def steps(cell: object, grid: Grid) -> int:
    """Return a number as steps of a grid, rounded toward zero, within ±2^62; 0 for what is no number."""
    return max(-MOST, min(MOST, grid.aggregate(exact(cell))))


def whole_steps(values: Any) -> Steps:
    """Return each cell of a column as a whole number within ±2^62.

    Numbers in a list or in an array of objects are rounded toward zero, and what is no number counts as 0.

    Raises:
        InvalidArgument: The declared type is neither one of integers nor of objects.
    """
    return _integers(values, lambda cell: steps(cell, UNIT_GRID))


def whole_codes(values: Any) -> Steps:
    """Return each cell of a column as a whole number within ±2^62, and −1 for what is no whole number.

    Raises:
        InvalidArgument: The declared type is neither one of integers nor of objects.
    """
    return _integers(values, _code)


def identity(cell: object) -> str | None:
    """Return a name that is the same for the same id only, and None for a cell that is no id.

    Ids are whole numbers, texts and bytes, and tuples of them. 1 and "1" are two ids. A missing value, an
    empty text, True and False are no ids. Neither is a float: several whole numbers may have become one.
    """
    if type(cell) is int:
        return f"int {cell:x}"
    try:
        return _identity(cell)
    except Exception:
        return None


UNIT_GRID = Grid(0)


def _integers(values: Any, read: Callable[[object], int]) -> Steps:
    """Integers as they are, held within ±2^62; cells of any type as `read` gives them."""
    given = cells(
        values,
        "iuO",
        "value must be whole grid steps",
        "Quantize each record first, or make the mechanism with exact=False.",
    )
    if not isinstance(given, list):
        # Unsigned integers from 2^63 on would wrap.
        most = np.asarray(MOST, dtype=given.dtype if given.dtype.itemsize == 8 else np.uint64)
        held = np.minimum(given, most) if given.dtype.kind == "u" else given
        return np.clip(held.astype(np.int64), -MOST, MOST)
    if set(map(type, given)) <= {int}:
        return np.array([max(-MOST, min(MOST, cell)) for cell in given], dtype=np.int64)
    return np.array([read(cell) for cell in given], dtype=np.int64)


def _code(cell: object) -> int:
    found = whole(cell)
    return -1 if found is None else max(-MOST, min(MOST, found))


def _identity(cell: object) -> str | None:
    if isinstance(cell, str):
        return f"str {str.__str__(cell)}" if len(cell) else None
    if isinstance(cell, bool | np.bool_ | float | np.floating):
        return None
    if isinstance(cell, bytes):
        return f"bytes {bytes.hex(cell)}" if len(cell) else None
    if isinstance(cell, UUID):
        return f"UUID {cell.hex}"
    if isinstance(cell, tuple):
        parts = [_identity(part) for part in cell]
        known = [f"{len(part)} {part}" for part in parts if part is not None]
        return f"tuple {' '.join(known)}" if len(known) == len(parts) > 0 else None
    found = whole(cell)
    return None if found is None else f"int {found:x}"


def _exact(cell: Any) -> int | float | Fraction:
    if isinstance(cell, Decimal):
        return _decimal(cell)
    if isinstance(cell, np.longdouble) and np.isfinite(cell):
        return Fraction(*cell.as_integer_ratio())
    if isinstance(cell, float | np.floating):
        return float(cell)
    return Fraction(cell) if isinstance(cell, Fraction) else int(cell)


def _decimal(cell: Decimal) -> float | Fraction:
    """A decimal, of which 1E+999999999 would fill the memory as a whole number."""
    if cell.is_nan():
        return math.nan
    if cell.is_zero() or (cell.is_finite() and cell.adjusted() < -FARTHEST):
        return Fraction(0)
    if cell.is_infinite() or cell.adjusted() > FARTHEST:
        return -math.inf if cell.is_signed() else math.inf
    return Fraction(cell)


def _infinite(cell: Any) -> float:
    try:
        return math.inf if cell > 0 else -math.inf
    except Exception:
        return math.nan


def _shape(values: Any) -> tuple[int, ...]:
    """The shape of an array; columns that have none have one dimension."""
    return tuple(getattr(values, "shape", (0,)))


def _typed(values: Any, kinds: str, refusal: str, remedy: str) -> list[Any] | Array:
    """An array as it is, where it has the type that was declared; its cells elsewhere."""
    if isinstance(values, np.ndarray):
        if values.size and values.dtype.kind not in kinds:
            raise InvalidArgument(refusal, remedy=remedy)
        flat = shown(values).ravel()
        return list(flat.tolist()) if flat.dtype.hasobject else flat
    if len(_shape(values)) != 1:
        raise InvalidArgument("These are several columns.", remedy="Pass one of them.")
    if str(getattr(values, "dtype", "")) == "category":
        values = values.astype(object)
    if declared(values).kind not in kinds:
        raise InvalidArgument(refusal, remedy=remedy)
    array = np.asarray(values)
    return array if array.dtype.kind in kinds.replace("O", "") else listed(values, array)


def listed(values: Any, array: Array) -> list[Any]:
    """Return each cell as its column has it, where numpy has made it another."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, name):
            return list(getattr(values, name)())
    return list(array.tolist())
