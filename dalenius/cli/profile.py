"""`dalenius profile`: what an account keeps about its table: shown, declared, learned."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dalenius.cli.output import emit_json, exact
from dalenius.cli.query import Dates, Decimal, Encoding, Listed, Null, Source
from dalenius.cli.query_options import (
    read_bounds,
    read_budget,
    read_categories,
    read_pair,
    read_range,
    read_unit,
)


def profile(
    source: Source,
    epsilon: Annotated[
        str | None, typer.Option(help="Learn the profile at this ε; without it, it is only shown.")
    ] = None,
    columns: Annotated[
        Listed, typer.Option("--column", help="What to learn besides rows of units. Repeat for more.")
    ] = None,
    unit_column: Annotated[str | None, typer.Option(help="The column that tells units apart.")] = None,
    unit: Annotated[str | None, typer.Option(help="What a unit is called, such as patient.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="The ε that may ever be spent: needed once, to open the account.")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="The δ of the budget, such as 1e-9.")] = None,
    window: Annotated[str | None, typer.Option(help="Protect each unit in each such window.")] = None,
    time: Annotated[str | None, typer.Option(help="The column of time that windows are cut by.")] = None,
    relation: Annotated[str | None, typer.Option(help="add_remove, replace or zero_out.")] = None,
    missing: Annotated[
        str | None, typer.Option(help='What a row without an id is: "left out" or "each row".')
    ] = None,
    ranges: Annotated[Listed, typer.Option("--range", help="Declare COLUMN=LOW:HIGH.")] = None,
    categories: Annotated[Listed, typer.Option("--category", help="Declare COLUMN=A,B.")] = None,
    rows_per_unit: Annotated[int | None, typer.Option(help="Declare the most rows a unit has.")] = None,
    public_size: Annotated[int | None, typer.Option(help="Declare how many units there are.")] = None,
    bound_rows: Annotated[str | None, typer.Option(help="Keep the most rows of a unit that count.")] = None,
    bound_groups: Annotated[
        int | None, typer.Option(help="Keep the most groups of a unit that count.")
    ] = None,
    bound_pairs: Annotated[
        int | None, typer.Option(help="Keep the most values of a unit that COUNT(DISTINCT …) counts.")
    ] = None,
    bound_range: Annotated[
        Listed, typer.Option(help="Keep where an expression of queries is held: EXPRESSION=LOW:HIGH.")
    ] = None,
    types: Annotated[Listed, typer.Option("--type", help="Declare COLUMN=TYPE of a file.")] = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    dates: Dates = None,
    null: Null = None,
    name: Annotated[str | None, typer.Option(help="What the table is called in SQL.")] = None,
    table: Annotated[
        str | None, typer.Option(help="Which table of a DuckDB file, or sheet of a workbook.")
    ] = None,
    by: Annotated[str, typer.Option(help="Who asks.")] = "",
    purpose: Annotated[str, typer.Option(help="What for.")] = "",
    ledger: Annotated[
        str | None, typer.Option(help="The ledger, where it is not the one beside the source.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="The account in it.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")] = False,
) -> None:
    """Show what an account keeps about its table; declare public facts; learn a profile privately, once."""
    from dalenius.cli.option_names import naming_options
    from dalenius.tables import opening

    with naming_options():
        bounds = read_bounds(bound_rows, bound_groups, bound_pairs, bound_range)
        cost = None if epsilon is None else exact(epsilon, "epsilon")
        with opening.table(
            source,
            unit=read_unit(unit, unit_column, window, relation, missing),
            budget=read_budget(budget, delta),
            account=account,
            ledger=ledger,
            name=name,
            table=table,
            time=time,
            by=by,
        ) as asked:
            said: dict[str, Any] = {
                "ranges": dict(map(read_range, ranges or ())),
                "categories": read_categories(asked, categories or ()),
                "rows_per_unit": rows_per_unit,
                "public_size": public_size,
                "bounds": bounds,
                "types": dict(read_pair(text, "type", "age=BIGINT") for text in types or ()),
                "encoding": encoding,
                "decimal": decimal,
                "dates": dates,
                "null": null or None,
            }
            told = {key: value for key, value in said.items() if value not in (None, {})}
            if told:
                asked.declare(**told)
            if cost is not None:
                asked.learn(epsilon=cost, columns=columns or None, by=by, purpose=purpose)
            if json:
                emit_json(asked.profile.to_dict())
            else:
                typer.echo(str(asked.profile))
