"""`Schema`: the tables a query may name, who is protected in them, and what their owner declares.

    >>> visits = Private("visits", {"patient_id": "integer", "age": "integer", "ward": "text"},
    ...                  unit=Unit("patient", column="patient_id"),
    ...                  ranges={"age": (0, 120)}, categories={"ward": ("A", "B")})
    >>> Schema((visits,)).table("Visits").name
    'visits'

Types are those of `Engine.columns`. Declared facts are public. They are beliefs: whatever the data are, they
change which groups are shown and how accurate answers are, never what is protected. Names are compared as SQL
does, without regard to case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Literal, get_args

from dalenius.display import grid, harmless, number
from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.privacy.unit import Unit
from dalenius.tables.rows import KeyPart

Type = Literal["boolean", "integer", "real", "text", "date", "moment", "other"]
TYPES: tuple[Type, ...] = get_args(Type)
LISTED = 8
"""Values of a declared category that a notebook shows."""
_FAR = 2**1023
"""Whole numbers below this are floats, or between two of them."""
End = int | float | date
"""Of a declared range: dates for columns of dates."""


@dataclass(frozen=True)
class Private:
    """A table with records of protected units."""

    name: str
    columns: Mapping[str, str]
    unit: Unit
    time: str | None = None
    """The column whose calendar window is part of the unit, where the unit has a window."""
    ranges: Mapping[str, tuple[End, End]] = field(default_factory=dict)
    categories: Mapping[str, Sequence[KeyPart]] = field(default_factory=dict)
    not_null: Sequence[str] = ()
    rows_per_unit: int | None = None

    def __post_init__(self) -> None:
        types = _types(self.name, self.columns)
        _check_unit(self, types)
        if self.rows_per_unit is not None and self.rows_per_unit < 1:
            raise InvalidArgument(
                Message(Argument("rows_per_unit", "rows_per_unit"), " must be at least 1."),
                remedy="Leave it out where it is not known.",
            )
        ranges = {own(types, name): ends for name, ends in self.ranges.items()}
        categories = {own(types, name): tuple(values) for name, values in self.categories.items()}
        settled = {
            "columns": types,
            "ranges": {name: _read_range(name, types[name], ends) for name, ends in ranges.items()},
            "categories": {
                name: tuple(read_part(value, types[name], name) for value in values)
                for name, values in categories.items()
            },
            "not_null": tuple(own(types, name) for name in self.not_null),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    @property
    def units(self) -> int:
        """How many columns make the unit: none where every row is one."""
        more = self.unit.window is not None, self.unit.missing == "each row"
        return 0 if self.unit.column is None else 1 + sum(more)


@dataclass(frozen=True)
class Public:
    """A table that everybody may see, such as a list of wards."""

    name: str
    columns: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _types(self.name, self.columns))


@dataclass(frozen=True, repr=False)
class Schema:
    """Tables by name; `read` gives the rows of a query on public tables (`Engine.public`), to list keys.

    `dialect` is that of the engine.
    """

    tables: Sequence[Private | Public]
    read: Callable[[str], list[dict[str, Any]]] | None = None
    dialect: str = "duckdb"

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(self.tables))
        names = [folded(table.name) for table in self.tables]
        if len(set(names)) < len(names):
            raise InvalidArgument("Two tables have one name.", remedy="Give each table a name of its own.")

    def __repr__(self) -> str:
        kinds = (
            f"{table.name} ({'private' if isinstance(table, Private) else 'public'})" for table in self.tables
        )
        return f"<Schema {', '.join(map(harmless, kinds))}>"

    def _repr_html_(self) -> str:
        return "".join(map(_page, self.tables))

    def table(self, name: str) -> Private | Public:
        """The table of that name."""
        for table in self.tables:
            if folded(table.name) == folded(name):
                return table
        known = ", ".join(table.name for table in self.tables)
        raise InvalidArgument(f"There is no table {name}.", remedy=f"Name one of these: {known}.")


def _page(table: Private | Public) -> str:
    """Return a table's columns, their types and what is declared of them, for a notebook."""
    if isinstance(table, Public):
        columns = [list(column) for column in table.columns.items()]
        return grid(f"{table.name}, public", ["column", "type"], columns)
    rows = [[name, kind, "; ".join(_declared(table, name))] for name, kind in table.columns.items()]
    most = (
        []
        if table.rows_per_unit is None
        else [f"At most {table.rows_per_unit} rows of each {table.unit.entity}."]
    )
    return grid(f"{table.name}, for each {table.unit}", ["column", "type", "declared"], rows, caption=most)


