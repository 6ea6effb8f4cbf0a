"""`Answers`: released answers of an account, kept so that a question asked again costs nothing.

An answer may be given again to anyone: it was released, and giving it again tells nothing new. It is found by
everything public that decides it (the question, its plan, the facts that were declared) and by the version of
the data, and it counts only while the account's chain has the entry that paid for it.

They are kept in a file beside the ledger (`visits.ledger`, `visits.answers`) that only its owner may read;
for a ledger that is no file, in memory. What cannot be kept or read is asked and paid for anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from dalenius.errors import DaleniusError
from dalenius.ledger import Account
from dalenius.release import Release

APPLICATION = 0x44504C41
"""What marks an SQLite file as one of answers: "DPLA"."""
_TABLE = "CREATE TABLE answers (key TEXT PRIMARY KEY, release TEXT NOT NULL) STRICT, WITHOUT ROWID"
_PATIENCE = 5.0
"""Seconds to wait for another who writes."""


class Answers:
    """The released answers of one account; `path` is their file, None where they are kept in memory."""

    def __init__(self, account: Account) -> None:
        self._account = account
        ledger: Path | None = getattr(account.ledger.store, "path", None)
        self.path = None if ledger is None else ledger.with_suffix(".answers")
        self._held: dict[str, str] = {}

    def key(self, **decides: object) -> str:
        """A digest of what decides an answer: texts, numbers and what is made of them."""
        plain = json.dumps({"account": self._account.name, **decides}, sort_keys=True, default=str)
        return sha256(plain.encode()).hexdigest()

    def find(self, key: str) -> Release | None:
        """The answer that was released before, its receipt saying so; None where there is none."""
        text = self._held.get(key)
        if self.path is not None:
            with suppress(OSError, sqlite3.Error), _opened(self.path, make=False) as file:
                text = next((row[0] for row in file.execute(_FIND, (key,))), None)
        return None if text is None else self._checked(text)

    def keep(self, key: str, release: Release) -> None:
        """Keep an answer; where that fails it is not kept, as it has been paid for and is on its way."""
        text = release.to_json()
        if self.path is None:
            self._held[key] = text
            return
        with suppress(OSError, sqlite3.Error), _opened(self.path, make=True) as file, file:
            file.execute(_KEEP, (key, text))

    def _checked(self, text: str) -> Release | None:
        try:
            release = Release.from_json(text)
        except DaleniusError:
            return None
        entry = release.receipt.entry
        if entry is None or not self._paid(entry.number, entry.hash):
            return None
        note = f"given again, free: it was released before, by entry {entry.number}"
        return release.postprocess(note, release.columns)

    def _paid(self, number: int, digest: str) -> bool:
        """Whether the chain has the entry that paid."""
        name = self._account.name
        with self._account.ledger.store.read() as snapshot:
            found = next(iter(snapshot.entries(after=number - 1, account=name)), None)
        return found is not None and (found.number, found.hash) == (number, digest)


@contextmanager
def _opened(path: Path, *, make: bool) -> Iterator[sqlite3.Connection]:
    """The file, made where that is wanted; a file of something else is left alone."""
    if make:
        # Not opened where it is there: closing it would drop the locks that other threads hold on it.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    where = f"file:{quote(str(path))}?mode=rw"
    with closing(sqlite3.connect(where, timeout=_PATIENCE, uri=True)) as file:
        ((application,),) = file.execute("PRAGMA application_id")
        ((tables,),) = file.execute("SELECT count(*) FROM sqlite_master")
        if tables == 0 and make:
            _create(file)
        elif application != APPLICATION:
            raise FileExistsError
        yield file


def _create(file: sqlite3.Connection) -> None:
    with suppress(sqlite3.OperationalError), file:
        # Another process may be first.
        file.execute("BEGIN IMMEDIATE")
        file.execute(_TABLE)
        file.execute(f"PRAGMA application_id = {APPLICATION}")


_FIND = "SELECT release FROM answers WHERE key = ?"
_KEEP = "INSERT OR REPLACE INTO answers VALUES (?, ?)"
