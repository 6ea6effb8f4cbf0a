"""What a table of released values holds, and what may be done to it: all of it exact where it can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import date, datetime
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

Cell = int | float | str | bool | date | datetime | None
"""What a table holds; a moment has no time zone, or is one of UTC."""
Change = Callable[[Cell], Cell]
_WRITTEN = {int, float, str, bool, type(None)}
_PLAIN = {*_WRITTEN, date, datetime}


def cell(value: Any) -> Cell:
    """A number of an array as a plain one."""
    plain: Cell = value.item() if isinstance(value, np.generic) else value
    return plain


def column(values: Iterable[Any]) -> tuple[Cell, ...]:
    """Numbers of arrays as plain ones; a column that holds none is not looked at one by one."""
    found = tuple(values)
    return found if set(map(type, found)) <= _PLAIN else tuple(map(cell, found))


def written(values: tuple[Cell, ...]) -> list[Any]:
    """A column as `plain` writes its cells."""
    kinds = set(map(type, values))
    if kinds <= _WRITTEN and (float not in kinds or all(isfinite(v) for v in values if type(v) is float)):
        return list(values)
    return [*map(plain, values)]


def held(least: Fraction | None, most: Fraction | None) -> Change:
    """Numbers beyond an end become the end."""

    def change(value: Cell) -> Cell:
        if least is not None and _number(value) < least:
            return _same(least, value)
        return _same(most, value) if most is not None and _number(value) > most else value

    return change


def rounded(places: int, to: Callable[[Fraction], int]) -> Change:
    """Numbers on so many decimal places, by a way of rounding."""

    def change(value: Cell) -> Cell:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return value
        if isinstance(value, int) and places >= 0:
            return value
        found = to(Fraction(value) * Fraction(10) ** places) / Fraction(10) ** places
        return int(found) if places <= 0 else float(found)

    return change


def plain(value: Cell) -> Any:
    """JSON has no infinities and no dates: they are written as texts in an object."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, date):
        return {"moment" if isinstance(value, datetime) else "date": value.isoformat()}
    return value


def read(value: Any) -> Cell:
    """What `plain` wrote."""
    found = value
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        found = _READ[kind](text)
    if not isinstance(found, Cell):
        raise TypeError
    return found


_READ: dict[str, Callable[[str], Cell]] = {
    "float": float,
    "date": date.fromisoformat,
    "moment": datetime.fromisoformat,
}


def _number(value: Cell) -> Fraction | float:
    if isinstance(value, int):
        return Fraction(value)
    return value if isinstance(value, float) else math.nan


def _same(end: Fraction, value: Cell) -> Cell:
    """The end as a number of the cell's type, where it is one."""
    return int(end) if isinstance(value, int) and end.denominator == 1 else float(end)
