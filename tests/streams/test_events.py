"""Events of a file as steps, and the command that counts them."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from dalenius.cli import main
from dalenius.cli.stream import app
from dalenius.errors import InvalidArgument
from dalenius.ledger import Budget, Ledger
from dalenius.privacy.unit import Unit
from dalenius.streams import ContinualSum
from dalenius.streams.events import Clock, counted, picture, read_events

ROWS = """when,who
2026-01-01T10:00:00,ana
2026-01-01T23:59:59,ben
2026-01-03,ana
2026-01-03T01:00:00+02:00,cleo
2025-12-31,early
2026-01-05,late
nonsense,nobody
,nobody
"""
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "cli.md"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text(ROWS)
    return path


def run(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["dalenius", "stream", "count", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_rows_fall_into_the_steps_of_the_clock(source: Path) -> None:
    clock = Clock.of("2026-01-01", "2026-01-05", "day")
    assert clock.steps == 4 and clock.labels()[-1] == "2026-01-04"
    steps = read_events(source, clock, "when", "who")
    assert steps == [["ana", "ben"], ["cleo"], ["ana"], []]
    packed = source.with_name("events.csv.gz")
    packed.write_bytes(gzip.compress(ROWS.encode()))
    assert read_events(packed, clock, "when") == [["", ""], [""], [""], []]
    with pytest.raises(InvalidArgument):
        read_events(source, clock, "time")
    for words in (
        ("2026-01-05", "2026-01-01", "day"),
        ("x", "y", "day"),
        ("2026-01-01", "2026-01-05", "year"),
    ):
        with pytest.raises(InvalidArgument):
            Clock.of(*words)


def test_counts_grow_by_the_events_of_each_step(source: Path) -> None:
    steps = read_events(source, Clock.of("2026-01-01", "2026-01-05", "day"), "when", "who")
    sharp = ContinualSum.designed(horizon=4, scale=Fraction(1, 1000))
    found = counted(sharp.start(), steps)
    assert found["value"].tolist() == [2, 3, 4, 4] and found["step"].tolist() == [1, 2, 3, 4]
    once = ContinualSum.designed(horizon=4, scale=Fraction(1, 1000), most=1)
    assert counted(once.start(), steps)["value"].tolist() == [2, 3, 3, 3]
    assert len(picture(found).series) == 3


def test_the_command_charges_prints_and_draws(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = str(source.with_name("all.ledger"))
    ledger = Ledger(where)
    ledger.open("people", unit=Unit("person", "who"), budget=Budget(epsilon=2, delta=1e-5))
    words = [str(source), "--time", "when", "--from", "2026-01-01", "--to", "2026-01-05", "--epsilon", "1"]
    paid = ["--unit-column", "who", "--most", "2", "--charge", where, "people", "--delta", "1e-6"]
    assert run(*words, *paid, "--plot", monkeypatch=monkeypatch) == 0
    printed = capsys.readouterr()
    assert "step" in printed.out and "people, entry" in printed.out
    assert len(printed.out.splitlines()) >= 2 + 4 + 1 and "\N{REPLACEMENT CHARACTER}" not in printed.out
    assert (source.with_name("events.svg")).read_text().startswith("<?xml")
    assert 0 < float(ledger.account("people").spent) <= 1
    assert run(*words, "--json", monkeypatch=monkeypatch) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "release"
    assert run(*words[:-1], "much", monkeypatch=monkeypatch) == 2


def test_the_command_is_documented() -> None:
    (command,) = app.registered_commands
    assert "## `stream count`" in DOCUMENTATION.read_text()
    for option in ("--time", "--from", "--to", "--every", "--unit-column", "--most", "--charge", "--plot"):
        assert option in DOCUMENTATION.read_text()
    assert command.callback.__doc__.strip().endswith(".")


@pytest.mark.parametrize("column", ["session", None])
def test_the_column_must_be_that_of_the_account(
    column: str | None, source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = str(source.with_name("all.ledger"))
    ledger = Ledger(where)
    ledger.open("people", unit=Unit("person", column), budget=Budget(epsilon=2, delta=1e-5))
    words = [str(source), "--time", "when", "--from", "2026-01-01", "--to", "2026-01-05", "--epsilon", "1"]
    charged = ["--unit-column", "who", "--charge", where, "people"]
    assert run(*words, *charged, monkeypatch=monkeypatch) != 0
    assert "column" in capsys.readouterr().err
    assert float(ledger.account("people").spent) == 0


def test_a_long_field_is_read_like_any_other(tmp_path: Path) -> None:
    path, long, limit = tmp_path / "long.csv", "x" * 200_000, csv.field_size_limit()
    path.write_text(f"when,who\n2026-01-01,{long}\n{long},ana\n2026-01-02,ben\n")
    clock = Clock.of("2026-01-01", "2026-01-03", "day")
    assert read_events(path, clock, "when", "who") == [[long], ["ben"]]
    assert csv.field_size_limit() == limit


CLOCK = ("--from", "2026-01-01", "--to", "2026-01-05", "--epsilon", "1")


@pytest.mark.parametrize("option", ["--most", "--separation"])
def test_bounds_of_units_are_refused_without_units(
    option: str, source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(source), "--time", "when", *CLOCK, option, "1", monkeypatch=monkeypatch) == 2
    assert "--unit-column person" in capsys.readouterr().err


def test_the_command_says_what_is_protected(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(source), "--time", "when", *CLOCK]
    assert run(*words, monkeypatch=monkeypatch) == 0
    assert "event level" in capsys.readouterr().out
    assert run(*words, "--unit-column", "who", monkeypatch=monkeypatch) == 0
    assert "each unit at 1 steps at most" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", ["no file", "no column", "no unit", "no CSV"])
def test_nothing_is_charged_for_a_file_that_cannot_be_counted(
    wrong: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = source.with_name("all.ledger")
    ledger = Ledger(where)
    time, unit = "hour" if wrong == "no column" else "when", "whom" if wrong == "no unit" else "who"
    account = ledger.open("people", unit=Unit("person", unit), budget=Budget(epsilon=2, delta=1e-5))
    if wrong == "no file":
        source.unlink()
    packed = source.with_name("events.csv.gz")
    packed.write_bytes(b"no archive")
    file = packed if wrong == "no CSV" else source
    words = [str(file), "--time", time, *CLOCK, "--unit-column", unit, "--charge", str(where), "people"]
    assert run(*words, monkeypatch=monkeypatch) == 2
    assert float(account.spent) == 0


def test_a_ledger_mistyped_is_not_made(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = source.with_name("al.ledger")
    charged = ("--charge", str(where), "people")
    assert run(str(source), "--time", "when", *CLOCK, *charged, monkeypatch=monkeypatch) == 2
    assert not where.exists() and "There is no ledger" in capsys.readouterr().err
