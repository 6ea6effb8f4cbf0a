"""A table of released values as a frame of pandas, polars or Arrow, for whoever works with one of these.

A column has one type, found from all its cells alike: truths, whole numbers, numbers, dates, moments, or
texts where they are mixed; None stays missing. Whole numbers beyond 64 bits become numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dalenius.errors import MissingExtra
from dalenius.release.cells import Cell

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Columns = Mapping[str, Sequence[Cell]]

_WHOLE = 1 << 63
_PANDAS = {"truth": "boolean", "whole": "Int64", "number": "float64", "text": "str", "date": "object"}
_POLARS = {
    "truth": "Boolean",
    "whole": "Int64",
    "number": "Float64",
    "text": "String",
    "date": "Date",
    "moment": "Datetime",
}
_ARROW = {"truth": "bool_", "whole": "int64", "number": "float64", "text": "string", "date": "date32"}


def pandas_frame(columns: Columns, receipt: str) -> pandas.DataFrame:
    """A pandas DataFrame; its `attrs` hold the receipt. Whole numbers and truths may be missing."""
    library = _needed("pandas")
    made = {}
    for name, column in columns.items():
        kind, cells = _column(column)
        # Without missing cells, the plain types that most code expects.
        plain = {"truth": "bool", "whole": "int64"} if None not in cells else {}
        made[name] = library.Series(cells, dtype=(_PANDAS | plain).get(kind, "datetime64[us]"))
    frame: pandas.DataFrame = library.DataFrame(made)
    frame.attrs["receipt"] = receipt
    return frame


def polars_frame(columns: Columns) -> polars.DataFrame:
    """A polars DataFrame."""
    library = _needed("polars")
    found = {name: _column(column) for name, column in columns.items()}
    types = {name: getattr(library, _POLARS[kind]) for name, (kind, _) in found.items()}
    cells = {name: cells for name, (_, cells) in found.items()}
    frame: polars.DataFrame = library.DataFrame(cells, schema=types)
    return frame


def arrow_table(columns: Columns, receipt: str) -> pyarrow.Table:
    """An Arrow table; the metadata of its schema hold the receipt."""
    library = _needed("pyarrow")
    found = {name: _column(column) for name, column in columns.items()}
    made = {name: library.array(cells, _arrow_type(library, kind)) for name, (kind, cells) in found.items()}
    table: pyarrow.Table = library.table(made).replace_schema_metadata({"receipt": receipt})
    return table


def _arrow_type(library: Any, kind: str) -> Any:
    return library.timestamp("us") if kind == "moment" else getattr(library, _ARROW[kind])()


def _needed(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError as absent:
        raise MissingExtra(
            f"A frame of {library} needs {library}.", remedy="Run: pip install 'dalenius[frames]'"
        ) from absent


def _column(column: Sequence[Cell]) -> tuple[str, list[Any]]:
    """The kind of a column, and its cells as that."""
    kinds = {_kind(cell) for cell in column if cell is not None}
    if kinds <= {"whole", "number"}:
        kind = "whole" if kinds == {"whole"} else "number"
    else:
        kind = kinds.pop() if len(kinds) == 1 else "text"
    return kind, [None if cell is None else _AS.get(kind, _same)(cell) for cell in column]


def _kind(cell: Cell) -> str:
    match cell:
        case bool():
            return "truth"
        case int():
            return "whole" if -_WHOLE <= cell < _WHOLE else "number"
        case float():
            return "number"
        case datetime():
            return "moment"
        case date():
            return "date"
    return "text"


def _number(cell: Any) -> float:
    """The nearest; beyond all of them, an infinity."""
    try:
        return float(cell)
    except OverflowError:
        return float("inf") if cell > 0 else float("-inf")


def _moment(cell: datetime) -> datetime:
    """By the clock of UTC, where it has a time zone."""
    return cell if cell.tzinfo is None else cell.astimezone(UTC).replace(tzinfo=None)


def _same(cell: Any) -> Any:
    return cell


_AS: dict[str, Callable[[Any], Any]] = {"number": _number, "text": str, "moment": _moment}
