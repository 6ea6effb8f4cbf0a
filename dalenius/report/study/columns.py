"""Features from the columns of a Parquet file.

A number whose column has a stated range is held within it and mapped to [−1, 1]; one without waits for the
mean and the spread of all rows. A text or a truth value is one of `BUCKETS` features that are 0 or
1, found by a public hash of the column's name and the value: no list of values is taken from the data. A null
is 0 everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.report.study.data import Data, labelled, spelled

Ends = tuple[float, float]
BUCKETS = 32
"""Features of each column of texts."""
NUMBERS = ("INTEGER", "UINTEGER", "FLOAT", "DOUBLE", "DECIMAL")
TEXTS = ("VARCHAR", "ENUM", "BOOLEAN")


def read_parquet(
    place: Path,
    *,
    label: str | None,
    group: str | None,
    features: Sequence[str] | None,
    classes: Sequence[str] | None,
    groups: Sequence[str] | None,
    ranges: Mapping[str, Ends],
) -> Data:
    """The rows of a Parquet file."""
    types = _types(place)
    if label is None:
        raise InvalidArgument(
            f"Which column of {place} holds the labels is not said.",
            remedy=f"Name it as label; there are: {', '.join(types)}.",
        )
    all_others = [name for name in types if name not in (label, group)]
    asked = all_others if features is None else [*dict.fromkeys(features)]
    for name in (label, *([] if group is None else [group]), *asked, *ranges):
        if name not in types:
            raise InvalidArgument(f"{place} has no column {name!r}.", remedy=f"It has: {', '.join(types)}.")
    if label in asked or not asked:
        raise InvalidArgument(
            "Features must be one column or more, and not the label.", remedy="Name other features."
        )
    for name in ranges:
        if name not in asked or not _is_number(types[name], name):
            raise InvalidArgument(
                f"Column {name!r} has a range, and is no column of numbers to learn from.",
                remedy=f"Leave the range of {name} out, or list it among the features.",
            )
    unscaled = tuple(n for n in asked if _is_number(types[n], n) and n not in ranges)
    scaled = [n for n in asked if _is_number(types[n], n) and n in ranges]
    worded = [n for n in asked if not _is_number(types[n], n)]
    columns = _cells(place, types, [*dict.fromkeys((*asked, label, *([] if group is None else [group])))])
    parts = [
        *(_numbers(columns[n]) for n in unscaled),
        *(_held(_numbers(columns[n]), n, ranges[n]) for n in scaled),
        *(_hashed(columns[n], n) for n in worded),
    ]
    return labelled(
        place.name,
        np.concatenate(parts, axis=1),
        _values(columns[label]),
        None if group is None else _values(columns[group]),
        classes=classes,
        groups=groups,
        unscaled=unscaled,
    )


def _types(place: Path) -> dict[str, str]:
    with _table(place) as table:
        return dict(zip(table.columns, map(str, table.types), strict=True))


def _cells(place: Path, types: dict[str, str], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The cells of these columns; those of a listed type as texts."""
    quoted = {name: '"{}"'.format(name.replace('"', '""')) for name in names}
    asked = [f"CAST({q} AS VARCHAR) AS {q}" if types[n].startswith("ENUM") else q for n, q in quoted.items()]
    with _table(place) as table:
        found: dict[str, NDArray[Any]] = table.project(", ".join(asked)).fetchnumpy()
    return found


@contextmanager
def _table(place: Path) -> Iterator[Any]:
    import duckdb

    try:
        with duckdb.connect() as engine:
            # By its own name: a star in it stands for a star, and not for other files.
            yield engine.read_parquet(re.sub(r"([*?\[])", r"[\1]", str(place)))
    except duckdb.Error:
        raise InvalidArgument(f"{place} cannot be read as a table.", remedy="Pass a Parquet file.") from None


def _is_number(kind: str, name: str) -> bool:
    bare = kind.partition("(")[0]
    if bare in NUMBERS or bare.endswith("INT"):
        return True
    if bare in TEXTS:
        return False
    raise InvalidArgument(
        f"Column {name!r} is of type {bare}, which is no number and no text.",
        remedy="List the columns to learn from as features, without it.",
    )


def _values(column: NDArray[Any]) -> list[Any]:
    """Cells, None for a null."""
    cells: list[Any] = np.ma.getdata(column).tolist()
    absent = np.ma.getmaskarray(np.ma.asarray(column))
    return [None if gone else cell for cell, gone in zip(cells, absent, strict=True)]


def _numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    return np.ma.filled(np.ma.asarray(column).astype(np.float64), np.nan).reshape(-1, 1)


def _held(column: NDArray[np.float64], name: str, ends: Ends) -> NDArray[np.float64]:
    low, high = ends
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidArgument(
            f"The range of {name!r} must go from a number to a larger one.", remedy="State it as low:high."
        )
    return (np.clip(column, low, high) - low) * (2 / (high - low)) - 1


def _hashed(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    found = np.zeros((len(column), BUCKETS))
    for row, value in enumerate(map(spelled, _values(column))):
        if value is not None:
            found[row, crc32(f"{name}={value}".encode()) % BUCKETS] = 1
    return found
