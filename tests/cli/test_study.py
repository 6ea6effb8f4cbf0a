"""`dalenius study`: from a file to a folder with a page, as an owner and paid for; exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch
from PIL import Image

from dalenius.cli.study import spread

Run = Callable[..., tuple[int, str, str]]
QUICK = ("--delta", "1e-5", "--epochs", "2", "--batch-size", "32", "--model", "logistic")


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    number = np.arange(200)
    x = np.stack([number % 2, number % 3], axis=1).astype(float)
    np.savez(tmp_path / "rows.npz", x=x, y=number % 2, group=number % 5 == 0)
    return tmp_path / "rows.npz"


def test_an_npz_becomes_a_page_that_says_it_is_not_private(run: Run, npz: Path, tmp_path: Path) -> None:
    out = tmp_path / "made" / "here"
    code, printed, said = run(
        "study", str(npz), "--epsilon", "1", "4", *QUICK, "--clips", "1", "--out", str(out)
    )
    assert code == 0, said
    assert printed.startswith("NOT PRIVATE: an owner's experiment")
    assert [line.split("  ")[0] for line in printed.splitlines()[3:7]] == [
        "without privacy",
        "epsilon 1",
        "epsilon 4",
        "clipping alone, clip 1",
    ]
    files = printed.split("\n\n")[-1].split()
    assert files[:2] == [str(out / "index.html"), str(out / "study.json")]
    assert {Path(file).stem for file in files[2:]} == {"accuracy", "classes", "groups", "membership"}
    assert {*map(str, out.iterdir())} == {*files}
    assert "NOT PRIVATE" in (out / "index.html").read_text()
    assert said.splitlines()[0] == "training: without privacy"


def test_an_account_pays_for_what_is_shown(run: Run, npz: Path, tmp_path: Path) -> None:
    ledger, out = str(tmp_path / "people.ledger"), tmp_path / "new"
    run("ledger", "open", ledger, "people", "--unit", "person", "--epsilon", "9", "--delta", "1e-4")
    words = ("study", str(npz), "--epsilon", "1", "4", *QUICK, "--out", str(out), "--json")
    paying = (*words, "--charge", ledger, "people", "--public-size", "200")
    code, _, said = run(*paying)
    assert (code, "--metrics-epsilon" in said) == (2, True)
    code, _, said = run(*paying, "--metrics-epsilon", "0.5")
    assert (code, "State all classes" in said, out.exists()) == (2, True, False)
    stated = ("--classes", "0,1", "--groups", "True,False", "--metrics-epsilon", "0.5")
    code, printed, said = run(*paying, *stated)
    found = json.loads(printed)
    assert (code, said, found["private"], found["settings"]["entry"]) == (0, "", True, 2)
    assert {*found["files"]} == {"page", "json", "accuracy", "classes", "groups"}
    shown = json.loads(run("ledger", "export", ledger)[1].splitlines()[1])
    parts = [one[of] for one in found["runs"] for of in ("receipt", "released")]
    assert len(parts) == 4
    assert shown["event"] == "reserve"
    assert "NOT PRIVATE" not in (out / "index.html").read_text()


def test_a_parquet_file_becomes_a_page(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    columns = "range AS age, range % 3 || 'x' AS word, range % 2 = 0 AS paid, range % 7 = 0 AS side"
    duckdb.sql(f"SELECT {columns} FROM range(200)").write_parquet(str(file))
    words = ("study", str(file), "--epsilon", "1", *QUICK, "--out", str(tmp_path / "new"), "--json")
    more = ("--label", "paid", "--group", "side", "--range", "age=0:200", "--clips", "1")
    code, printed, said = run(*words, *more)
    assert code == 0, said
    found = json.loads(printed)
    assert (found["classes"], found["groups"]) == (["False", "True"], ["False", "True"])
    assert (tmp_path / "new" / "groups.png").exists()


def test_a_folder_of_images_becomes_a_page(run: Run, tmp_path: Path) -> None:
    for name, shade in (("dark", 30), ("light", 220)):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(100):
            Image.new("L", (6, 6), shade + i // 10).save(tmp_path / "images" / name / f"{i}.png")
    out = tmp_path / "new"
    words = ("study", str(tmp_path / "images"), "--epsilon", "1", *QUICK[:-2], "--clips", "1", "--json")
    code, printed, said = run(*words, "--size", "6", "--out", str(out))
    assert code == 0, said
    found = json.loads(printed)
    assert (found["settings"]["model"], found["classes"]) == ("cnn", ["dark", "light"])
    assert "NOT PRIVATE" in (out / "index.html").read_text()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--epsilon", "0"), "epsilon must be above 0"),
        (("--epsilon", "many"), "epsilon must be a number"),
        (("--epsilon", "1", "--label", "z"), "has no array 'z'"),
        (("--epsilon", "1", "--batch-size", "161"), "is larger than the 160 rows"),
        (("--epsilon", "1", "--model", "forest"), "There is no model forest"),
        (("--epsilon", "1", "--range", "age=a:b"), "no number"),
        (("--epsilon", "1", "--public-size", "9"), "Add --charge"),
        (("--epsilon", "1", "--shadows", "9"), "Ask for 10 shadow models or more"),
        (
            (
                "--epsilon",
                "1",
                "--charge",
                "none.ledger",
                "people",
                "--public-size",
                "9",
                "--metrics-epsilon",
                "1",
            ),
            "There is no ledger",
        ),
    ],
)
def test_wrong_input_ends_with_2_and_leaves_no_folder(
    run: Run, npz: Path, tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    code, printed, said = run("study", str(npz), "--delta", "1e-5", "--out", str(tmp_path / "new"), *words)
    assert (code, printed) == (2, "")
    assert problem in said
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_there_is_not_written_into(run: Run, npz: Path, tmp_path: Path) -> None:
    code, _, said = run("study", str(npz), "--epsilon", "1", "--delta", "1e-5", "--out", str(tmp_path))
    assert code == 2
    assert "is there already. Name a folder that is not there yet." in said


def test_nothing_of_the_data_is_told_before_classes_are_stated(run: Run, tmp_path: Path) -> None:
    ledger, said = str(tmp_path / "people.ledger"), set()
    run("ledger", "open", ledger, "people", "--unit", "person", "--epsilon", "9", "--delta", "1e-4")
    for labels in (np.arange(60), np.arange(60) % 2, np.zeros(60), np.full(60, np.nan)):
        np.savez(tmp_path / "rows.npz", x=np.eye(60), y=labels)
        words = (
            "study",
            str(tmp_path / "rows.npz"),
            "--epsilon",
            "1",
            *QUICK,
            "--out",
            str(tmp_path / "new"),
        )
        paying = ("--charge", ledger, "people", "--public-size", "200", "--metrics-epsilon", "1")
        said.add(run(*words, *paying))
    assert len(said) == 1
    assert "State all classes" in said.pop()[2]


def test_rows_of_no_stated_class_are_told_to_their_owner(run: Run, npz: Path, tmp_path: Path) -> None:
    words = ("study", str(npz), "--epsilon", "4", *QUICK, "--clips", "1", "--out", str(tmp_path / "new"))
    code, printed, said = run(*words, "--classes", "0,2", "--batch-size", "10")
    assert code == 0, said
    assert "Left out: 100 rows of none of the classes." in printed


def test_numbers_in_a_row_belong_to_their_option() -> None:
    words = ["a.npz", "--epsilon", "0.5", "1", "1/2", "--clips", "1e-1", "1", "--out", "3"]
    repeated = "a.npz --epsilon 0.5 --epsilon 1 --epsilon 1/2 --clips 1e-1 --clips 1 --out 3"
    assert spread(words) == repeated.split()
    assert spread(["--epsilon", "1", "a.npz"]) == ["--epsilon", "1", "a.npz"]
