"""`Formula`: an output of an answer, as a function of a group's keys and of its aggregates.

    COUNT(*) / 7  is  Operation("divide", (AggregateValue(0), Constant(7)))

It is evaluated on what has been released, so it is post-processing. `value` works on numbers; `estimate` also
carries error bars: where every aggregate lies within its own bar, the formula lies within the bar it gives.
Nothing raises: what has no value (a division by zero, an overflow) is NULL, which is None.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from dalenius.tables.language.functions import evaluate
from dalenius.tables.language.intervals import ANYTHING, SPANS, Span, exact, floats, hull, round_to
from dalenius.tables.rows import Key, KeyPart


class Estimate(NamedTuple):
    """A released value and where the truth lies; `low` and `high` are None where nothing is said of that."""

    value: KeyPart
    low: KeyPart = None
    high: KeyPart = None


@dataclass(frozen=True)
class Constant:
    """A value written in the query."""

    value: KeyPart

    def __str__(self) -> str:
        return written(self.value)


@dataclass(frozen=True)
class KeyColumn:
    """The i-th key of the group."""

    index: int

    def __str__(self) -> str:
        return f"key_{self.index}"


@dataclass(frozen=True)
class AggregateValue:
    """The i-th aggregate of the question."""

    index: int

    def __str__(self) -> str:
        return f"aggregate_{self.index}"


@dataclass(frozen=True)
class Operation:
    """A function of other formulas, by its name in `functions`. "case" is when, then, when, then, …, else."""

    name: str
    arguments: tuple[Formula, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


Formula = Constant | KeyColumn | AggregateValue | Operation
"""`str` of a formula is its normal form: equal formulas have equal texts."""


def aggregates_of(formula: Formula) -> frozenset[int]:
    """The aggregates that a formula needs."""
    return frozenset(part.index for part in _parts(formula) if isinstance(part, AggregateValue))


def value(formula: Formula, key: Key, aggregates: Sequence[KeyPart]) -> KeyPart:
    """The formula's value for one group."""
    match formula:
        case Constant(constant):
            return constant
        case KeyColumn(index):
            return key[index]
        case AggregateValue(index):
            return aggregates[index]
        case Operation(name, arguments):
            return evaluate(name, [value(each, key, aggregates) for each in arguments])


def holds(formula: Formula, key: Key, aggregates: Sequence[KeyPart]) -> bool:
    """Whether a condition is true for a group; false where it is NULL, as in HAVING."""
    return value(formula, key, aggregates) not in (None, False, 0)


def estimate(formula: Formula, key: Key, aggregates: Sequence[Estimate]) -> Estimate:
    """The formula's value for one group with its error bar."""
    if isinstance(formula, AggregateValue):
        return aggregates[formula.index]
    plain = value(formula, key, [each.value for each in aggregates])
    span = _span(formula, key, aggregates)
    if isinstance(formula, Operation) and formula.name in _DATED and span is not None:
        return Estimate(plain, *_dated(formula.name, span))
    if span is None or isinstance(plain, bool | str | date):
        return Estimate(plain)
    low, high = floats(span)
    return Estimate(plain, low, high)


_DATED: Mapping[str, tuple[date, date]] = {
    "day_from_number": (date.min, date.max),
    "moment_from_number": (datetime.min, datetime.max),
}


def _dated(name: str, span: Span) -> tuple[KeyPart, KeyPart]:
    """The ends of a span as dates; the first or the last there is, where it goes further."""
    low, high = floats(span)
    ends = evaluate(name, [low]), evaluate(name, [high])
    return _DATED[name][0] if ends[0] is None else ends[0], _DATED[name][1] if ends[1] is None else ends[1]


def _span(formula: Formula, key: Key, aggregates: Sequence[Estimate]) -> Span | None:
    """Where the truth lies; None where it is no number."""
    match formula:
        case Constant(constant):
            return _point(constant)
        case KeyColumn(index):
            return _point(key[index])
        case AggregateValue(index):
            return _barred(aggregates[index])
        case Operation("case", arguments):
            return _case([_span(each, key, aggregates) for each in arguments])
        case Operation(
            "date_diff", (Constant("day"), Operation("day_from_number"), Operation("day_from_number"))
        ):
            _, first, last = formula.arguments
            return _applied("subtract", [_span(each, key, aggregates) for each in (last, first)])
        case Operation("coalesce", arguments):
            return _joined([_span(each, key, aggregates) for each in arguments])
        case Operation(name, arguments):
            return _applied(name, [_span(each, key, aggregates) for each in arguments])


def _point(constant: KeyPart) -> Span | None:
    if isinstance(constant, int | float) and not (isinstance(constant, float) and math.isnan(constant)):
        return Span(exact(constant), exact(constant))
    return None


def _barred(aggregate: Estimate) -> Span | None:
    if not isinstance(aggregate.low, int | float) or not isinstance(aggregate.high, int | float):
        return None if isinstance(aggregate.value, str | date) else ANYTHING
    return Span(exact(aggregate.low), exact(aggregate.high))


def _case(spans: Sequence[Span | None]) -> Span | None:
    """The branches that may be taken: not one whose condition cannot hold.

    None is sure to be taken, as any condition may be NULL.
    """
    pairs = zip(spans[0:-1:2], spans[1::2], strict=True)
    return _joined([*(then for when, then in pairs if when is None or when.high != 0), spans[-1]])


def _joined(spans: Sequence[Span | None]) -> Span | None:
    """NULL and what is no number add nothing: the answer is then no number either."""
    known = [span for span in spans if span is not None]
    return hull(*known) if known else None


def _applied(name: str, spans: Sequence[Span | None]) -> Span | None:
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return ANYTHING
    # A cast that has a number for its argument; that of a text has none.
    if name == "cast_real":
        return known[0]
    if name == "cast_integer":
        return round_to(known[0])
    return SPANS[name](*known) if name in SPANS else ANYTHING


def _parts(formula: Formula) -> Iterator[Formula]:
    yield formula
    if isinstance(formula, Operation):
        for argument in formula.arguments:
            yield from _parts(argument)


def written(constant: KeyPart) -> str:
    """A value as a text that tells it from all others: a date is not the text of a date."""
    if isinstance(constant, date):
        return f"{type(constant).__name__}({json.dumps(constant.isoformat())})"
    return json.dumps(constant, ensure_ascii=False)
