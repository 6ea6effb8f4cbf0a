"""Blocks of units, and what a function that is not trusted gives on one of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dalenius.errors import InvalidArgument

Function = Callable[[Any], Any]


def listed(value: Any) -> Any:
    """An array or a list of units."""
    if not isinstance(value, np.ndarray | Sequence) or isinstance(value, str | bytes):
        raise InvalidArgument("value must be an array or a list of units.", remedy="Pass a list of units.")
    return value


def parted(places: Sequence[int], blocks: int) -> list[list[int]]:
    """Which units each block has, by the place of every unit."""
    members: list[list[int]] = [[] for _ in range(blocks)]
    for unit, place in enumerate(places):
        members[place].append(unit)
    return members


def given(function: Function, units: Any, members: list[int]) -> float:
    """What the function gives on a new array or list of these units; NaN where it, or reading them, fails.

    Whether a block fails is as private as what it gives.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            block = units[members] if isinstance(units, np.ndarray) else [units[i] for i in members]
            return float(function(block))
        except KeyboardInterrupt:
            raise
        except BaseException:
            return math.nan
