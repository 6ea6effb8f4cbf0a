"""An anchor: the head of the chain, kept where the ledger's own file cannot take it along.

One line fixes all history up to an entry. A ledger that lacks that entry, or has another in its place, was
cut short, restored from a backup, or rewritten; it would let what was spent be spent again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dalenius.errors import InvalidArgument, LedgerBehind, LedgerError
from dalenius.ledger.entry import Head
from dalenius.ledger.store import Snapshot

_LINE = re.compile(r"dalenius-anchor (\d{1,18}) ([0-9a-f]{64})")


class Anchor(NamedTuple):
    """An entry's number and hash."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"dalenius-anchor {self.number} {self.hash}"

    @staticmethod
    def read(text: str) -> Anchor:
        """From a line that `str` gave."""
        match = _LINE.fullmatch(text.strip())
        if match is None:
            raise InvalidArgument(
                "This is not an anchor.",
                remedy="Pass the line that ledger.anchor() gave, or a file that holds it.",
            )
        return Anchor(int(match[1]), match[2])

    @staticmethod
    def of(head: Head) -> Anchor:
        """That of the newest entry."""
        return Anchor(head.number, head.hash)


def check(snapshot: Snapshot, anchor: Anchor) -> None:
    """Refuse a ledger that is behind its anchor."""
    found = next(iter(snapshot.entries(after=anchor.number - 1)), None)
    if found is None or found.hash != anchor.hash:
        raise LedgerBehind(
            f"Entry {anchor.number} is not as the anchor knows it: the ledger was cut short or restored.",
            remedy='Restore the newest copy; or, as its owner, open it with accept="the reason".',
        )


def read_file(path: Path) -> Anchor | None:
    """The anchor in a file; None where there is none yet."""
    try:
        text = path.read_text()
        return Anchor.read(text) if text else None
    except FileNotFoundError:
        return None
    except (InvalidArgument, UnicodeDecodeError):
        raise LedgerBehind(
            "The file of the anchor holds something else, so the ledger may be behind it.",
            remedy='Restore that file; or, as the owner of the ledger, open it with accept="the reason".',
        ) from None
    except OSError:
        raise LedgerError(
            "The file of the anchor cannot be read.", remedy="Give this user the right to read it."
        ) from None


def write_file(path: Path, anchor: Anchor, *, back: bool = False) -> None:
    """Move the file on to an anchor; never back, unless told so, whoever comes last."""
    line = f"{anchor}\n".encode()
    try:
        with _alone(path) as handle:
            known = None if back else read_file(path)
            if known is None or known.number < anchor.number:
                # One write of one block: a crash leaves the old line or the new one.
                os.pwrite(handle, line, 0)
                os.ftruncate(handle, len(line))
    except OSError:
        raise LedgerError(
            "The file of the anchor cannot be written. What was charged stays charged.",
            remedy="Give this user the right to write to that file, and make room on its disk.",
        ) from None


@contextmanager
def _alone(path: Path) -> Iterator[int]:
    """The file, held by one process and thread at a time."""
    import fcntl

    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)
