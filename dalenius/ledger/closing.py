"""A ledger closed for a while: where the number of runs is secret, each run's entry would tell it.

While anyone is inside of `closed`, no thread of the process charges an account, opens one or grants an
allowance. A run may hand its work to threads, started by it or kept in a pool, and nothing tells these from
threads that have nothing to do with it: so all are refused, and nothing is charged too late or unseen. What
was reserved before may be committed or forfeited meanwhile, by other threads than the one inside.

Not covered: another process, unless it was forked from within, and what a run writes elsewhere than into a
ledger. Reservations that were given to a thread of the run may be ended there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from dalenius.errors import NotSound

_within: ContextVar[bool] = ContextVar("within", default=False)
_door = Lock()
_inside = 0


@contextmanager
def closed() -> Iterator[None]:
    """No account is charged from within, nor by other threads meanwhile."""
    token = _within.set(True)
    _moved(1)
    try:
        yield
    finally:
        _moved(-1)
        _within.reset(token)


def check_open() -> None:
    """Refuse a new entry where ledgers are closed."""
    if _inside:
        raise _refused()


def check_outside() -> None:
    """Refuse to end a reservation from within."""
    if _within.get():
        raise _refused()


def _moved(step: int) -> None:
    global _inside
    with _door:
        _inside += step


def _refused() -> NotSound:
    return NotSound(
        "The runs of a selection were charged for with the selection; an entry while they go on would show "
        "how many there were.",
        remedy="Leave account out of what each run calls. Charge other things before or after the selection, "
        "or in another process.",
    )
