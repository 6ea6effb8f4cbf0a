"""`Complex`: a rectangle that contains a complex number, the twin of python-flint's `acb`."""

from __future__ import annotations

from typing import Any

from dalenius.arithmetic import elementary
from dalenius.arithmetic.reals import Real, made, plain, undefined
from dalenius.arithmetic.working import WORKING


class Complex:
    """real + imag·i, both intervals."""

    __slots__ = ("imag", "real")

    def __init__(self, real: object = 0, imag: object = 0) -> None:
        if isinstance(real, complex):
            real, imag = real.real, real.imag
        self.real, self.imag = Real(real), Real(imag)

    def __add__(self, other: object) -> Complex:
        number = _read(other)
        return Complex(self.real + number.real, self.imag + number.imag)

    __radd__ = __add__

    def __sub__(self, other: object) -> Complex:
        number = _read(other)
        return Complex(self.real - number.real, self.imag - number.imag)

    def __rsub__(self, other: object) -> Any:
        return _read(other) - self

    def __neg__(self) -> Complex:
        return Complex(-self.real, -self.imag)

    def __mul__(self, other: object) -> Complex:
        number = _read(other)
        return Complex(
            self.real * number.real - self.imag * number.imag,
            self.real * number.imag + self.imag * number.real,
        )

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Complex:
        number = _read(other)
        square = number.real**2 + number.imag**2
        turned = self * Complex(number.real, -number.imag)
        return Complex(turned.real / square, turned.imag / square)

    def __rtruediv__(self, other: object) -> Any:
        return _read(other) / self

    def __pow__(self, n: int) -> Complex:
        found, base, left = Complex(1), self if n >= 0 else 1 / self, abs(n)
        while left:
            if left & 1:
                found = found * base
            base, left = base * base, left >> 1
        return found

    def __abs__(self) -> Any:
        return (self.real**2 + self.imag**2).sqrt()

    def exp(self) -> Complex:
        """e^real·(cos imag + i·sin imag)."""
        size, (cos, sin) = self.real.exp(), _turn(self.imag)
        return Complex(size * cos, size * sin)

    def __repr__(self) -> str:
        return f"({self.real!r}, {self.imag!r})"


def _read(number: object) -> Any:
    return number if isinstance(number, Complex) else Complex(number)


def _turn(angle: Real) -> tuple[Real, Real]:
    """cos and sin of an interval: at its middle, by `elementary.cos_sin`, off by no more than its radius."""
    if not angle.is_finite():
        return undefined(), undefined()
    middle, radius = angle.mid(), angle.rad().high
    around = plain(-radius, radius, angle.rad().unit)
    cos, sin = elementary.cos_sin(middle.low, middle.unit, WORKING.bits)
    return made(*cos) + around, made(*sin) + around
