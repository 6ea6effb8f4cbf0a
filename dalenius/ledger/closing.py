"""A ledger closed for a while: where the number of runs is secret, each run's entry would tell it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dalenius.errors import NotSound

_closed: ContextVar[bool] = ContextVar("closed", default=False)


@contextmanager
def closed() -> Iterator[None]:
    """No account is charged from within."""
    token = _closed.set(True)
    try:
        yield
    finally:
        _closed.reset(token)


def check_open() -> None:
    """Refuse a charge where ledgers are closed."""
    if _closed.get():
        raise NotSound(
            "A run of a selection was charged for with the selection; an entry of its own would show how "
            "many runs there were.",
            remedy="Leave account out of what each run calls.",
        )
