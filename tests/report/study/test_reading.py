"""Rows from files: what is read, what is refused, and that a row never depends on another one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from zipfile import ZipFile

import duckdb
import numpy as np
import pytest
import torch
from PIL import Image

from dalenius.errors import InvalidArgument
from dalenius.report import study
from dalenius.report.study.data import OTHER
from dalenius.report.study.splitting import split

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
        ({"x": np.eye(8), "y": np.arange(8)}, "looks like no class"),
        ({"x": np.array(list("ab")), "y": np.arange(2)}, "array of numbers"),
        ({"x": np.array([{}]), "y": np.arange(1)}, "cannot be read as arrays"),
        ({"x": np.zeros((8, 0)), "y": np.arange(8) % 2}, "hold nothing"),
        ({"x": np.eye(8), "y": np.arange(8) % 2, "group": np.arange(8)}, "looks like no group"),
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
        ({"label": "paid", "ranges": {"word": (0, 1)}}, "no column of numbers"),
        ({"label": "paid", "ranges": {"age": (0, 1)}, "features": ["word"]}, "no column of numbers"),
    ],
)
def test_wrong_columns_are_refused_with_what_to_do(
    parquet: Write, options: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        study.read(parquet(TABLE), **options)
    assert refused.value.remedy


def test_a_file_that_is_no_npz_is_refused_and_no_error_of_others_gets_through(
    tmp_path: Path, npz: Write
) -> None:
    file, arrays = tmp_path / "x.npz", {"x": np.random.default_rng(1).random((40, 3)), "y": np.arange(40) % 2}
    whole = npz(**arrays).read_bytes()
    np.save(tmp_path / "plain.npy", np.eye(3))
    np.savez_compressed(file, **arrays)
    broken = bytearray(file.read_bytes())
    broken[150:180] = b"\xff" * 30
    with ZipFile(file, "w") as files:
        files.writestr("x.npy", b"no array")
        files.writestr("y.npy", b"")
    for content in (file.read_bytes(), (tmp_path / "plain.npy").read_bytes(), broken, whole[:300], b""):
        file.write_bytes(content)
        with pytest.raises(InvalidArgument, match="cannot be read as arrays"):
            study.read(file)
    (tmp_path / "X.NPZ").write_bytes(whole)
    assert len(study.read(tmp_path / "X.NPZ")) == 40


def test_stated_names_are_spelled_as_those_in_the_data_and_are_different(npz: Write) -> None:
    file = npz(x=np.eye(8), y=np.arange(8) % 2.0, group=np.array([*"aabbaab", OTHER]))
    found = study.read(file, classes=[0, True + 0], groups=["a", OTHER, "b"])
    assert (len(found), found.classes, found.groups, found.left_out) == (8, ("0", "1"), ("a", "b", OTHER), 0)
    assert study.read(file).groups == ("a", "b", OTHER)
    assert study.read(file, classes=[0, 2]).left_out == 4
    for stated in ({"groups": ["a", "a"]}, {"classes": ["0", 0]}, {"classes": "01"}, {"groups": ["a", ""]}):
        with pytest.raises(InvalidArgument, match="list of different names"):
            study.read(file, **{"classes": ["0", "1"], **stated})


def test_a_null_is_the_mean_of_an_unscaled_column_and_not_a_zero_before_it(parquet: Write) -> None:
    query = "SELECT CASE WHEN i % 5 = 0 THEN NULL ELSE 1000 + i END AS a, i % 2 AS y FROM range(100) t(i)"
    data = study.read(parquet(query), label="y")
    train, test = split(data, Fraction(1, 5), 0)
    x = torch.cat([train.x, test.x]).numpy()[:, 0]
    assert np.count_nonzero(x == 0) == 20
    assert np.delete(x, np.flatnonzero(x == 0)).std() == pytest.approx(1, abs=1e-5)
    assert abs(x).max() < 2


def test_grey_of_sixteen_bits_is_not_white_and_colors_may_come_last(tmp_path: Path, npz: Write) -> None:
    for name, shade in (("dark", 2**14), ("light", 2**15)):
        (tmp_path / "images" / name / "deeper.png").mkdir(parents=True)
        for i in range(4):
            deep = np.full((5, 5), shade, np.uint16)
            Image.fromarray(deep).save(tmp_path / "images" / name / f"{i}.png")
    found = study.read(tmp_path / "images", size=4)
    assert found.x[:4].max() == pytest.approx(0.25, abs=0.01)
    assert found.x[4:].min() == pytest.approx(0.5, abs=0.01)
    Image.fromarray(np.ones((5, 5), np.float32)).save(tmp_path / "images" / "dark" / "9.tiff")
    with pytest.raises(InvalidArgument, match="cannot be read as an image"):
        study.read(tmp_path / "images", size=4)
    clear = np.zeros((8, 5, 6, 4), np.uint8)
    assert study.read(npz(x=clear, y=np.arange(8) % 2)).shape == (4, 5, 6)


def test_a_parquet_file_is_read_by_its_own_name(tmp_path: Path, parquet: Write) -> None:
    place = tmp_path / "side=4" / "rows [1]*.parquet"
    place.parent.mkdir()
    for name, size in ((place.name, 40), ("rows [1] more.parquet", 50), ("rows 1.parquet", 60)):
        rows = parquet(f"SELECT i AS a, i % 2 AS y FROM range({size}) t(i)").read_bytes()
        (place.parent / name).write_bytes(rows)
    found = study.read(place, label="y")
    assert (len(found), found.unscaled) == (40, ("a",))


def test_names_are_in_an_order_of_their_own(npz: Write) -> None:
    labels = np.tile(np.array(["10", "nan", "b", "9", "inf"]), 8)
    assert study.read(npz(x=np.eye(40), y=labels)).classes == ("9", "10", "b", "inf", "nan")


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
