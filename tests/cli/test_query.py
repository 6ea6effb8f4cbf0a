"""`dalenius query`: answers, what is left, refusals and exit codes, on a file and nothing else."""

from __future__ import annotations

import ast
import csv
import inspect
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dalenius as dp
from dalenius import errors
from dalenius.cli.option_names import NAMED, OPTIONS, option
from dalenius.cli.query_output import show_release
from dalenius.errors import Argument, BudgetExceeded, Message
from dalenius.losses import Gaussian
from dalenius.release import Release
from dalenius.tables import Table
from dalenius.tables.arguments import A_UNIT, a_budget
from dalenius.tables.language import parsing
from dalenius.tables.planning.plan import Plan
from dalenius.tables.question import Question

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
    """The events of the ledger beside a source; none where there is no ledger."""
    if not Path(source).with_suffix(".ledger").exists():
        return []
    with dp.Ledger(Path(source).with_suffix(".ledger")) as ledger:
        return [entry.event for entry in ledger.entries()]


def test_one_line_from_a_csv_to_an_answer(run: Run, visits: str) -> None:
    code, out, err = run("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "0.5")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["ward", "visits"]
    assert [line.split()[0] for line in lines[2:5]] == ["A", "B", "C"]
    assert all("±" in line or " to " in line or " or more" in line for line in lines[2:5])
    assert "epsilon 0.5 at delta 1e-09 per patient, visits, entry 2" in out
    assert "% left, next epsilon up to 2." in lines[-1] and "█" in lines[-1]
    largest = lines[-1].split()[-1]
    assert run("query", visits, BY_WARD, *KEYS, "--epsilon", largest)[0] == 0
    assert charges(visits) == ["open", *["reserve", "commit"] * 2]


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
    assert (code, out) == (3, "") and "Try --epsilon 2." in err and "% left" in err
    assert charges(visits) == [], "a question that is refused fixes no budget"
    code, out, _ = run(*words, "4", "--json")
    found = json.loads(out)
    assert code == 3 and found["release"] is None and found["remedy"].startswith("Try --epsilon 2.")
    assert run(*words, found["remedy"].split()[-1].removesuffix("."))[0] == 0


def test_what_is_refused_is_the_same_in_json(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--json", "--epsilon")
    refused, given = (json.loads(run(*words, epsilon)[1]) for epsilon in ("4", "1"))
    assert refused.keys() == given.keys()
    release = Release.from_json(json.dumps(given["release"]))
    assert release.columns["ward"] == ("A", "B", "C") and given["left"] < 1
    assert release.receipt.entry is not None and given["remedy"] is None and given["needed"] is None
    assert 0 < given["next"] < refused["next"] < 3 and given["next_loss"]


def test_explaining_costs_nothing(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "0.5", "--explain")
    code, out, _ = run(*words)
    assert code == 0 and "epsilon 0.5, delta 1e-09 for each patient" in out and "where it fits" in out
    found = json.loads(run(*words, "--json")[1])
    assert set(found) >= {"question", "loss", "lines", "account", "fits", "next"} and "left" not in found
    assert found["fits"] is True and 2 < found["next"] <= 3
    assert "nothing was opened" in out and charges(visits) == []
    assert not Path(visits).with_suffix(".ledger").exists()
    again = ("query", visits, BY_WARD, *PATIENTS, "--budget", "2", "--delta", "1e-9", *KEYS)
    assert run(*again, "--epsilon", "0.5")[0] == 0, "no budget was fixed"
    assert "nothing was opened" not in run(*again, "--epsilon", "0.5", "--explain")[1]


def test_an_account_can_be_spent_to_the_end(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, "--budget", "1", *KEYS, "--epsilon")
    code, out, _ = run(*words, "0.75")
    assert code == 0 and out.splitlines()[-1].endswith("% left, next epsilon up to 0.25")
    code, out, err = run(*words, "0.25")
    assert (code, err) == (0, "") and out.splitlines()[-1].endswith(" 0.0 % left")


def test_csv_is_the_table_alone(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "1", "--csv")
    head, *rows = csv.reader(io.StringIO(run(*words)[1]))
    assert head == ["ward", "visits", "visits_low", "visits_high", "visits_flag"] and len(rows) == 3
    for _, visits_, low, high, _ in rows:
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
    more = (*BUDGET, "--bound-rows", "3")
    code, out, err = run("query", visits, sql, *PATIENTS, *public, *more, "--epsilon", "1", "--csv")
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
    assert not Path(visits).with_suffix(".ledger").exists()


def test_a_source_that_is_not_there_makes_no_ledger(run: Run, tmp_path: Path) -> None:
    code, _, err = run(
        "query", str(tmp_path / "none.csv"), "SELECT COUNT(*) FROM none", *BUDGET, "--epsilon", "1"
    )
    assert code == 2 and err
    assert [*tmp_path.iterdir()] == []


def test_a_source_that_is_broken_ends_with_two(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    path.write_bytes(b"PAR1" + bytes(1000))
    code, out, err = run("query", str(path), "SELECT COUNT(*) FROM visits", *BUDGET, "--epsilon", "1")
    assert (code, out) == (2, "") and "cannot be opened; nothing was charged" in err
    assert not path.with_suffix(".ledger").exists()


def test_a_refused_clause_names_a_rewrite(run: Run, visits: str) -> None:
    code, _, err = run("query", visits, "SELECT age FROM visits", *PATIENTS, *BUDGET, "--epsilon", "1")
    assert code == 2 and err
    assert charges(visits) == []


# Who is protected, and by which account.


def test_the_unit_may_be_left_out_once_the_account_is_open(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *KEYS, "--epsilon")
    code, _, err = run(*words, "0.5", *BUDGET)
    assert code == 2 and "--unit-column" in err
    code, _, err = run(*words, "0.5", *BUDGET, "--relation", "replace")
    assert code == 2 and "--unit-column" in err
    who = ("--unit", "person", *PATIENTS, "--window", "week", "--time", "day")
    assert run(*words, "0.5", *BUDGET, *who)[0] == 0
    code, out, _ = run(*words, "0.25")
    assert code == 0 and "per person and week" in out


def test_rows_without_a_column_are_said_to_be_rows(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, "--unit", "patient", *BUDGET, *KEYS, "--epsilon")
    code, out, err = run(*words, "0.5")
    assert code == 0 and "epsilon 0.5 at delta 1e-09 per patient (each row), visits, entry 2" in out
    assert "a patient with k rows is protected at k times epsilon" in err and "--unit-column" in err
    assert run(*words, "0.25")[2] == "", "said once"


def test_an_account_is_shared_by_data_of_the_same_people(run: Run, visits: str, tmp_path: Path) -> None:
    assert run("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "0.5")[0] == 0
    other = tmp_path / "extract.csv"
    other.write_text(Path(visits).read_text())
    ledger = ("--ledger", str(tmp_path / "visits.ledger"))
    sql = BY_WARD.replace("FROM visits", "FROM extract")
    words = ("query", str(other), sql, *KEYS, "--epsilon", "0.5", *ledger)
    code, _, err = run(*words, *PATIENTS, "--account", "visits")
    assert code == 2 and "--share visits" in err
    code, out, err = run(*words, "--share", "visits")
    assert (code, err) == (0, "") and "visits, entry 5" in out, "entry 4 keeps how the file is read"
    assert charges(visits) == ["open", "reserve", "commit", "profile", "reserve", "commit"]
    for wrong in (("--unit", "visit"), BUDGET, ("--account", "visits")):
        assert run(*words, "--share", "visits", *wrong)[0] == 2
    code, _, err = run("query", str(other), sql, *KEYS, "--epsilon", "0.5", "--share", "visits")
    assert code == 2 and "--ledger" in err


def test_a_second_account_is_warned_of(run: Run, visits: str, tmp_path: Path) -> None:
    ledger = ("--ledger", str(tmp_path / "all.ledger"))
    assert run("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "0.5", *ledger)[0] == 0
    other = tmp_path / "extract.csv"
    other.write_text(Path(visits).read_text())
    words = (
        "query",
        str(other),
        "SELECT COUNT(*) FROM extract",
        *PATIENTS,
        *BUDGET,
        "--epsilon",
        "0.5",
        *ledger,
    )
    code, _, err = run(*words)
    assert code == 0 and err.startswith("warning:") and "--share visits" in err
    assert run(*words)[2] == ""


# What it says.


def test_given_again_is_said_to_be_free(run: Run, visits: str) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "0.5")
    assert "left: " in run(*words)[1]
    again = run(*words)[1].splitlines()
    assert [line for line in again if "given again, free" in line] and "% left" in again[-1]
    assert not [line for line in again if line.startswith("left: ")]


def test_warnings_stand_beside_a_csv(visits: str, capsys: pytest.CaptureFixture[str]) -> None:
    patients, budget = dp.Unit("patient", column="patient_id"), dp.Budget(3, 1e-9)
    with dp.table(visits, unit=patients, budget=budget) as table:
        made = table.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        warned = ("Bounds could not be found. Give a bound on rows.",)
        release = replace(made, receipt=replace(made.receipt, warnings=warned))
        said = "warning: Bounds could not be found. Give a bound on rows.\n"
        show_release(release, table, lambda _: False, as_csv=True, as_json=False)
        printed = capsys.readouterr()
        assert printed.err == said and printed.out.splitlines()[0] == "n,n_low,n_high,n_flag"
        show_release(release, table, lambda _: False, as_csv=False, as_json=False)
        assert said in capsys.readouterr().out


def test_every_option_that_is_named_exists(run: Run) -> None:
    known = set(re.findall(r"--[a-z-]+", run("query", "--help")[1]))
    for text in (*OPTIONS.values(), *NAMED.values()):
        assert set(re.findall(r"--[a-z][a-z-]*", text)) <= known, text


def test_every_argument_that_a_message_of_tables_names_has_an_option() -> None:
    """Messages are found in the source: calls of Argument with a text for its name."""
    named = {
        call.args[0].value
        for path in sorted((Path(dp.__file__).parent / "tables").rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) in ("Argument", "Argument.of")
        and isinstance(call.args[0], ast.Constant)
    }
    assert len(named) > 10 and named <= set(OPTIONS)


PYTHON_ONLY = ("arguments.py",)
"""Where wrong types are refused, which no option can give."""


def test_no_message_of_tables_writes_an_argument_as_python_only() -> None:
    """Where a message names an argument, it keeps it as data: see `errors.Message`."""
    names = {*inspect.signature(dp.table).parameters, *inspect.signature(Table.sql).parameters} - {"source"}
    written = re.compile(rf"\b({'|'.join(sorted(names))})=")
    kinds = {name for name, value in vars(errors).items() if isinstance(value, type)} - {
        "Argument",
        "Message",
    }
    for path in sorted((Path(dp.__file__).parent / "tables").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if (
                not isinstance(call, ast.Call)
                or path.name in PYTHON_ONLY
                or ast.unparse(call.func) not in kinds
            ):
                continue
            for words in (*call.args, *(word.value for word in call.keywords)):
                if not isinstance(words, ast.Call):
                    texts = [n.value for n in ast.walk(words) if isinstance(n, ast.Constant)]
                    assert not [text for text in texts if written.search(str(text))], ast.unparse(call)


@pytest.mark.parametrize(
    ("argument", "python", "command"),
    [
        (a_budget("3"), "budget=Budget(epsilon=3, delta=1e-9)", "--budget 3 --delta 1e-9"),
        (Argument.of("table", "stays"), 'table="stays"', "--table stays"),
        (Argument.of("keys"), "keys=", "--keys"),
        (Argument("bounds", "bounds=Bounds(rows=…)"), "bounds=Bounds(rows=…)",
         "--bound-rows, --bound-groups or --bound-pairs"),
        (Argument("confidence", "confidence"), "confidence", "confidence"),
        (A_UNIT, 'unit=Unit("patient", column="patient_id")',
         "--unit-column patient_id, or --unit patient if each row is one"),
    ],
)  # fmt: skip
def test_an_argument_has_two_spellings(argument: Argument, python: str, command: str) -> None:
    message = Message("Pass ", Message(argument, ", once"), ".")
    assert message == f"Pass {python}, once."
    assert message.spelled(option) == f"Pass {command}, once."


def test_an_error_is_spelled_again_with_all_it_holds() -> None:
    loss = Gaussian(noise_multiplier=3)
    error = BudgetExceeded(
        "No.", remedy=Message("Try ", Argument.of("epsilon", 2), "."), left=2.0, largest=loss
    )
    again = pickle.loads(pickle.dumps(error)).spelled(option)
    assert isinstance(again, BudgetExceeded) and str(again) == "No. Try --epsilon 2."
    assert (again.left, again.largest, str(error)) == (2.0, loss, "No. Try epsilon=2.")


def test_a_question_is_parsed_and_planned_once(
    run: Run, visits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command plans again only at other prices: to say what fits next."""
    prices: list[float] = []
    texts: list[str] = []
    parse, plan = parsing.parsed, Plan.make

    def parsed(sql: str, *words: str) -> object:
        texts.append(sql)
        return parse(sql, *words)

    def make(question: Question, **options: Any) -> Plan:
        prices.append(float(options["epsilon"]))
        return plan(question, **options)

    monkeypatch.setattr(parsing, "parsed", parsed)
    monkeypatch.setattr(Plan, "make", make)
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon")
    for more in (("0.5",), ("0.25",), ("0.25", "--json"), ("0.5", "--explain"), ("9",)):
        prices.clear()
        texts.clear()
        run(*words, *more)
        assert texts == [BY_WARD]
        assert prices[0] == float(more[0]) and len(set(prices)) == len(prices), more


def test_an_answer_is_drawn(run: Run, visits: str, tmp_path: Path) -> None:
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "0.5")
    for wrong in (str(tmp_path / "wards.gif"), str(tmp_path / "nowhere" / "wards.svg")):
        assert run(*words, "--plot", wrong)[0] == 2 and charges(visits) == [], "refused before it is charged"
    assert run(*words, "--explain", "--plot", str(tmp_path / "wards.svg"))[0] == 2
    code, out, err = run(*words, "--plot", str(tmp_path / "wards.svg"))
    assert (code, err) == (0, "") and "entry 2" in out
    assert "visits by ward" in (tmp_path / "wards.svg").read_text()


def test_an_answer_that_cannot_be_drawn_is_given(run: Run, visits: str, tmp_path: Path) -> None:
    (tmp_path / "wards.svg").mkdir()
    words = ("query", visits, BY_WARD, *PATIENTS, *BUDGET, *KEYS, "--epsilon", "0.5")
    code, out, err = run(*words, "--plot", str(tmp_path / "wards.svg"))
    assert code == 1 and "entry 2" in out and "not drawn" in err


def test_a_table_of_a_database_is_chosen(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "hospital.duckdb"
    with duckdb.connect(str(path)) as file:
        file.execute("CREATE TABLE stays AS SELECT i AS patient_id FROM range(100) AS made(i)")
        file.execute("CREATE TABLE labs AS SELECT i AS patient_id FROM range(100) AS made(i)")
    words = ("query", str(path), "SELECT COUNT(*) AS n FROM stays", *PATIENTS, *BUDGET, "--epsilon", "1")
    code, _, err = run(*words)
    assert code == 2 and "--table labs" in err
    assert run(*words, "--table", "stays")[0] == 0


def test_bounds_and_types_are_given(run: Run, visits: str) -> None:
    sql = "SELECT SUM(age * 2) AS years FROM visits"
    words = ("query", visits, sql, *PATIENTS, *BUDGET, "--epsilon", "1", "--json")
    bounds = (
        "--bound-rows",
        "3",
        "--bound-groups",
        "1",
        "--bound-range",
        "age * 2=0:200",
        "--type",
        "age=DOUBLE",
    )
    code, out, _ = run(*words, *bounds)
    said = json.loads(out)["release"]["receipt"]["bounds"]
    assert code == 0 and any("0 to 200" in one for one in said) and any("given" in one for one in said)
    code, _, err = run(*words, "--type", "age=FOO")
    assert code == 2 and "BIGINT" in err


def test_the_budget_is_named(run: Run, visits: str) -> None:
    code, _, err = run("query", visits, BY_WARD, *PATIENTS, "--budget", "0", "--epsilon", "1")
    assert code == 2 and "budget" in err and "epsilon must" not in err


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version") == (0, f"dalenius {dp.__version__}\n", "")


STOPPED = """
import signal, sys
# Ignored where the tests were started in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
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
