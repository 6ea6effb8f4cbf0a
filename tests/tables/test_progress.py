"""Progress is shown on a terminal, for long work, step by step, and leaves no trace."""

from __future__ import annotations

import io
import threading

from dalenius.tables.progress import progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and when it was written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


def test_long_work_names_its_steps_and_wipes_them_out() -> None:
    shown = Terminal()
    with progress(shown, after=0) as step:
        step("reading the rows")
        assert shown.written.wait(600)
        step("drawing noise")
    assert shown.getvalue() == "\r\x1b[Kreading the rows …\r\x1b[Kdrawing noise …\r\x1b[K"


def test_short_work_says_nothing() -> None:
    shown = Terminal()
    with progress(shown, after=3600) as step:
        step("reading the rows")
    assert shown.getvalue() == ""


def test_what_is_no_terminal_is_left_alone() -> None:
    shown = io.StringIO()
    with progress(shown, after=0) as step:
        step("reading the rows")
    assert shown.getvalue() == ""


def test_a_terminal_that_is_gone_does_not_stop_the_work() -> None:
    shown = Terminal()
    with progress(shown, after=0) as step:
        step("reading the rows")
        assert shown.written.wait(600)
        shown.close()
        step("drawing noise")
