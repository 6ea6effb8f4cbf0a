"""How one cell is written: a number with its interval, or a text made harmless."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

MARK = "†"
"""What stands behind a number of which a footnote says something."""
FLAGS = {
    "open": "",
    "open above": "",
    "open below": "",
    "unknown": "",
    "clipped": "what bounds took from it is more than its noise hides; its interval allows for that",
}
"""What the flag of a cell means in a footnote; a flag that the interval itself shows has none."""


def number(value: Any) -> str:
    """Return a cell by itself."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "–" if value is None else harmless(str(value))


def measured(value: Any) -> str:
    """Return a measure without an interval, thousands set apart; keys, such as years, stay as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return number(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def harmless(text: str) -> str:
    """Return the text without what moves a cursor or hides itself."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def with_bar(value: Any, low: Any, high: Any) -> str:
    """Return a value with its interval; an end that is None or infinite is open."""
    ends = (low, high)
    if isinstance(value, date):
        return _dated(value, low, high)
    if not _finite(value) or low is high is None or any(_unreadable(end) for end in ends):
        return measured(value)
    if _finite(low) and _finite(high):
        return _between(value, low, high)
    if _finite(low):
        return _one_sided(value, low, math.floor, "or more")
    return _one_sided(value, high, math.ceil, "or less") if _finite(high) else f"{measured(value)} (open)"


def _dated(value: date, low: Any, high: Any) -> str:
    first, last = (harmless(str(end)) if isinstance(end, date) else "" for end in (low, high))
    if first and last:
        return f"{value} ({first} to {last})"
    return f"{value} ({first} or later)" if first else f"{value} ({last} or earlier)" if last else f"{value}"


def _between(value: Any, low: Any, high: Any) -> str:
    middle, least, most = map(_fraction, (value, low, high))
    below, above = middle - least, most - middle
    whole = all(isinstance(end, int) for end in (value, low, high))
    if abs(above - below) <= max(above, below) / 20:
        if whole:
            return f"{int(middle):,} ± {int(max(above, below)):,}"
        places = _places(max(above, below))
        return f"{_rounded(middle, places)} ± {_rounded(max(above, below), places, math.ceil)}"
    places = 0 if whole else _places(most - least)
    ends = _rounded(least, places, math.floor), _rounded(most, places, math.ceil)
    return f"{_rounded(middle, places)} ({ends[0]} to {ends[1]})"


def _one_sided(value: Any, end: Any, outward: Callable[[Fraction], int], word: str) -> str:
    whole = isinstance(value, int) and isinstance(end, int)
    middle, edge = _fraction(value), _fraction(end)
    places = 0 if whole else _places(abs(middle - edge))
    return f"{_rounded(middle, places)} ({_rounded(edge, places, outward)} {word})"


def _finite(end: Any) -> bool:
    return isinstance(end, int) or (isinstance(end, float) and math.isfinite(end))


def _unreadable(end: Any) -> bool:
    """Whether an end is neither a number nor open."""
    return not (end is None or isinstance(end, int | float)) or end != end


def _fraction(end: int | float) -> Fraction:
    """Return the decimal that a number prints, so that 0.03 is not rounded up to 0.031."""
    return Fraction(end) if isinstance(end, int) else Fraction(repr(end))


def _places(width: Fraction) -> int:
    """Return the decimal places that show two digits of a width."""
    if width >= 10**16:
        return 0
    return 1 - math.floor(math.log10(width)) if width > 0 else 6


def _short(value: Fraction) -> str:
    """Return six digits; by decimals, as a whole number may be too large for a float."""
    return f"{(Decimal(value.numerator) / value.denominator).normalize(Context(prec=6)):g}"


def _rounded(value: Fraction, places: int, to: Callable[[Fraction], int] = round) -> str:
    """Return the value in decimals; very large and very small ones with an exponent."""
    if abs(value) >= 1e16 or places > 12:
        return _short(value)
    shift = max(places, 0)
    whole = to(value * 10**shift)
    above, below = divmod(abs(whole), 10**shift)
    text = f"{above:,}.{below:0{shift}}" if shift else f"{above:,}"
    return f"-{text}" if whole < 0 else text
