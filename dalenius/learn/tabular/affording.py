"""Whether the noise of a fit can be drawn: found out from public numbers alone, before anything is charged.

Samplers draw noise up to 2^50 steps wide, and a loss is stated for noise within a range. How wide noise is at
the widest follows from the promise, the columns and the classes; what is chosen in view of rows, such as a
number of trees, is counted as the most it may be. Where noise is too wide, the remedy is a promise for which
it is not, and that was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from dalenius.errors import InvalidArgument
from dalenius.learn.tabular.promise import Promise
from dalenius.privacy.numbers import LEAST_EPSILON, MOST_EPSILON

Made = TypeVar("Made")
LARGE = 1
"""An epsilon above it is proposed only where fewer rows per unit do not help either."""


def afforded(promise: Promise, make: Callable[[Promise], Made], purpose: str) -> Made:
    """What is made for a promise, all of its noise; refused where that cannot be drawn."""
    try:
        return make(promise)
    except (ArithmeticError, InvalidArgument) as found:
        other = next((one for one in _others(promise) if _works(make, one)), None)
        if other is None:
            raise
        stated = f"epsilon {float(promise.epsilon):g}" + (
            "" if promise.pure else f" and delta {float(promise.delta):g}"
        )
        many = "" if promise.rows == 1 else f" and {promise.rows} rows per unit"
        raise InvalidArgument(
            f"The noise of {purpose} with {stated}{many} is wider than any that can be drawn: nothing of "
            "the data would be left.",
            remedy=_remedy(promise, other),
        ) from found


def _others(promise: Promise) -> Iterator[Promise]:
    """A larger epsilon, fewer rows, a much larger epsilon, or both."""
    powers = [Fraction(10) ** k for k in range(-9, 7)]
    larger = [one for one in powers if max(promise.epsilon, LEAST_EPSILON) < one <= MOST_EPSILON]
    fewer = [10**k for k in range(6, -1, -1) if 10**k < promise.rows]
    yield from (replace(promise, epsilon=one) for one in larger if one <= LARGE)
    yield from (replace(promise, rows=one) for one in fewer)
    yield from (replace(promise, epsilon=one) for one in larger if one > LARGE)
    yield replace(promise, epsilon=max(promise.epsilon, Fraction(LARGE)), rows=1)


def _works(make: Callable[[Promise], object], promise: Promise) -> bool:
    try:
        make(promise)
    except (ArithmeticError, InvalidArgument):
        return False
    return True


def _remedy(promise: Promise, other: Promise) -> str:
    parts = []
    if other.epsilon != promise.epsilon:
        parts.append(f"epsilon={float(other.epsilon):g} or more")
    if other.rows != promise.rows:
        parts.append(f"rows_per_unit={other.rows} or less")
    return f"Pass {' and '.join(parts)}."
