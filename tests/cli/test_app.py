"""The commands: what they print, exit codes, and that each is documented."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dalenius.cli.app import app

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "cli.md"
SAMPLED = "gaussian(4).poisson(0.01) * 10000"
COMMANDS = sorted(command.callback.__name__ for command in app.registered_commands if command.callback)

Run = Callable[..., tuple[int, str, str]]


def test_epsilon_prints_one_number(run: Run) -> None:
    assert run("epsilon", SAMPLED, "--delta", "1e-5") == (0, "0.9468668008\n", "")


def test_delta_is_the_way_back(run: Run) -> None:
    code, out, _ = run("delta", SAMPLED, "--epsilon", "0.9468668008")
    assert code == 0
    assert float(out) == pytest.approx(1e-5, rel=1e-6)


def test_calibrate_finds_the_noise(run: Run) -> None:
    code, out, _ = run(
        "calibrate", "gaussian(?).poisson(0.01) * 1000", "--epsilon", "1", "--delta", "1e-6", "--json"
    )
    found = json.loads(out)
    assert code == 0
    assert found["epsilon"]["upper"] <= 1
    assert found["epsilon"]["upper"] > 1 - 1e-6


def test_json_has_stable_keys(run: Run, tmp_path: Path) -> None:
    keys = {
        ("epsilon", SAMPLED, "--delta", "1e-5"): {"loss", "delta", "epsilon"},
        ("delta", SAMPLED, "--epsilon", "1"): {"loss", "delta", "epsilon"},
        ("calibrate", "laplace(?)", "--epsilon", "1", "--delta", "0"): {
            "loss",
            "unknown",
            "delta",
            "epsilon",
        },
        ("compare", SAMPLED, "--delta", "1e-5"): {"loss", "delta", "epsilon", "rows"},
        ("plot", "laplace(1)", "--out", str(tmp_path / "x.svg")): {"loss", "curve", "file"},
    }
    for words, expected in keys.items():
        _, out, _ = run(*words, "--json")
        assert set(json.loads(out)) == expected, words
    found = json.loads(run("epsilon", SAMPLED, "--delta", "1e-5", "--json")[1])["epsilon"]
    assert set(found) == {"lower", "upper", "tight"}


def test_infinity_is_valid_json(run: Run) -> None:
    _, out, _ = run("epsilon", "gaussian(1)", "--delta", "0", "--json")
    assert json.loads(out)["epsilon"]["upper"] == "inf"


def test_meaning_speaks(run: Run) -> None:
    code, out, _ = run("meaning", "pure(1)", "--delta", "0", "--prior", "1/10")
    assert code == 0
    assert "10% likely" in out
    assert "In every case" in out


def test_compare_marks_what_is_no_bound(run: Run) -> None:
    _, out, _ = run("compare", SAMPLED, "--delta", "1e-5")
    rows = {line.split("│")[1].strip(): line for line in out.splitlines() if line.startswith("│")}
    assert "approximation" in rows["gdp_clt"]
    assert "exact" in rows["certified"]


@pytest.mark.parametrize("curve", ["tradeoff", "epsilon"])
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_plot_writes_a_file(run: Run, tmp_path: Path, curve: str, ending: str) -> None:
    target = tmp_path / f"x.{ending}"
    code, _, _ = run("plot", "laplace(1)", "--curve", curve, "--out", str(target))
    assert code == 0
    assert target.stat().st_size > 1000


def test_a_population_warns_of_a_large_delta(run: Run) -> None:
    code, _, err = run("epsilon", "laplace(1)", "--delta", "1e-5", "--population", "60000")
    assert code == 0
    assert err.startswith("warning: delta = 1e-05 is not far below")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("epsilon", "gausian(4)", "--delta", "1e-5"), "Did you mean gaussian?"),
        (("epsilon", "gaussian(4)", "--delta", "2"), "delta must be in [0, 1)"),
        (("epsilon", "gaussian(4)", "--delta", "much"), "delta must be a number"),
        (("delta", "gaussian(4)", "--epsilon", "-1"), "epsilon must be 0 or more"),
        (("meaning", "pure(1)", "--prior", "1.5"), "prior must be in [0, 1]"),
        (("calibrate", "gaussian(4)", "--epsilon", "1", "--delta", "1e-6"), "Put a ?"),
        (("plot", "pure(1)", "--out", "x.pdf"), ".svg"),
        (("epsilon", "laplace(1) + laplace(1, relation=replace)", "--delta", "0"), "do not add up"),
        (("epsilon", '{"kind": "nonsense", "version": 1}', "--delta", "0"), "nonsense"),
        (("epsilon", "pure(1)"), "--delta"),
        (("plot", "pure(1)", "--out", "no/such/folder/x.svg"), "no/such/folder/x.svg: No such file"),
        (("nonsense",), "nonsense"),
    ],
)
def test_bad_input_ends_with_two_and_no_traceback(run: Run, words: tuple[str, ...], says: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_documented_and_has_one_sentence_of_help(command: str) -> None:
    assert re.search(rf"^## `?{command}`?$", DOCUMENTATION.read_text(), re.MULTILINE)
    (helped,) = (one.callback.__doc__ for one in app.registered_commands if one.callback.__name__ == command)
    assert re.fullmatch(r"[A-Z][^.]*\.", helped.strip())


def test_every_command_prints_json_on_demand(run: Run) -> None:
    for command in COMMANDS:
        assert "--json" in run(command, "--help")[1]
