"""What is handed to `encode`: one value of each person, told by its type and its shape alone.

A list has an entry for each person, whatever the entry is. An array, a column of a frame or a frame of one
column has a row for each. A number alone is one person's. Whatever else comes is refused: nothing, a set, an
iterator, several columns of which a person would send a report each, an array that hides some of its cells.
Types and shapes are facts of the schema, the same for all values; what is in the cells is private, and
nothing here is refused by it. As what a column becomes in numpy may depend on whether a cell is missing, its
type is that of no rows of it.

Vectors are rows of one length, which is of an array's shape. An entry of a list, or of a column of objects or
lists, is a person's: the zero vector where it is no row of that length, whatever it is instead. So a list of
numbers is of as many people as it has, none of whom has a vector of two entries or more: the row of one
person is [[0.6, 0.8]], or an array of numpy's of that length, of one dimension, and of numbers by its type.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.privacy.records import number as number
from dalenius.privacy.records import shown

Array = NDArray[Any]
Floats = NDArray[np.float64]
NUMERIC = "biuf"
SCALAR = (Real, Decimal, np.bool_)
"""What a number alone is."""
TEXT = (str, bytes, bytearray, memoryview)
"""Sequences that are one value."""
TEXTS = ("object", "category", "str", "string", "utf8", "large_string", "string_view")
"""What frames call their columns of texts, or of anything."""


def column(values: Any, kinds: str, what: str, remedy: str) -> list[Any] | Array:
    """A value of each person: a list, or an array of one dimension and of one of these kinds of numpy."""
    sole = _sole(values)
    given = _taken(sole)
    if isinstance(given, list):
        return given
    # A column of arrays, each of one number, is none of numbers.
    if given.ndim == 2 and given.shape[1] == 1 and len(getattr(sole, "shape", given.shape)) == 2:
        given = given[:, 0]
    if given.ndim != 1:
        raise InvalidArgument(
            "A person has one value, and this array is not one column.",
            remedy="Pass one column, such as values[:, 0]; or [value] for one person.",
        )
    kind = _kind(sole, given)
    if kind not in kinds:
        raise InvalidArgument(f"{what}, by their type.", remedy=remedy)
    if kind in "OT":
        return list(given.tolist())
    return given if given.dtype.kind in kinds.replace("O", "") else _listed(sole, given)


def numeric_column(values: Any, what: str, remedy: str) -> list[Any] | Array:
    """The same of numbers: a column that its frame calls texts is refused, as an array of texts is."""
    if _declared(_sole(values)) in TEXTS:
        raise InvalidArgument(f"{what}, by their type.", remedy=remedy)
    return column(values, NUMERIC + "O", what, remedy)


def vectors(values: Any, dimension: int) -> Floats:
    """Rows of so many numbers, a row for each person; what is in a cell and no number is 0."""
    if isinstance(values, SCALAR) and dimension > 1:
        raise _not_rows(dimension)
    given = _taken(values)
    if isinstance(given, list):
        return rows(given, dimension)
    if not isinstance(values, np.ndarray) and len(getattr(values, "shape", (0,))) == 1:
        return _of_column(values, given, dimension)
    if given.ndim not in (1, 2):
        raise _not_rows(dimension)
    kind = _kind(values, given)
    if kind == "O":
        return rows(list(given.tolist()), dimension)
    if kind not in NUMERIC:
        raise InvalidArgument("Vectors must be rows of numbers, by their type.", remedy="Convert them first.")
    alone = given.ndim == 1 and dimension == 1
    if not alone and given.shape != (0,) and given.shape[-1] != dimension:
        raise _not_rows(dimension)
    if given.dtype.kind not in NUMERIC:
        given = np.array([number(cell) for cell in given.ravel().tolist()])
    return _finite(given, dimension)


def _of_column(values: Any, given: Array, dimension: int) -> Floats:
    """An entry for each person; a column of numbers, by its type, has no vectors of two entries or more."""
    declared = np.asarray(getattr(values, "iloc", values)[:0])
    kind = "O" if declared.ndim > 1 else declared.dtype.kind
    if kind != "O" and (kind not in NUMERIC or dimension > 1):
        raise _not_rows(dimension)
    return rows(_listed(values, given), dimension)


def rows(people: list[Any], dimension: int) -> Floats:
    """A row for each entry, whatever it is: for one that is no row of this length, zeros."""
    found = _quick(people, dimension)
    if found is None:
        found = np.array([_row(each, dimension) for each in people], np.float64)
    return _finite(found, dimension)


def _quick(people: list[Any], dimension: int) -> Floats | None:
    """All at once, to the same end, where all are lists of so many plain numbers, or arrays of one type."""
    kinds = set(map(type, people))
    if kinds == {np.ndarray}:
        forms = {(each.shape, each.dtype) for each in people}
        fit = len(forms) == 1 and people[0].shape == (dimension,) and people[0].dtype.kind in NUMERIC
        return floats(np.array(people)) if fit else None
    if not kinds <= {list, tuple} or set(map(len, people)) != {dimension}:
        return None
    try:
        plain = set(map(type, chain.from_iterable(people))) <= {int, float}
        return np.array(people, np.float64) if plain else None
    except OverflowError:
        return None


def _row(entry: object, dimension: int) -> list[float]:
    """By this entry alone; a number is one of a single cell."""
    if isinstance(entry, SCALAR):
        cells: list[Any] = [entry]
    else:
        cells = _cells(entry, dimension)
    return [number(cell) for cell in cells] if len(cells) == dimension else [0.0] * dimension


def _cells(entry: object, dimension: int) -> list[Any]:
    """Those of a sequence, or of an array of one dimension at most; none where it refuses to be read."""
    try:
        if isinstance(entry, Sequence) and not isinstance(entry, TEXT):
            return list(entry) if len(entry) == dimension else []
        if not hasattr(entry, "__array__"):
            return []
        array = shown(entry)
    except Exception:
        return []
    return list(array.reshape(-1).tolist()) if array.ndim < 2 else []


def _finite(array: Array, dimension: int) -> Floats:
    return np.nan_to_num(floats(array).reshape(-1, dimension), nan=0.0, posinf=0.0, neginf=0.0)


def _not_rows(dimension: int) -> InvalidArgument:
    return InvalidArgument(
        f"Vectors have {dimension} entries, and people a row each.",
        remedy=f"Pass an array of the shape (people, {dimension}), or [vector] for one person.",
    )


def floats(array: Array) -> Floats:
    """As floats, without a warning for what is beyond them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float64)


