"""`dalenius profile`: shown and declared for nothing, learned for a charge, used by every query after."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import dalenius as dp

Run = Callable[..., tuple[int, str, str]]
OPEN = ("--unit-column", "patient_id", "--budget", "30", "--delta", "1e-9")


@pytest.fixture
def visits(tmp_path: Path) -> str:
    path = tmp_path / "visits.csv"
    rows = [f"{i % 600};{i % 50},5;{'ABC'[i % 3]};{1 + i % 28:02}.12.2013;Köln" for i in range(3000)]
    path.write_bytes("\n".join(["patient_id;cost;ward;day;ort", *rows, ""]).encode("cp1252"))
    return str(path)


def events(source: str) -> list[str]:
    if not Path(source).with_suffix(".ledger").exists():
        return []
    with dp.Ledger(Path(source).with_suffix(".ledger")) as ledger:
        return [entry.event for entry in ledger.entries()]


def test_a_profile_is_shown_declared_and_learned(run: Run, visits: str) -> None:
    code, out, _ = run("profile", visits, *OPEN)
    assert code == 0 and 'encoding windows-1252, decimal mark ",", dates DD.MM.YYYY' in out
    assert events(visits) == [], "looking opens nothing"
    code, out, _ = run("profile", visits, *OPEN, "--range", "cost=0:60", "--category", "ward=A,B,C")
    assert code == 0 and "cost from 0 to 60" in out and "ward is one of 3 values" in out
    code, out, _ = run("profile", visits, "--epsilon", "5", "--by", "ana")
    assert code == 0 and "at epsilon 5, delta 1e-09, by entry 3" in out
    assert events(visits) == ["open", "profile", "reserve", "profile", "commit"]
    code, out, _ = run(
        "query", visits, "SELECT ward, AVG(cost) FROM visits GROUP BY ward", "--epsilon", "1", "--explain"
    )
    assert code == 0 and "search:" not in out and "profile:" in out and "cost held within 0 to 60" in out
    code, out, _ = run("profile", visits, "--json")
    assert json.loads(out)["learned"]["entry"] == 3


def test_how_a_file_is_read_may_be_said(run: Run, visits: str) -> None:
    sql = "SELECT COUNT(ort) AS n FROM visits"
    said = ("--encoding", "utf-16", "--decimal", ",", "--dates", "DD.MM.YYYY", "--null", "NA", "--null", "-")
    code, _, err = run("query", visits, sql, *OPEN, "--epsilon", "1", *said)
    assert code == 2 and "not in UTF-16" in err and "Köln" not in err
    assert run("query", visits, sql, *OPEN, "--epsilon", "5", "--encoding", "latin-1")[0] == 0
    code, _, err = run("query", visits, sql, *OPEN, "--epsilon", "1", "--dates", "noon")
    assert code == 2 and "DD.MM.YYYY" in err


def test_learning_needs_a_budget_that_holds_it(run: Run, visits: str) -> None:
    code, _, err = run("profile", visits, "--unit-column", "patient_id", "--budget", "1", "--epsilon", "2")
    assert code == 3 and "still fits" in err and events(visits) == []
