"""`Limit`: what is no finite interval, as a float: +∞, −∞, or NaN, of which nothing is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dalenius.arithmetic.reals import Real, plain, read


class Limit(Real):
    """An infinity, or NaN. Python asks it first where the other is an interval."""

    __slots__ = ("value",)

    value: float

    @staticmethod
    def of(value: float) -> Limit:
        """That of a float which is not finite."""
        found = object.__new__(Limit)
        found.low, found.high, found.unit, found.value = 0, 0, 0, value
        return found

    def __add__(self, other: Any) -> Any:
        return _two(other, lambda number: self.value + _float(number, 0.0))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _two(other, lambda number: self.value - _float(number, 0.0))

    def __mul__(self, other: Any) -> Any:
        return _two(other, lambda number: self.value * _float(number, _sign(number)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _two(other, lambda number: self.value * _sign(number))

    def __rtruediv__(self, other: Any) -> Any:
        return _two(other, lambda number: math.nan if isinstance(number, Limit) else 0.0 / self.value)

    def _power(self, n: int) -> Any:
        return back(self.value**n) if n else plain(1, 1, 0)

    def __neg__(self) -> Real:
        return Limit.of(-self.value)

    def __abs__(self) -> Real:
        return Limit.of(abs(self.value))

    def __lt__(self, other: object) -> Any:
        return _compared(other, lambda value: self.value < value)

    def __gt__(self, other: object) -> Any:
        return _compared(other, lambda value: self.value > value)

    def __le__(self, other: object) -> Any:
        return _compared(other, lambda value: self.value <= value)

    def __ge__(self, other: object) -> Any:
        return _compared(other, lambda value: self.value >= value)

    __eq__ = Real.__eq__
    __ne__ = Real.__ne__
    __hash__ = Real.__hash__

    def __bool__(self) -> bool:
        return True

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return repr(self.value)

    def is_finite(self) -> bool:
        """Never."""
        return False

    def is_exact(self) -> bool:
        """Whether it is an infinity."""
        return not math.isnan(self.value)

    def mid(self) -> Real:
        """Itself."""
        return self

    lower = upper = floor = ceil = mid

    def rad(self) -> Real:
        """Nothing is known."""
        return Limit.of(math.nan)

    def union(self, other: object) -> Real:
        """Nothing is known."""
        return Limit.of(math.nan)

    def man_exp(self) -> tuple[int, int]:
        """Refused."""
        raise ValueError("not a finite number")

    def unique_fmpz(self) -> int | None:
        """There is none."""
        return None

    def exp(self) -> Any:
        """0 at −∞."""
        return back(math.exp(self.value))

    def expm1(self) -> Any:
        """−1 at −∞."""
        return back(math.expm1(self.value))

    def log(self) -> Any:
        """Of +∞ only."""
        return Limit.of(self.value if self.value > 0 else math.nan)

    log1p = sqrt = log

    def cosh(self) -> Any:
        """+∞."""
        return Limit.of(abs(self.value))

    def sinh(self) -> Any:
        """Itself."""
        return self

    def tanh(self) -> Any:
        """±1."""
        return back(math.tanh(self.value))

    def erfinv(self) -> Any:
        """Nothing is known."""
        return Limit.of(math.nan)

    erf = erfc = erfcinv = lgamma = gamma = rgamma = erfinv


def back(value: float) -> Real:
    """A whole number, or a limit again."""
    return plain(int(value), int(value), 0) if math.isfinite(value) else Limit.of(value)


def _two(other: object, result: Callable[[Real], float]) -> Any:
    number = read(other)
    return number if number is NotImplemented else back(result(number))


def _compared(other: object, holds: Callable[[float], bool]) -> Any:
    """With any finite number as 0."""
    number = read(other)
    return number if number is NotImplemented else holds(_float(number, 0.0))


def _float(number: Real, finite: float) -> float:
    return number.value if isinstance(number, Limit) else finite


def _sign(number: Real) -> float:
    """1 or −1 where all points have that sign; NaN for an infinity too, as a divisor."""
    if isinstance(number, Limit) or number.low <= 0 <= number.high:
        return math.nan
    return 1.0 if number.low > 0 else -1.0
