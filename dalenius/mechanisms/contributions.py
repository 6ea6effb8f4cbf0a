"""Read records as columns, and choose which of them count: every step a function of one unit's own records.

    >>> kept(np.array(["ann", "bob", "ann", "ann"]), 2).sum()
    np.int64(3)

What a record turns into never depends on other records, and no value is refused (`privacy.records`): what is
no number counts as missing (NaN), a number too large for a float as infinite. Only the type of a column is
refused, which is a fact of the schema. Columns of numbers that a single null may change into each other
(integers, floats, objects) read alike: every number as a float.

Ids are whole numbers or texts. Two people who were taken for one would together be held to what one may have,
and one of them leaving would change what counts of the other. So a record without an id belongs to nobody and
is left out, and a column of floats is refused by its type: several whole numbers from 2^53 on are one float.
A float in a list or in a column of objects is no id.

Where a unit has more records than `per_unit`, those stay whose hash is least, of the unit's name and of the
record's place among the unit's own. Neither values nor other units have a say, so a unit that comes or goes
changes nothing for the others, and large values are kept no more often than small ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.privacy import records
from dalenius.privacy.records import number

NOBODY = -1
"""The number of a unit, for a record without an id."""


def column(values: Any) -> NDArray[np.float64]:
    """Numbers as an array of floats."""
    found = _array(values)
    if found.ndim != 1:
        raise InvalidArgument("values must be one column.", remedy="Pass an array of one dimension.")
    if found.dtype.kind == "O":
        return np.array([number(value) for value in found.tolist()], dtype=np.float64)
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
    blank = [math.nan] * width
    read = [[number(cell) for cell in row] if len(row) == width else blank for row in map(_row, values)]
    return np.array(read, dtype=np.float64).reshape(-1, width)


def kept(ids: Any, per_unit: int) -> NDArray[np.bool_]:
    """Return which records stay when each unit may have `per_unit` of them: none without an id."""
    names, unit = units_of(ids)
    order = np.argsort(unit, kind="stable")
    place = _places(unit, order)
    hashes = np.array([_hash(name) for name in names], dtype=np.uint64)
    if not names:
        return np.zeros(len(unit), dtype=bool)
    # The number of nobody takes the last hash, and none of its records stays.
    drawn = _mixed(hashes[unit] + place.astype(np.uint64))
    order = np.lexsort((place, drawn, unit))
    return np.asarray((_places(unit, order) < per_unit) & (unit != NOBODY))


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
    if hasattr(values, "__array__"):
        return records.shown(values)
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise InvalidArgument(
            "values must be a column of numbers.", remedy="Pass an array, a series or a list."
        )
    # What numpy makes of a list depends on the values in it, so a list is read one by one.
    return np.fromiter(values, dtype=object)


def _row(cell: object) -> list[Any]:
    """The cells of one record; none where it is not a row."""
    if isinstance(cell, np.ndarray):
        return list(records.shown(cell)) if cell.ndim == 1 else []
    return list(cell) if isinstance(cell, list | tuple) else []


def check_ids(ids: Any) -> None:
    """Refuse ids of a type that ids do not have. No id is looked at."""
    if not hasattr(ids, "__array__") or (isinstance(ids, np.ndarray) and ids.shape == (0,)):
        return
    kind = records.declared(ids).kind
    if np.ndim(ids) != 1 or kind not in "iufSUTO":
        raise InvalidArgument(
            "ids must be a column of integers or of text.", remedy="Convert the ids to text first."
        )
    if kind == "f":
        raise InvalidArgument(
            "ids are floats, in which whole numbers from 2^53 on are no longer apart.",
            remedy="Pass ids as whole numbers or as texts, read as such where they come from; a column of "
            'pandas in which ids are missing as dtype "Int64".',
        )


def units_of(ids: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different units, and the number of each record's unit: NOBODY where it has no id."""
    check_ids(ids)
    found = read_ids(ids)
    if found.dtype.kind in "iuSU":
        cells, place = np.unique(found, return_inverse=True)
        listed, unit = cells.tolist(), place.astype(np.int64)
    else:
        listed, unit = found.tolist(), np.arange(len(found))
    seen: dict[str, int] = {}
    names = map(records.identity, listed)
    number_of = [NOBODY if name is None else seen.setdefault(name, len(seen)) for name in names]
    return [*seen], np.array(number_of, dtype=np.int64)[unit]


def read_ids(ids: Any) -> NDArray[Any]:
    """Return ids as an array in which integers are what they were, also where one of them is missing."""
    if not hasattr(ids, "__array__"):
        return np.fromiter(ids, dtype=object)
    found = records.shown(ids)
    if isinstance(ids, np.ndarray) or found.dtype.kind in "iuSU":
        return found
    if str(getattr(ids, "dtype", "")) == "category":
        ids = ids.astype(object)
    # Whole numbers beside a null, which pandas, polars and Arrow hand to numpy as floats.
    return np.fromiter(records.listed(ids, found), dtype=object)


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
