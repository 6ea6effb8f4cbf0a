"""`dalenius stream`: running counts of events in a file. It reads the clock, counts, and prints."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from dalenius.cli.output import exact
from dalenius.display import harmless
from dalenius.errors import InvalidArgument

app = typer.Typer(no_args_is_help=True, help="Publish counts that grow, step by step.")


@app.callback()
def everywhere() -> None:
    """Publish counts that grow, step by step."""


@app.command()
def count(
    source: Annotated[Path, typer.Argument(help="A CSV file, one event a row; .gz as well.")],
    time: Annotated[str, typer.Option(help="The column of time, in ISO 8601.")],
    start: Annotated[str, typer.Option("--from", help="When the first step begins: public.")],
    end: Annotated[str, typer.Option("--to", help="When the last step ends: public.")],
    epsilon: Annotated[str, typer.Option(help="The ε of all counts together.")],
    delta: Annotated[str, typer.Option(help="The δ of all counts together; 0 for Laplace noise.")] = "0",
    every: Annotated[str, typer.Option(help="How long a step is: minute, hour, day or week.")] = "day",
    unit_column: Annotated[
        str | None, typer.Option(help="Whose an event is; without it each event is protected by itself.")
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(help="With --unit-column: steps that count of a unit, at most; 1 if left out."),
    ] = None,
    separation: Annotated[
        int | None, typer.Option(help="How many steps two of them are apart, at least: 1 for any two.")
    ] = None,
    charge: Annotated[
        tuple[str, str] | None, typer.Option(help="A ledger, and its account that pays for all.")
    ] = None,
    by: Annotated[str, typer.Option(help="Who asks.")] = "",
    purpose: Annotated[str, typer.Option(help="What for.")] = "",
    plot: Annotated[bool, typer.Option("--plot", help="Draw a picture beside the file.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where to draw it, .svg or .png.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")] = False,
) -> None:
    """Publish the running count of events at every step, with error bars."""
    from dalenius.cli.ledger import existing
    from dalenius.streams import ContinualSum, TreeSum
    from dalenius.streams.events import Clock, check_columns, counted, picture, read_events
    from dalenius.streams.participants import same_column

    if unit_column is None and (most, separation) != (None, None):
        raise InvalidArgument(
            "--most and --separation bound what one unit does, and without --unit-column there are no units.",
            remedy="Name the column of units, as --unit-column person; or leave both out.",
        )
    clock, promise = Clock.of(start, end, every), (exact(epsilon, "epsilon"), exact(delta, "delta"))
    kind = ContinualSum if promise[1] else TreeSum
    mechanism = kind.calibrate(
        horizon=clock.steps,
        epsilon=promise[0],
        delta=promise[1],
        most=1 if most is None and unit_column is not None else most,
        separation=1 if separation is None else separation,
    )
    check_columns(source, time, unit_column)
    with ExitStack() as still_open:
        account = None
        if charge is not None:
            account = still_open.enter_context(existing(charge[0])).account(charge[1])
        if account is not None and unit_column is not None:
            same_column(unit_column, account.unit)
        counter = mechanism.start(account, by=by, purpose=purpose)
        found = counted(counter, read_events(source, clock, time, unit_column))
    if json:
        typer.echo(found.to_json())
    else:
        typer.echo(f"{found}")
        for note in (*found.receipt.bounds, *found.receipt.postprocessing):
            typer.echo(harmless(note))
    if plot or out is not None:
        where = out or source.with_name(f"{source.name.split('.')[0]}.svg")
        picture(found, clock.labels()).save(where)
        typer.echo(f"{where}", err=True)
