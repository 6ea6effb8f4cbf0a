"""The exact numbers of the twins, and what they lack."""

from __future__ import annotations

from fractions import Fraction
from typing import NoReturn

from dalenius.errors import MissingExtra


class Rational(Fraction):
    """A fraction that also calls its parts p and q."""

    @property
    def p(self) -> int:
        """The numerator."""
        return self.numerator

    @property
    def q(self) -> int:
        """The denominator."""
        return self.denominator


def absent(*_: object, **__: object) -> NoReturn:
    """Refuse what is not written in Python integers."""
    raise MissingExtra("This is computed by python-flint only.", remedy="Run: pip install python-flint")
