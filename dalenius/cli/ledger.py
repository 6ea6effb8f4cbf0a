"""`dalenius ledger`: the commands of a ledger. Each opens it, asks an account, and prints."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dalenius.cli.expression import parse
from dalenius.cli.output import emit_json, exact
from dalenius.errors import BudgetExceeded, InvalidArgument

if TYPE_CHECKING:
    from dalenius.ledger import Ledger
    from dalenius.ledger.overview import Overview
    from dalenius.privacy.unit import Relation, Window

Where = Annotated[
    str, typer.Argument(help="The ledger: a file, or a postgresql:// address.", metavar="LEDGER")
]
Name = Annotated[str, typer.Argument(help="The account.", metavar="ACCOUNT")]
Maybe = Annotated[
    str | None, typer.Argument(help="The account; all where none is named.", metavar="[ACCOUNT]")
]
Epsilon = Annotated[str, typer.Option(help="The ε of the budget, such as 3.")]
Delta = Annotated[str, typer.Option(help="The δ of the budget, such as 1e-9.")]
Anchor = Annotated[
    Path | None, typer.Option(help="A file outside that keeps the newest entry's hash, and is moved on.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]


class Form(StrEnum):
    """What `export` writes."""

    jsonl = "jsonl"
    csv = "csv"


class Against(StrEnum):
    """What a burn-down is drawn against."""

    time = "time"
    entries = "entries"


app = typer.Typer(
    no_args_is_help=True, help="One durable account of everything released about the same people."
)


@app.command("open")
def open_(
    where: Where,
    account: Name,
    unit: Annotated[str, typer.Option(help="Who is protected, such as person.")],
    epsilon: Epsilon,
    delta: Delta = "0",
    column: Annotated[str | None, typer.Option(help="The column that tells units apart.")] = None,
    window: Annotated[
        str | None, typer.Option(help="Protect each unit in each such window: day, month …")
    ] = None,
    relation: Annotated[str, typer.Option(help="add_remove, replace or zero_out.")] = "add_remove",
    source: Annotated[str | None, typer.Option(help="A label of the data: one account for each.")] = None,
    anchor: Anchor = None,
    accept: Annotated[str | None, typer.Option(help="Why a ledger behind its anchor is right.")] = None,
    json: Json = False,
) -> None:
    """Open an account with a budget, or find the one that was opened so."""
    from dalenius.cli.ledger_output import account_fields
    from dalenius.ledger import Budget, Ledger
    from dalenius.privacy.unit import Unit

    who = Unit(unit, column, cast("Window | None", window), cast("Relation", relation))
    budget = Budget(exact(epsilon, "epsilon"), exact(delta, "delta"))
    with Ledger(where, anchor=anchor, accept=accept) as ledger:
        opened = ledger.open(account, unit=who, budget=budget, source=source)
    if json:
        emit_json(account_fields(opened))
    else:
        typer.echo(f"{opened.name}: {opened.budget} for each {opened.unit}")


@app.command()
def show(
    where: Where,
    account: Maybe = None,
    newest: Annotated[int, typer.Option(help="How many of the newest entries to show.", min=0)] = 5,
    before: Annotated[
        int | None, typer.Option(help="List entries before this one: the next page.", min=1)
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Leave out who spent what.")] = False,
    spending: Annotated[
        bool,
        typer.Option("--spending", help="Say who spent what, also where more than 1000 entries are read."),
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the burn-down into this .svg or .png file.")] = None,
    against: Annotated[Against, typer.Option(help="What to draw it against.")] = Against.time,
    json: Json = False,
) -> None:
    """Show what is left of each account, who spent what, and the newest entries."""
    from dalenius.ledger.overview import overview
    from dalenius.ledger.picture import burn_down

    if brief and spending:
        raise InvalidArgument("--brief and --spending exclude each other.", remedy="Leave one of them out.")
    chosen = True if brief else False if spending else None
    with existing(where) as ledger:
        accounts = ledger.accounts() if account is None else [ledger.account(account)]
        seen = [overview(one, newest=newest, brief=chosen, before=before) for one in accounts]
        saved = None if plot is None else burn_down(accounts, against=against.value).save(plot)
    if json:
        emit_json(
            {"accounts": [one.to_dict() for one in seen], "file": None if saved is None else str(saved)}
        )
        return
    _print(seen)
    if saved is not None:
        typer.echo(str(saved))


@app.command()
def charge(
    where: Where,
    account: Name,
    loss: Annotated[str, typer.Argument(help='What it cost, such as "pure(0.1)" or "gaussian(4) * 10".')],
    by: Annotated[str, typer.Option(help="Who made it.")] = "",
    purpose: Annotated[str, typer.Option(help="What for.")] = "",
    note: Annotated[str, typer.Option(help="Anything worth keeping: published where, with which tool.")] = "",
    cell: Annotated[str | None, typer.Option(help="The cell it is about, as DIVISION=NAME.")] = None,
    per_unit: Annotated[
        int, typer.Option(help="Of the units that the loss is for, how many one unit has.")
    ] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say whether it would be accepted.")] = False,
    anchor: Anchor = None,
    json: Json = False,
) -> None:
    """Charge a release that was made elsewhere."""
    from dalenius.cli.ledger_output import charge_fields

    asked = parse(loss)
    with existing(where, anchor) as ledger:
        named = ledger.account(account)
        paying = named if cell is None else named.cell(*_cell(cell))
        try:
            if dry_run:
                paying.check(asked, by=by, purpose=purpose, per_unit=per_unit)
                entry, said = None, f"would be accepted by {account}"
            else:
                entry = paying.record(asked, by=by, purpose=purpose, note=note, per_unit=per_unit)
                said = f"entry {entry.number} of {account}; left: {named.left_after(entry)}"
        except BudgetExceeded as refused:
            if json:
                emit_json(charge_fields(account, None, refused))
            raise
    if json:
        emit_json(charge_fields(account, entry, None))
    else:
        typer.echo(said)


@app.command()
def allow(
    where: Where,
    account: Name,
    epsilon: Epsilon,
    delta: Delta = "0",
    by: Annotated[str | None, typer.Option(help="For this analyst.")] = None,
    purpose: Annotated[str | None, typer.Option(help="For this purpose.")] = None,
    window: Annotated[
        str | None, typer.Option(help="In each hour, day, week, month, quarter or year.")
    ] = None,
    anchor: Anchor = None,
    json: Json = False,
) -> None:
    """Give an analyst, a purpose or each calendar window a smaller budget within the account."""
    from dalenius.ledger import Budget

    budget = Budget(exact(epsilon, "epsilon"), exact(delta, "delta"))
    with existing(where, anchor) as ledger:
        entry = ledger.account(account).allow(
            budget, by=by, purpose=purpose, window=cast("Window | None", window)
        )
    if json:
        emit_json({"account": account, "entry": entry.number, "hash": entry.hash, "budget": str(budget)})
    else:
        said = " ".join(
            filter(None, (by and f"for {by}", purpose and f"on {purpose}", window and f"in each {window}"))
        )
        typer.echo(f"entry {entry.number} of {account}: {budget} {said}")


@app.command()
def forfeit(
    where: Where,
    number: Annotated[int, typer.Argument(help="The entry that reserved it.", metavar="ENTRY")],
    json: Json = False,
) -> None:
    """Give up an open reservation whose process is known to be gone."""
    with existing(where) as ledger:
        ledger.forfeit(number)
    if json:
        emit_json({"reservation": number, "forfeited": True})
    else:
        typer.echo(f"entry {number} is forfeited: it stays charged, and nothing is released")


@app.command("correct-time")
def correct_time(
    where: Where,
    why: Annotated[str, typer.Option(help="The reason, which the entry keeps.")],
    anchor: Anchor = None,
    json: Json = False,
) -> None:
    """Return to the time of the clock where the newest entry states a later one; for the ledger's owner."""
    with existing(where, anchor) as ledger:
        entry = ledger.correct_time(why=why)
    if json:
        emit_json({"entry": entry.number, "hash": entry.hash, "was": entry.fields["was"], "at": entry.at})
    else:
        typer.echo(f"entry {entry.number}: the time goes on from {entry.at}, not from {entry.fields['was']}")


