"""The time that entries state: by the store's clock, and never before the newest entry.

Which clock: a PostgreSQL server's own, the same for every machine; for a file, that of the machine that
writes.

What ends a reservation takes the later of now and the newest entry's time, so no clock loses an answer that
was charged. A charge does so too while the clock is less than `PATIENCE` behind, and is refused beyond that:
then either this clock is wrong, or an entry was written with one far ahead. The owner corrects the latter by
an entry (`Ledger.correct_time`), after which entries go on from the right time.

Only allowances with a window look at the time. Charges stated in windows ahead of the right one may truly
have been made in the window that the correction returns to. So the correction adds their totals to that
window, and leaves them where they were stated as well.

Theorem. Let a correction at the true time t return from the stated time s > t, and let W be the window of t.
After it, the total of every allowance in W is at least the sum of all charges that count against it and were
made in W, and no total of any window is lower than before.
Proof. A charge in the true window W, made before t, was stated in W or in a later window: stated times were
not before the true ones, as `moment` never states a time before the clock's while clocks are right or ahead.
The first are in the total of W; the others are in the totals of later windows, which the correction adds.
Nothing is subtracted. ∎
The total of the account itself does not depend on time, and neither do allowances without a window.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from dalenius.errors import ClockWentBack
from dalenius.ledger.entry import Head

PATIENCE = timedelta(days=1)
"""How far the newest entry may be ahead of the clock for a charge to be written at that entry's time."""


def seen_at(head: Head | None, now: datetime) -> str:
    """Return the time to state where nothing may be refused: the later of now and the newest entry's."""
    written = stamp(now)
    return written if head is None else max(written, head.at)


def moment(head: Head | None, now: datetime) -> str:
    """Return the time to state in a charge; refused where the clock is far behind the newest entry."""
    at = seen_at(head, now)
    if head is not None and datetime.fromisoformat(at) - now > PATIENCE:
        raise ClockWentBack(
            f"The newest entry, {head.number}, states {head.at}: more than a day ahead of the clock, "
            f"which shows {stamp(now)}.",
            remedy="Set the clock right. If the entry's time is wrong, its owner corrects it: "
            "ledger.correct_time(why=...), or dalenius ledger correct-time.",
        )
    return at


def stamp(moment: datetime) -> str:
    """Return a moment as entries state it."""
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
