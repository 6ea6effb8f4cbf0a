"""`dalenius attack`: what it prints, exit codes, and tables of one's own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from dalenius.attacks.demos import DEMOS
from dalenius.cli.attack import app

Run = Callable[..., tuple[int, str, str]]
COMMANDS = {command.callback.__name__: command for command in app.registered_commands if command.callback}
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "cli.md"


@pytest.fixture
def tables(tmp_path: Path) -> tuple[str, str]:
    """Rows without names, and people; postcodes begin with a zero in one file as in the other."""
    rows, people = tmp_path / "rows.csv", tmp_path / "people.csv"
    rows.write_text("age,zip,illness,id\n30,02139,flu,a\n41,02139,gout,b\n41,02140,none,c\n41,02140,flu,d\n")
    people.write_text("id,name,age,zip\na,Ana,30,02139\nx,Bo,41,02139\nc,Cy,41,02140\nd,Di,41,02140\n")
    return str(rows), str(people)


def test_the_demonstrations_are_listed(run: Run) -> None:
    code, out, _ = run("attack", "--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(DEMOS)


def test_each_demonstration_is_a_command() -> None:
    assert set(DEMOS) <= set(COMMANDS)


def test_a_demonstration_prints_two_sentences_and_draws(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "x.svg"
    code, out, _ = run("attack", "linkage", "--demo", "--seed", "1", "--plot", str(target))
    assert code == 0
    first, second, file = out.splitlines()
    assert first.startswith("diagnosis from rows without names: right in 88")
    assert "under an account" in second
    assert file == str(target)
    assert target.stat().st_size > 1000


def test_a_demonstration_prints_json(run: Run) -> None:
    found = json.loads(run("attack", "linkage", "--demo", "--seed", "1", "--json")[1])
    assert set(found) == {"attack", "nobody_counting", "under_account", "file"}
    keys = {"name", "success", "baseline", "advantage", "low", "high", "confidence", "trials", "bound"}
    assert set(found["nobody_counting"]) == set(found["under_account"]) == keys | {"details"}


def test_tables_are_linked(run: Run, tables: tuple[str, str]) -> None:
    found = json.loads(run("attack", "linkage", *tables, "--on", "age,zip", "--json")[1])
    assert found["details"] == {"linked to one": 2, "linked to several": 2, "linked to nobody": 0}
    told = json.loads(run("attack", "linkage", *tables, "--on", "age,zip", "--truth", "id", "--json")[1])
    assert told["details"]["linked rightly"] == 1
    assert told["success"] == 1 / 4


def test_rows_that_are_alone_are_counted(run: Run, tables: tuple[str, str]) -> None:
    said = "50% of 4 rows are the only one with their age, zip; the smallest class has 1.\n"
    assert run("attack", "unique", tables[0], "--on", "age, zip") == (0, said, "")
    found = json.loads(run("attack", "unique", tables[0], "--on", "age,zip", "--json")[1])
    assert set(found) == {"on", "rows", "share", "smallest", "sizes", "shares", "file"}
    assert found["sizes"] == {"1": 2, "2": 2}


def test_parquet_is_read_too(run: Run, tables: tuple[str, str], tmp_path: Path) -> None:
    other = tmp_path / "rows.parquet"
    duckdb.sql(f"COPY (FROM '{tables[0]}') TO '{other}'")
    assert run("attack", "unique", str(other), "--on", "age,illness")[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("reconstruct",), "Pass --demo."),
        (("linkage",), "Pass --demo, or two tables and --on."),
        (("linkage", "ROWS", "PEOPLE"), "No column is named"),
        (("linkage", "ROWS", "PEOPLE", "--on", "age", "--demo"), "Leave out --demo"),
        (("linkage", "ROWS", "PEOPLE", "--on", "illness"), "has no column 'illness'"),
        (("unique", "nowhere.csv", "--on", "age"), "There is no file"),
        (("unique", "ROWS", "--on", 'age"; DROP'), "has no column"),
    ],
)
def test_bad_input_ends_with_two(
    run: Run, tables: tuple[str, str], words: tuple[str, ...], says: str
) -> None:
    named = {"ROWS": tables[0], "PEOPLE": tables[1]}
    code, out, err = run("attack", *(named.get(word, word) for word in words))
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_documented_and_has_one_sentence_of_help(run: Run, command: str) -> None:
    assert f"dalenius attack {command}" in DOCUMENTATION.read_text()
    assert re.fullmatch(r"[A-Z][^.]*\.", (COMMANDS[command].callback.__doc__ or "").strip())
    assert "--json" in run("attack", command, "--help")[1]