def _declared(table: Private, column: str) -> Iterator[str]:
    """Yield the public facts about a column."""
    if folded(column) == folded(table.unit.column or ""):
        yield f"tells {table.unit.entity}s apart"
    if table.time is not None and table.unit.window is not None and folded(column) == folded(table.time):
        yield f"cuts each {table.unit.window}"
    if column in table.ranges:
        low, high = table.ranges[column]
        yield f"{number(low)} to {number(high)}"
    if column in table.categories:
        values = table.categories[column]
        more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
        yield f"one of {', '.join(map(number, values[:LISTED]))}{more}"
    if column in table.not_null:
        yield "never missing"


def folded(name: str) -> str:
    """As DuckDB compares names: the letters A to Z without regard to case, all others as they are."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def own(types: Mapping[str, str], name: str) -> str:
    """A table's own spelling of a column's name."""
    for column in types:
        if folded(column) == folded(name):
            return column
    raise InvalidArgument(f"There is no column {name}.", remedy=f"Name one of these: {', '.join(types)}.")


def read_part(value: object, type_: Type, column: str) -> KeyPart:
    """A value of a declared category or of a key, as the type of its column has it."""
    if value is None or isinstance(value, bool):
        if value is None or type_ == "boolean":
            return value
    elif isinstance(value, int) and type_ in ("integer", "real"):
        return _read_whole(value, type_, column)
    elif isinstance(value, float) and (value.is_integer() if type_ == "integer" else type_ == "real"):
        if not math.isnan(value):
            return value + 0.0 if type_ == "real" else int(value)
    elif isinstance(value, str) and type_ == "text":
        if is_unicode(value):
            return value
        raise InvalidArgument(
            f"A text given for {column} is not made of whole characters.", remedy="Leave out lone surrogates."
        )
    elif isinstance(value, date | str) and type_ in ("date", "moment"):
        return _read_date(value, type_, column)
    raise InvalidArgument(
        f"A value given for {column} is not of its type, {type_}.", remedy=f"Give values of type {type_}."
    )


def _read_whole(value: int, type_: Type, column: str) -> KeyPart:
    if abs(value) >= (_FAR if type_ == "real" else 2**63):
        raise InvalidArgument(
            f"A number given for {column} is out of reach.", remedy="Give numbers below 2**63."
        )
    return float(value) if type_ == "real" else value


def is_unicode(text: str) -> bool:
    """Whether a text is made of whole characters: Python's may hold halves of them, which no file can."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _read_date(value: date | str, type_: Type, column: str) -> date:
    try:
        moment = datetime.fromisoformat(value if isinstance(value, str) else value.isoformat())
        moment = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"A value given for {column} is not a date.", remedy="Write dates as 2024-12-31."
        ) from None
    return moment if type_ == "moment" else moment.date()


def _read_range(column: str, type_: Type, ends: tuple[End, End]) -> tuple[End, End]:
    problem = f"The range declared for {column} is not two ends of type {type_} in order."
    low, high = (read_part(end, "real" if type_ == "integer" else type_, column) for end in ends)
    if isinstance(low, date) and isinstance(high, date) and low <= high:
        return low, high
    if isinstance(low, int | float) and isinstance(high, int | float) and -math.inf < low <= high < math.inf:
        return low, high
    raise InvalidArgument(
        problem,
        remedy=Message(
            "Declare ",
            Argument("ranges", f"ranges={{{column!r}: (low, high)}}", (column,)),
            " for a number or a date.",
        ),
    )


def _types(name: str, columns: Mapping[str, str]) -> dict[str, Type]:
    if len({folded(column) for column in columns}) < len(columns):
        raise InvalidArgument(
            f"Two columns of {name} differ in upper and lower case only.", remedy="Rename one of them."
        )
    return {column: as_known(type_) for column, type_ in columns.items()}


def as_known(name: str) -> Type:
    """The type of that name; "other" where there is none."""
    for type_ in TYPES:
        if type_ == name:
            return type_
    return "other"


def _check_unit(table: Private, types: Mapping[str, Type]) -> None:
    unit = table.unit
    if unit.column is not None:
        own(types, unit.column)
    if unit.window is None:
        return
    if unit.column is None or table.time is None or types[own(types, table.time)] not in ("date", "moment"):
        raise InvalidArgument(
            f"A unit per {unit.window} needs a column of identities and a column of dates or moments.",
            remedy=Message(
                "Give ",
                Argument("unit.column", "Unit(…, column=…)"),
                " and ",
                Argument("time", "time="),
                " with the name of a column of dates.",
            ),
        )
