"""A release as a `Figure`: bars for groups, a line over numbers or dates, each value with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from dalenius.display import MARK, footnotes, harmless, number
from dalenius.errors import InvalidArgument
from dalenius.figures import Figure, Series
from dalenius.release.cells import Cell
from dalenius.release.receipt import TAINTED

if TYPE_CHECKING:
    from dalenius.release.release import Release

Kind = Literal["bars", "line"]
GROUPS = 60
"""Bars beyond so many groups are not drawn; a note says so."""
COLORS = 7
"""A second key with more values than this has no colours of its own."""
FEW = 5
"""So few numbers as keys are taken for codes of groups, and drawn as bars."""
_EPOCH = datetime(1970, 1, 1)
_DAY = 86400.0


def plotted(release: Release, measures: Sequence[str], kind: Kind | None, title: str | None) -> Figure:
    """Return the picture of a release.

    Args:
        release: What to draw.
        measures: The columns to draw; the first measure where none is named.
        kind: "bars" or "line"; chosen by the keys where None.
        title: The title; the measures and keys where None.
    """
    names = tuple(measures) or release.measures[:1]
    if not names:
        raise InvalidArgument(
            "Nothing was measured here, so nothing is drawn.", remedy="Ask for an aggregate."
        )
    _check(release, names, kind)
    columns = release.shown.columns
    keys = [name for name in columns if name not in release.beside]
    rows = [i for i in range(len(release)) if all(_is_number(columns[name][i]) for name in names)]
    notes = (
        [] if len(rows) == len(release) else [f"Left out, as they have no value: {len(release) - len(rows)}."]
    )
    drawn = kind or ("line" if len(keys) in (1, 2) and _ordered(columns[keys[0]], rows) else "bars")
    if drawn == "line":
        _check_line(keys, columns, rows)
    elif len(rows) > GROUPS:
        notes.append(f"The first {GROUPS} of {len(rows)} groups are drawn.")
        rows = rows[:GROUPS]
    return Figure(
        title=harmless(title if title is not None else _title(names, keys)),
        x_label=harmless(keys[0]) if len(keys) == 1 or (drawn == "line" and keys) else "",
        y_label=harmless(names[0]) if len(names) == 1 else "",
        notes=[*_caption(release, names), *notes],
        **(_lines if drawn == "line" else _bars)(columns, names, keys, rows),
    )


def _check(release: Release, names: Sequence[str], kind: Kind | None) -> None:
    for name in names:
        if name not in release.measures:
            raise InvalidArgument(
                f"{harmless(name)!r} is not a measure of this release.",
                remedy=f"Name one of: {', '.join(map(harmless, release.measures))}.",
            )
        if not all(
            cell is None or _is_number(cell) or isinstance(cell, float) for cell in release.columns[name]
        ):
            raise InvalidArgument(
                f"{harmless(name)!r} holds no numbers.", remedy="Name a measure that holds numbers."
            )
    if kind not in (None, "bars", "line"):
        raise InvalidArgument("kind must be bars or line.", remedy='Pass kind="bars".')


def _check_line(keys: Sequence[str], columns: Mapping[str, Sequence[Cell]], rows: Sequence[int]) -> None:
    if not keys or not all(_place(columns[keys[0]][i]) is not None for i in rows):
        raise InvalidArgument(
            "A line needs numbers or dates as its first key.", remedy='Pass kind="bars", or leave it out.'
        )


def _caption(release: Release, names: Sequence[str]) -> list[str]:
    sure = "" if release.confidence is None else f"Error bars: {float(100 * release.confidence):g} %. "
    lines = [f"{sure}{release.receipt.short}."]
    if any(_is_open(release.columns, name) for name in names):
        lines.append("An arrow is an open end: on that side no bound is known.")
    alarm = [TAINTED] if release.receipt.tainted else []
    return [*alarm, *lines, *footnotes(release.columns, names)]


def _is_open(columns: Mapping[str, Sequence[Cell]], name: str) -> bool:
    ends = [columns[f"{name}{end}"] for end in ("_low", "_high") if f"{name}{end}" in columns]
    return any(_end(cell) is None for column in ends for cell in column)


def _title(names: Sequence[str], keys: Sequence[str]) -> str:
    by = f" by {' and '.join(keys)}" if keys else ""
    return f"{', '.join(names)}{by}"


def _lines(
    columns: Mapping[str, Sequence[Cell]], names: Sequence[str], keys: Sequence[str], rows: Sequence[int]
) -> dict[str, Any]:
    """Return lines over the first key, one for each measure and each value of the other keys."""
    order = sorted(rows, key=lambda i: _place(columns[keys[0]][i]) or 0.0)
    parts: dict[str, list[int]] = {}
    for i in order:
        parts.setdefault(", ".join(number(columns[key][i]) for key in keys[1:]), []).append(i)
    series = [
        _series(
            _named(name, part, names),
            columns,
            name,
            [_place(columns[keys[0]][i]) or 0.0 for i in each],
            each,
            "line",
        )
        for name in names
        for part, each in (parts or {"": []}).items()
    ]
    dated = any(isinstance(columns[keys[0]][i], date) for i in rows)
    return {"series": series, "x_scale": "date" if dated else "linear"}


def _bars(
    columns: Mapping[str, Sequence[Cell]], names: Sequence[str], keys: Sequence[str], rows: Sequence[int]
) -> dict[str, Any]:
    """Return bars for each group; a second key of few values has colours."""
    if not keys:
        places = {name: [i] for i, name in enumerate(names)}
        series = [
            Series("", (), (), style="bars", low=(), high=())
            if not rows
            else _joined([_series("", columns, name, places[name], rows[:1], "bars") for name in names])
        ]
        return {"series": series, "names": [harmless(name) for name in names]}
    split = len(keys) == 2 and len(names) == 1 and len({number(columns[keys[1]][i]) for i in rows}) <= COLORS
    on_axis = keys[:1] if split else keys
    labels = {i: ", ".join(number(columns[key][i]) for key in on_axis) for i in rows}
    if len(names) == 1 and not split:
        marked = [
            i for i in rows if footnotes({name: column[i : i + 1] for name, column in columns.items()}, names)
        ]
        labels |= {i: f"{labels[i]} {MARK}" for i in marked}
    shown = list(dict.fromkeys(labels.values()))
    parts: dict[str, list[int]] = {}
    for i in rows:
        parts.setdefault(number(columns[keys[1]][i]) if split else "", []).append(i)
    series = [
        _series(
            _named(name, part, names),
            columns,
            name,
            [float(shown.index(labels[i])) for i in each],
            each,
            "bars",
        )
        for name in names
        for part, each in (parts or {"": []}).items()
    ]
    return {"series": series, "names": shown}


def _joined(parts: Sequence[Series]) -> Series:
    x, y, low, high = (
        [value for part in parts for value in (getattr(part, axis) or ())]
        for axis in ("x", "y", "low", "high")
    )
    return Series("", x, y, style="bars", low=low or None, high=high or None)


def _named(name: str, part: str, names: Sequence[str]) -> str:
    return harmless(": ".join(text for text in (name if len(names) > 1 or not part else "", part) if text))


def _series(
    label: str,
    columns: Mapping[str, Sequence[Cell]],
    name: str,
    x: Sequence[float],
    rows: Sequence[int],
    style: Literal["bars", "line"],
) -> Series:
    y = [_value(columns[name][i]) for i in rows]
    if f"{name}_low" not in columns:
        return Series(label, x, y, style=style)
    low, high = ([_end(columns[f"{name}{end}"][i]) for i in rows] for end in ("_low", "_high"))
    return Series(label, x, y, style=style, low=low, high=high)


def _ordered(column: Sequence[Cell], rows: Sequence[int]) -> bool:
    """Whether keys are dates, or enough numbers to be more than codes of groups."""
    places = {_place(column[i]) for i in rows}
    dates = all(isinstance(column[i], date) for i in rows)
    return None not in places and len(places) > (1 if dates else FEW)


def _place(key: Cell) -> float | None:
    """Return where a key is on an axis; None where it is not a number or a date."""
    if isinstance(key, datetime):
        plain = key if key.tzinfo is None else key.astimezone(UTC).replace(tzinfo=None)
        return (plain - _EPOCH).total_seconds() / _DAY
    if isinstance(key, date):
        return float((key - _EPOCH.date()).days)
    return _value(key) if _is_number(key) else None


def _is_number(value: Cell) -> TypeGuard[int | float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _value(value: Cell) -> float:
    """Return the nearest number that can be drawn."""
    limit = 1e300
    return min(limit, max(-limit, float(min(10**300, max(-(10**300), value))))) if _is_number(value) else 0.0


def _end(value: Cell) -> float | None:
    return _value(value) if _is_number(value) else None
