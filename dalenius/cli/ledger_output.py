"""What the commands of a ledger print: charges, terms and entries, with the same keys whatever happened."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import TextIO

from dalenius.errors import BudgetExceeded
from dalenius.ledger import Account, Entry
from dalenius.ledger.export import COLUMNS, as_json, as_row
from dalenius.ledger.spelling import spelled
from dalenius.losses.loss import Loss


def charge_fields(account: str, entry: Entry | None, refused: BudgetExceeded | None) -> dict[str, object]:
    """A charge in JSON, accepted or refused: the same keys."""
    largest = None if refused is None else refused.largest
    return {
        "account": account,
        "accepted": refused is None,
        "entry": None if entry is None else entry.number,
        "hash": None if entry is None else entry.hash,
        "needed": refused and refused.needed,
        "next": refused and refused.left,
        "next_loss": spelled(largest) if isinstance(largest, Loss) else None,
        "remedy": refused and refused.remedy,
    }


def account_fields(account: Account) -> dict[str, object]:
    """What an account was opened with."""
    unit, limit = account.unit, account.terms.limit
    fields = {name: getattr(unit, name) for name in ("entity", "column", "window", "relation")}
    return {
        "account": account.name,
        "unit": fields,
        "epsilon": limit.epsilon,
        "delta": limit.delta,
        "source": account.terms.source,
    }


def write_entries(entries: Iterable[Entry], file: TextIO, *, table: bool) -> int:
    """One line for each entry, of JSON or of a table; how many."""
    count, rows = 0, csv.writer(file, lineterminator="\n")
    if table:
        rows.writerow(COLUMNS)
    for entry in entries:
        count += 1
        if table:
            rows.writerow(as_row(entry))
        else:
            file.write(as_json(entry) + "\n")
    return count
