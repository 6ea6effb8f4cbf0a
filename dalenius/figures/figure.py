"""`Figure`: a picture as a frozen value — series, axes and notes — that every layer can return.

    >>> figure = Figure("A line", "x", "y", series=(Series("identity", (0, 1), (0, 1)),))
    >>> Figure.from_json(figure.to_json()) == figure
    True

A figure holds numbers, not ink: it compares, stores and tests like any other value. Drawing needs
matplotlib (`pip install 'dalenius[plot]'`), which is imported when a figure is first drawn; the same
figure always gives the same bytes of SVG. Colours are those of Okabe and Ito (2008), which remain
distinct for colour-blind readers; `style` sets series apart in print.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal, get_args

from dalenius.errors import InvalidArgument, MissingExtra

Scale = Literal["linear", "log", "date"]
Style = Literal["line", "dashed", "dotted", "steps", "points", "bars"]
Ends = Sequence[float | None]


@dataclass(frozen=True)
class Series:
    """One line, cloud of points or row of bars, with the name shown in the legend. All numbers are finite.

    `low` and `high` are the ends of error bars; an end that is None is open, and drawn as an arrow.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: Style = "line"
    low: Ends | None = None
    high: Ends | None = None

    def __post_init__(self) -> None:
        _one_of(self.style, get_args(Style), "style")
        for axis in ("x", "y"):
            object.__setattr__(self, axis, tuple(float(value) for value in getattr(self, axis)))
        if (self.low is None) != (self.high is None):
            raise InvalidArgument("Error bars have two ends.", remedy="Pass low and high, None where open.")
        for end in ("low", "high"):
            given = getattr(self, end)
            ends = given and tuple(None if value is None else float(value) for value in given)
            object.__setattr__(self, end, None if given is None else tuple(ends))
        given = [self.x, self.y, *(end for end in (self.low, self.high) if end is not None)]
        if len({len(values) for values in given}) > 1:
            raise InvalidArgument(
                "x, y and the ends of error bars differ in length.", remedy="Pass one y for each x."
            )
        if not all(math.isfinite(value) for values in given for value in values if value is not None):
            raise InvalidArgument("A series holds a number that is not finite.", remedy="Leave it out.")


@dataclass(frozen=True)
class Figure:
    """A picture as a value: title, axes, series, and notes printed below it.

    `names` stand at 0, 1, 2, … of the x axis, where that has no numbers. On a date scale x counts days since
    1970-01-01.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    notes: Sequence[str] = ()
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        _one_of(self.x_scale, get_args(Scale), "x_scale")
        _one_of(self.y_scale, get_args(Scale), "y_scale")
        object.__setattr__(self, "series", tuple(self.series))
        object.__setattr__(self, "notes", tuple(self.notes))
        object.__setattr__(self, "names", tuple(self.names))
        if self.y_scale == "date":
            raise InvalidArgument("Dates belong on the x axis.", remedy='Pass x_scale="date".')

    def save(self, path: str | Path) -> Path:
        """Draw into a file; its ending, .svg or .png, says the format."""
        target = Path(path)
        _one_of(target.suffix, (".svg", ".png"), "the ending of the path")
        target.write_bytes(self._drawn(target.suffix[1:]))
        return target

    def to_json(self) -> str:
        """The figure as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Figure:
        """Read a figure back."""
        fields = json.loads(text)
        return Figure(**{**fields, "series": [Series(**series) for series in fields["series"]]})

    def _repr_svg_(self) -> str | None:
        """The notebook's picture; without matplotlib the notebook falls back to text."""
        try:
            return self._drawn("svg").decode()
        except MissingExtra:
            return None

    def _drawn(self, form: str) -> bytes:
        check_drawing()
        from dalenius.figures.drawing import drawn

        return drawn(self, form)


def check_drawing(path: str | Path | None = None) -> None:
    """Refuse, before anything is computed, to draw without matplotlib or into a file that cannot be written.

    Args:
        path: The file, where one is to be written.
    """
    if path is not None:
        _one_of(Path(path).suffix, (".svg", ".png"), "the ending of the path")
        if not Path(path).resolve().parent.is_dir():
            raise InvalidArgument(
                f"There is no folder {Path(path).parent}.", remedy="Name a file in a folder that is there."
            )
    try:
        import_module("matplotlib.figure")
    except ImportError as absent:
        raise MissingExtra(
            "Drawing a figure needs matplotlib.", remedy="Run: pip install 'dalenius[plot]'"
        ) from absent


def _one_of(value: str, allowed: tuple[str, ...], argument: str) -> None:
    if value not in allowed:
        raise InvalidArgument(
            f"{argument} must be one of {', '.join(allowed)}.", remedy=f"Choose {allowed[0]}."
        )
