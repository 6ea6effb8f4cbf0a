"""Columns of any table as numbers: equal rows of the chosen columns get equal codes, across tables.

A table is a mapping of names to sequences, or a pandas, polars or pyarrow table: what gives a column for its
name. A missing value (None, NaN) equals other missing values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument

Codes = NDArray[np.int64]


def column(table: Any, name: str) -> NDArray[Any]:
    """One column as an array."""
    try:
        found = table[name]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise _absent(name) from None
    except Exception as other:
        # polars has an error of its own for this.
        if "NotFound" not in type(other).__name__:
            raise
        raise _absent(name) from None
    return np.asarray(found.to_numpy() if hasattr(found, "to_numpy") else found)


def row_codes(tables: Sequence[Any], on: Sequence[str]) -> list[Codes]:
    """For each table a code for each row; equal codes for rows equal in all columns of `on`."""
    if isinstance(on, str) or not on:
        raise InvalidArgument("on must list one column or more.", remedy='Pass on=["age", "sex"].')
    parts = [[column(table, name) for table in tables] for name in on]
    lengths = [len(part) for part in parts[0]]
    if any([len(part) for part in parts_of_one] != lengths for parts_of_one in parts):
        raise InvalidArgument("Columns of one table differ in length.", remedy="Pass a value for each row.")
    codes = np.zeros(sum(lengths), np.int64)
    for part in parts:
        own = _numbered(part)
        # Codes are made small again after each column, so that the product never overflows.
        codes = np.unique(codes * (own.max(initial=0) + 1) + own, return_inverse=True)[1].astype(np.int64)
    return np.split(codes.ravel(), np.cumsum(lengths)[:-1])


def _numbered(parts: list[NDArray[Any]]) -> Codes:
    """Values of one column, through all tables, as 0, 1, 2 …"""
    if all(part.dtype.kind in "iufbU" for part in parts) and len({p.dtype.kind == "U" for p in parts}) == 1:
        return np.unique(np.concatenate(parts), return_inverse=True)[1].astype(np.int64).ravel()
    place: dict[Any, int] = {}
    flat = [value for part in parts for value in part.tolist()]
    # NaN is the one value that differs from itself.
    return np.array([place.setdefault(None if v != v else v, len(place)) for v in flat], np.int64)


def _absent(name: str) -> InvalidArgument:
    return InvalidArgument(f"A table has no column {name!r}.", remedy="Choose among its columns.")