def _taken(values: Any) -> list[Any] | Array:
    """As a list, or as an array of any shape."""
    if isinstance(values, list | tuple):
        return list(values)
    if isinstance(values, SCALAR):
        return [values]
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidArgument(
            "A masked array hides some of its cells.", remedy="Say what they count as: values.filled(0)."
        )
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        return np.asarray(values)
    if isinstance(values, Sequence) and not isinstance(values, TEXT):
        return list(values)
    raise InvalidArgument(
        f"Values of people come as a list, an array or a column, not as {type(values).__name__}.",
        remedy="Pass [value] for one person, or list(values) for many.",
    )


def _sole(values: Any) -> Any:
    """The column of a frame that has one; anything else as it is."""
    shape: tuple[int, ...] = getattr(values, "shape", ())
    if isinstance(values, np.ndarray) or len(shape) != 2 or shape[1] != 1:
        return values
    if hasattr(values, "iloc"):
        return values.iloc[:, 0]
    for name in ("to_series", "column"):
        if hasattr(values, name):
            return getattr(values, name)(0)
    return values


def _kind(values: Any, given: Array) -> str:
    """The kind of numpy's type that a column declares: that of no rows of it."""
    if isinstance(values, np.ndarray) or not hasattr(values, "__getitem__"):
        return given.dtype.kind
    return np.asarray(getattr(values, "iloc", values)[:0]).dtype.kind


def _listed(values: Any, given: Array) -> list[Any]:
    """Each cell as its frame has it, where numpy has made it another."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, name):
            return list(getattr(values, name)())
    return list(given.tolist())


def _declared(values: Any) -> str:
    """What a column of a frame calls its type, in small letters; nothing for arrays and lists."""
    if isinstance(values, np.ndarray | list | tuple):
        return ""
    for name in ("dtype", "type"):
        if hasattr(values, name):
            return str(getattr(values, name)).lower()
    return ""
