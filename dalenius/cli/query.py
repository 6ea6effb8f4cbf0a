"""`dalenius query`: one question to a table. It opens the table, asks, and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.cli.output import exact
from dalenius.cli.query_options import (
    read_bounds,
    read_budget,
    read_keys,
    read_pair,
    read_range,
    read_unit,
)
from dalenius.errors import BudgetExceeded, InvalidArgument
from dalenius.figures import check_drawing

if TYPE_CHECKING:
    from dalenius.ledger import Account, Budget
    from dalenius.release import Release

Source = Annotated[str, typer.Argument(help="The table: a CSV, Parquet or DuckDB file.", metavar="SOURCE")]
Query = Annotated[str, typer.Argument(help="The question, in SQL.", metavar="SQL")]
Epsilon = Annotated[str, typer.Option(help="The ε of this answer, such as 0.5.")]
Listed = list[str] | None
Encoding = Annotated[
    str | None, typer.Option(help="The encoding of a CSV, such as windows-1252, where it is not as found.")
]
Decimal = Annotated[str | None, typer.Option(help='The decimal mark of a file: "." or ",".')]
Dates = Annotated[str | None, typer.Option(help="How a file writes dates, such as DD.MM.YYYY.")]
Null = Annotated[Listed, typer.Option(help="A cell of a file that stands for no value. Repeat for more.")]


def query(
    source: Source,
    sql: Query,
    epsilon: Epsilon,
    unit_column: Annotated[
        str | None,
        typer.Option(help="The column that tells units apart; not needed once the account is open."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="What a unit is called, such as patient; without a column each row is one."),
    ] = None,
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
    relation: Annotated[
        str | None, typer.Option(help="add_remove (where none is given), replace or zero_out.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(help='What a row without an id is: "left out" (where none is given) or "each row".'),
    ] = None,
    ranges: Annotated[
        Listed, typer.Option("--range", help="A public fact: COLUMN=LOW:HIGH. Repeat for more.")
    ] = None,
    keys: Annotated[Listed, typer.Option(help="The groups, if public: COLUMN=A,B. Repeat for more.")] = None,
    rows_per_unit: Annotated[int | None, typer.Option(help="The most rows a unit has, if public.")] = None,
    bound_rows: Annotated[
        str | None, typer.Option(help="The most rows of a unit that count, instead of a private search.")
    ] = None,
    bound_groups: Annotated[int | None, typer.Option(help="The most groups of a unit that count.")] = None,
    bound_pairs: Annotated[
        int | None, typer.Option(help="The most values of a unit that COUNT(DISTINCT …) counts.")
    ] = None,
    bound_range: Annotated[
        Listed, typer.Option(help="Where an expression of the query is held: EXPRESSION=LOW:HIGH.")
    ] = None,
    types: Annotated[
        Listed, typer.Option("--type", help="How a column of a CSV is read: COLUMN=TYPE. Repeat for more.")
    ] = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    dates: Dates = None,
    null: Null = None,
    public: Annotated[
        Listed, typer.Option(help="A public table to join with: NAME=FILE. Repeat for more.")
    ] = None,
    private: Annotated[
        Listed, typer.Option(help="Another table of the same units: NAME=FILE. Repeat for more.")
    ] = None,
    public_size: Annotated[int | None, typer.Option(help="How many units there are, if public.")] = None,
    name: Annotated[str | None, typer.Option(help="What the table is called in the SQL.")] = None,
    table: Annotated[str | None, typer.Option(help="Which table of a DuckDB file.")] = None,
    by: Annotated[str, typer.Option(help="Who asks.")] = "",
    purpose: Annotated[str, typer.Option(help="What for.")] = "",
    ledger: Annotated[
        str | None, typer.Option(help="The ledger, where it is not the one beside the source.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="The account in it, by the name it is to have.")] = None,
    share: Annotated[
        str | None,
        typer.Option(help="An account of the ledger that was opened for other data of these units."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what it would cost and how sure it would be.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Also draw the answer into this file; its ending is .svg or .png."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print the table as CSV, error bars included.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")] = False,
) -> None:
    """Ask a table a question in SQL, privately, and charge its account."""
    from dalenius.cli.option_names import naming_options
    from dalenius.cli.query_output import opens, say_what_opens, show_explanation, show_refusal, show_release
    from dalenius.tables import opening

    if csv and (json or explain):
        raise InvalidArgument("CSV holds an answer and nothing else.", remedy="Leave out --csv, or the rest.")
    if plot is not None:
        if explain:
            raise InvalidArgument("An explanation is not drawn.", remedy="Leave out --plot, or --explain.")
        check_drawing(plot)
    with naming_options():
        price, bounds = (
            exact(epsilon, "epsilon"),
            read_bounds(bound_rows, bound_groups, bound_pairs, bound_range),
        )
        who, limit = read_unit(unit, unit_column, window, relation, missing), read_budget(budget, delta)
        charged = account if share is None else _shared(source, share, ledger, account, limit)
        with opening.table(
            source,
            unit=who,
            budget=limit,
            account=charged,
            ledger=ledger if share is None else None,
            name=name,
            table=table,
            types=dict(read_pair(text, "type", "age=BIGINT") for text in types or ()),
            encoding=encoding,
            decimal=decimal,
            dates=dates,
            null=null or None,
            ranges=dict(map(read_range, ranges or ())),
            rows_per_unit=rows_per_unit,
            public=dict(read_pair(text, "public", "wards=wards.csv") for text in public or ()),
            private=dict(read_pair(text, "private", "stays=stays.csv") for text in private or ()),
            time=time,
            public_size=public_size,
            by=by,
        ) as opened:
            listed = read_keys(opened, keys or ())
            asked = opened.ask(sql, epsilon=price, keys=listed, bounds=bounds, purpose=purpose)
            if explain:
                show_explanation(asked.explanation, as_json=json)
                return
            if opens(opened.account) and asked.fits():
                say_what_opens(opened.account)
            try:
                release = asked.run()
            except BudgetExceeded as refused:
                show_refusal(opened, refused, as_json=json)
                raise
            except KeyboardInterrupt as stop:
                # Typer ends with 130 without a word.
                typer.echo("\n".join(getattr(stop, "__notes__", ["Stopped."])), err=True)
                raise

            show_release(release, opened, asked.fits, as_csv=csv, as_json=json)
            if plot is not None:
                _draw(release, plot)


def _draw(release: Release, path: Path) -> None:
    """Draw an answer that was printed; where that fails, say so and end with 1, as it was charged."""
    try:
        release.plot().save(path)
    except (InvalidArgument, OSError) as failed:
        why = failed.problem if isinstance(failed, InvalidArgument) else f"{path}: {failed.strerror}."
        typer.echo(f"The answer stands; it was not drawn. {why}", err=True)
        raise typer.Exit(1) from None


def _shared(
    source: str, name: str, ledger: str | None, account: str | None, budget: Budget | None
) -> Account:
    """An account that is open already, for other data about the same units."""
    from dalenius.ledger import Ledger
    from dalenius.tables.beside import stem

    if account is not None or budget is not None:
        raise InvalidArgument(
            "An account that is shared is open, with a budget of its own.",
            remedy="Leave out --account, --budget and --delta.",
        )
    file = Path(source).resolve()
    where = ledger or str(file.with_name(f"{stem(file)}.ledger"))
    if "://" not in where and not Path(where).exists():
        raise InvalidArgument(
            f"There is no ledger {where}.", remedy=f"Pass --ledger with the one that has the account {name}."
        )
    return Ledger(where).account(name)
