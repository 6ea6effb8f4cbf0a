"""How a small table of released numbers looks: in a terminal, and in a notebook.

A number with an error bar is written `12 ± 3`, the value with as many digits as the bar has meaning for and
the bar rounded up; where the bar is more than a little lopsided, `12 (8 to 20)`; where a side of it is open,
`12 (8 or more)`. A cell of which something is to be said has a dagger. Texts come from data sets,
so what could act on a terminal or a page is made harmless.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from html import escape
from io import StringIO
from typing import Any

ROWS_IN_TERMINAL, ROWS_IN_PAGE = 40, 200
"""Longer tables end in a note of how many rows follow."""

BESIDE = ("_low", "_high", "_flag")
"""What the names of columns beside a measure end in: its error bar, and what is to be said of a cell."""
DAGGER = "†"

Columns = Mapping[str, Sequence[Any]]


def line(columns: Columns, measures: Sequence[str]) -> str:
    """The measures of a table of one row, on one line."""
    shown = [_with_bar(columns, measure, 0) for measure in measures]
    named = [f"{measure} {text}" for measure, text in zip(measures, shown, strict=True)]
    return ", ".join(named if len(measures) > 1 else shown)


def table(columns: Columns, measures: Sequence[str], caption: str) -> str:
    """A table for the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    head, rows = _rows(columns, measures, ROWS_IN_TERMINAL)
    made = Table(box=SIMPLE_HEAD, show_edge=False)
    for name in head:
        made.add_column(Text(name), justify="right" if name in measures else "left")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    written = StringIO()
    Console(file=written, color_system=None, legacy_windows=False).print(made)
    return "\n".join([*(text.rstrip() for text in written.getvalue().rstrip().splitlines()), caption])


def page(
    columns: Columns,
    measures: Sequence[str],
    caption: str,
    *,
    notes: Sequence[tuple[str, str]] = (),
    alarm: str | None = None,
) -> str:
    """A table for a notebook: HTML that needs nothing else. Notes are folded away under it."""
    head, rows = _rows(columns, measures, ROWS_IN_PAGE)
    right = {harmless(measure) for measure in measures}
    styles = [' style="text-align:right"' if name in right else ' style="text-align:left"' for name in head]
    warning = f'<p style="color:#b00020"><strong>{escape(alarm)}</strong></p>' if alarm else ""
    body = "".join(f"<tr>{_cells('td', row, styles)}</tr>" for row in rows)
    under = f'<caption style="caption-side:bottom;text-align:left">{escape(caption)}</caption>'
    table = f"<table>{under}<thead><tr>{_cells('th', head, styles)}</tr></thead><tbody>{body}</tbody></table>"
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(harmless(text))}</dd>" for name, text in notes)
    folded = f"<details><summary>Receipt</summary><dl>{listed}</dl></details>" if notes else ""
    return f"{warning}{table}{folded}"


def _cells(tag: str, texts: Sequence[str], styles: Sequence[str]) -> str:
    each = zip(texts, styles, strict=True)
    return "".join(f"<{tag}{style}>{escape(text)}</{tag}>" for text, style in each)


def number(value: Any) -> str:
    """A cell by itself."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "–" if value is None else harmless(str(value))


def harmless(text: str) -> str:
    """The text without what moves a cursor or hides itself."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def with_bar(value: Any, low: Any, high: Any) -> str:
    """A value with its error bar."""
    if not all(isinstance(end, int) or (isinstance(end, float) and end == end) for end in (value, low, high)):
        return number(value)
    if not all(isinstance(end, int) or math.isfinite(end) for end in (value, low, high)):
        return _open(value, low, high)
    # As the decimals they print, so that 0.03 is not rounded up to 0.031.
    middle, least, most = (
        Fraction(end) if isinstance(end, int) else Fraction(repr(end)) for end in (value, low, high)
    )
    below, above = middle - least, most - middle
    if abs(above - below) <= max(above, below) / 20:
        if isinstance(value, int) and isinstance(high, int):
            return f"{value} ± {max(above, below)}"
        places = _places(max(above, below))
        return f"{_rounded(middle, places)} ± {_rounded(max(above, below), places, math.ceil)}"
    whole = all(isinstance(end, int) for end in (value, low, high))
    places = 0 if whole else _places(most - least)
    ends = _rounded(least, places, math.floor), _rounded(most, places, math.ceil)
    return f"{_rounded(middle, places)} ({ends[0]} to {ends[1]})"


def _open(value: Any, low: Any, high: Any) -> str:
    """A value of which an end is not known."""
    below, above = (isinstance(end, float) and math.isinf(end) for end in (low, high))
    if below and above:
        return f"{number(value)} (no bounds known)"
    end, words = (low, "or more") if above else (high, "or less")
    return f"{number(value)} ({number(end)} {words})"


def _rows(columns: Columns, measures: Sequence[str], most: int) -> tuple[list[str], list[list[str]]]:
    bars = {f"{measure}{end}" for measure in measures for end in BESIDE}
    head = [name for name in columns if name not in bars]
    size = len(next(iter(columns.values()), ()))
    rows = [
        [_with_bar(columns, name, i) if name in measures else number(columns[name][i]) for name in head]
        for i in range(min(size, most))
    ]
    if size > most:
        rows.append([f"… {size - most} more rows", *[""] * (len(head) - 1)])
    return [harmless(name) for name in head], rows


def _with_bar(columns: Columns, measure: str, row: int) -> str:
    ends = [columns[name][row] if name in columns else None for name in (f"{measure}_low", f"{measure}_high")]
    flag = columns[f"{measure}_flag"][row] if f"{measure}_flag" in columns else None
    return with_bar(columns[measure][row], *ends) + (f" {DAGGER}" if flag else "")


def flagged(columns: Columns, measures: Sequence[str]) -> str:
    """What the dagger stands for, where there is one."""
    found = {flag for measure in measures for flag in columns.get(f"{measure}_flag", ()) if flag}
    return f"{DAGGER} {', '.join(sorted(map(str, found)))}: what bounds took is not hidden by noise" * bool(
        found
    )


def _places(width: Fraction) -> int:
    """Decimal places that show two digits of a width."""
    if width >= 10**16:
        return 0
    return 1 - math.floor(math.log10(width)) if width > 0 else 6


def _short(value: Fraction) -> str:
    """Six digits; by decimals, as a whole number may be too large for a float."""
    return f"{(Decimal(value.numerator) / value.denominator).normalize(Context(prec=6)):g}"


def _rounded(value: Fraction, places: int, to: Callable[[Fraction], int] = round) -> str:
    """The value in decimals; very large and very small ones with an exponent."""
    if abs(value) >= 1e16 or places > 12:
        return _short(value)
    shift = max(places, 0)
    whole = to(value * 10**shift)
    digits = str(abs(whole)).rjust(shift + 1, "0")
    text = f"{digits[:-shift]}.{digits[-shift:]}" if shift else digits
    return f"-{text}" if whole < 0 else text
