"""Columns of integer codes with public sizes, and choices among them."""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import listed
from dalenius.privacy import numbers

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
        array = np.asarray(value)
        if array.ndim != 2 or array.shape[1] != width or array.dtype.kind not in "iu":
            raise InvalidArgument(
                "value must be a table of integer codes.", remedy="Pass an array of shape (records, columns)."
            )
        return np.clip(array, -1, MOST_ROWS).astype(np.int64) if array.dtype.kind == "i" else _few(array)
    rows = [
        [*row] if isinstance(row, list | tuple) and len(row) == width else [None] * width for row in value
    ]
    codes = [[c if type(c) is int and 0 <= c < MOST_ROWS else -1 for c in row] for row in rows]
    return np.array(codes, np.int64).reshape(-1, width)


def _few(array: NDArray[Any]) -> NDArray[np.int64]:
    return np.minimum(array.astype(np.uint64), np.uint64(MOST_ROWS)).astype(np.int64)
