"""The command line says the same of a ledger in a file and of one on a server."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from dalenius.cli import main


def test_a_file_and_a_server_are_used_alike(
    shared: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: str, *words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["dalenius", "ledger", command, shared.where, *words])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), capsys.readouterr().out

    assert run("open", "people", "--unit", "person", "--epsilon", "1")[0] == 0
    assert run("charge", "people", "pure(0.25)", "--by", "ana") == (
        0,
        "entry 2 of people; left: epsilon 0.75 of epsilon 1\n",
    )
    assert run("charge", "people", "pure(0.8)")[0] == 3
    assert run("allow", "people", "--by", "bo", "--epsilon", "0.1")[0] == 0
    (seen,) = json.loads(run("show", "--json")[1])["accounts"]
    assert (seen["left"], seen["next_loss"]) == (0.75, "pure(0.75)")
    assert run("verify")[1].startswith("3 entries")
    assert len(run("export")[1].splitlines()) == 3
