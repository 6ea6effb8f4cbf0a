"""What is computed from a released answer: filters, windows and groups over its rows, with error bars.

**Theorem.** All of it is post-processing: it looks at released estimates and at public keys only.

Each column carries where the truth lies, as an interval that holds it while every aggregate beneath lies in
its own bar. A column of the last step is of so many aggregates of so many groups: where each of these m bars
has risk α/m, all of them hold with probability at least 1 − α (Bonferroni), and so does what is computed from
them. Within one row m counts the aggregates that are read; where a function looks at several rows, those of
all groups. So sums over many groups have wide bars: the noise of each group is allowed for at its worst.

    sum avg min max median    of the lower ends, and of the upper ends: all of them rise with every value
    lag lead first_value …    those of the row that is looked at
    count rank …              no bars: they are of the groups that are shown, in the order of noisy values
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from dalenius.tables.language.formulas import (
    Estimate,
    Formula,
    aggregates_of,
    estimate,
    holds,
    value,
)
from dalenius.tables.question import (
    After,
    Chosen,
    Folded,
    Grouped,
    Shown,
    Sorted,
    Step,
    Unique,
    Window,
    Windows,
)
from dalenius.tables.rows import KeyPart

if TYPE_CHECKING:
    from dalenius.tables.planning.answers import Sheet

Row = tuple[Estimate, ...]
_LOOKED = ("lag", "lead", "first_value", "last_value", "nth_value")
_RISING: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "avg": lambda values: math.fsum(values) / len(values),
    "min": min,
    "max": max,
    "median": median,
}
"""Aggregates that rise with every value."""


@dataclass(frozen=True)
class Source:
    """What a column is made of: the columns of the answer, whether of several rows, and whether measured."""

    columns: frozenset[int]
    across: bool = False
    measured: bool = False


def columns_after(sheet: Sheet, after: After) -> tuple[dict[str, tuple[Any, ...]], tuple[str, ...]]:
    """The columns in the end, and which of them have bars."""
    sources = _sources(sheet, after.steps)
    outputs = sheet.question.outputs
    columns: dict[str, tuple[Any, ...]] = {}
    measures: list[str] = []
    made: dict[int, list[Row]] = {}
    for place, (column, source) in enumerate(zip(after.columns, sources, strict=True)):
        used = frozenset().union(*(aggregates_of(outputs[i].formula) for i in source.columns))
        parts = max(len(used) * (max(len(sheet.keys), 1) if source.across else 1), 1)
        if parts not in made:
            made[parts] = run_steps(_answer(sheet, parts), after.steps)
        cells = [row[place] for row in made[parts]]
        columns[column.name] = tuple(each.value for each in cells)
        if source.measured:
            measures.append(column.name)
            columns[f"{column.name}_low"] = tuple(each.low for each in cells)
            columns[f"{column.name}_high"] = tuple(each.high for each in cells)
    return columns, tuple(measures)


def _answer(sheet: Sheet, parts: int) -> list[Row]:
    """The rows of the answer, every aggregate with the bar of one of so many parts."""
    aggregates = [sheet.estimates(i, parts) for i in range(len(sheet.question.aggregates))]
    rows = []
    for i in sheet.order():
        row = [each[i] for each in aggregates]
        rows.append(tuple(_known(each.formula, sheet.keys[i], row) for each in sheet.question.outputs))
    return rows


def _known(formula: Formula, key: tuple[KeyPart, ...], row: Sequence[Estimate]) -> Estimate:
    """An output; a number that no aggregate is in is exact."""
    found = estimate(formula, key, row)
    return found if aggregates_of(formula) else _exact(found.value)


def _exact(part: KeyPart) -> Estimate:
    number = isinstance(part, int | float) and not isinstance(part, bool)
    return Estimate(part, part, part) if number else Estimate(part)


def _sources(sheet: Sheet, steps: Sequence[Step]) -> list[Source]:
    """What each column of the end is made of."""
    found = [
        Source(frozenset({i}), measured=bool(aggregates_of(each.formula)))
        for i, each in enumerate(sheet.question.outputs)
    ]
    for step in steps:
        match step:
            case Shown(formulas):
                found = [_read(found, [each]) for each in formulas]
            case Windows(functions):
                found = [*found, *(_over(found, each) for each in functions)]
            case Grouped(keys, folds):
                found = [
                    *(_read(found, [each]) for each in keys),
                    *(_across(found, each.kind, each.argument) for each in folds),
                ]
    return found


def _read(found: Sequence[Source], formulas: Iterable[Formula | None]) -> Source:
    read = [found[i] for each in formulas if each is not None for i in aggregates_of(each)]
    columns = frozenset().union(*(each.columns for each in read))
    return Source(columns, any(each.across for each in read), any(each.measured for each in read))


def _over(found: Sequence[Source], function: Window) -> Source:
    return _across(found, function.kind, function.argument)


def _across(found: Sequence[Source], kind: str, argument: Formula | None) -> Source:
    below = _read(found, [argument])
    return Source(below.columns, across=True, measured=below.measured and kind in (*_RISING, *_LOOKED))


def run_steps(rows: list[Row], steps: Sequence[Step]) -> list[Row]:
    """The rows that steps make of rows."""
    for step in steps:
        match step:
            case Chosen(condition):
                rows = [row for row in rows if holds(condition, (), _values(row))]
            case Shown(formulas):
                rows = [tuple(estimate(each, (), row) for each in formulas) for row in rows]
            case Windows(functions):
                added = [_windowed(rows, each) for each in functions]
                rows = [(*row, *(each[i] for each in added)) for i, row in enumerate(rows)]
            case Grouped():
                rows = _grouped(rows, step)
            case Unique():
                rows = list({_values(row): row for row in reversed(rows)}.values())[::-1]
            case Sorted(order, limit, offset):
                for by, descending, first in reversed(order):
                    rows = _ordered(rows, by, descending=descending, first=first)
                rows = rows[offset : None if limit is None else offset + limit]
    return rows


def _values(row: Row) -> tuple[KeyPart, ...]:
    return tuple(each.value for each in row)


def _worth(formula: Formula, row: Row) -> KeyPart:
    return value(formula, (), _values(row))


def _ordered(rows: list[Row], by: Formula, *, descending: bool, first: bool) -> list[Row]:
    """The rows in the order of a formula."""
    values = [_worth(by, row) for row in rows]
    places = _ranked(list(range(len(rows))), values, descending=descending, first=first)
    return [rows[i] for i in places]


def _ranked(places: list[int], values: Sequence[KeyPart], *, descending: bool, first: bool) -> list[int]:
    """Places in the order of their values: stable, NULL at the end that was asked for."""
    empty = [i for i in places if values[i] is None]
    rest = [i for i in places if values[i] is not None]
    rest.sort(key=lambda i: _place(values[i]), reverse=descending)
    return empty + rest if first else rest + empty


def _place(part: KeyPart) -> tuple[int, Any]:
    if isinstance(part, int | float):
        return 0, part
    return (1, part) if isinstance(part, str) else (2, str(part))


def _grouped(rows: list[Row], step: Grouped) -> list[Row]:
    groups: dict[tuple[KeyPart, ...], list[Row]] = {} if step.keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(_worth(each, row) for each in step.keys), []).append(row)
    return [
        (
            *(estimate(each, (), members[0]) for each in step.keys),
            *(_folded(each, members) for each in step.folds),
        )
        for members in groups.values()
    ]


def _folded(fold: Folded, rows: Sequence[Row]) -> Estimate:
    if fold.kind == "arg_max":
        assert fold.argument is not None and fold.by is not None
        some = [row for row in rows if _worth(fold.argument, row) is not None]
        ranked = _ordered(some, fold.by, descending=True, first=False)
        return estimate(fold.argument, (), ranked[0]) if ranked else Estimate(None)
    return _aggregated(fold.kind, fold.argument, rows)


def _aggregated(kind: str, argument: Formula | None, rows: Sequence[Row]) -> Estimate:
    """An aggregate over rows, of the values that are there."""
    if argument is None:
        return _exact(len(rows))
    return _of_cells(kind, [estimate(argument, (), row) for row in rows])


def _of_cells(kind: str, cells: Sequence[Estimate]) -> Estimate:
    cells = [each for each in cells if each.value is not None]
    if kind in ("count", "count_of", "distinct"):
        return _exact(len({each.value for each in cells}) if kind == "distinct" else len(cells))
    if not cells:
        return Estimate(None)
    if kind in ("min", "max") and not isinstance(cells[0].value, int | float):
        ends = sorted((each.value for each in cells), key=_place)
        return Estimate(ends[0 if kind == "min" else -1])
    value = _risen(kind, [_number(each.value, math.nan) for each in cells], math.nan)
    low = _risen(kind, [_number(each.low, -math.inf) for each in cells], -math.inf)
    high = _risen(kind, [_number(each.high, math.inf) for each in cells], math.inf)
    whole = kind in ("sum", "min", "max") and all(isinstance(each.value, int) for each in cells)
    return Estimate(round(value) if whole and math.isfinite(value) else value, low, high)


def _risen(kind: str, values: Sequence[float], otherwise: float) -> float:
    """The aggregate; where it is beyond all numbers, or of opposite infinities, what says nothing."""
    try:
        risen = _RISING[kind](values)
    except (OverflowError, ValueError):
        return otherwise
    return otherwise if math.isnan(risen) else risen


def _number(part: KeyPart, otherwise: float) -> float:
    return part if isinstance(part, int | float) else otherwise


def _windowed(rows: list[Row], function: Window) -> list[Estimate]:
    """A function in each row."""
    groups: dict[tuple[KeyPart, ...], list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(tuple(_worth(each, row) for each in function.partition), []).append(i)
    found = [Estimate(None)] * len(rows)
    for places in groups.values():
        inside = places
        for by, descending, first in reversed(function.order):
            inside = _ranked(inside, [_worth(by, row) for row in rows], descending=descending, first=first)
        partition = _Partition(function, [rows[i] for i in inside])
        for at, i in enumerate(inside):
            found[i] = partition.at(at)
    return found


class _Partition:
    """The rows of one partition in their order, and a function over them."""

    def __init__(self, function: Window, rows: Sequence[Row]) -> None:
        self.function, self.size = function, len(rows)
        argument = function.argument
        self.cells = [Estimate(None)] * len(rows)
        if argument is not None:
            self.cells = [estimate(argument, (), row) for row in rows]
        self.begins: list[int] = []
        self.dense: list[int] = []
        self.ends = [0] * len(rows)
        peers = [tuple(_worth(by, row) for by, _, _ in function.order) for row in rows]
        for i, peer in enumerate(peers):
            new = i == 0 or peer != peers[i - 1]
            self.begins.append(i if new else self.begins[-1])
            self.dense.append(self.dense[-1] + new if self.dense else 1)
        for i in reversed(range(len(rows))):
            last = i + 1 == len(rows) or peers[i + 1] != peers[i]
            self.ends[i] = i + 1 if last else self.ends[i + 1]
        self._frames: dict[tuple[int, int], Estimate] = {}

    def at(self, at: int) -> Estimate:
        """The function in one row."""
        kind, size = self.function.kind, self.size
        match kind:
            case "row_number":
                return _exact(at + 1)
            case "rank":
                return _exact(self.begins[at] + 1)
            case "dense_rank":
                return _exact(self.dense[at])
            case "percent_rank":
                return _exact(self.begins[at] / (size - 1) if size > 1 else 0.0)
            case "cume_dist":
                return _exact(self.ends[at] / size)
            case "ntile":
                return _exact(_tile(at, size, self.function.offset))
            case "lag" | "lead":
                return self._cell(at + (self.function.offset if kind == "lead" else -self.function.offset))
        start, end = _frame(self.function, at, size, self.ends[at])
        if kind in _LOOKED:
            steps = {"first_value": 0, "last_value": end - start - 1}.get(kind, self.function.offset - 1)
            return self._cell(start + steps) if 0 <= steps < end - start else Estimate(None)
        if (start, end) not in self._frames:
            self._frames[start, end] = self._folded(start, end)
        return self._frames[start, end]

    def _cell(self, place: int) -> Estimate:
        return self.cells[place] if 0 <= place < self.size else Estimate(None)

    def _folded(self, start: int, end: int) -> Estimate:
        if self.function.argument is None:
            return _exact(max(end - start, 0))
        return _of_cells(self.function.kind, self.cells[start : max(end, start)])


def _tile(at: int, size: int, tiles: int) -> int:
    """The larger tiles come first."""
    small, larger = divmod(size, tiles)
    first = larger * (small + 1)
    return at // (small + 1) + 1 if at < first else larger + (at - first) // small + 1


def _frame(function: Window, at: int, size: int, behind: int) -> tuple[int, int]:
    """The rows that are looked at: by default up to the last that is equal in the order."""
    if function.rows is None:
        return 0, behind if function.order else size
    ends = []
    for words in function.rows:
        amount, _, side = words.partition(" ")
        if words == "CURRENT ROW":
            ends.append(at)
        elif amount == "UNBOUNDED":
            ends.append(0 if side == "PRECEDING" else size - 1)
        else:
            ends.append(at + (int(amount) if side == "FOLLOWING" else -int(amount)))
    return max(ends[0], 0), max(min(ends[1], size - 1) + 1, 0)
