"""`dalenius attack`: attacks on made-up people, in pairs, and on tables of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dalenius.errors import InvalidArgument

Demo = Annotated[bool, typer.Option("--demo", help="Attack made-up people: nobody counting, and an account.")]
Plot = Annotated[Path | None, typer.Option(help="Draw the result into this file: .svg or .png.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Fix the made-up people; noise is never fixed.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
On = Annotated[str, typer.Option("--on", help="The columns to compare by, such as age,sex,zip.")]

app = typer.Typer(no_args_is_help=True, help="What an attacker learns from what was published.")


def _list(asked: bool) -> None:
    if asked:
        from dalenius.cli.attack_output import show_list

        show_list()
        raise typer.Exit


@app.callback()
def everywhere(
    listed: Annotated[
        bool, typer.Option("--list", help="List the demonstrations.", callback=_list, is_eager=True)
    ] = False,
) -> None:
    """What an attacker learns from what was published."""


@app.command()
def reconstruct(demo: Demo = False, plot: Plot = None, seed: Seed = None, json: Json = False) -> None:
    """Recover a secret bit of everybody from sums over random groups."""
    _demonstrate("reconstruct", demo, plot, seed, json)


@app.command()
def differencing(demo: Demo = False, plot: Plot = None, seed: Seed = None, json: Json = False) -> None:
    """Read one person's secret from two counts that differ by them."""
    _demonstrate("differencing", demo, plot, seed, json)


@app.command()
def tabulation(demo: Demo = False, plot: Plot = None, seed: Seed = None, json: Json = False) -> None:
    """Rebuild the people of small blocks from published tables."""
    _demonstrate("tabulation", demo, plot, seed, json)


@app.command()
def tracing(demo: Demo = False, plot: Plot = None, seed: Seed = None, json: Json = False) -> None:
    """Tell who was in a study from its allele frequencies."""
    _demonstrate("tracing", demo, plot, seed, json)


@app.command()
def membership(demo: Demo = False, plot: Plot = None, seed: Seed = None, json: Json = False) -> None:
    """Tell whose records a model was trained on."""
    _demonstrate("membership", demo, plot, seed, json)


@app.command()
def linkage(
    released: Annotated[Path | None, typer.Argument(help="Rows without names: CSV or Parquet.")] = None,
    auxiliary: Annotated[Path | None, typer.Argument(help="People with names: CSV or Parquet.")] = None,
    on: On = "",
    truth: Annotated[
        str | None, typer.Option(help="A column of both that tells whose row it is, to count right links.")
    ] = None,
    demo: Demo = False,
    plot: Plot = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Join rows without names to people on what both tables tell."""
    if released is None or auxiliary is None:
        _demonstrate("linkage", demo, plot, seed, json)
        return
    from dalenius.attacks.files import read_columns
    from dalenius.attacks.linkage import link, links
    from dalenius.cli.attack_output import show_report

    _no_demo(demo)
    names = _columns(on)
    known = names if truth is None else [*names, truth]
    rows, people = (read_columns(path, known) for path in (released, auxiliary))
    whose = None if truth is None else links(rows, people, on=[truth])
    show_report(link(rows, people, on=names, truth=whose), plot, as_json=json)


@app.command()
def unique(
    table: Annotated[Path, typer.Argument(help="The table: CSV or Parquet.")],
    on: On,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Count the rows that are the only one with what they tell."""
    from dalenius.attacks.files import read_columns
    from dalenius.attacks.unique import uniqueness
    from dalenius.cli.attack_output import show_report

    names = _columns(on)
    show_report(uniqueness(read_columns(table, names), on=names), plot, as_json=json)


def _demonstrate(name: str, asked: bool, plot: Path | None, seed: int | None, json: bool) -> None:
    from dalenius.attacks.demos import demo
    from dalenius.cli.attack_output import show_pair

    if not asked:
        tables = ", or two tables and --on" if name == "linkage" else ""
        raise InvalidArgument("There is nothing to attack.", remedy=f"Pass --demo{tables}.")
    show_pair(name, demo(name, seed=seed), plot, as_json=json)


def _no_demo(demo: bool) -> None:
    if demo:
        raise InvalidArgument("A demonstration has people of its own.", remedy="Leave out --demo.")


def _columns(on: str) -> list[str]:
    names = [name.strip() for name in on.split(",") if name.strip()]
    if not names:
        raise InvalidArgument("No column is named.", remedy="Pass --on age,sex,zip.")
    return names
