"""`Unopened`: an account that its first charge opens.

A budget that is fixed cannot be changed, so nothing fixes it before something is released on it: a question
that is explained, that cannot be read or that the budget would refuse leaves no ledger behind. Until then the
account is kept in memory, where it says what a new one would.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dalenius.ledger import Account, Budget, Ledger
from dalenius.ledger.entry import Entry
from dalenius.ledger.memory import MemoryStore
from dalenius.losses.loss import Loss
from dalenius.privacy.unit import Unit

Opening = Callable[[str | None], Account]
"""Opens an account that keeps a profile from the start."""


class _Waiting(MemoryStore):
    """A ledger that is not there yet, and where it will be."""

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self.path = path


class Unopened(Account):
    """An account that is not open yet; after its first charge, the one that was opened.

    `opening` opens it; `exists` tells whether somebody else did meanwhile; `others` are the accounts that its
    ledger has already.
    """

    def __init__(
        self,
        opening: Opening,
        exists: Callable[[], bool],
        *,
        name: str,
        unit: Unit,
        budget: Budget,
        source: str | None = None,
        path: Path | None = None,
        others: tuple[Account, ...] = (),
    ) -> None:
        ledger = Ledger(_Waiting(path))
        super().__init__(ledger, ledger.open(name, unit=unit, budget=budget, source=source).terms)
        self.others = others
        self._opening: Opening | None = opening
        self._exists, self._turn = exists, threading.Lock()
        self._proposed: str | None = None

    @property
    def waiting(self) -> bool:
        """Whether it is still to be opened."""
        return self._opening is not None

    def open(self) -> None:
        """Open it now; refused where somebody opened it with other words."""
        with self._turn:
            if self._opening is not None:
                found = self._opening(self._proposed)
                self.ledger, self.terms, self._opening = found.ledger, found.terms, None

    def propose(self, profile: str | None) -> None:
        """Keep a profile with the account from its opening on, where it is this one that opens it."""
        self._proposed = profile

    @property
    def profile(self) -> str | None:
        """See `Account`: what was proposed, until it is open."""
        return self._proposed if self.waiting else super().profile

    def note_profile(self, text: str, *, by: str = "") -> Entry:
        """See `Account`: a profile is kept, so the account is opened."""
        self.open()
        return super().note_profile(text, by=by)

    def look(self) -> None:
        """Be the account that somebody else opened meanwhile, if any did."""
        if self.waiting and self._exists():
            self.open()

    def _charge(self, loss: Loss, per_unit: int, event: str, by: str, purpose: str, note: str) -> Entry:
        if self.waiting:
            self.check(loss, by=by, purpose=purpose, per_unit=per_unit)
            self.open()
        return super()._charge(loss, per_unit, event, by, purpose, note)

    def allow(self, *words: Any, **options: Any) -> Entry:
        """See `Account`: an allowance is kept, so the account is opened."""
        self.open()
        return super().allow(*words, **options)

    def cell(self, division: str, name: str) -> Account:
        """See `Account`: a cell is charged by itself, so the account is opened."""
        self.open()
        return super().cell(division, name)
