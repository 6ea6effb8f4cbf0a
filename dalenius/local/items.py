"""Values as numbers of items. What is no item counts as item 0: no refusal depends on a value."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument

Ints = NDArray[np.int64]


def read_items(values: Any, domain: int) -> Ints:
    """Numbers from 0 to domain − 1. An array's type is a fact of the schema; what is in it is private."""
    if isinstance(values, list | tuple):
        return np.array([_item(value, domain) for value in values], dtype=np.int64)
    array = np.ravel(np.asarray(values))
    if array.dtype.kind == "O":
        return np.array([_item(value, domain) for value in array.tolist()], dtype=np.int64)
    if array.dtype.kind not in "biuf":
        raise InvalidArgument("Items must be whole numbers, by their type.", remedy="Number them from 0.")
    with np.errstate(invalid="ignore"):
        there = (array >= 0) & (array < domain)
        if array.dtype.kind == "f":
            there &= array == np.floor(array)
    return np.where(there, array, 0).astype(np.int64)


def _item(value: object, domain: int) -> int:
    whole = isinstance(value, int | np.integer | np.bool_)
    if isinstance(value, float | np.floating):
        whole = float(value).is_integer()
    found = int(cast(int, value)) if whole else 0
    return found if 0 <= found < domain else 0
