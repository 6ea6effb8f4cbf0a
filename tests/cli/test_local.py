"""`dalenius local`: reports from a file and back, simulations, plans, and that each command is documented."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dalenius.cli.local import app
from dalenius.ledger import Budget, Ledger
from dalenius.privacy.unit import Unit
from dalenius.release import Release

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "cli.md"
COMMANDS = {one.callback.__name__: one for one in app.registered_commands if one.callback}

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    cities = ["Rome"] * 3000 + ["Oslo"] * 1000 + ["Nowhere"] * 500
    (tmp_path / "people.csv").write_text("id,city\n" + "".join(f"{i},{c}\n" for i, c in enumerate(cities)))
    (tmp_path / "plain.txt").write_text("".join(f"{c}\n" for c in cities))
    (tmp_path / "items.txt").write_text("Rome\nOslo\nBern\n")
    (tmp_path / "counts.csv").write_text("city,people\nRome,700000000\nOslo,200000000\nBern,100000000\n")
    names = ["people.csv", "plain.txt", "items.txt", "counts.csv", "a.bin", "b.bin", "plan.svg", "all.ledger"]
    return {name: str(tmp_path / name) for name in names}


def shares(out: str) -> dict[str, float]:
    columns = Release.from_json(out).columns
    return dict(zip(columns["item"], columns["share"], strict=True))


@pytest.mark.parametrize(
    "protocol", ["best", "kary", "hadamard", "projective", "hashing", "optimized", "subset"]
)
def test_reports_go_to_a_file_and_come_back(run: Run, files: dict[str, str], protocol: str) -> None:
    """Shares are within eight standard deviations."""
    how = ("--items", files["items.txt"], "--epsilon", "4", "--protocol", protocol)
    sources = ((files["people.csv"], "--column", "city"), (files["plain.txt"],))
    for (source, *column), target in zip(sources, ("a.bin", "b.bin"), strict=True):
        code, out, err = run("local", "encode", source, *column, *how, "--out", files[target])
        assert (code, err) == (0, "") and "4500 reports of" in out
    code, out, _ = run("local", "estimate", files["a.bin"], files["b.bin"], *how, "--json")
    found = shares(out)
    assert code == 0 and set(found) == {"(other)", "Rome", "Oslo", "Bern"}
    true = {"Rome": 6 / 9, "Oslo": 2 / 9, "(other)": 1 / 9, "Bern": 0}
    assert all(abs(found[name] - share) < 8 * 0.6 / np.sqrt(9000) for name, share in true.items())
    code, out, _ = run("local", "estimate", files["a.bin"], *how, "--top", "2")
    assert code == 0 and "Rome" in out and "±" in out and "Bern" not in out and "4500 reports" in out


def test_numbers_need_no_list(run: Run, files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("3\n" * 900 + "x\n-1\n99\n\n" * 25)
    how = ("--domain", "5", "--epsilon", "5")
    assert run("local", "encode", str(tmp_path / "n.txt"), *how, "--out", files["a.bin"], "--json")[0] == 0
    found = shares(run("local", "estimate", files["a.bin"], *how, "--json")[1])
    assert abs(found[3] - 0.9) < 0.1 and abs(found[0] - 0.1) < 0.1


def test_an_account_pays(run: Run, files: dict[str, str]) -> None:
    ledger = Ledger(files["all.ledger"])
    ledger.open("phones", unit=Unit("person", relation="replace"), budget=Budget(epsilon=1.5))
    ledger.close()
    how = ("--items", files["items.txt"], "--epsilon", "1")
    run("local", "encode", files["plain.txt"], *how, "--out", files["a.bin"])
    charge = ("--charge", files["all.ledger"], "phones", "--by", "ana")
    code, out, _ = run("local", "estimate", files["a.bin"], *how, *charge)
    assert code == 0 and "phones, entry 2" in out
    assert run("local", "estimate", files["a.bin"], *how, *charge)[0] == 3
    with Ledger(files["all.ledger"]) as again:
        assert float(again.account("phones").spent.epsilon) == pytest.approx(1, rel=1e-9)


def test_a_billion_people_are_simulated(run: Run, files: dict[str, str]) -> None:
    code, out, _ = run("local", "simulate", files["counts.csv"], "--epsilon", "1", "--json")
    assert code == 0
    assert all(
        abs(found - true) < 1e-3 for found, true in zip(shares(out).values(), (0.7, 0.2, 0.1), strict=True)
    )
    assert "nobody reported" in run("local", "simulate", files["counts.csv"], "--epsilon", "1")[1]


def test_a_plan_is_a_table_and_a_picture(run: Run, files: dict[str, str]) -> None:
    words = (
        "local",
        "plan",
        "--domain",
        "100",
        "--users",
        "10000",
        "--epsilon",
        "1",
        "--plot",
        files["plan.svg"],
    )
    code, out, _ = run(*words)
    assert (
        code == 0 and "Take " in out and "local hashing" in out and files["plan.svg"] in out.replace("\n", "")
    )
    assert "<svg" in Path(files["plan.svg"]).read_text()
    found = json.loads(run(*words, "--json")[1])
    assert set(found) == {"rows", "choice", "file"} and set(found["rows"][0]) == {"protocol", "error", "bits"}
    errors = [row["error"] for row in found["rows"]]
    assert errors == sorted(errors) and errors[0] == pytest.approx(1.96 * 1.91 / 100, rel=0.05)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("encode", "plain.txt", "--epsilon", "1", "--out", "a.bin"), "--items"),
        (
            ("encode", "plain.txt", "--epsilon", "1", "--out", "a.bin", "--domain", "4", "--protocol", "x"),
            "kary",
        ),
        (
            ("encode", "people.csv", "--column", "x", "--epsilon", "1", "--out", "a.bin", "--domain", "4"),
            "column",
        ),
        (("estimate", "plain.txt", "--epsilon", "1", "--domain", "4"), "to_bytes"),
        (("estimate", "gone.bin", "--epsilon", "1", "--domain", "4"), "gone.bin"),
        (("simulate", "plain.txt", "--epsilon", "1"), "Berlin"),
        (("plan", "--domain", "100", "--users", "0", "--epsilon", "1"), "users"),
        (("plan", "--domain", "100", "--users", "10", "--epsilon", "one"), "epsilon"),
    ],
)
def test_bad_input_is_refused_in_words(
    run: Run, files: dict[str, str], words: tuple[str, ...], says: str
) -> None:
    code, out, err = run("local", *(files.get(word, word) for word in words))
    assert (code, out) == (2, "") and says in err and "Traceback" not in err


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_documented_and_has_one_sentence_of_help(run: Run, command: str) -> None:
    assert f"dalenius local {command}" in DOCUMENTATION.read_text()
    assert re.fullmatch(r"[A-Z][^.]*\.", (COMMANDS[command].callback.__doc__ or "").strip())
    assert "--json" in run("local", command, "--help")[1]
