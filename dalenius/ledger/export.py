"""Entries as lines of text: JSON, from which anyone can check the chain, or a table for spreadsheets.

A line of JSON is an entry's body with its hash beside the other keys. Without the key "hash", written again
with sorted keys, no spaces and in UTF-8, it is the text whose SHA-256 the hash is.
"""

from __future__ import annotations

import json

from dalenius.ledger.entry import Entry
from dalenius.ledger.spelling import spelled
from dalenius.losses.loss import Loss

COLUMNS = ("number", "at", "account", "event", "by", "purpose", "cell", "loss", "reservation", "note", "hash")
_ACTIVE = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets take a cell that begins so for a formula."""


def as_json(entry: Entry) -> str:
    """One line of JSON."""
    plain = json.loads(entry.body) | {"hash": entry.hash}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def as_row(entry: Entry) -> list[str]:
    """The cells of `COLUMNS`, the loss as an expression; texts that a spreadsheet would run are quoted."""
    fields = entry.fields
    cell, loss = fields.get("cell"), fields.get("loss")
    return [
        str(entry.number),
        entry.at,
        _quiet(entry.account),
        entry.event,
        _quiet(fields.get("by", "")),
        _quiet(fields.get("purpose", "")),
        "" if cell is None else _quiet(f"{cell['division']}={cell['name']}"),
        "" if loss is None else spelled(Loss.from_json(loss)),
        str(fields.get("reservation", "")),
        _quiet(fields.get("note", "")),
        entry.hash,
    ]


def _quiet(text: str) -> str:
    return f"'{text}" if text.startswith(_ACTIVE) else text
