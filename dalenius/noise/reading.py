"""Arguments of samplers, read exactly: a float is the decimal it prints, 0.1 is one tenth.

Each reader names the argument and what it allows. All arguments of samplers but utilities are public.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from dalenius.errors import InvalidArgument

Number = int | float | Fraction | Decimal | str

MOST_SIZE = 10**10
"""The longest vector drawn at once."""
MOST_SCALE = 2**50
"""With this scale a value beyond 63 bits has a probability below e^−8191 (docs/proofs/noise.md)."""


def exact(value: object, name: str) -> Fraction:
    """The rational number that `value` prints as."""
    number = _rational(value)
    if number is None:
        raise InvalidArgument(
            f"{name} must be a finite number, not {_shown(value)}.",
            remedy=f"Pass {name} as an int, float, Fraction, Decimal or a string such as '1/10'.",
        )
    return number


def positive(value: object, name: str, *, most: int) -> Fraction:
    """A number above zero, not above `most`."""
    return _between(value, name, 0, most, f"above 0 and at most {most}", strict=True)


def non_negative(value: object, name: str) -> Fraction:
    """A number not below zero."""
    return _between(value, name, 0, None, "0 or more")


def probability_of(value: object, name: str, *, least: Fraction = Fraction(0)) -> Fraction:
    """A number in [least, 1]."""
    return _between(value, name, least, 1, f"in [{least}, 1]")


def whole(value: object, name: str, *, least: int = 0, most: int | None = MOST_SIZE) -> int:
    """A whole number in [least, most]."""
    if type(value) is int and value >= least and (most is None or value <= most):
        return value
    allowed = f"a whole number from {least}" + ("" if most is None else f" to {most}")
    number = _between(value, name, least, most, allowed)
    if number.denominator != 1:
        raise _refused(name, allowed, value)
    return int(number)


def hashable(value: Number, name: str) -> Number:
    """The same, where it can be looked up; an array or a list is no number."""
    try:
        hash(value)
    except TypeError:
        exact(value, name)
    return value


def _between(
    value: object, name: str, least: int | Fraction, most: int | None, allowed: str, *, strict: bool = False
) -> Fraction:
    number = exact(value, name)
    if number < least or (strict and number == least) or (most is not None and number > most):
        raise _refused(name, allowed, value)
    return number


def _refused(name: str, allowed: str, value: object) -> InvalidArgument:
    return InvalidArgument(
        f"{name} must be {allowed}, not {_shown(value)}.", remedy=f"Choose {name} as {allowed}."
    )


def _rational(value: object) -> Fraction | None:
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, Rational | Decimal | str):
            return Fraction(value)
        if isinstance(value, Real) and math.isfinite(value):
            return Fraction(str(value) if hasattr(value, "dtype") else repr(float(value)))
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return None


def _shown(value: object) -> str:
    text = f"{value}" if isinstance(value, int | float | Fraction | Decimal) else f"a {type(value).__name__}"
    return text if len(text) < 40 else f"a {type(value).__name__} of {len(text)} digits"
