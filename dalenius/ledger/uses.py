"""`Uses`: what the noise of a session was last used for, noted in the ledger of the account that paid.

A session whose noise follows from a key (`streams.save`, `learn.Private.save`) keeps its state in files. If
the files are copied, or restored from a backup together with their locks, nothing in them tells that the
session went on elsewhere, and two continuations would add the same noise to different sums. Their difference
is then the difference of the sums, without noise: no ε bounds what it tells. So before noise is used, the
session replaces its last note in the ledger by one that names this use.

Theorem (one continuation). Let each continuation of a session replace the note that it last wrote or read, by
a note that names all uses so far and what they were for, in one transaction that refuses where another note
is there. Then the uses that were noted form one chain, and noise is used for one thing only. Proof: of two
different notes that replace the same one, the store's exclusive transaction lets one succeed, and the other
finds a note that it did not expect. Notes never recur, as each counts the uses.

A note is written before its noise is used and after the state is on disk, so a crash in between leaves a
state that is one use ahead of its note: that use was never given, and `resumed` accepts it. Notes hold
digests under a secret key, and no data. They are not part of the chain of hashes: they guard against copies
and backups, not against somebody who changes the ledger, and are lost with a ledger that is itself set back.
"""

from __future__ import annotations

from hashlib import sha256

from dalenius.errors import NotSound
from dalenius.ledger.account import Account
from dalenius.ledger.balances import USE
from dalenius.noise.stream import StreamKey


class Uses:
    """The notes of one session in the ledger of its account. See the module.

    Args:
        account: The account that paid for the session.
        key: The key of the session's noise.
    """

    def __init__(self, account: Account, key: StreamKey) -> None:
        self._account = account
        self._scope = USE + sha256(b"the uses of " + key.secret).hexdigest()
        self._last: str | None = None

    @classmethod
    def of(cls, account: object, key: StreamKey) -> Uses | None:
        """Return the notes of a session, or None without an account or for noise from a seed."""
        return cls(account, key) if isinstance(account, Account) and not key.tainted else None

    def note(self, use: str) -> None:
        """Replace the last note, before noise is used.

        Raises:
            NotSound: The ledger has another note: the session went on elsewhere, from a copy of its state.
        """
        ledger, name = self._account.ledger, self._account.name
        with ledger.store.write(durable=True) as transaction:
            ledger.guard(transaction)
            if transaction.use(name, self._scope) != self._last:
                raise _went_on()
            transaction.set_use(name, self._scope, use)
        self._last = use

    def resumed(self, use: str, before: str | None) -> None:
        """Go on from a state whose last use, and the one before it, are these.

        Raises:
            NotSound: The ledger's last note is neither: the state is older, or another copy of it went on.
        """
        with self._account.ledger.store.read() as snapshot:
            self._last = snapshot.use(self._account.name, self._scope)
        if self._last == before != use:
            self.note(use)
        elif self._last != use:
            raise _went_on()


def _went_on() -> NotSound:
    return NotSound(
        "By the ledger this session went on elsewhere, from a copy of its state: noise would be used twice.",
        remedy="Go on with the copy that did. If it is lost, begin another session, which is charged anew.",
    )
