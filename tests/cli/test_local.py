"""`dalenius local`: reports from a file and back, simulations, plans, and that each command is documented."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dalenius.cli.local import app
from dalenius.ledger import Budget, Ledger
from dalenius.local import BitFlips, DuchiResponse, HadamardSketch, HybridResponse, Randomizer
from dalenius.mechanisms import Laplace
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


def test_error_bars_hold_despite_forged_reports(run: Run, files: dict[str, str]) -> None:
    """They are wider with --forged, and what is no fraction is refused before anything else."""
    how = ("--items", files["items.txt"], "--epsilon", "4")
    run("local", "encode", files["plain.txt"], *how, "--out", files["a.bin"])
    lows = []
    for forged in ("0", "0.05"):
        code, out, _ = run("local", "estimate", files["a.bin"], *how, "--forged", forged, "--json")
        columns = Release.from_json(out).columns
        lows.append(columns["share_low"][columns["item"].index("Rome")])
        assert code == 0
    assert lows[0] > lows[1] + 0.01
    assert run("local", "estimate", "missing.bin", *how, "--forged", "2")[0] == 2


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


def encoded(run: Run, files: dict[str, str], source: Path, *words: str) -> int:
    """How many reports a file gives."""
    how = ("--items", files["items.txt"], "--epsilon", "1", "--protocol", "kary", "--out", files["a.bin"])
    code, out, err = run("local", "encode", str(source), *words, *how, "--json")
    assert (code, err) == (0, "")
    return int(json.loads(out)["reports"])


def test_who_reports_does_not_depend_on_values(run: Run, files: dict[str, str], tmp_path: Path) -> None:
    """Empty lines, empty cells and values of any length are people, too."""
    source = tmp_path / "one.csv"
    before = csv.field_size_limit()
    for cells in (["Rome"] * 4, ["", "Rome", "", "Oslo"], ["x" * 200_000, "", "", ""], [""] * 4):
        source.write_text("city\n" + "".join(f"{cell}\n" for cell in cells))
        assert encoded(run, files, source, "--column", "city") == 4
        source.with_suffix(".txt").write_text("".join(f"{cell}\n" for cell in cells))
        assert encoded(run, files, source.with_suffix(".txt")) == 4
    assert csv.field_size_limit() == before


def test_marks_of_encodings_are_no_part_of_texts(run: Run, files: dict[str, str], tmp_path: Path) -> None:
    """In the header, the first value and the first item; at ε = 40 reports are true but for 1e-15."""
    (tmp_path / "items.txt").write_text("Rome\nOslo\n", encoding="utf-8-sig")
    (tmp_path / "people.csv").write_text("city\nRome\nRome\n", encoding="utf-8-sig")
    (tmp_path / "people.txt").write_text("Rome\nRome\n", encoding="utf-8-sig")
    how = ("--items", files["items.txt"], "--epsilon", "40", "--protocol", "kary")
    for source, *column in (("people.csv", "--column", "city"), ("people.txt",)):
        run("local", "encode", str(tmp_path / source), *column, *how, "--out", files["a.bin"])
        found = shares(run("local", "estimate", files["a.bin"], *how, "--json")[1])
        assert set(found) == {"(other)", "Rome", "Oslo"} and found["Rome"] == pytest.approx(1)
    (tmp_path / "counts.csv").write_text("Rome,700\nOslo,300\n", encoding="utf-8-sig")
    assert "Rome" in shares(run("local", "simulate", files["counts.csv"], "--epsilon", "1", "--json")[1])


def test_other_is_one_item(run: Run, files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("Rome\n(other)\nOslo\n")
    assert encoded(run, files, tmp_path / "plain.txt") == 4500
    how = ("--items", files["items.txt"], "--epsilon", "1", "--protocol", "kary", "--json")
    columns = Release.from_json(run("local", "estimate", files["a.bin"], *how)[1]).columns
    assert sorted(columns["item"]) == ["(other)", "Oslo", "Rome"]


def test_nothing_is_charged_or_counted_by_mistake(run: Run, files: dict[str, str], tmp_path: Path) -> None:
    """A header is no person, a file is not read twice, and no reports cost nothing."""
    how = ("--items", files["items.txt"], "--epsilon", "1")
    code, _, err = run("local", "encode", files["people.csv"], *how, "--out", files["a.bin"])
    assert code == 2 and "--column" in err
    run("local", "encode", files["plain.txt"], *how, "--out", files["a.bin"])
    (tmp_path / "link.bin").symlink_to(files["a.bin"])
    for again in (files["a.bin"], str(tmp_path / "link.bin")):
        code, _, err = run("local", "estimate", files["a.bin"], again, *how)
        assert code == 2 and "twice" in err
    ledger = Ledger(files["all.ledger"])
    ledger.open("phones", unit=Unit("person", relation="replace"), budget=Budget(epsilon=1.5))
    ledger.close()
    (tmp_path / "nobody.txt").write_text("")
    run("local", "encode", str(tmp_path / "nobody.txt"), *how, "--out", files["b.bin"])
    code, _, err = run("local", "estimate", files["b.bin"], *how, "--charge", files["all.ledger"], "phones")
    assert code == 2 and "no reports" in err
    with Ledger(files["all.ledger"]) as after:
        assert float(after.account("phones").spent.epsilon) == 0


def test_a_billion_people_are_simulated(run: Run, files: dict[str, str]) -> None:
    code, out, _ = run("local", "simulate", files["counts.csv"], "--epsilon", "1", "--json")
    assert code == 0
    assert all(
        abs(found - true) < 1e-3 for found, true in zip(shares(out).values(), (0.7, 0.2, 0.1), strict=True)
    )
    assert "nobody reported" in run("local", "simulate", files["counts.csv"], "--epsilon", "1")[1]


@pytest.mark.parametrize(
    ("randomizer", "lines", "says"),
    [
        (
            HadamardSketch.calibrate(rows=64, columns=64, epsilon=4),
            "home,600000000\nhelp,400000000\n",
            "home",
        ),
        (HybridResponse.calibrate(lower=0, upper=24, epsilon=1), "hours,people\n3.5,700\n12,300\n", "mean"),
        (BitFlips.calibrate(domain=2, epsilon=4, chosen=1), "on,600000\noff,400000\n", "on"),
    ],
)
def test_any_protocol_is_simulated_from_its_file(
    run: Run, tmp_path: Path, randomizer: Randomizer, lines: str, says: str
) -> None:
    (tmp_path / "m.json").write_text(randomizer.to_json())
    (tmp_path / "c.csv").write_text(lines)
    words = ("local", "simulate", str(tmp_path / "c.csv"), "--mechanism", str(tmp_path / "m.json"))
    code, out, err = run(*words)
    assert (code, err) == (0, "") and says in out and "nobody reported" in out
    assert Release.from_json(run(*words, "--json")[1]).receipt.mechanism == randomizer.to_json()
    code, _, err = run(*words, "--epsilon", "1")
    assert code == 2 and "--mechanism" in err


def test_numbers_are_numbers(run: Run, files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(DuchiResponse.calibrate(lower=0, upper=1, epsilon=1).to_json())
    words = ("local", "simulate", files["counts.csv"], "--mechanism", str(tmp_path / "m.json"))
    assert "of numbers" in run(*words)[2]
    (tmp_path / "m.json").write_text(Laplace(scale=1, sensitivity=1).to_json())
    assert "on devices" in run(*words)[2]


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
        (("simulate", "counts.csv"), "--mechanism"),
        (("plan", "--domain", "100", "--users", "0", "--epsilon", "1"), "users"),
        (("plan", "--domain", "100", "--users", "10", "--epsilon", "one"), "epsilon"),
    ],
)
def test_bad_input_is_refused_in_words(
    run: Run, files: dict[str, str], words: tuple[str, ...], says: str
) -> None:
    code, out, err = run("local", *(files.get(word, word) for word in words))
    assert (code, out) == (2, "") and says in err and "Traceback" not in err


@pytest.mark.parametrize("number", ["²", "٣", "1.5", "-1", "", "9" * 5000])
def test_counts_are_in_plain_digits(run: Run, tmp_path: Path, number: str) -> None:
    path = tmp_path / "c.csv"
    for lines in (f"b,{number}\na,3\nc,{number}\n", f"a,3\nb,{number}\n"):
        path.write_text(lines)
        code, out, err = run("local", "simulate", str(path), "--epsilon", "1")
        assert (code, out) == (2, "") and "Berlin,3700000" in err


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_documented_and_has_one_sentence_of_help(run: Run, command: str) -> None:
    assert f"dalenius local {command}" in DOCUMENTATION.read_text()
    assert re.fullmatch(r"[A-Z][^.]*\.", (COMMANDS[command].callback.__doc__ or "").strip())
    assert "--json" in run("local", command, "--help")[1]
