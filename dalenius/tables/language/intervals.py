"""`Span`: where a number lies, and arithmetic on that.

Ends are exact or rounded outward; what is in doubt is `ANYTHING`.

    >>> add(Span.of(0, 120), Span.of(1, 1))
    Span(low=Fraction(1, 1), high=Fraction(121, 1))

A boolean is a number between 0 and 1 here, so that a condition known to hold is the span from 1 to 1. Spans
speak of values that are not NULL: what gives NULL (a division by zero, a root of −1) is left out of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

End = Fraction | float
"""A rational, or one of the two infinities."""


@dataclass(frozen=True)
class Span:
    """From `low` to `high`, both included where finite."""

    low: End = -math.inf
    high: End = math.inf

    @classmethod
    def of(cls, low: int | float | Fraction, high: int | float | Fraction) -> Span:
        """With ends taken as they are."""
        return cls(exact(low), exact(high))

    @property
    def finite(self) -> tuple[Fraction, Fraction] | None:
        """Both ends, where neither is infinite."""
        if isinstance(self.low, Fraction) and isinstance(self.high, Fraction):
            return self.low, self.high
        return None

    def has(self, value: int) -> bool:
        """Whether the value lies within."""
        return self.low <= value <= self.high


ANYTHING = Span()
TRUTH = Span(Fraction(0), Fraction(1))
"""A condition that may hold or not."""
NOUGHT = Span(Fraction(0), Fraction(0))
_LARGEST = Fraction(2) ** 1024
_WIDE = 512
"""Binary digits past which a rational is rounded outward to a float, so that formulas stay cheap."""


def exact(value: int | float | Fraction) -> End:
    """The number as an end."""
    return value if isinstance(value, float) and math.isinf(value) else Fraction(value)


def hull(*spans: Span) -> Span:
    """The least span that holds all of them."""
    return Span(min(span.low for span in spans), max(span.high for span in spans)) if spans else ANYTHING


def floats(span: Span) -> tuple[float, float]:
    """The ends as floats, rounded outward."""
    return _down(span.low), _up(span.high)


def add(a: Span, b: Span) -> Span:
    """a + b."""
    return _span(a.low + b.low, a.high + b.high)


def subtract(a: Span, b: Span) -> Span:
    """a − b."""
    return _span(a.low - b.high, a.high - b.low)


def negate(a: Span) -> Span:
    """−a."""
    return Span(-a.high, -a.low)


def multiply(a: Span, b: Span) -> Span:
    """a·b; an infinite end times 0 is 0, since the value itself is finite or gives NULL."""
    ends = [_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return _span(min(ends), max(ends))


def divide(a: Span, b: Span) -> Span:
    """a / b with NULL for b = 0."""
    if b.low < 0 < b.high or (b.low == 0 and b.high == 0):
        return ANYTHING
    return multiply(a, Span(*sorted((_inverse(b.low, b), _inverse(b.high, b)))))


def modulo(a: Span, b: Span) -> Span:
    """What is left of a / b, with the sign of a, and smaller than both."""
    most = min(_magnitude(a), _magnitude(b))
    return Span(-most if a.low < 0 else Fraction(0), most if a.high > 0 else Fraction(0))


def absolute(a: Span) -> Span:
    """|a|."""
    return Span(Fraction(0) if a.has(0) else min(_size(a.low), _size(a.high)), _magnitude(a))


def round_to(a: Span, digits: Span = NOUGHT) -> Span:
    """a to `digits` decimal places, halves away from zero."""
    if digits.low != digits.high or not -300 <= digits.low <= 300:
        return ANYTHING
    step = Fraction(10) ** -int(digits.low)
    return Span(_to(a.low, step, up=False), _to(a.high, step, up=True))


def floor(a: Span) -> Span:
    """⌊a⌋."""
    return Span(_whole(a.low, math.floor), _whole(a.high, math.floor))


def ceil(a: Span) -> Span:
    """⌈a⌉."""
    return Span(_whole(a.low, math.ceil), _whole(a.high, math.ceil))


def truncate(a: Span) -> Span:
    """a without its fraction."""
    return Span(_whole(a.low, math.trunc), _whole(a.high, math.trunc))


def least(*spans: Span) -> Span:
    """Of values that are not NULL: at least one is there, so the span of any of them may be the answer's."""
    return Span(min(span.low for span in spans), max(span.high for span in spans))


def power(a: Span, b: Span) -> Span:
    """a to the b: whole small powers by multiplication; anything else is unknown unless a is positive."""
    if b.low == b.high and b.low in (0, 1, 2, 3, 4):
        return _repeated(a, int(b.low))
    if a.low > 0:
        return exponential(multiply(LN(a), b))
    return ANYTHING


def rising(
    function: Callable[[float], float], domain: Span, values: Span = ANYTHING
) -> Callable[[Span], Span]:
    """A rising function on its domain, whose floats are right but for a few last digits, within `values`."""

    def on(a: Span) -> Span:
        low, high = max(a.low, domain.low), min(a.high, domain.high)
        if low > high:
            return values
        ends = _widened(_try(function, low, -math.inf), _try(function, high, math.inf))
        return Span(max(ends[0], values.low), min(ends[1], values.high))

    return on


def compare(name: str, a: Span, b: Span) -> Span:
    """A comparison of two numbers."""
    sure, never = _CERTAIN[name](a, b)
    return Span.of(1, 1) if sure else Span.of(0, 0) if never else TRUTH


