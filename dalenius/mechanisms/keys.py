"""Keys of a group-by and the number of units that hold each, in an order that tells nothing.

A key may be anything, and no key is refused, as that would tell of it. What a release holds as it is, a text,
a number, True, False or None, stays; anything else, such as a date, bytes or a tuple, becomes its text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.privacy.quantized import MOST
from dalenius.privacy.records import integer
from dalenius.release import Cell

Counts = Mapping[Any, int]
"""How many units hold each key."""
HAIR = 1 - Fraction(1, 2**40)
"""Calibrations aim so little below the δ that was asked for, so that roundings stay within it."""

MOST_KEY = 10**300
"""Integers beyond are texts."""


def in_order(value: Counts) -> tuple[list[Cell], NDArray[np.int64]]:
    """Keys by their own order, as the order of records must not show, and the count of each."""
    if not isinstance(value, Mapping):
        raise InvalidArgument(
            "value must map each key to a number of units.", remedy="Pass a dict such as {'key': 3}."
        )
    keys = sorted(value, key=_place)
    if not all(isinstance(value[key], int | np.integer) for key in keys):
        raise InvalidArgument("Counts of units must be whole numbers.", remedy="Pass them as int.")
    counts = np.array([max(-MOST, min(MOST, int(value[key]))) for key in keys], np.int64)
    return [_cell(key) for key in keys], counts


def _cell(key: Any) -> Cell:
    plain = key.item() if isinstance(key, np.generic) else key
    if plain is None or isinstance(plain, str | bool | float):
        return plain
    found = integer(plain)
    return _text(plain) if found is None or abs(found) >= MOST_KEY else found


def _text(key: Any) -> str:
    """A text for whatever it is: an integer may have too many digits for one."""
    try:
        return hex(int(key)) if isinstance(key, int) else str(key)
    except Exception:
        return f"a {type(key).__name__}"


def _place(key: Any) -> tuple[str, Any, str]:
    """Numbers by size, all else by its text, kinds apart."""
    found: int | float | None = integer(key) if isinstance(key, int) else None
    if isinstance(key, float) and not math.isnan(key):
        found = float(key)
    return (type(key).__name__, 0 if found is None else found, _text(key))
