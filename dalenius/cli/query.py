"""`dalenius query`: one question to a table. It opens the table, asks, and prints."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dalenius.cli.output import exact
from dalenius.errors import BudgetExceeded, InvalidArgument

if TYPE_CHECKING:
    from dalenius.ledger import Budget
    from dalenius.privacy.unit import Relation, Unit, Window
    from dalenius.tables import Table
    from dalenius.tables.schema import End

Source = Annotated[str, typer.Argument(help="The table: a CSV, Parquet or DuckDB file.", metavar="SOURCE")]
Query = Annotated[str, typer.Argument(help="The question, in SQL.", metavar="SQL")]
Value = bool | int | float | str
Epsilon = Annotated[str, typer.Option(help="The ε of this answer, such as 0.5.")]


def query(
    source: Source,
    sql: Query,
    epsilon: Epsilon,
    unit_column: Annotated[
        str | None, typer.Option(help="The column that tells units apart; without it each row is one.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="What a unit is called, such as patient.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="The ε that may ever be spent: needed once, to open the account.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(help="The δ of the budget, such as 1e-9; 0 where none is given.")
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="Protect each unit in each such window: day, week, month …")
    ] = None,
    time: Annotated[str | None, typer.Option(help="The column of time that windows are cut by.")] = None,
    relation: Annotated[str, typer.Option(help="add_remove, replace or zero_out.")] = "add_remove",
    ranges: Annotated[
        list[str] | None, typer.Option("--range", help="A public fact: COLUMN=LOW:HIGH. Repeat for more.")
    ] = None,
    keys: Annotated[
        list[str] | None, typer.Option(help="The groups, if public: COLUMN=A,B. Repeat for more.")
    ] = None,
    rows_per_unit: Annotated[int | None, typer.Option(help="The most rows a unit has, if public.")] = None,
    public: Annotated[
        list[str] | None, typer.Option(help="A public table to join with: NAME=FILE. Repeat for more.")
    ] = None,
    private: Annotated[
        list[str] | None, typer.Option(help="Another table of the same units: NAME=FILE. Repeat for more.")
    ] = None,
    public_size: Annotated[int | None, typer.Option(help="How many units there are, if public.")] = None,
    name: Annotated[str | None, typer.Option(help="What the table is called in the SQL.")] = None,
    by: Annotated[str, typer.Option(help="Who asks.")] = "",
    purpose: Annotated[str, typer.Option(help="What for.")] = "",
    ledger: Annotated[
        str | None, typer.Option(help="The ledger, where it is not the one beside the source.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="The account in it.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what it would cost and how sure it would be.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print the table as CSV, error bars included.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")] = False,
) -> None:
    """Ask a table a question in SQL, privately, and charge its account."""
    from dalenius.cli.query_output import show_explanation, show_refusal, show_release
    from dalenius.tables.opening import table

    if csv and (json or explain):
        raise InvalidArgument("CSV holds an answer and nothing else.", remedy="Leave out --csv, or the rest.")
    with table(
        source,
        unit=_unit(unit, unit_column, window, relation),
        budget=_budget(budget, delta),
        account=account,
        ledger=ledger,
        name=name,
        ranges=dict(map(_range, ranges or ())),
        rows_per_unit=rows_per_unit,
        public=dict(_pair(text, "public", "wards=wards.csv") for text in public or ()),
        private=dict(_pair(text, "private", "stays=stays.csv") for text in private or ()),
        time=time,
        public_size=public_size,
        by=by,
    ) as asked:
        price, listed = exact(epsilon, "epsilon"), _keys(asked, keys or ())
        if explain:
            show_explanation(asked.explain(sql, epsilon=price, keys=listed), as_json=json)
            return
        try:
            release = asked.sql(sql, epsilon=price, keys=listed, purpose=purpose)
        except BudgetExceeded as refused:
            show_refusal(asked, refused, as_json=json)
            raise
        except KeyboardInterrupt as stop:
            # Typer ends with 130 without a word.
            typer.echo("\n".join(getattr(stop, "__notes__", ["Stopped."])), err=True)
            raise
        show_release(release, asked, as_csv=csv, as_json=json)


def _unit(entity: str | None, column: str | None, window: str | None, relation: str) -> Unit:
    from dalenius.privacy.unit import Unit

    named = entity or ("row" if column is None else column.removesuffix("_id"))
    return Unit(named, column, cast("Window | None", window), cast("Relation", relation))


def _budget(epsilon: str | None, delta: str | None) -> Budget | None:
    from dalenius.ledger import Budget

    if epsilon is not None:
        return Budget(exact(epsilon, "budget"), exact(delta or "0", "delta"))
    if delta is not None:
        raise InvalidArgument(
            "delta is that of the budget, and there is no budget.",
            remedy="Add --budget, or leave out --delta.",
        )
    return None


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not (name and mark and value):
        raise InvalidArgument(f"--{option} {text} cannot be read.", remedy=f"Write --{option} {example}.")
    return name, value


def _range(text: str) -> tuple[str, tuple[End, End]]:
    column, ends = _pair(text, "range", "age=0:120")
    low, mark, high = ends.partition(":")
    if not mark:
        raise InvalidArgument(f"--range {text} cannot be read.", remedy="Write --range age=0:120.")
    return column, (_end(low), _end(high))


def _end(text: str) -> End:
    """A number, or a date."""
    with suppress(ValueError):
        return date.fromisoformat(text)
    found = _number(text)
    if isinstance(found, str):
        raise InvalidArgument(f"{text} is no number and no date.", remedy="Write --range age=0:120.")
    return found


def _keys(asked: Table, texts: Sequence[str]) -> dict[str, list[Value]] | None:
    """The values of each column, read as its type; of an expression, as a number where they are numbers."""
    types = {name: kind for known in reversed(asked.schema.tables) for name, kind in known.columns.items()}
    found = dict(_pair(text, "keys", "ward=A,B") for text in texts)
    return {
        column: [_value(value, types.get(column)) for value in values.split(",")]
        for column, values in found.items()
    } or None


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
