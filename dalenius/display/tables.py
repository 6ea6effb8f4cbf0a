"""A small table of released numbers as text: on one line, or for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from dalenius.display.cells import FLAGS, MARK, harmless, number, with_bar

ROWS = 40
"""Longer tables end in a note of how many rows follow."""
ENDS = ("_low", "_high", "_flag")
"""How the columns that belong to a measure end."""

Columns = Mapping[str, Sequence[Any]]


def line(columns: Columns, measures: Sequence[str]) -> str:
    """Return the measures of a table of one row, on one line."""
    shown = [_measure(columns, measure, 0) for measure in measures]
    named = [f"{measure} {text}" for measure, text in zip(measures, shown, strict=True)]
    return ", ".join(named if len(measures) > 1 else shown)


def table(columns: Columns, measures: Sequence[str], caption: str) -> str:
    """Return a table for the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    head, rows = cells(columns, measures, ROWS)
    drawn = Table(box=SIMPLE_HEAD, show_edge=False)
    right = set(map(harmless, measures))
    for name in head:
        drawn.add_column(Text(name), justify="right" if name in right else "left")
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    written = StringIO()
    Console(file=written, color_system=None, legacy_windows=False).print(drawn)
    return "\n".join([*(text.rstrip() for text in written.getvalue().rstrip().splitlines()), caption])


def footnotes(columns: Columns, measures: Sequence[str]) -> list[str]:
    """Return what the marks of a table mean."""
    flags = {flag for measure in measures for flag in columns.get(f"{measure}_flag", ()) if flag}
    return [f"{MARK} {text}" for text in sorted(map(_meaning, flags)) if text]


def cells(columns: Columns, measures: Sequence[str], most: int) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table as texts, with intervals beside their values."""
    beside = {f"{measure}{end}" for measure in measures for end in ENDS}
    head = [name for name in columns if name not in beside]
    size = len(next(iter(columns.values()), ()))
    rows = [
        [_measure(columns, name, i) if name in measures else number(columns[name][i]) for name in head]
        for i in range(min(size, most))
    ]
    if size > most:
        rows.append([f"… {size - most} more rows", *[""] * (len(head) - 1)])
    return [harmless(name) for name in head], rows


def _measure(columns: Columns, measure: str, row: int) -> str:
    low, high, flag = (columns[name][row] if name in columns else None for name in _beside(measure))
    return with_bar(columns[measure][row], low, high) + (MARK if flag and _meaning(flag) else "")


def _beside(measure: str) -> list[str]:
    return [f"{measure}{end}" for end in ENDS]


def _meaning(flag: Any) -> str:
    return FLAGS.get(str(flag), harmless(str(flag)))
