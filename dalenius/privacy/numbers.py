"""Numbers at the public boundary, read exactly.

A float is read as the decimal it prints: 0.1 is one tenth, so ten times 0.1 is one. Noise and
charge derive from the same rational. Each reader names the argument and its allowed range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import SupportsFloat

from dalenius.errors import Argument, InvalidArgument, Message

Number = int | float | Fraction | Decimal | SupportsFloat

MOST_STEPS = 10**12
MOST_DIGITS = 10**4
"""Of a decimal: beyond, its rational number would fill the memory."""
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**9), 10**6
"""Below hardly anything is told, above everything; both are taken to be mistakes."""


def exact(value: object, name: str) -> Fraction:
    """The rational number that `value` prints as."""
    number = _rational(value)
    if number is None:
        raise InvalidArgument(
            Message(_named(name), f" must be a finite number, not {_shown(value)}."),
            remedy=Message("Pass ", _named(name), " as an int, float, Fraction or Decimal."),
        )
    return number


def moderate(value: object, name: str) -> Fraction:
    """A number that a float can be near."""
    return _within(exact(value, name), name, "within 1e300 of zero", lambda x: abs(x) <= 10**300)


def measurable(value: object, name: str) -> Fraction:
    """A size whose square a float can be near, too."""
    return _within(
        exact(value, name), name, "from 1e-150 to 1e150", lambda x: Fraction(1, 10**150) <= x <= 10**150
    )


def positive(value: object, name: str) -> Fraction:
    """A number above zero."""
    return _within(exact(value, name), name, "above 0", lambda x: x > 0)


def at_least(value: object, name: str, least: int) -> Fraction:
    """A number not below `least`."""
    return _within(exact(value, name), name, f"{least} or more", lambda x: x >= least)


def non_negative(value: object, name: str) -> Fraction:
    """A number not below zero."""
    return at_least(value, name, 0)


def probability(value: object, name: str) -> Fraction:
    """A number in [0, 1]."""
    return _within(exact(value, name), name, "in [0, 1]", lambda x: 0 <= x <= 1)


def rate(value: object, name: str) -> Fraction:
    """A number in (0, 1]."""
    return _within(exact(value, name), name, "in (0, 1]", lambda x: 0 < x <= 1)


def delta(value: object, name: str = "delta") -> Fraction:
    """A number in [0, 1)."""
    return _within(exact(value, name), name, "in [0, 1)", lambda x: 0 <= x < 1)


def epsilon(value: object, name: str = "epsilon") -> Fraction:
    """A number from 10^−9 to 10^6."""
    return _within(exact(value, name), name, "from 1e-9 to 1e6", lambda x: LEAST_EPSILON <= x <= MOST_EPSILON)


def confidence(value: object, name: str = "confidence") -> Fraction:
    """A number strictly between 0 and 1, of an error bar."""
    return _within(exact(value, name), name, "between 0 and 1, such as 0.95", lambda x: 0 < x < 1)


def above(number: Fraction) -> str:
    """A short decimal not below a positive number."""
    digits = 1 - math.floor(math.log10(number))
    return f"{float(Fraction(math.ceil(number * Fraction(10) ** digits)) / Fraction(10) ** digits):g}"


def count(value: object, name: str, *, least: int = 1, most: int = MOST_STEPS) -> int:
    """A whole number in [least, most]."""
    number = exact(value, name)
    if number.denominator != 1 or not least <= number <= most:
        raise InvalidArgument(
            Message(
                _named(name), f" must be a whole number from {least} to {_limit(most)}, not {_shown(value)}."
            ),
            remedy=Message("Pass ", _named(name), " as an int in that range."),
        )
    return int(number)


def _within(number: Fraction, name: str, allowed: str, test: Callable[[Fraction], bool]) -> Fraction:
    if not test(number):
        raise InvalidArgument(
            Message(_named(name), f" must be {allowed}, not {_shown(number)}."),
            remedy=Message("Choose ", _named(name), f" {allowed}."),
        )
    return number


def _named(name: str) -> Argument:
    return Argument(name, name)


def _rational(value: object) -> Fraction | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, Rational):
        return Fraction(value)
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() and abs(value.adjusted()) < MOST_DIGITS else None
    if isinstance(value, Real):
        number = float(value)
        printed = str(value) if hasattr(value, "dtype") else repr(number)
        return Fraction(printed) if math.isfinite(number) else None
    return None


def _limit(most: int) -> str:
    return str(most) if most < MOST_EPSILON else f"{most:g}".replace("e+", "e").replace("e0", "e")


def _shown(value: object) -> str:
    if isinstance(value, bool | float | Decimal):
        return f"{value!r}"
    if isinstance(value, Rational):
        number = Fraction(value)
        return f"{float(number):.10g}" if abs(number) < 10**300 else "a huge number"
    return f"a {type(value).__name__}"
