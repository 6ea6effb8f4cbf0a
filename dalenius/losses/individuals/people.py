"""Who has which budget, and charges of many people at once, in whole units.

A unit is 1/lcm(1, …, 40) of the largest budget, so that a budget for k full contributions lasts for k of
them where k divides that number, as all do up to 40; where it does not, as 41, 49, 64, 128, 1000 or 1024, for
k − 1. The charge of a full contribution is exact before it is rounded up. Others are computed in floats with
five roundings at most, counting that of the decimal a float prints as, and multiplied by 1 + 16U before they
are rounded up: never below the exact charge. Below 2⁵³ every whole number is a float.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers
from dalenius.privacy.records import shown
from dalenius.profiles.rounding import U, ceiling, up

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]

PARTS = math.lcm(*range(1, 41))
"""Units in the largest budget: about 2⁵²."""
TOO_MUCH = 2.0**53
"""A charge that fits no budget."""
MOST_PEOPLE = 2**40
MOST_SIZE = 1 + 2.0**-20
"""A contribution in full may be so much above 1, which is what rounding makes of a clipped norm."""
NUMBERS = "fiub"
"""Kinds of arrays whose elements are real numbers."""


def squared_units(sizes: Floats, rate: Fraction) -> Floats:
    """sizes²·rate, rounded up to whole units."""
    full = float(min(math.ceil(rate), int(TOO_MUCH)))
    units = np.ceil(sizes * sizes * (ceiling(rate) * (1 + 16 * U)))
    below = np.where(sizes < 1, np.minimum(units, full), full)
    return np.where(sizes > 1, np.minimum(units, TOO_MUCH), below)


def read_sizes(contributions: ArrayLike) -> Floats:
    """The least floats not below them. What is no number is NaN: an error would tell of a person."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = _array(contributions)
        if values.dtype.kind in NUMBERS:
            sizes = values.astype(np.float64)
            return np.where(sizes < values, np.nextafter(sizes, np.inf), sizes)
        return np.array([_size(value) for value in values.ravel()], np.float64).reshape(values.shape)


def _array(contributions: ArrayLike) -> NDArray[Any]:
    """Real numbers or objects. The type of an array is public; what one element makes of a list is not."""
    try:
        values = shown(contributions)
        if values.dtype.kind in NUMBERS + "O":
            return values
    except Exception:
        pass
    if isinstance(contributions, list | tuple):
        return np.fromiter(contributions, np.dtype(object), len(contributions))
    raise InvalidArgument(
        "contributions must be real numbers.", remedy="Pass an array of floats, one for each person."
    )


def _size(value: Any) -> float:
    try:
        found = float(value)
        # A text is not comparable, and so no number either.
        return up(found) if found < value else found
    except Exception:
        return math.nan


def read_tiers(tiers: ArrayLike, count: int) -> NDArray[np.intp]:
    """A number from 0 to count − 1 for each person."""
    listed = np.asarray(tiers)
    if listed.ndim != 1 or listed.dtype.kind not in "iu" or (listed < 0).any() or (listed >= count).any():
        raise InvalidArgument(
            "tiers must number the budgets from 0, one for each person.",
            remedy="Pass a list of whole numbers.",
        )
    return listed.astype(np.intp)


def read_people(people: int | None, tiers: ArrayLike | None, count: int) -> NDArray[np.intp]:
    """The tier of each person: all of the first, or as listed."""
    if tiers is not None and people is None:
        return read_tiers(tiers, count)
    if people is None or tiers is not None or count > 1:
        raise InvalidArgument(
            "Who has which budget must be said.", remedy="Pass people=, or tiers= where budgets are several."
        )
    return np.zeros(numbers.count(people, "people", most=MOST_PEOPLE), np.intp)
