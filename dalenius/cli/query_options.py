"""What the options of `dalenius query` say: units, budgets, bounds, ranges and groups, read from texts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from dalenius.cli.output import exact
from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers

if TYPE_CHECKING:
    from dalenius.ledger import Budget
    from dalenius.privacy.unit import Missing, Relation, Unit, Window
    from dalenius.tables import Bounds, Table
    from dalenius.tables.schema import End

Value = bool | int | float | str


def read_unit(
    entity: str | None,
    column: str | None,
    window: str | None,
    relation: str | None,
    missing: str | None = None,
) -> Unit | None:
    """Who is protected; None where nothing is said, so that the account says it."""
    from dalenius.privacy.unit import Unit

    if entity is None and column is None:
        if window is None and relation is None and missing is None:
            return None
        raise InvalidArgument(
            "A window, a relation and what is missing are those of a unit, and no unit is named.",
            remedy="Add --unit-column patient_id, or leave out --window, --relation and --missing.",
        )
    named = entity or (column or "").removesuffix("_id") or column or ""
    neighbours = cast("Relation", relation or "add_remove")
    absent = cast("Missing", missing or "left out")
    return Unit(named, column, cast("Window | None", window), neighbours, absent)


def read_budget(epsilon: str | None, delta: str | None) -> Budget | None:
    """What may ever be spent, if it is said."""
    from dalenius.ledger import Budget

    if epsilon is not None:
        limit = numbers.positive(exact(epsilon, "budget"), "budget")
        return Budget(limit, exact(delta or "0", "delta"))
    if delta is not None:
        raise InvalidArgument(
            "delta is that of the budget, and there is no budget.",
            remedy="Add --budget, or leave out --delta.",
        )
    return None


def read_pair(text: str, option: str, example: str) -> tuple[str, str]:
    """A name and what it is for; the name may be an expression, so the last mark counts."""
    name, mark, value = text.rpartition("=") if option.endswith("range") else text.partition("=")
    if not (name and mark and value):
        raise InvalidArgument(f"--{option} {text} cannot be read.", remedy=f"Write --{option} {example}.")
    return name, value


def read_range(text: str, option: str = "range") -> tuple[str, tuple[End, End]]:
    """A column, and where its values lie."""
    column, ends = read_pair(text, option, "age=0:120")
    low, mark, high = ends.partition(":")
    if not mark:
        raise InvalidArgument(f"--{option} {text} cannot be read.", remedy=f"Write --{option} age=0:120.")
    return column, (_end(low), _end(high))


def read_bounds(
    rows: str | None, groups: int | None, pairs: int | None, ranges: Sequence[str] | None
) -> Bounds | None:
    """What a unit may contribute, if it is said."""
    from dalenius.tables import Bounds

    if rows is None and groups is None and pairs is None and not ranges:
        return None
    most: Fraction | None = None if rows is None else exact(rows, "bound-rows")
    within = dict(read_range(text, "bound-range") for text in ranges or ())
    return Bounds(
        most, groups, pairs, {name: (_number_end(a), _number_end(b)) for name, (a, b) in within.items()}
    )


def _number_end(end: End) -> int | float:
    if isinstance(end, date):
        raise InvalidArgument("--bound-range takes numbers.", remedy="Use --range for a column of dates.")
    return end


def _end(text: str) -> End:
    """A number, or a date."""
    with suppress(ValueError):
        return date.fromisoformat(text)
    found = _number(text)
    if isinstance(found, str):
        raise InvalidArgument(f"{text} is no number and no date.", remedy="Write --range age=0:120.")
    return found


def read_keys(asked: Table, texts: Sequence[str]) -> dict[str, list[Value]] | None:
    """The values of each column, read as its type; of an expression, as a number where they are numbers."""
    types = {name: kind for known in reversed(asked.schema.tables) for name, kind in known.columns.items()}
    found = dict(read_pair(text, "keys", "ward=A,B") for text in texts)
    return {
        column: [_value(value, types.get(column)) for value in values.split(",")]
        for column, values in found.items()
    } or None


def read_categories(asked: Table, texts: Sequence[str]) -> dict[str, list[Value]]:
    """The values that columns have, each read as its column's type."""
    types = asked.columns
    found = dict(read_pair(text, "category", "ward=A,B") for text in texts)
    return {
        column: [_value(value, types.get(column)) for value in values.split(",")]
        for column, values in found.items()
    }


def _value(text: str, kind: str | None) -> Value:
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return _number(text) if kind in ("integer", "real", None) else text


def _number(text: str) -> Value:
    """A number where it is one; what is none, such as a date, stays a text for the column to read."""
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return text
