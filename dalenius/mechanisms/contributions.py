"""Records as columns, and which of them count: every step a function of one unit's own records.

    >>> kept(np.array(["ann", "bob", "ann", "ann"]), 2).sum()
    np.int64(3)

What a record turns into never depends on other records, and no value is refused: what is no number counts as
missing (NaN), a number too large for a float as infinite. Only the type of a column is refused, which is a
fact of the schema. Types that a single null may change into each other (integers, floats, objects) read
alike: every number as a float, every whole id as an integer. From 2^53 on a float stands for several whole
numbers and is no id of any of them.

Where a unit has more records than `per_unit`, those stay whose hash is least, of the unit's name and of the
record's place among the unit's own. Neither values nor other units have a say, so a unit that comes or goes
changes nothing for the others, and large values are kept no more often than small ones. All records without
an id are those of one unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument

EXACT = 2**53
"""Below it every whole number has a float of its own."""
NULLS = ("NAType", "NaTType")
"""What other libraries call a missing value."""


def column(values: Any) -> NDArray[np.float64]:
    """Numbers as an array of floats."""
    found = _array(values)
    if found.ndim != 1:
        raise InvalidArgument("values must be one column.", remedy="Pass an array of one dimension.")
    if found.dtype.kind == "O":
        return np.array([_number(value) for value in found.tolist()], dtype=np.float64)
    if found.dtype.kind not in "biuf":
        raise InvalidArgument(
            "values must be a column of numbers, and its type is another.",
            remedy="Convert the column to float64 first.",
        )
    with np.errstate(all="ignore"):
        return found.astype(np.float64)


def table(values: Any, width: int) -> NDArray[np.float64]:
    """Numbers as a table of floats, one row for each record; a row of another length holds none."""
    found = _array(values)
    if hasattr(values, "__array__"):
        if found.ndim != 2 or found.shape[1] != width or found.dtype.kind not in "biufO":
            raise InvalidArgument(
                "values must be a table of numbers, one column for each pair of bounds.",
                remedy="Pass an array of shape (records, columns).",
            )
        if found.dtype.kind != "O":
            with np.errstate(all="ignore"):
                return found.astype(np.float64)
    values = found.tolist()
    rows = [[*row] if isinstance(row, list | tuple | np.ndarray) else [] for row in values]
    blank = [math.nan] * width
    read = [[_number(cell) for cell in row] if len(row) == width else blank for row in rows]
    return np.array(read, dtype=np.float64).reshape(-1, width)


def kept(ids: Any, per_unit: int) -> NDArray[np.bool_]:
    """Which records stay when each unit may have `per_unit` of them."""
    names, unit = units_of(ids)
    order = np.argsort(unit, kind="stable")
    place = _places(unit, order)
    hashes = np.array([_hash(name) for name in names], dtype=np.uint64)
    drawn = _mixed(hashes[unit] + place.astype(np.uint64)) if len(names) else hashes
    order = np.lexsort((place, drawn, unit))
    return _places(unit, order) < per_unit


def missing(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which records hold no number."""
    return np.isnan(values)


def size(records: Any, name: str) -> int:
    """How many records a column or a table has."""
    if isinstance(records, str | bytes | Mapping) or not hasattr(records, "__len__") or _no_rows(records):
        raise InvalidArgument(
            f"{name} must be a column or a table that has a length.",
            remedy=f"Pass {name} as an array, a series, a data frame or a list.",
        )
    return len(records)


def same_length(ids: Any, records: int) -> None:
    """Ids and values come from one table."""
    if size(ids, "ids") != records:
        raise InvalidArgument(
            "ids and values differ in length.", remedy="Pass one id for each record, from the same table."
        )


def _no_rows(records: Any) -> bool:
    return np.ndim(records) == 0 if hasattr(records, "__array__") else False


def _array(values: Any) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(values.astype(object), None))
    if hasattr(values, "__array__"):
        return np.asarray(values)
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise InvalidArgument(
            "values must be a column of numbers.", remedy="Pass an array, a series or a list."
        )
    # What numpy makes of a list depends on the values in it, so a list is read one by one.
    return np.fromiter(values, dtype=object)


def _number(value: object) -> float:
    if isinstance(value, Decimal):
        return math.nan if value.is_nan() else float(value)
    if isinstance(value, np.timedelta64):
        return math.nan
    if not isinstance(value, int | float | Fraction | np.integer | np.floating | np.bool_):
        return math.nan
    with np.errstate(all="ignore"):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf


def units_of(ids: Any) -> tuple[list[str], NDArray[np.int64]]:
    """The different ids, and which of them each record has; ids of different types are different units."""
    found = read_ids(ids)
    if found.ndim != 1 or found.dtype.kind not in "biufSUO":
        raise InvalidArgument(
            "ids must be a column of integers or of text.", remedy="Convert the ids to text first."
        )
    if found.dtype.kind != "O":
        names, unit = np.unique(found, return_inverse=True)
        return [_name(name) for name in names.tolist()], unit.astype(np.int64)
    seen: dict[str, int] = {}
    unit = np.fromiter((seen.setdefault(_name(name), len(seen)) for name in found.tolist()), dtype=np.int64)
    return [*seen], unit


def read_ids(ids: Any) -> NDArray[Any]:
    """Ids as an array in which integers are what they were, also where one of them is missing."""
    if isinstance(ids, np.ma.MaskedArray):
        shown: NDArray[Any] = np.array(ids.data, dtype=object)
        shown[np.ma.getmaskarray(ids)] = None
        return shown
    if not hasattr(ids, "__array__"):
        return np.fromiter(ids, dtype=object)
    found = np.asarray(ids)
    kind = str(getattr(ids, "dtype", getattr(ids, "type", ""))).lower()
    if found.dtype.kind == "f" and "int" in kind:
        # Whole numbers beside a null, which pandas, polars and Arrow hand to numpy as floats.
        listed = ids.to_pylist() if hasattr(ids, "to_pylist") else ids.to_list()
        return np.fromiter(listed, dtype=object)
    return found


def is_id(name: str) -> bool:
    """Whether the name of a unit tells it from others: not a missing id or an inexact float."""
    return not name.startswith("float ")


def _name(value: object) -> str:
    """The same for what a column of integers turns into where one of its ids is missing."""
    if isinstance(value, float | np.floating):
        number = float(value)
        # From 2^53 on a float stands for several whole numbers.
        exact = number.is_integer() and abs(number) < EXACT
        return f"int {int(number):x}" if exact else f"float {number}"
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        return f"int {int(value):x}"
    if value is None or type(value).__name__ in NULLS:
        return "float nan"
    try:
        return f"{'str' if isinstance(value, str) else type(value).__name__} {value}"
    except Exception:
        # What has no text, such as a fraction of too many digits, is a value and must not be refused.
        return f"{type(value).__name__} without a text"


def _places(unit: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each record among those of its unit, in the given order, which groups units."""
    grouped = unit[order]
    first = np.searchsorted(grouped, grouped)
    place = np.empty(len(unit), dtype=np.int64)
    place[order] = np.arange(len(unit)) - first
    return place


def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bits well mixed (the finalizer of splitmix64, Steele, Lea and Flood 2014)."""
    keys = keys * np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
