"""Progress: which step of the plan is being worked on, for work that takes longer than a second.

Steps are those of the plan, which is public; nothing is counted. It is shown where the error stream is a
terminal, on one line that is wiped out at the end.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

SECONDS = 1.0
"""Work that is done sooner says nothing."""
_WIPE = "\r\x1b[K"

Step = Callable[[str], None]


@contextmanager
def progress(stream: TextIO | None = None, *, after: float = SECONDS) -> Iterator[Step]:
    """A function to be called with the name of each step, for as long as the block lasts."""
    shown = sys.stderr if stream is None else stream
    if shown is None or not shown.isatty():
        yield _quiet
        return
    line = _Line(shown)
    timer = threading.Timer(after, line.begin)
    timer.daemon = True
    timer.start()
    try:
        yield line.step
    finally:
        timer.cancel()
        line.end()


def _quiet(step: str) -> None:
    return None


class _Line:
    """One line of a terminal, hidden until `begin`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._lock = stream, threading.Lock()
        self._step, self._state = "", "waiting"

    def step(self, step: str) -> None:
        with self._lock:
            self._step = step
            self._show()

    def begin(self) -> None:
        with self._lock:
            if self._state == "waiting":
                self._state = "shown"
            self._show()

    def end(self) -> None:
        with self._lock:
            if self._state == "shown":
                self._write(_WIPE)
            self._state = "over"

    def _show(self) -> None:
        if self._state == "shown" and self._step:
            self._write(f"{_WIPE}{self._step} …")

    def _write(self, text: str) -> None:
        # Whoever closed the terminal does not want to read it, and the work goes on.
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
