"""Ctrl-C, in whatever process the tests run: those that pytest starts for others to share do not heed it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT is a KeyboardInterrupt, as it is for everyone who asks a question."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    """Send SIGINT to the thread that waits."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
