"""Columns of integer codes with public sizes, and choices among them."""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import listed
from dalenius.privacy import numbers
from dalenius.privacy.records import shown, whole

MOST_ROWS = 2**24
"""Of all tables together."""
RESERVED = {"marginal", "n", "n_low", "n_high"}


def read_domain(columns: object) -> dict[str, int]:
    """Columns with their sizes, from a mapping or its JSON."""
    try:
        found = cast(Any, json.loads(columns) if isinstance(columns, str) else columns)
        domain = {name: numbers.count(size, "columns", most=MOST_ROWS) for name, size in found.items()}
    except (ValueError, AttributeError):
        domain = {}
    if not domain or RESERVED & {*domain} or not all(isinstance(name, str) for name in domain):
        raise InvalidArgument(
            "columns must give each column's name its number of codes, and no name may be one of "
            f"{', '.join(sorted(RESERVED))}.",
            remedy="Pass columns such as {'sex': 2, 'region': 16}.",
        )
    return domain


def read_chosen(marginal: object, names: list[str]) -> tuple[int, ...]:
    """The places of the columns of one marginal."""
    given = [*listed(marginal, "marginals")]
    found = [names.index(c) if isinstance(c, str) and c in names else c for c in given]
    places = range(len(names))
    if not found or len({*found}) < len(found) or not all(type(i) is int and i in places for i in found):
        raise InvalidArgument(
            "Each of marginals must be a list of different columns.",
            remedy="Pass marginals such as [['sex', 'region'], ['region']].",
        )
    return tuple(int(str(i)) for i in found)


def read_codes(value: Any, width: int) -> NDArray[np.int64]:
    """Records as rows of codes; what is no code counts as outside every range."""
    if hasattr(value, "__array__"):
        array = shown(value)
        if array.ndim != 2 or array.shape[1] != width or array.dtype.kind not in "iufO":
            raise InvalidArgument(
                "value must be a table of integer codes.", remedy="Pass an array of shape (records, columns)."
            )
        if array.dtype.kind != "O":
            with np.errstate(all="ignore"):
                able = (array >= 0) & (array < MOST_ROWS) & (array == np.floor(array))
                return np.where(able, array, -1).astype(np.int64)
        value = array.tolist()
    codes = [_row(row, width) for row in value]
    return np.array(codes, np.int64).reshape(-1, width)


def _row(row: object, width: int) -> list[int]:
    if isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1):
        cells = list(shown(row)) if isinstance(row, np.ndarray) else row
        return [_code(cell) for cell in cells] if len(cells) == width else [-1] * width
    return [-1] * width


def _code(cell: object) -> int:
    """A whole number in any type: one null turns a column of integers into one of floats or of objects."""
    code = None if isinstance(cell, bool | np.bool_) else whole(cell)
    return code if code is not None and 0 <= code < MOST_ROWS else -1
