"""`Real`: an interval with dyadic ends that contains a real number, the twin of python-flint's `arb`.

Ends are integers low ≤ high in units of 2^unit, rounded outward to the working precision after each
operation, so that the exact value is never lost. What is not a finite interval is a `Limit`. A comparison is
true only where it is true of all points.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dalenius.arithmetic import elementary, ends
from dalenius.arithmetic.fixed import pi, raised, shifted
from dalenius.arithmetic.functions import Functions
from dalenius.arithmetic.rationals import Rational, absent
from dalenius.arithmetic.working import WORKING

CLOSE = 4096
"""Units that are so many powers of two apart are brought to one without rounding."""


class Real(Functions):
    """The interval from low·2^unit to high·2^unit."""

    __slots__ = ("high", "low", "unit")

    def __new__(cls, middle: object = 0, radius: object = 0) -> Any:
        """The number, or all that is at most `radius` from it."""
        found = read(middle)
        if found is NotImplemented:
            raise TypeError(f"cannot make a number of {type(middle).__name__}")
        return found if type(radius) is int and radius == 0 else found + made(-1, 1, 0) * Real(radius)

    def __add__(self, other: Any) -> Any:
        if type(other) is not Real:
            other = read(other)
            if type(other) is not Real:
                return other if other is NotImplemented else other.__radd__(self)
        return self._plus(other.low, other.high, other.unit)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is not Real:
            other = read(other)
            if type(other) is not Real:
                return other if other is NotImplemented else other.__rsub__(self)
        return self._plus(-other.high, -other.low, other.unit)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def _plus(self, low: int, high: int, unit: int) -> Real:
        gap = self.unit - unit
        if 0 <= gap <= CLOSE:
            return made((self.low << gap) + low, (self.high << gap) + high, unit)
        if -CLOSE <= gap < 0:
            return made(self.low + (low << -gap), self.high + (high << -gap), self.unit)
        return made(*ends.added((self.low, self.high, self.unit), (low, high, unit), WORKING.bits))

    def __mul__(self, other: Any) -> Any:
        if type(other) is not Real:
            other = read(other)
            if type(other) is not Real:
                return other if other is NotImplemented else other.__rmul__(self)
        if self.low >= 0 and other.low >= 0:
            return made(self.low * other.low, self.high * other.high, self.unit + other.unit)
        return made(*ends.product((self.low, self.high, self.unit), (other.low, other.high, other.unit)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if type(other) is not Real:
            other = read(other)
            if type(other) is not Real:
                return other if other is NotImplemented else other.__rtruediv__(self)
        if other.low <= 0 <= other.high:
            return undefined()
        if other.low < 0:
            return -self / -other
        mine, its = (self.low, self.high, self.unit), (other.low, other.high, other.unit)
        return made(*ends.quotient(mine, its, WORKING.bits))

    def __rtruediv__(self, other: Any) -> Any:
        number = read(other)
        return number if number is NotImplemented else number / self

    def __pow__(self, exponent: Any) -> Any:
        if isinstance(exponent, int):
            return self._power(exponent)
        number = read(exponent)
        if type(number) is not Real:
            return number if number is NotImplemented else (self.log() * number).exp()
        whole = number.unique_fmpz() if number.low == number.high else None
        return (self.log() * number).exp() if whole is None else self._power(whole)

    def __rpow__(self, base: Any) -> Any:
        number = read(base)
        return number if number is NotImplemented else number**self

    def _power(self, n: int) -> Any:
        if n <= 0:
            return 1 / self._power(-n) if n else plain(1, 1, 0)
        if self.low >= 0:
            return made(*ends.power(self.low, self.high, self.unit, n, WORKING.bits))
        if n % 2 == 0:
            return abs(self)._power(n)
        if self.high <= 0:
            return -((-self)._power(n))
        return (-((-self.lower())._power(n))).union(self.upper()._power(n))

    def __neg__(self) -> Real:
        return plain(-self.high, -self.low, self.unit)

    def __pos__(self) -> Real:
        return self

    def __abs__(self) -> Real:
        if self.low >= 0:
            return self
        return -self if self.high <= 0 else plain(0, max(-self.low, self.high), self.unit)

    def __lt__(self, other: object) -> bool:
        number = read(other)
        if type(number) is not Real:
            return number if number is NotImplemented else number.__gt__(self)
        return ends.below(self.high, self.unit, number.low, number.unit)

    def __gt__(self, other: object) -> bool:
        number = read(other)
        if type(number) is not Real:
            return number if number is NotImplemented else number.__lt__(self)
        return ends.below(number.high, number.unit, self.low, self.unit)

    def __le__(self, other: object) -> bool:
        number = read(other)
        if type(number) is not Real:
            return number if number is NotImplemented else number.__ge__(self)
        return not ends.below(number.low, number.unit, self.high, self.unit)

    def __ge__(self, other: object) -> bool:
        number = read(other)
        if type(number) is not Real:
            return number if number is NotImplemented else number.__le__(self)
        return not ends.below(self.low, self.unit, number.high, number.unit)

    def __eq__(self, other: object) -> bool:
        return bool(self <= other and self >= other) if read(other) is not NotImplemented else NotImplemented

    def __ne__(self, other: object) -> bool:
        return bool(self < other or self > other) if read(other) is not NotImplemented else NotImplemented

    def __hash__(self) -> int:
        return hash(float(self))

    def __bool__(self) -> bool:
        return not self.low == self.high == 0

    def __float__(self) -> float:
        return elementary.nearest(self.low + self.high, self.unit - 1)

    def __repr__(self) -> str:
        return f"[{float(self.mid())!r} +/- {float(self.rad()):.3g}]"

    def is_finite(self) -> bool:
        """Whether it is an interval at all."""
        return True

    def is_exact(self) -> bool:
        """Whether it is one point."""
        return self.low == self.high

    def mid(self) -> Real:
        """The middle, exactly."""
        return plain(self.low + self.high, self.low + self.high, self.unit - 1)

    def rad(self) -> Real:
        """Half the width, exactly."""
        return plain(self.high - self.low, self.high - self.low, self.unit - 1)

    def lower(self) -> Real:
        """The lower end."""
        return plain(self.low, self.low, self.unit)

    def upper(self) -> Real:
        """The upper end."""
        return plain(self.high, self.high, self.unit)

    def union(self, other: object) -> Any:
        """The least interval that contains both."""
        number = Real(other)
        if type(number) is not Real:
            return number.union(self)
        first = self if not ends.below(number.low, number.unit, self.low, self.unit) else number
        last = self if not ends.below(self.high, self.unit, number.high, number.unit) else number
        return made(*ends.hull(first.low, first.unit, last.high, last.unit, WORKING.bits))

    def max(self, other: object) -> Any:
        """The greater of the two, whichever points these are."""
        number = Real(other)
        if type(number) is not Real:
            return number.union(self)
        low = number if ends.below(self.low, self.unit, number.low, number.unit) else self
        high = number if ends.below(self.high, self.unit, number.high, number.unit) else self
        return made(*ends.hull(low.low, low.unit, high.high, high.unit, WORKING.bits))

    def man_exp(self) -> tuple[int, int]:
        """(m, e) with m·2^e the only point, m odd or 0."""
        if self.low != self.high:
            raise ValueError("not one point")
        if self.low == 0:
            return 0, 0
        spare = (self.low & -self.low).bit_length() - 1
        return self.low >> spare, self.unit + spare

    def fmpq(self) -> Rational:
        """The only point, as a fraction."""
        m, e = self.man_exp()
        return Rational(m, 1 << -e) if e < 0 else Rational(m << e)

    def unique_fmpz(self) -> int | None:
        """The only integer in it, None where there are several or none."""
        if self.unit > CLOSE:
            return None
        least = raised(self.low, self.unit)
        return least if least == shifted(self.high, self.unit) else None

    def floor(self) -> Real:
        """The integers from the floor of the lower end to that of the upper one."""
        if self.unit >= 0:
            return self
        return made(shifted(self.low, self.unit), shifted(self.high, self.unit), 0)

    def ceil(self) -> Real:
        """The same upward."""
        return -((-self).floor())

    bessel_i = beta_lower = absent

    @staticmethod
    def pi() -> Real:
        """π, off by less than three units."""
        bits = WORKING.bits + 8
        value = pi(bits)
        return made(value - 3, value + 3, -bits)

    @staticmethod
    def pos_inf() -> Real:
        """+∞."""
        return limit(math.inf)

    @staticmethod
    def _made(low: int, high: int, unit: int) -> Real:
        return made(low, high, unit)

    @staticmethod
    def _undefined() -> Real:
        return undefined()


def plain(low: int, high: int, unit: int) -> Real:
    """An interval as it is."""
    found = object.__new__(Real)
    found.low, found.high, found.unit = low, high, unit
    return found


def made(low: int, high: int, unit: int) -> Real:
    """An interval, rounded outward to the working precision."""
    top, other = high.bit_length(), low.bit_length()
    spare = (top if top > other else other) - WORKING.bits
    found = object.__new__(Real)
    if spare > 0:
        found.low, found.high, found.unit = low >> spare, -(-high >> spare), unit + spare
    else:
        found.low, found.high, found.unit = low, high, unit
    return found


def read(number: object) -> Any:
    """A `Real` of an integer, a float, a fraction or a word for what is not finite; else NotImplemented."""
    if isinstance(number, Real):
        return number
    if isinstance(number, int):
        return plain(number, number, 0)
    if isinstance(number, float):
        if not math.isfinite(number):
            return limit(number)
        over, under = number.as_integer_ratio()
        return plain(over, over, 1 - under.bit_length())
    if isinstance(number, Fraction):
        return plain(number.numerator, number.numerator, 0) / number.denominator
    if isinstance(number, str):
        return limit(float(number)) if number.strip("+-") in ("inf", "nan") else read(Fraction(number))
    return NotImplemented


def limit(value: float) -> Real:
    """What is not a finite interval."""
    from dalenius.arithmetic.limits import Limit

    return Limit.of(value)


def undefined() -> Real:
    """That of which nothing is known."""
    return limit(math.nan)
