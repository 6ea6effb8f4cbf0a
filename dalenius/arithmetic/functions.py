"""Functions of intervals that are monotone, from their values at both ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from dalenius.arithmetic import elementary, ends, normal
from dalenius.arithmetic.fixed import Ends
from dalenius.arithmetic.working import WORKING

Function = Callable[[int, int, int], Ends | None]
"""Of m, e and bits: an interval around its value at m·2^e; None where that is beyond all numbers."""


class Functions(ABC):
    """What an interval from low·2^unit to high·2^unit is turned into."""

    __slots__ = ("high", "low", "unit")

    low: int
    high: int
    unit: int

    def exp(self) -> Any:
        """e^x, by `elementary.exp`."""
        return self._rising(elementary.exp)

    def expm1(self) -> Any:
        """e^x − 1, by `elementary.expm1`."""
        return self._rising(elementary.expm1)

    def log(self) -> Any:
        """log x, by `elementary.log`; undefined where the interval reaches 0."""
        return self._rising(elementary.log) if self.low > 0 else self._undefined()

    def log1p(self) -> Any:
        """log(1 + x), by `elementary.log1p`; undefined where the interval reaches −1."""
        return self._rising(elementary.log1p) if ends.below(-1, 0, self.low, self.unit) else self._undefined()

    def sqrt(self) -> Any:
        """√x, by `elementary.sqrt`; undefined where the interval reaches below 0."""
        return self._rising(elementary.sqrt) if self.low >= 0 else self._undefined()

    def erf(self) -> Any:
        """erf x, by `normal.erf`."""
        return self._rising(normal.erf)

    def erfc(self) -> Any:
        """erfc x, by `normal.erfc`."""
        return self._rising(normal.erfc, falling=True)

    def _rising(self, function: Function, *, falling: bool = False) -> Any:
        """A monotone function: its lower end at one end of the interval, its upper end at the other."""
        bits = WORKING.bits
        low = function(self.low, self.unit, bits)
        high = low if self.low == self.high else function(self.high, self.unit, bits)
        if falling:
            low, high = high, low
        if low is None or high is None:
            return self._undefined()
        return self._made(*ends.hull(low[0], low[2], high[1], high[2], bits))

    def sinh(self) -> Any:
        """(t + t/(1 + t))/2 with t = e^x − 1, end by end; below 0 by its mirror image."""
        return self._by_ends(lambda x: _sinh(x) if x.low >= 0 else -_sinh(-x))

    def cosh(self) -> Any:
        """(e^x + e^−x)/2, rising with |x|."""
        magnitude: Any = self
        return abs(magnitude)._by_ends(lambda x: (x.exp() + (-x).exp()) / 2)

    def tanh(self) -> Any:
        """t/(t + 2) with t = e^2x − 1, end by end; below 0 by its mirror image."""
        return self._by_ends(lambda x: _tanh(x) if x.low >= 0 else -_tanh(-x))

    @abstractmethod
    def lower(self) -> Any:
        """The lower end."""

    @abstractmethod
    def upper(self) -> Any:
        """The upper end."""

    def _by_ends(self, function: Callable[[Any], Any]) -> Any:
        if self.low == self.high:
            return function(self)
        return function(self.lower()).union(function(self.upper()))

    def erfinv(self) -> Any:
        """The x with erf x in the interval, by `inverses`."""
        from dalenius.arithmetic import inverses

        return self._by_ends(inverses.erfinv)

    def erfcinv(self) -> Any:
        """The x with erfc x in the interval, by `inverses`."""
        from dalenius.arithmetic import inverses

        return self._by_ends(inverses.erfcinv)

    def lgamma(self) -> Any:
        """log Γ(x) of positive numbers, by `factorials`."""
        from dalenius.arithmetic.factorials import log_gamma

        return log_gamma(self._made(self.low, self.high, self.unit))

    def gamma(self) -> Any:
        """Γ(x) of positive numbers."""
        from dalenius.arithmetic.factorials import gamma

        return gamma(self._made(self.low, self.high, self.unit))

    def rgamma(self) -> Any:
        """1/Γ(x) of positive numbers."""
        return self.gamma() ** -1

    @staticmethod
    @abstractmethod
    def _made(low: int, high: int, unit: int) -> Any:
        """An interval, rounded outward to the working precision."""

    @staticmethod
    @abstractmethod
    def _undefined() -> Any:
        """That of which nothing is known."""


def _tanh(x: Any) -> Any:
    t = (2 * x).expm1()
    return t / (t + 2)


def _sinh(x: Any) -> Any:
    t = x.expm1()
    return (t + t / (1 + t)) / 2
