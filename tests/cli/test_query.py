"""`dalenius query`: answers, what is left, refusals and exit codes, on a file and nothing else."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dalenius as dp
from dalenius.release import Release

Run = Callable[..., tuple[int, str, str]]

BY_WARD = "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward ORDER BY ward"
PATIENTS = ("--unit-column", "patient_id")
BUDGET = ("--budget", "3", "--delta", "1e-9")
KEYS = ("--keys", "ward=A,B,C")


@pytest.fixture
def visits(tmp_path: Path) -> str:
    """Three hundred visits to three wards by a hundred patients, made up."""
    path = tmp_path / "visits.csv"
    rows = [f"{i % 100},{20 + i % 50},{'ABC'[i % 3]},2026-01-{1 + i % 28:02}" for i in range(300)]
    path.write_text("\n".join(["patient_id,age,ward,day", *rows]) + "\n")
    return str(path)


def charges(source: str) -> list[str]:
    """The events of the ledger beside a source."""
    with dp.Ledger(Path(source).with_suffix(".ledger")) as ledger:
        return [entry.event for entry in ledger.entries()]


def test_one_line_from_a_csv_to_an_answer(run: Run, visits: str) -> None:
    code, out, err = run("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "0.5")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["ward", "visits"]
    assert [line.split()[0] for line in lines[2:5]] == ["A", "B", "C"]
    assert all("±" in line or "to" in line for line in lines[2:5])
    assert "epsilon 0.5 at delta 1e-09 per patient, visits, entry 2" in out
    assert lines[-1].endswith("% left") and "█" in lines[-1]
    assert charges(visits) == ["open", "reserve", "commit"]


def test_the_budget_is_said_once(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *KEYS, "--epsilon", "0.5")
    code, _, err = run(*words)
    assert code == 2 and "no budget" in err
    assert not Path(visits).with_suffix(".ledger").exists()
    assert run(*words, *BUDGET)[0] == 0
    assert run(*words)[0] == 0
    code, _, err = run(*words, "--delta", "1e-9")
    assert code == 2 and "--budget" in err
    code, _, err = run(*words, "--budget", "4", "--delta", "1e-9")
    assert code == 2 and "fixed" in err


def test_the_same_question_again_is_free(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "0.5", "--csv")
    first = run(*words)
    assert run(*words) == first
    again = ("query", visits, BY_WARD.lower().replace("a", "A"), *words[3:])
    assert charges(visits) == ["open", "reserve", "commit"]
    assert run(*again[:2], "  " + BY_WARD.replace("COUNT", "count"), *again[3:]) == first
    assert charges(visits) == ["open", "reserve", "commit"]


def test_a_budget_that_is_gone_ends_with_three(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon")
    code, out, err = run(*words, "4")
    assert (code, out) == (3, "") and "Try" in err and "% left" in err
    assert charges(visits) == ["open"]
    code, out, _ = run(*words, "4", "--json")
    found = json.loads(out)
    assert code == 3 and found["release"] is None and found["remedy"].startswith("Try")
    assert run(*words, "0.5")[0] == 0


def test_what_is_refused_is_the_same_in_json(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--json", "--epsilon")
    refused, given = (json.loads(run(*words, epsilon)[1]) for epsilon in ("4", "1"))
    assert refused.keys() == given.keys()
    release = Release.from_json(json.dumps(given["release"]))
    assert release.columns["ward"] == ("A", "B", "C") and given["left"] < 1
    assert release.receipt.entry is not None and given["remedy"] is None


def test_explaining_costs_nothing(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "0.5", "--explain")
    code, out, _ = run(*words)
    assert code == 0 and "epsilon 0.5, delta 1e-09 for each patient" in out and "where it fits" in out
    found = json.loads(run(*words, "--json")[1])
    assert set(found) == {"question", "loss", "lines", "account", "fits", "left"}
    assert found["fits"] is True and charges(visits) == ["open"]


def test_csv_is_the_table_alone(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "1", "--csv")
    head, *rows = csv.reader(io.StringIO(run(*words)[1]))
    assert head == ["ward", "visits", "visits_low", "visits_high"] and len(rows) == 3
    for _, visits_, low, high in rows:
        assert float(low) <= float(visits_) <= float(high)
    code, _, err = run(*words, "--json")
    assert code == 2 and "--csv" in err


def test_facts_windows_and_names(run: Run, visits: str) -> None:
    sql = "SELECT ward, AVG(age) AS age FROM v GROUP BY ward"
    facts = ("--range", "age=0:120", "--rows-per-unit", "9", "--name", "v", *KEYS)
    who = ("--unit", "person", *PATIENTS, "--window", "week", "--time", "day")
    code, out, _ = run(
        "query", visits, sql, *who, *facts, *BUDGET, "--epsilon", "1", "--by", "ana", "--purpose", "ages"
    )
    assert code == 0 and "per person and week" in out
    with dp.Ledger(Path(visits).with_suffix(".ledger")) as ledger:
        entry = ledger.account("visits").entries()[1]
    assert (entry.fields["by"], entry.fields["purpose"]) == ("ana", "ages")


def test_a_public_table_gives_the_groups(run: Run, visits: str, tmp_path: Path) -> None:
    (tmp_path / "wards.csv").write_text("ward,floor\nA,1\nB,2\nC,2\n")
    sql = "SELECT floor, COUNT(*) AS visits FROM visits JOIN wards USING (ward) GROUP BY floor"
    public = ("--public", f"wards={tmp_path / 'wards.csv'}", "--keys", "floor=1,2")
    code, out, err = run("query", visits, sql, *PATIENTS, *public, *BUDGET, "--epsilon", "1", "--csv")
    assert (code, err) == (0, "")
    assert [row.split(",")[0] for row in out.splitlines()] == ["floor", "1", "2"]


def test_another_ledger_and_account(run: Run, visits: str, tmp_path: Path) -> None:
    where = tmp_path / "books" / "all.ledger"
    where.parent.mkdir()
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "1")
    code, out, _ = run(*words, "--ledger", str(where), "--account", "clinic")
    assert code == 0 and "clinic, entry 2" in out
    assert not Path(visits).with_suffix(".ledger").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--range", "age"), "age=0:120"),
        (("--range", "age=3"), "age=0:120"),
        (("--range", "height=0:3"), "height"),
        (("--keys", "ward"), "ward=A,B"),
        (("--public", "wards"), "wards=wards.csv"),
        (("--window", "fortnight"), "window"),
        (("--epsilon", "much"), "epsilon"),
        (("--window", "week", "--time", "age"), "week"),
        (("--epsilon", "-1"), "epsilon"),
    ],
)
def test_wrong_usage_ends_with_two_and_costs_nothing(
    run: Run, visits: str, words: tuple[str, ...], said: str
) -> None:
    code, _, err = run("query", visits, BY_WARD, *PATIENTS, *BUDGET, "--epsilon", "1", *words)
    assert code == 2 and said in err
    assert not Path(visits).with_suffix(".ledger").exists() or charges(visits) == ["open"]


def test_a_source_that_is_not_there_makes_no_ledger(run: Run, tmp_path: Path) -> None:
    code, _, err = run(
        "query", str(tmp_path / "none.csv"), "SELECT COUNT(*) FROM none", *BUDGET, "--epsilon", "1"
    )
    assert code == 2 and err
    assert [*tmp_path.iterdir()] == []


def test_a_source_that_is_broken_ends_with_one(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    path.write_bytes(b"PAR1" + bytes(1000))
    code, out, err = run("query", str(path), "SELECT COUNT(*) FROM visits", *BUDGET, "--epsilon", "1")
    assert (code, out) == (1, "") and err and not path.with_suffix(".ledger").exists()


def test_a_refused_clause_names_a_rewrite(run: Run, visits: str) -> None:
    code, _, err = run("query", visits, "SELECT age FROM visits", *PATIENTS, *BUDGET, "--epsilon", "1")
    assert code == 2 and err
    assert charges(visits) == ["open"]


STOPPED = """
import sys
from contextlib import contextmanager
from dalenius.tables import opening as tables

class Slow:
    def __init__(self, engine): self._engine = engine
    def __getattr__(self, name): return getattr(self._engine, name)
    @contextmanager
    def load(self, rows):
        print("reading", flush=True)
        sys.stdin.read()
        with self._engine.load(rows) as loaded:
            yield loaded

opened = tables.table
def table(*args, **options):
    made = opened(*args, **options)
    made._engine = Slow(made._engine)
    return made
tables.table = table
from dalenius.cli import main
main()
"""


def test_an_interrupt_says_that_it_was_charged(visits: str) -> None:
    """A command that is stopped while it reads: real signals, in a process of its own."""
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "1")
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "120"},
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == "reading\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate()
    assert (child.returncode, out) == (130, "")
    assert "stays charged, and nothing was released" in err and "entry 2 of visits" in err
    assert "Traceback" not in err
    assert charges(visits) == ["open", "reserve", "forfeit"]
