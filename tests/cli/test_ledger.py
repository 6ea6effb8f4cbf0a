"""The commands of a ledger: what they print, exit codes, and that each is documented."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

import dalenius as dp
from dalenius.cli.ledger import app
from dalenius.ledger import store
from dalenius.losses import Pure

Run = Callable[..., tuple[int, str, str]]

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "cli.md"
COMMANDS = {command.name or command.callback.__name__: command for command in app.registered_commands}
TENTH = "pure(0.1)"


@pytest.fixture
def where(run: Run, tmp_path: Path) -> str:
    """A ledger with one account of epsilon 1."""
    path = str(tmp_path / "people.ledger")
    assert run("ledger", "open", path, "people", "--unit", "person", "--epsilon", "1")[0] == 0
    return path


def of(run: Run, *words: str) -> dict[str, object]:
    """The JSON of a command."""
    return json.loads(run("ledger", *words, "--json")[1])


def test_an_account_is_opened_once(run: Run, where: str) -> None:
    words = ("ledger", "open", where, "people", "--unit", "person", "--epsilon")
    assert run(*words, "1") == (0, "people: epsilon 1 for each person (each row), add_remove\n", "")
    code, _, err = run(*words, "2")
    assert code == 2 and "people" in err
    assert of(run, "verify", where)["entries"] == 1


def test_a_unit_with_all_its_words(run: Run, tmp_path: Path) -> None:
    words = ["--unit", "person", "--column", "id", "--window", "month", "--relation", "replace"]
    more = ["--epsilon", "1/3", "--delta", "1e-9", "--source", "census"]
    found = of(run, "open", str(tmp_path / "x"), "people", *words, *more)
    assert found == {
        "account": "people",
        "unit": {"entity": "person", "column": "id", "window": "month", "relation": "replace"},
        "epsilon": 1 / 3,
        "delta": 1e-9,
        "source": "census",
    }


def test_ten_tenths_fit_and_the_eleventh_is_refused_with_three(run: Run, where: str) -> None:
    for number in range(2, 12):
        assert of(run, "charge", where, "people", TENTH)["entry"] == number
    code, out, err = run("ledger", "charge", where, "people", TENTH)
    assert (code, out) == (3, "")
    assert "nothing is left" in err


def test_what_a_refusal_names_is_accepted(run: Run, where: str) -> None:
    code, out, _ = run("ledger", "charge", where, "people", "pure(0.7)", "--json")
    assert (code, json.loads(out)["accepted"]) == (0, True)
    code, out, _ = run("ledger", "charge", where, "people", "pure(0.7)", "--json")
    refused = json.loads(out)
    assert code == 3
    assert (refused["accepted"], refused["entry"], refused["next_loss"]) == (False, None, "pure(0.3)")
    assert refused["next"] < refused["needed"]
    assert run("ledger", "charge", where, "people", refused["next_loss"])[0] == 0


def test_a_dry_run_charges_nothing(run: Run, where: str) -> None:
    assert run("ledger", "charge", where, "people", TENTH, "--dry-run") == (
        0,
        "would be accepted by people\n",
        "",
    )
    code, _, err = run("ledger", "charge", where, "people", "pure(2)", "--dry-run")
    assert code == 3 and "Try epsilon=1." in err
    code, _, err = run("ledger", "charge", where, "people", TENTH, "--per-unit", "11", "--dry-run")
    assert code == 3
    assert of(run, "verify", where)["entries"] == 1


def test_a_group_is_charged(run: Run, where: str) -> None:
    assert run("ledger", "charge", where, "people", TENTH, "--per-unit", "5")[1].endswith(
        "left: epsilon 0.5 of epsilon 1\n"
    )


def test_cells_are_charged_in_parallel(run: Run, where: str) -> None:
    for cell in ("town=Aix", "town=Bern", "town=Celle"):
        assert run("ledger", "charge", where, "people", "pure(0.8)", "--cell", cell)[0] == 0
    code, _, err = run("ledger", "charge", where, "people", TENTH, "--cell", "Aix")
    assert code == 2 and "--cell wards=north" in err


def test_an_allowance_refuses_its_analyst(run: Run, where: str) -> None:
    code, out, _ = run("ledger", "allow", where, "people", "--by", "ana", "--epsilon", "0.2")
    assert (code, out) == (0, "entry 2 of people: epsilon 0.2 for ana\n")
    assert run("ledger", "charge", where, "people", "pure(0.3)", "--by", "ana")[0] == 3
    assert run("ledger", "charge", where, "people", "pure(0.3)", "--by", "bo")[0] == 0
    assert run("ledger", "allow", where, "people", "--epsilon", "0.2")[0] == 2


def test_json_has_stable_keys(run: Run, where: str, tmp_path: Path) -> None:
    charged = {"account", "accepted", "entry", "hash", "needed", "next", "next_loss", "remedy"}
    keys = {
        ("open", where, "people", "--unit", "person", "--epsilon", "1"): {
            "account",
            "unit",
            "epsilon",
            "delta",
            "source",
        },
        ("charge", where, "people", TENTH): charged,
        ("charge", where, "people", "pure(9)"): charged,
        ("charge", where, "people", TENTH, "--dry-run"): charged,
        ("allow", where, "people", "--by", "x", "--epsilon", "1"): {"account", "entry", "hash", "budget"},
        ("show", where): {"accounts", "file"},
        ("verify", where): {"entries", "anchor"},
        ("export", where, "--out", str(tmp_path / "x")): {"file", "format", "entries"},
    }
    for words, expected in keys.items():
        assert set(of(run, *words)) == expected, words


@pytest.mark.parametrize("text", ["gausian(3)", "pure(0.1", "pure(-1)", "pure(0.1) *"])
def test_a_mistake_in_a_loss_is_pointed_at(run: Run, where: str, text: str) -> None:
    code, out, err = run("ledger", "charge", where, "people", text)
    assert (code, out) == (2, "")
    _, shown, caret, *_ = err.splitlines()
    assert shown.strip() == text
    assert re.match(r" *\^ ", caret)


def test_no_command_but_open_makes_a_ledger(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "typo.ledger"
    for words in (("show",), ("charge", "people", TENTH), ("verify",), ("export",), ("forfeit", "1")):
        code, out, err = run("ledger", words[0], str(path), *words[1:])
        assert (code, out) == (2, "")
        assert "There is no ledger" in err
    assert not path.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("charge", "nobody", TENTH),
        ("show", "nobody"),
        ("export", "--account", "nobody"),
        ("export", "--format", "csv", "--json"),
        ("forfeit", "1"),
        ("verify", "--anchor", "nonsense"),
        ("show", "people", "--plot", "x.pdf"),
        ("open", "other", "--unit", "person", "--epsilon", "much"),
        ("open", "other", "--unit", "person", "--epsilon", "1", "--relation", "nonsense"),
    ],
)
def test_bad_input_ends_with_two(run: Run, where: str, words: tuple[str, ...]) -> None:
    code, out, err = run("ledger", words[0], where, *words[1:])
    assert (code, out) == (2, "")
    assert err and "Traceback" not in err


def test_what_is_no_ledger_ends_with_four(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "letter.txt"
    other.write_text("Dear reader, this is not a ledger. " * 200)
    code, _, err = run("ledger", "show", str(other))
    assert code == 4 and "not a ledger" in err


def test_a_changed_entry_ends_with_four(run: Run, where: str) -> None:
    assert run("ledger", "charge", where, "people", TENTH)[0] == 0
    with sqlite3.connect(where) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE entries SET body = replace(body, '0.1', '0.0')")
    connection.close()
    code, _, err = run("ledger", "verify", where)
    assert code == 4 and "Entry 2" in err


def test_verify_finds_what_an_anchor_knows(run: Run, where: str, tmp_path: Path) -> None:
    behind = tmp_path / "backup.ledger"
    with dp.Ledger(behind) as ledger:
        ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=1))
    code, out, _ = run("ledger", "verify", where)
    told, line = out.splitlines()
    assert (code, told) == (0, "1 entry, and all is as it was written")
    kept = tmp_path / "anchor"
    kept.write_text(line + "\n")
    for anchor in (line, str(kept)):
        assert run("ledger", "verify", where, "--anchor", anchor)[0] == 0
        assert run("ledger", "verify", str(behind), "--anchor", anchor)[0] == 4


def test_an_anchor_file_is_moved_on(run: Run, where: str, tmp_path: Path) -> None:
    kept = tmp_path / "anchor"
    assert run("ledger", "charge", where, "people", TENTH, "--anchor", str(kept))[0] == 0
    assert kept.read_text().strip() == of(run, "verify", where)["anchor"]


def test_a_ledger_behind_its_anchor_is_refused_until_its_owner_says_why(run: Run, tmp_path: Path) -> None:
    kept, path = tmp_path / "anchor", tmp_path / "people.ledger"
    kept.write_text(f"dalenius-anchor 7 {'a' * 64}\n")
    words = (
        "ledger",
        "open",
        str(path),
        "people",
        "--unit",
        "person",
        "--epsilon",
        "1",
        "--anchor",
        str(kept),
    )
    code, _, err = run(*words)
    assert code == 4 and "Entry 7" in err
    assert run(*words, "--accept", "the backup of Monday")[0] == 0
    assert run(*words)[0] == 0
    assert "the backup of Monday" in run("ledger", "export", str(path))[1]
    assert "accept" in run("ledger", "export", str(path), "--format", "csv")[1]


def test_an_open_reservation_is_shown_and_forfeited(run: Run, where: str) -> None:
    with dp.Ledger(where) as ledger:
        ledger.account("people").reserve(Pure(0.25), by="ana", purpose="model")
        code, out, _ = run("ledger", "show", where)
        assert code == 0 and "open reservations" in out
        assert run("ledger", "forfeit", where, "2")[1].startswith("entry 2 is forfeited")
    _, out, _ = run("ledger", "show", where)
    assert "open reservations" not in out and "1 of them forfeited" in out
    assert run("ledger", "forfeit", where, "2")[0] == 2


def test_show_is_read_at_a_glance(run: Run, where: str) -> None:
    said = ("--by", "ana", "--purpose", "[red]wards\x1b[2J", "--note", "in 2024")
    run("ledger", "charge", where, "people", "pure(0.25)", *said)
    code, out, _ = run("ledger", "show", where)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "people: epsilon 1 for each person (each row), add_remove"
    assert lines[1] == "█" * 30 + "░" * 10 + " 75.0 % left"
    assert lines[2] == "spent: epsilon 0.25 in 1 charge"
    assert lines[3] == "largest next release: pure(0.75)"
    assert re.search(r"ana +25\.0 % +0\.25 +1", out)
    assert re.search(r"2 .* record +ana +\[red\]wards�\[2J \(in 2024\) +pure\(0\.25\)", out)
    assert "\x1b" not in out


def test_a_name_does_not_act_on_the_terminal_of_a_refusal(run: Run, where: str) -> None:
    code, _, err = run("ledger", "charge", where, "people", "pure(2)", "--purpose", "x\x1b[2J")
    assert code == 3 and "x�[2J" in err


def test_show_without_accounts_and_with_several(run: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "x.ledger")
    dp.Ledger(path).close()
    assert run("ledger", "show", path) == (0, "There is no account yet.\n", "")
    for name in ("people", "cities"):
        run("ledger", "open", path, name, "--unit", "person", "--epsilon", "1")
    _, out, _ = run("ledger", "show", path, "--brief")
    assert re.findall(r"^(\w+): epsilon 1 for", out, re.MULTILINE) == ["cities", "people"]
    assert [one["spending"] for one in of(run, "show", path, "--brief")["accounts"]] == [None, None]


@pytest.mark.parametrize("against", ["time", "entries"])
def test_show_draws_the_burn_down(run: Run, where: str, tmp_path: Path, against: str) -> None:
    run("ledger", "charge", where, "people", TENTH)
    target = tmp_path / "burn.svg"
    code, out, _ = run("ledger", "show", where, "--plot", str(target), "--against", against)
    assert code == 0 and out.splitlines()[-1] == str(target)
    assert "<svg" in target.read_text()[:1000]


def test_whoever_has_the_lines_can_check_the_chain(run: Run, where: str) -> None:
    for loss in (TENTH, "gaussian(4) * 10"):
        run("ledger", "charge", where, "people", loss, "--note", "Übung\nzwei")
    _, out, _ = run("ledger", "export", where)
    before = "0" * 64
    for number, line in enumerate(out.splitlines(), start=1):
        entry = json.loads(line)
        hashed = entry.pop("hash")
        body = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert (entry["number"], entry["previous"]) == (number, before)
        assert sha256(body.encode()).hexdigest() == hashed
        before = hashed


def test_a_table_of_entries_holds_no_formula(run: Run, where: str, tmp_path: Path) -> None:
    run("ledger", "open", where, "cities", "--unit", "city", "--epsilon", "1", "--delta", "1e-6")
    words = ("--by", "ana", "--note", '=HYPERLINK("x"), "quoted"', "--cell", "size=large")
    run("ledger", "charge", where, "cities", "gaussian(40).poisson(0.01) * 10", *words)
    _, out, _ = run("ledger", "export", where, "--format", "csv", "--account", "cities")
    opened, charged = csv.DictReader(io.StringIO(out))
    assert (opened["number"], opened["event"], opened["loss"]) == ("2", "open", "")
    assert charged["loss"] == "gaussian(40).poisson(0.01) * 10"
    assert charged["cell"] == "size=large"
    assert charged["note"] == """'=HYPERLINK("x"), "quoted\""""
    target = tmp_path / "x.csv"
    assert run("ledger", "export", where, "--format", "csv", "--out", str(target))[1] == f"{target}\n"
    assert len(target.read_text().splitlines()) == 4


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_documented_and_has_one_sentence_of_help(run: Run, command: str) -> None:
    assert re.search(rf"^## ledger {command}$", DOCUMENTATION.read_text(), re.MULTILINE)
    assert re.fullmatch(r"[A-Z][^.]*\.", (COMMANDS[command].callback.__doc__ or "").strip())
    assert "--json" in run("ledger", command, "--help")[1]


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "grant"])
def test_the_keys_of_its_json_are_documented(
    run: Run, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Those of `grant`, which needs a server, are tested beside the function that it installs."""
    words = {
        "open": ("people", "--unit", "person", "--epsilon", "1"),
        "charge": ("people", TENTH),
        "allow": ("people", "--by", "ana", "--epsilon", "1"),
        "export": ("--out", str(tmp_path / "x")),
        "forfeit": ("2",),
        "correct-time": ("--why", "a wrong clock"),
    }
    with dp.Ledger(where) as ledger:
        with monkeypatch.context() as patched:
            if command == "correct-time":
                ahead = datetime.now(UTC) + timedelta(days=365)
                patched.setattr(store, "local_clock", lambda: ahead)
            ledger.account("people").reserve(Pure(0.1), by="ana")
        found = of(run, command, where, *words.get(command, ()))
    section = DOCUMENTATION.read_text().split(f"## ledger {command}\n")[1].partition("\n## ")[0]
    assert set(_keys(found)) <= set(re.findall(r"`(\w+)`", section))


def _keys(value: object) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for inner in value.values() for key in _keys(inner))]
    return [key for inner in value for key in _keys(inner)] if isinstance(value, list) else []


def test_verify_measures_again_where_it_is_told_to(run: Run, where: str) -> None:
    assert run("ledger", "charge", where, "people", "gaussian(20)")[0] in (0, 3)
    assert run("ledger", "charge", where, "people", TENTH)[0] == 0
    assert run("ledger", "verify", where, "--costs")[0] == 0
