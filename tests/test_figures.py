"""Figures are values; drawing them is deterministic and needs the plot extra only then."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from dalenius.errors import InvalidArgument, MissingExtra
from dalenius.figures import Figure, Series, check_drawing

FIGURE = Figure(
    "Errors of the best test",
    "false-positive rate",
    "false-negative rate",
    series=[
        Series("best test", [0.001, 0.1, 1], [0.99, 0.5, 0]),
        Series("guessing", [0.001, 1], [0.999, 0], style="dashed"),
        Series("seen", [0.5], [0.25], style="points"),
        Series("certified", [0.001, 0.5, 1], [0.9, 0.2, 0], style="steps"),
    ],
    x_scale="log",
    notes=["Ten steps at noise multiplier 4.", "Lower is worse for privacy."],
)


def test_a_figure_is_a_value() -> None:
    assert Figure.from_json(FIGURE.to_json()) == FIGURE
    assert hash(Figure.from_json(FIGURE.to_json())) == hash(FIGURE)


def test_svg_is_deterministic_and_well_formed(tmp_path: Path) -> None:
    first, second = FIGURE.save(tmp_path / "a.svg"), FIGURE.save(str(tmp_path / "b.svg"))
    assert first.read_bytes() == second.read_bytes()
    assert ET.fromstring(first.read_text()).tag.endswith("svg")
    assert FIGURE._repr_svg_() == first.read_text()


def test_png_is_written(tmp_path: Path) -> None:
    assert FIGURE.save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"dalenius\[plot\]"):
        FIGURE.save(tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()
    assert FIGURE._repr_svg_() is None


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Series("s", [1], [1, 2]), "length"),
        (lambda: Series("s", [1], [float("inf")]), "finite"),
        (lambda: Series("s", [1], [1], style="wavy"), "style"),
        (lambda: Figure("t", "x", "y", [], y_scale="cubic"), "y_scale"),
        (lambda: FIGURE.save("picture.gif"), ".svg, .png"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: object, named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        make()


@pytest.mark.parametrize(("values", "powers"), [((0.5, 8), False), ((1e-5, 8), True)])
def test_a_short_logarithmic_axis_has_plain_numbers(values: tuple[float, ...], powers: bool) -> None:
    drawn = Figure("t", "x", "y", [Series("s", values, (0, 1))], x_scale="log")._repr_svg_()
    assert drawn is not None
    assert ("10^{" in drawn) == powers


BARS = Figure(
    "Visits by ward",
    "ward",
    "visits",
    series=[
        Series("2025", [0, 1], [10, 20], style="bars", low=[8, None], high=[None, 25]),
        Series("2026", [0, 1], [12, 18], style="bars", low=[9, 15], high=[15, 21]),
    ],
    names=["A $x$", "B"],
)


@pytest.mark.parametrize("names", [("A", "B"), ("a ward with a very long name " * 2, "another " * 9)])
def test_bars_with_open_ends_are_drawn(names: tuple[str, str], tmp_path: Path) -> None:
    figure = replace(BARS, names=names)
    assert Figure.from_json(figure.to_json()) == figure
    drawn = figure.save(tmp_path / "bars.svg").read_text()
    assert drawn == figure._repr_svg_() and ET.fromstring(drawn).tag.endswith("svg")


def test_dates_and_one_sided_points_are_drawn(tmp_path: Path) -> None:
    points = Series("n", [20000, 20030], [3, 4], low=[None, 3], high=[4, None])
    figure = Figure("t", "day", "n", [points], x_scale="date")
    assert Figure.from_json(figure.to_json()) == figure
    assert "2024-Nov" in figure._repr_svg_() or "Nov" in figure._repr_svg_()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Series("s", [1], [1], low=[0]), "two ends"),
        (lambda: Series("s", [1], [1], low=[0, 1], high=[2]), "length"),
        (lambda: Series("s", [1], [1], low=[0], high=[float("inf")]), "finite"),
        (lambda: replace(BARS, y_scale="date"), "x axis"),
        (lambda: check_drawing("nowhere/picture.svg"), "no folder"),
    ],
)
def test_ends_that_cannot_be_drawn_are_refused(make: object, named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        make()
