"""HTML for notebooks that needs nothing else: tables of numbers, tables of facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from dalenius.display.cells import harmless
from dalenius.display.tables import Columns, cells

ROWS = 200
"""Longer tables end in a note of how many rows follow."""
Fact = tuple[str, str]
"""The name of something, and what is said of it."""
_LEFT, _RIGHT = ' style="text-align:left"', ' style="text-align:right"'
_NAME = ' style="text-align:left;vertical-align:top;white-space:nowrap"'
_TEXT = ' style="text-align:left;vertical-align:top;overflow-wrap:anywhere"'
_SMALL = ' style="font-size:smaller"'


def page(
    columns: Columns,
    measures: Sequence[str],
    caption: Sequence[str],
    *,
    notes: Sequence[Fact] = (),
    alarm: str | None = None,
) -> str:
    """Return a table of released numbers.

    Args:
        columns: The columns, those of intervals and flags among them.
        measures: Which of them were released with intervals.
        caption: Lines that stand below the table, as wide as the page.
        notes: Facts that are folded away under it.
        alarm: What is said above it in red.
    """
    head, rows = cells(columns, measures, ROWS)
    right = set(map(harmless, measures))
    drawn = _table(head, rows, [name in right for name in head])
    listed = "".join(f"<dt>{_shown(name)}</dt><dd>{_shown(text)}</dd>" for name, text in notes)
    folded = f"<details{_SMALL}><summary>Receipt</summary><dl>{listed}</dl></details>" if notes else ""
    return f"{_alarm(alarm)}{drawn}{_lines(caption)}{folded}"


def facts(
    title: str,
    said: Sequence[Fact],
    *,
    caption: Sequence[str] = (),
    folded: Sequence[Fact] = (),
    alarm: str | None = None,
    share: float | None = None,
) -> str:
    """Return named facts as a table of two columns.

    Args:
        title: What they are about.
        said: The facts in order; a name that repeats is shown once.
        caption: Lines below the table.
        folded: Facts that few read, folded away under it.
        alarm: What is said above it in red.
        share: What is left of a whole, from 0 to 1, drawn as a bar above the table.
    """
    more = f"<details{_SMALL}><summary>More</summary>{_named(folded)}</details>" if folded else ""
    return f"{_alarm(alarm)}{_title(title)}{_bar(share)}{_named(said)}{_lines(caption)}{more}"


def grid(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, caption: Sequence[str] = ()
) -> str:
    """Return texts as a table with a head, of which no column is numbers."""
    more = [f"… {len(rows) - ROWS} more"] if len(rows) > ROWS else []
    drawn = _table(head, rows[:ROWS], [False] * len(head))
    return f"{_title(title)}{drawn}{_lines([*more, *caption])}"


def sentences(title: str, said: Sequence[str]) -> str:
    """Return sentences as a list."""
    return f"{_title(title)}<ul>{''.join(f'<li>{_shown(text)}</li>' for text in said)}</ul>"


def _named(said: Sequence[Fact]) -> str:
    before, rows = "", []
    for name, text in said:
        shown = "" if name == before else _shown(name)
        rows.append(f"<tr><th{_NAME}>{shown}</th><td{_TEXT}>{_shown(text)}</td></tr>")
        before = name
    return f"<table><tbody>{''.join(rows)}</tbody></table>" if rows else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    styles = [_RIGHT if number else _LEFT for number in right]
    body = "".join(f"<tr>{_cells('td', row, styles)}</tr>" for row in rows)
    return f"<table><thead><tr>{_cells('th', head, styles)}</tr></thead><tbody>{body}</tbody></table>"


def _cells(tag: str, texts: Sequence[str], styles: Sequence[str]) -> str:
    return "".join(f"<{tag}{style}>{_shown(text)}</{tag}>" for text, style in zip(texts, styles, strict=True))


def _title(text: str) -> str:
    return f"<p><strong>{_shown(text)}</strong></p>"


def _alarm(text: str | None) -> str:
    return f'<p style="color:#b00020"><strong>{_shown(text)}</strong></p>' if text else ""


def _lines(texts: Sequence[str]) -> str:
    return "".join(f"<div{_SMALL}>{_shown(text)}</div>" for text in texts)


def part_left(share: float) -> float:
    """Return a share in hundredths, to one decimal place, rounded down."""
    return max(0, min(1000, math.floor(round(1000 * share, 6)))) / 10


def _bar(share: float | None) -> str:
    """Return a bar of what is left; its width is rounded down."""
    if share is None:
        return ""
    part = part_left(share)
    color = "#009E73" if share > 0.5 else "#E69F00" if share > 0.2 else "#D55E00"
    inner = f'<div style="width:{part:g}%;height:0.8em;background:{color}"></div>'
    return (
        f'<div style="width:20em;border:1px solid #888" title="{part:g} % left">{inner}</div>'
        f"<div{_SMALL}>{part:g} % left</div>"
    )


def _shown(text: str) -> str:
    return escape(harmless(text))
