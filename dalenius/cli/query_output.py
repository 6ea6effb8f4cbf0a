"""What `dalenius query` prints: the answer and what is left, or what it would cost; JSON with stable keys."""

from __future__ import annotations

import csv
import json
import sys
from typing import TYPE_CHECKING, Any

import typer

from dalenius.cli.output import emit_json
from dalenius.errors import BudgetExceeded
from dalenius.ledger.overview import Overview, overview
from dalenius.ledger.spelling import spelled
from dalenius.losses.loss import Loss
from dalenius.release import Release

if TYPE_CHECKING:
    from dalenius.tables import Table
    from dalenius.tables.explanation import Explanation

REFUSED = ("needed", "next", "next_loss", "remedy")
"""Keys that say why an answer was refused; null where it was not."""


def show_release(release: Release, asked: Table, *, as_csv: bool, as_json: bool) -> None:
    """The answer, then what is left of the budget; as CSV the answer alone."""
    if as_csv:
        _write_csv(release)
        return
    seen = overview(asked.account, newest=0, brief=True)
    if as_json:
        emit_json({"release": json.loads(release.to_json()), **_left(seen), **dict.fromkeys(REFUSED)})
        return
    typer.echo(str(release))
    _print_bar(seen)


def show_explanation(explanation: Explanation, *, as_json: bool) -> None:
    """What it would cost."""
    if as_json:
        emit_json(explanation.to_dict())
    else:
        typer.echo(str(explanation))


def show_refusal(asked: Table, refused: BudgetExceeded, *, as_json: bool) -> None:
    """What a refusal says beside its message: in JSON the largest that fits, else the bar."""
    seen = overview(asked.account, newest=0, brief=True)
    if not as_json:
        _print_bar(seen, err=True)
        return
    largest = spelled(refused.largest) if isinstance(refused.largest, Loss) else None
    said = (refused.needed, refused.left, largest, refused.remedy)
    emit_json({"release": None, **_left(seen), **dict(zip(REFUSED, said, strict=True))})


def _left(seen: Overview) -> dict[str, Any]:
    return {"account": seen.account, "budget": seen.budget, "left": seen.left, "spent": seen.spent}


def _print_bar(seen: Overview, *, err: bool = False) -> None:
    from rich.console import Console

    from dalenius.ledger.show import bar

    Console(stderr=err).print(bar(seen))


def _write_csv(release: Release) -> None:
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(release.columns)
    rows.writerows(zip(*release.columns.values(), strict=True))
