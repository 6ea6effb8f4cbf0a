"""`dalenius stream`: running counts of events in a file. It reads the clock, counts, and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dalenius.cli.output import exact

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
    most: Annotated[int, typer.Option(help="With --unit-column: steps that count of a unit, at most.")] = 1,
    separation: Annotated[
        int, typer.Option(help="How many steps two of them are apart, at least: 1 for any two.")
    ] = 1,
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
    from dalenius.ledger import Ledger
    from dalenius.streams import ContinualSum, TreeSum
    from dalenius.streams.events import Clock, counted, picture, read_events
    from dalenius.streams.participants import same_column

    clock, promise = Clock.of(start, end, every), (exact(epsilon, "epsilon"), exact(delta, "delta"))
    kind = ContinualSum if promise[1] else TreeSum
    mechanism = kind.calibrate(
        horizon=clock.steps,
        epsilon=promise[0],
        delta=promise[1],
        most=None if unit_column is None else most,
        separation=1 if unit_column is None else separation,
    )
    account = None if charge is None else Ledger(charge[0]).account(charge[1])
    if account is not None and unit_column is not None:
        same_column(unit_column, account.unit)
    counter = mechanism.start(account, by=by, purpose=purpose)
    found = counted(counter, read_events(source, clock, time, unit_column))
    typer.echo(found.to_json() if json else f"{found}")
    if plot or out is not None:
        where = out or source.with_name(f"{source.name.split('.')[0]}.svg")
        picture(found, clock.labels()).save(where)
        typer.echo(f"{where}", err=True)
