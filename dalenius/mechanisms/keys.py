"""Keys of a group-by and the number of units that hold each, in an order that tells nothing."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.privacy.quantized import MOST
from dalenius.release import Cell

Counts = Mapping[Any, int]
"""How many units hold each key."""
HAIR = 1 - Fraction(1, 2**40)
"""Calibrations aim so little below the δ that was asked for, so that roundings stay within it."""


def in_order(value: Counts) -> tuple[list[Cell], NDArray[np.int64]]:
    """Keys by their own order, as the order of records must not show, and the count of each."""
    if not isinstance(value, Mapping):
        raise InvalidArgument(
            "value must map each key to a number of units.", remedy="Pass a dict such as {'key': 3}."
        )
    names = sorted(value, key=_place)
    if not all(isinstance(value[name], int | np.integer) for name in names):
        raise InvalidArgument("Counts of units must be whole numbers.", remedy="Pass them as int.")
    return names, np.array([max(-MOST, min(MOST, int(value[name]))) for name in names], np.int64)


def _place(key: Any) -> tuple[str, Any, str]:
    """Numbers by size, all else by its text, kinds apart."""
    number = isinstance(key, int | float) and key == key
    return (type(key).__name__, key if number else 0, str(key))