@app.command()
def grant(
    where: Where,
    role: Annotated[str, typer.Argument(help="A role of the PostgreSQL server.", metavar="ROLE")],
    anchor: Anchor = None,
    json: Json = False,
) -> None:
    """Let a role of the server charge the ledger, by a function that checks every entry, and nothing else."""
    with existing(where, anchor) as ledger:
        entry = ledger.grant(role)
    if json:
        emit_json({"entry": entry.number, "hash": entry.hash, "role": role})
    else:
        typer.echo(f"entry {entry.number}: {role} may read the ledger and charge it")


@app.command()
def verify(
    where: Where,
    anchor: Annotated[
        str | None, typer.Option(help="An anchor kept elsewhere: its line, or its file.")
    ] = None,
    costs: Annotated[bool, typer.Option("--costs", help="Measure every loss again.")] = False,
    json: Json = False,
) -> None:
    """Check every entry against the chain and an anchor, and every balance against the entries."""
    known = None if anchor is None else _anchor(anchor)
    with existing(where) as ledger:
        if known is not None:
            ledger.check(known)
        count, head = ledger.verify(costs=costs), ledger.anchor()
    if json:
        emit_json({"entries": count, "anchor": None if head is None else str(head)})
        return
    typer.echo(f"{count} {'entry' if count == 1 else 'entries'}, and all is as it was written")
    if head is not None:
        typer.echo(str(head))


