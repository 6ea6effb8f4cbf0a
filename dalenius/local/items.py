"""Values as numbers of items. What is no item counts as item 0: no refusal depends on a value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.local.reading import numeric_column
from dalenius.privacy.records import whole

Ints = NDArray[np.int64]


def read_items(values: Any, domain: int) -> Ints:
    """Numbers from 0 to domain − 1. An array's type is a fact of the schema; what is in it is private."""
    array = numeric_column(values, "Items must be whole numbers", "Number them from 0.")
    if isinstance(array, list):
        return np.array([_item(value, domain) for value in array], dtype=np.int64)
    with np.errstate(invalid="ignore"):
        there = (array >= 0) & (array < domain)
        if array.dtype.kind == "f":
            there &= array == np.floor(array)
    return np.where(there, array, 0).astype(np.int64)


def _item(value: object, domain: int) -> int:
    found = whole(value)
    return found if found is not None and 0 <= found < domain else 0
