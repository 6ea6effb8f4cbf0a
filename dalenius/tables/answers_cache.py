"""`Answers`: released answers of an account, kept so that a question asked again costs nothing.

An answer may be given again to anyone: it was released, and giving it again tells nothing new. It is found by
everything public that decides it (the question, its plan, the facts that were declared) and by the version of
the data. What is kept is not believed: the entry that committed an answer holds a digest of it and of what it
answers (`seal`), and an answer is given again only where the account's chain has that very digest. The entry
that the receipt then names is read from the chain, not from what was kept.

They are kept in a file beside the ledger (`visits.ledger`, `visits.answers`) that only its owner may read;
for a ledger that is no file, in memory. What cannot be kept or read is asked and paid for anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from dalenius.ledger import Account
from dalenius.ledger.reservation import committed, line_of
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
        return None if text is None else self._checked(key, text)

    def keep(self, key: str, release: Release) -> None:
        """Keep an answer; where that fails it is not kept, as it has been paid for and is on its way."""
        text = release.to_json()
        if self.path is None:
            self._held[key] = text
            return
        with suppress(OSError, sqlite3.Error, ValueError), _opened(self.path, make=True) as file, file:
            file.execute(_KEEP, (key, text))

    def _checked(self, key: str, text: str) -> Release | None:
        """The answer in a text, as its entry committed it; None where the chain does not know it so."""
        try:
            release = Release.from_json(text)
            said, bare = release.receipt.entry, _uncharged(release)
            digest = seal(key, bare)
        except Exception:
            # However a text is damaged, its question is asked anew.
            return None
        paid = None if said is None else committed(self._account, said.number, digest)
        if paid is None or paid.fields["loss"] != release.loss.to_json():
            return None
        given = self._account.signed(bare.charged(line_of(self._account, paid)))
        note = f"given again, free: it was released before, by entry {paid.number}"
        return given.postprocess(note, given.columns)


def seal(key: str, release: Release) -> str:
    """A digest of an answer, all but the entry that pays for it, and of what it is the answer to."""
    text = f"{key}\n{_uncharged(release).to_json()}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _uncharged(release: Release) -> Release:
    return replace(release, receipt=replace(release.receipt, entry=None))


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