@app.command()
def export(
    where: Where,
    account: Annotated[str | None, typer.Option(help="Only the entries of this account.")] = None,
    form: Annotated[Form, typer.Option("--format", help="One JSON object a line, or a table.")] = Form.jsonl,
    out: Annotated[Path | None, typer.Option(help="The file to write, in place of printing.")] = None,
    json: Json = False,
) -> None:
    """Write all entries in order, one a line."""
    from dalenius.cli.ledger_output import write_entries

    if json and out is None and form is Form.csv:
        raise InvalidArgument(
            "A table is not JSON.", remedy="Leave out --json, or write to a file with --out."
        )
    with existing(where) as ledger:
        entries = ledger.entries() if account is None else ledger.account(account).stream()
        if out is None:
            write_entries(entries, sys.stdout, table=form is Form.csv)
            return
        with out.open("w", encoding="utf-8", newline="") as file:
            count = write_entries(entries, file, table=form is Form.csv)
    if json:
        emit_json({"file": str(out), "format": form.value, "entries": count})
    else:
        typer.echo(str(out))


def existing(where: str, anchor: Path | None = None) -> Ledger:
    """A ledger that is there: a path mistyped shall not make a new one."""
    from dalenius.ledger import Ledger

    if "://" not in where and not Path(where).exists():
        raise InvalidArgument(f"There is no ledger {where}.", remedy="Make it with: dalenius ledger open.")
    return Ledger(where, anchor=anchor)


def _print(accounts: list[Overview]) -> None:
    from rich.console import Console

    if not accounts:
        typer.echo("There is no account yet.")
    console = Console()
    for index, one in enumerate(accounts):
        console.print(*([""] if index else []), one)


def _cell(text: str) -> tuple[str, str]:
    division, mark, name = text.partition("=")
    if not (division and mark and name):
        raise InvalidArgument("cell must be DIVISION=NAME.", remedy="Write for example --cell wards=north.")
    return division, name


def _anchor(text: str) -> str:
    """The line itself, or that in a file."""
    return Path(text).read_text() if Path(text).is_file() else text
