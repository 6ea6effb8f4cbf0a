"""Rows from files: what is read, what is refused, and that a row never depends on another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from PIL import Image

from dalenius.errors import InvalidArgument
from dalenius.report import study
from dalenius.report.study.data import OTHER

Write = Callable[..., Path]


@pytest.fixture
def npz(tmp_path: Path) -> Write:
    def write(**arrays: object) -> Path:
        np.savez(tmp_path / "x.npz", **arrays)
        return tmp_path / "x.npz"

    return write


@pytest.fixture
def parquet(tmp_path: Path) -> Write:
    def write(query: str) -> Path:
        duckdb.sql(query).write_parquet(str(tmp_path / "x.parquet"))
        return tmp_path / "x.parquet"

    return write


TABLE = (
    "SELECT * FROM (VALUES (20, 'a', true, 'yes', 'n'), (40, 'b', NULL, 'no', 's'),"
    " (NULL, 'a', false, 'yes', NULL)) AS t(age, word, flag, paid, side), range(4)"
)


def test_an_npz_has_rows_labels_and_groups(npz: Write) -> None:
    found = study.read(npz(x=np.eye(8), y=np.arange(8) % 2.0, group=np.array(list("aabbaabb"))))
    assert (found.classes, found.groups, found.shape) == (("0", "1"), ("a", "b"), (8,))
    assert found.y.tolist() == [0, 1] * 4
    assert found.group is not None
    assert found.group.tolist() == [0, 0, 1, 1] * 2
    assert not found.public


def test_images_in_an_npz_have_their_colors_first(npz: Write) -> None:
    y = np.arange(8) % 2
    assert study.read(npz(x=np.full((8, 5, 6), 255, np.uint8), y=y)).shape == (1, 5, 6)
    assert study.read(npz(x=np.full((8, 5, 6, 3), 255, np.uint8), y=y)).shape == (3, 5, 6)
    assert study.read(npz(x=np.full((8, 5, 6, 3), 255, np.uint8), y=y)).x.max() == 1


def test_a_parquet_file_gives_numbers_and_hashed_texts(parquet: Write) -> None:
    found = study.read(parquet(TABLE), label="paid", group="side", ranges={"age": (0, 40)})
    assert found.classes == ("no", "yes")
    assert found.groups == ("n", "s", OTHER)
    assert found.unscaled == ("range",)
    assert sorted(set(found.x[:, 1].tolist())) == [0, 1]  # 20, 40 and none, of 0 to 40
    assert {row.sum() for row in found.x[:, 2:]} == {1, 2}  # a text each, and a flag that may be none


def test_an_image_folder_has_a_class_for_each_folder(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for i in range(4):
            Image.new("L", (9, 7), 255).save(tmp_path / name / f"{i}.png")
    (tmp_path / "dog" / "notes.txt").write_text("no image")
    found = study.read(tmp_path, size=8)
    assert (found.classes, found.x.shape, float(found.x.min())) == (("cat", "dog"), (8, 3, 8, 8), 1)
    (tmp_path / "dog" / "broken.png").write_text("no image")
    with pytest.raises(InvalidArgument, match="cannot be read as an image"):
        study.read(tmp_path, size=8)
    stated = study.read(tmp_path, size=8, classes=["cat", "dog", "cow"])
    assert (len(stated), stated.public, float(stated.x[4:].min())) == (9, True, 0)


def test_with_stated_classes_a_row_changes_no_other_and_no_error_tells_of_it(npz: Write) -> None:
    x, y, group = np.eye(9), np.arange(9) % 2.0, np.array([*"aabbaabb", "?"])
    x[8], y[8] = [np.nan, np.inf, 1e300, *[0] * 6], 7
    stated = {"classes": ["0", "1"], "groups": ["a", "b"]}
    without = study.read(npz(x=x[:8], y=y[:8], group=group[:8]), **stated)
    other_class = study.read(npz(x=x, y=y, group=group), **stated)
    for name in ("x", "y", "group"):
        assert np.array_equal(getattr(without, name), getattr(other_class, name))
    assert without.groups == other_class.groups == ("a", "b", OTHER)
    for label in (np.nan, 1):
        y[8] = label
        found = study.read(npz(x=x, y=y, group=group), **stated)
        assert np.array_equal(found.x[:8], without.x)
        assert np.isfinite(found.x).all()
        assert found.shape == without.shape
    assert len(study.read(npz(x=x[:0], y=y[:0], group=group[:0]), **stated)) == 0


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"x": np.eye(8)}, "has no array 'y'"),
        ({"x": np.eye(8), "y": np.zeros(8)}, "two classes or more"),
        ({"x": np.eye(8), "y": np.zeros(7)}, "one entry for each row"),
        ({"x": np.eye(8), "y": np.array([np.nan, 1, 0, 0, 1, 1, 0, 1])}, "rows without a label"),
        ({"x": np.eye(8), "y": np.arange(8)}, "looks like no label"),
        ({"x": np.array(list("ab")), "y": np.arange(2)}, "array of numbers"),
        ({"x": np.array([{}]), "y": np.arange(1)}, "cannot be read as arrays"),
    ],
)
def test_a_wrong_npz_is_refused_with_what_to_do(npz: Write, arrays: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        study.read(npz(**arrays))
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "Which column"),
        ({"label": "nope"}, "no column 'nope'"),
        ({"label": "paid", "group": "nope"}, "no column 'nope'"),
        ({"label": "paid", "features": ["paid"]}, "not the label"),
        ({"label": "paid", "ranges": {"age": (3, 3)}}, "to a larger one"),
        ({"label": "paid", "groups": ["n"]}, "no column tells them"),
    ],
)
def test_wrong_columns_are_refused_with_what_to_do(
    parquet: Write, options: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        study.read(parquet(TABLE), **options)
    assert refused.value.remedy


def test_other_sources_are_refused(tmp_path: Path, parquet: Write) -> None:
    (tmp_path / "x.csv").write_text("a,b\n")
    (tmp_path / "y.parquet").write_text("a,b\n")
    for name in ("x.csv", "y.parquet", "none.npz"):
        with pytest.raises(InvalidArgument):
            study.read(tmp_path / name, label="b")
    with pytest.raises(InvalidArgument, match="no number and no text"):
        study.read(parquet(TABLE.replace("*", "*, DATE '2020-01-01' AS day", 1)), label="paid")
    with pytest.raises(InvalidArgument, match="group means nothing"):
        study.read(tmp_path, group="side")