def _span(low: End, high: End) -> Span:
    low, high = (-math.inf if low != low else low), (math.inf if high != high else high)
    return Span(_narrow(low, _down), _narrow(high, _up))


def _narrow(end: End, towards: Callable[[End], float]) -> End:
    if isinstance(end, Fraction) and max(end.numerator.bit_length(), end.denominator.bit_length()) > _WIDE:
        return exact(towards(end))
    return end


def _down(end: End) -> float:
    return -_up(-end)


def _up(end: End) -> float:
    if isinstance(end, float) or abs(end) >= _LARGEST:
        return math.inf if end > 0 else float(end) if isinstance(end, float) else -math.nextafter(math.inf, 0)
    try:
        near = float(end)
    except OverflowError:
        return math.inf if end > 0 else -math.nextafter(math.inf, 0)
    return near if near >= end else math.nextafter(near, math.inf)


def _times(x: End, y: End) -> End:
    return Fraction(0) if x == 0 or y == 0 else x * y


def _inverse(end: End, span: Span) -> End:
    if end == 0:
        return math.inf if span.high > 0 else -math.inf
    return 1 / end if isinstance(end, Fraction) else Fraction(0)


def _magnitude(a: Span) -> End:
    return max(_size(a.low), _size(a.high))


def _size(end: End) -> End:
    return -end if end < 0 else end


def _whole(end: End, how: Callable[[Fraction], int]) -> End:
    return Fraction(how(end)) if isinstance(end, Fraction) else end


def _to(end: End, step: Fraction, *, up: bool) -> End:
    if isinstance(end, float):
        return end
    return (math.ceil(end / step) if up else math.floor(end / step)) * step


def _repeated(a: Span, times: int) -> Span:
    if times == 0:
        return Span.of(1, 1)
    base = absolute(a) if times % 2 == 0 else a
    return _span(_tower(base.low, times), _tower(base.high, times))


def _tower(end: End, times: int) -> End:
    return math.prod([end] * (times - 1), start=end)


def _try(function: Callable[[float], float], end: End, otherwise: float) -> float:
    try:
        return function(float(end))
    except (OverflowError, ValueError):
        return otherwise


def _widened(low: float, high: float) -> tuple[End, End]:
    """With room for the last digits of a float; 0 is the logarithm of 1 or the root of 0, and exact."""
    slack = 2.0**-48
    lower = low if math.isinf(low) else low - abs(low) * slack
    upper = high if math.isinf(high) else high + abs(high) * slack
    return exact(lower), exact(upper)


_POSITIVE = Span(Fraction(0), math.inf)
LN = rising(math.log, _POSITIVE)
_TINY = Fraction(1, 2**1000)


def exponential(a: Span) -> Span:
    """e to the a, where floats have too few digits for the smallest results."""
    found = rising(math.exp, ANYTHING, _POSITIVE)(a)
    return Span(found.low if found.low > _TINY else Fraction(0), max(found.high, _TINY))


_CERTAIN: Mapping[str, Callable[[Span, Span], tuple[bool, bool]]] = {
    "less": lambda a, b: (a.high < b.low, a.low >= b.high),
    "less_equal": lambda a, b: (a.high <= b.low, a.low > b.high),
    "greater": lambda a, b: (a.low > b.high, a.high <= b.low),
    "greater_equal": lambda a, b: (a.low >= b.high, a.high < b.low),
    "equal": lambda a, b: (a.low == a.high == b.low == b.high, a.high < b.low or b.high < a.low),
    "not_equal": lambda a, b: (a.high < b.low or b.high < a.low, a.low == a.high == b.low == b.high),
}

SPANS: Mapping[str, Callable[..., Span]] = {
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "divide": divide,
    "integer_divide": lambda a, b: truncate(divide(a, b)),
    "modulo": modulo,
    "negate": negate,
    "abs": absolute,
    "sign": lambda a: Span.of(-1 if a.low < 0 else 0, 1 if a.high > 0 else 0),
    "round": round_to,
    "floor": floor,
    "ceil": ceil,
    "trunc": truncate,
    "sqrt": rising(math.sqrt, _POSITIVE, _POSITIVE),
    "cbrt": rising(math.cbrt, ANYTHING),
    "ln": LN,
    "log10": rising(math.log10, _POSITIVE),
    "log2": rising(math.log2, _POSITIVE),
    "exp": exponential,
    "power": power,
    "least": least,
    "greatest": least,
    "not": lambda a: subtract(Span.of(1, 1), a),
    "and": lambda *each: Span(min(a.low for a in each), min(a.high for a in each)),
    "or": lambda *each: Span(max(a.low for a in each), max(a.high for a in each)),
    "is_null": lambda *each: TRUTH,
    "sin": lambda a: Span.of(-1, 1),
    "cos": lambda a: Span.of(-1, 1),
    "pi": lambda: Span.of(3, 4),
    **{name: lambda *each: Span.of(-4, 4) for name in ("asin", "acos", "atan", "atan2")},
    "length": lambda *each: Span(Fraction(0), math.inf),
    "held": lambda a, least, most: Span(
        max(min(a.low, most.high), least.low), min(max(a.high, least.low), most.high)
    ),
    "day_from_number": round_to,
    "moment_from_number": lambda a: a,
    "position": lambda *each: Span(Fraction(0), math.inf),
    "nullif": lambda a, b: a,
    **{name: partial(compare, name) for name in _CERTAIN},
}
"""What each function does to spans; a name that is not here, or an argument that is no number, is unknown."""
