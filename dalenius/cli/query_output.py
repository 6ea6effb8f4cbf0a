"""What `dalenius query` prints: the answer and what is left, or what it would cost; JSON with stable keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeGuard

import typer

from dalenius.cli.option_names import option
from dalenius.cli.output import emit_json
from dalenius.display import harmless
from dalenius.errors import BudgetExceeded, spelled
from dalenius.ledger import Account
from dalenius.ledger.overview import Overview, overview
from dalenius.ledger.spelling import spelled as spelled_loss
from dalenius.losses.gauges import round_down
from dalenius.losses.loss import Loss
from dalenius.privacy.numbers import LEAST_EPSILON
from dalenius.release import Release
from dalenius.release.digits import at_least
from dalenius.tables.unopened import Unopened

if TYPE_CHECKING:
    from dalenius.tables import Table
    from dalenius.tables.explanation import Explanation

HALVINGS = 8
"""How closely the largest ε that fits is looked for."""
REFUSED = ("needed", "remedy")
"""Keys that say why an answer was refused; null where it was not."""


def opens(account: Account) -> TypeGuard[Unopened]:
    """Whether the next answer opens the account."""
    return isinstance(account, Unopened) and account.waiting


def say_what_opens(account: Unopened) -> None:
    """On the error stream, what the first answer fixes that people may not mean."""
    who = account.unit.entity
    if account.unit.column is None:
        _say(
            f"note: each row is protected by itself, so a {who} with k rows is protected at k times epsilon. "
            f"Name the column that tells them apart with --unit-column, unless each {who} has one row."
        )
    for other in account.others:
        _say(
            f"warning: this ledger has the account {other.name} already, for each {other.unit}. A new one, "
            f"{account.name}, has a budget of its own: pass --share {other.name} if the units are the same."
        )


def show_release(
    release: Release, asked: Table, fits: Callable[[Fraction], bool], *, as_csv: bool, as_json: bool
) -> None:
    """The answer, then what is left of the budget; as CSV the answer alone, with warnings aside.

    `fits` tells whether the account would accept the same question at another ε.
    """
    if as_csv:
        typer.echo(release.to_csv(), nl=False)
        for warning in release.receipt.warnings:
            _say(f"warning: {warning}")
        return
    seen = overview(asked.account, newest=0, brief=True)
    if as_json:
        emit_json({"release": json.loads(release.to_json()), **_left(seen), **dict.fromkeys(REFUSED)})
        return
    typer.echo(str(release))
    _print_bar(seen, _largest(Fraction(seen.next), fits))


def show_explanation(explanation: Explanation, *, as_json: bool) -> None:
    """What it would cost."""
    if as_json:
        # What is left of an account is a share everywhere else; this is the ε of the most that fits.
        fields = explanation.to_dict()
        emit_json({"next" if name == "left" else name: value for name, value in fields.items()})
    else:
        typer.echo(explanation.spelled(option))


def show_refusal(asked: Table, refused: BudgetExceeded, *, as_json: bool) -> None:
    """What a refusal says beside its message: in JSON the largest that fits, else the bar."""
    seen = overview(asked.account, newest=0, brief=True)
    if not as_json:
        _print_bar(seen, Fraction(refused.left or 0), err=True)
        return
    largest = spelled_loss(refused.largest) if isinstance(refused.largest, Loss) else None
    said = {"next": refused.left, "next_loss": largest, "needed": refused.needed}
    emit_json({"release": None, **_left(seen), **said, "remedy": spelled(refused.remedy, option)})


def _left(seen: Overview) -> dict[str, Any]:
    return {
        "account": seen.account,
        "budget": seen.budget,
        "left": seen.left,
        "spent": seen.spent,
        "next": seen.next,
        "next_loss": seen.next_loss,
    }


def _largest(most: Fraction, fits: Callable[[Fraction], bool]) -> Fraction:
    """The largest ε, to a hundredth or so, at which a question fits; 0 where none does."""
    if most < LEAST_EPSILON:
        return Fraction(0)
    low, high = Fraction(0), round_down(most, 3)
    if fits(high):
        return high
    for _ in range(HALVINGS):
        middle = round_down((low + high) / 2, 3)
        low, high = (middle, high) if middle >= LEAST_EPSILON and fits(middle) else (low, middle)
    return low


def _print_bar(seen: Overview, largest: Fraction, *, err: bool = False) -> None:
    from rich.console import Console

    from dalenius.ledger.show import bar

    most = f", next epsilon up to {at_least(float(largest))}" if largest else ""
    Console(stderr=err).print(bar(seen).append(most))


def _say(text: str) -> None:
    typer.echo(harmless(text), err=True)
