"""The command line, run in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from dalenius.cli import main


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs one command: its exit code, and what it printed on both streams."""
    monkeypatch.setenv("COLUMNS", "120")

    def one(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dalenius", *words])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return one
