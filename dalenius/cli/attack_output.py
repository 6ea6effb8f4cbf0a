"""What the attacks print: a sentence each for people, JSON with stable keys for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dalenius.cli.output import emit_json
from dalenius.display import harmless

if TYPE_CHECKING:
    from dalenius.attacks.result import Attack
    from dalenius.attacks.unique import Uniqueness
    from dalenius.figures import Figure


def show_list(*, as_json: bool = False) -> None:
    """The demonstrations there are."""
    from dalenius.attacks.demos import DEMOS

    if as_json:
        emit_json({name: one.shows for name, one in DEMOS.items()})
        return
    for name, one in DEMOS.items():
        typer.echo(f"{name:<13} {one.shows}")


def show_pair(name: str, pair: tuple[Attack, Attack], plot: Path | None, *, as_json: bool) -> None:
    """An attack with nobody counting, and under an account."""
    first, second = pair
    file = _saved(second.figure or first.figure, plot)
    if as_json:
        emit_json(
            {
                "attack": name,
                "nobody_counting": first.to_dict(),
                "under_account": second.to_dict(),
                "file": file,
            }
        )
        return
    for one in pair:
        _say(str(one))
    _say(file)


def show_report(found: Attack | Uniqueness, plot: Path | None, *, as_json: bool) -> None:
    """One attack on given data."""
    file = _saved(found.figure, plot)
    if as_json:
        emit_json({**found.to_dict(), "file": file})
        return
    _say(str(found))
    _say(file)


def _saved(figure: Figure | None, plot: Path | None) -> str | None:
    return None if figure is None or plot is None else str(figure.save(plot))


def _say(text: str | None) -> None:
    if text is not None:
        typer.echo(harmless(text))
