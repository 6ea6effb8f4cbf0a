"""The commands. Each parses its words, asks a loss, and prints; docs/cli.md shows them all."""

from __future__ import annotations

import os
import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dalenius.cli import attack, ledger, local, profile, query, stream, study
from dalenius.cli.expression import family, parse
from dalenius.cli.output import emit_json, exact, show
from dalenius.display import harmless
from dalenius.errors import BudgetExceeded, DaleniusError, LedgerError, MissingExtra, QueryFailed

Expression = Annotated[
    str, typer.Argument(help='A loss, such as "gaussian(4).poisson(0.01) * 10000", or its JSON.')
]
Delta = Annotated[str, typer.Option(help="The δ, such as 1e-5.")]
Epsilon = Annotated[str, typer.Option(help="The ε, such as 1.")]
Prior = Annotated[str, typer.Option(help="A belief before the result, from 0 to 1.")]
Population = Annotated[int | None, typer.Option(help="How many units the data hold: warns about a large δ.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
Out = Annotated[Path, typer.Option(help="The file to write; its ending is .svg or .png.")]

CODES: tuple[tuple[type[DaleniusError], int], ...] = (
    (MissingExtra, 1),
    (QueryFailed, 1),
    (BudgetExceeded, 3),
    (LedgerError, 4),
)
"""Exit codes of errors, the first that fits; any other is bad input, 2."""

STOPPED = 130
"""The exit code after Ctrl-C."""


class Curve(StrEnum):
    """The curves that `plot` can draw."""

    tradeoff = "tradeoff"
    epsilon = "epsilon"


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Differential privacy with certified numbers.",
)
app.add_typer(attack.app, name="attack")
app.add_typer(ledger.app, name="ledger")
app.add_typer(stream.app, name="stream")
app.add_typer(local.app, name="local")
app.command()(query.query)
app.command()(profile.profile)
app.command(cls=study.Spread)(study.study)


def _version(asked: bool) -> None:
    if asked:
        from dalenius import __version__

        typer.echo(f"dalenius {__version__}")
        raise typer.Exit


@app.callback()
def everywhere(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Differential privacy with certified numbers."""


@app.command()
def epsilon(expression: Expression, delta: Delta, population: Population = None, json: Json = False) -> None:
    """Print the least ε of a loss at a δ."""
    loss, failure = parse(expression), exact(delta, "delta")
    bound = loss.epsilon(failure, population=population)
    if json:
        emit_json({"loss": loss, "delta": failure, "epsilon": bound})
    else:
        typer.echo(show(bound))


@app.command()
def delta(expression: Expression, epsilon: Epsilon, json: Json = False) -> None:
    """Print the least δ of a loss at an ε."""
    loss, cost = parse(expression), exact(epsilon, "epsilon")
    bound = loss.delta(cost)
    if json:
        emit_json({"loss": loss, "epsilon": cost, "delta": bound})
    else:
        typer.echo(show(bound))


@app.command()
def calibrate(expression: Expression, epsilon: Epsilon, delta: Delta, json: Json = False) -> None:
    """Find the number to put for the ? in a loss so that it just keeps an ε at a δ."""
    from dalenius.losses import calibrate as find

    losses_of, failure = family(expression), exact(delta, "delta")
    unknown = find(losses_of, epsilon=exact(epsilon, "epsilon"), delta=failure, name="number")
    loss = losses_of(unknown)
    if json:
        emit_json({"loss": loss, "unknown": unknown, "delta": failure, "epsilon": loss.epsilon(failure)})
    else:
        typer.echo(f"{float(unknown):.13g}")


@app.command()
def meaning(expression: Expression, delta: Delta = "1e-6", prior: Prior = "1/2", json: Json = False) -> None:
    """Say in plain words what a loss means for one person."""
    loss = parse(expression)
    explained = loss.meaning(exact(prior, "prior"), delta=exact(delta, "delta"))
    if json:
        emit_json({"loss": loss, **explained.to_dict()})
    else:
        typer.echo(str(explained))


@app.command()
def compare(expression: Expression, delta: Delta, json: Json = False) -> None:
    """Set the classical theorems beside the certified ε of a loss."""
    from dalenius.losses.comparison import compare as all_theorems

    loss = parse(expression)
    comparison = all_theorems(loss, exact(delta, "delta"))
    if json:
        emit_json({"loss": loss, **comparison.to_dict()})
    else:
        from rich.console import Console

        Console().print(comparison)


@app.command()
def plot(expression: Expression, out: Out, curve: Curve = Curve.tradeoff, json: Json = False) -> None:
    """Draw the trade-off curve of a loss, or its ε at every δ, into a file."""
    from dalenius.losses import pictures

    loss = parse(expression)
    draw = pictures.tradeoff_figure if curve is Curve.tradeoff else pictures.epsilon_figure
    saved = draw(loss).save(out)
    if json:
        emit_json({"loss": loss, "curve": curve.value, "file": str(saved)})
    else:
        typer.echo(str(saved))


def main() -> None:
    """Run the command line: docs/cli.md lists the exit codes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        code = _run()
    for warning in caught:
        typer.echo(f"warning: {warning.message}", err=True)
    if code == STOPPED:
        # What a query that was stopped leaves in the engine would be complained about at a slower end.
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _run() -> int:
    try:
        app()
    except DaleniusError as error:
        # Names in a message come from whoever wrote them into a ledger.
        typer.echo("\n".join(map(harmless, str(error).splitlines())), err=True)
        return next((code for kind, code in CODES if isinstance(error, kind)), 2)
    except OSError as error:
        typer.echo(f"{error.filename or 'A file'}: {error.strerror or 'cannot be used'}.", err=True)
        return 2
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0
