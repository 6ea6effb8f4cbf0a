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

import io
import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from dalenius.errors import InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Scale = Literal["linear", "log"]
Style = Literal["line", "dashed", "dotted", "steps", "points"]

_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DRAWN: dict[Style, dict[str, Any]] = {
    "line": {"linestyle": "-"},
    "dashed": {"linestyle": "--"},
    "dotted": {"linestyle": ":"},
    "steps": {"linestyle": "-", "drawstyle": "steps-post"},
    "points": {"linestyle": "", "marker": "o"},
}
_LOOK: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the picture is the same everywhere
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlepad": 12,
    "lines.linewidth": 2,
    "lines.markersize": 5,
    "legend.frameon": False,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.7,
    "svg.hashsalt": "dalenius",  # element names derive from this, not from chance
}


@dataclass(frozen=True)
class Series:
    """One line or cloud of points, with the name shown in the legend. All numbers are finite."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: Style = "line"

    def __post_init__(self) -> None:
        _one_of(self.style, get_args(Style), "style")
        for axis in ("x", "y"):
            object.__setattr__(self, axis, tuple(float(value) for value in getattr(self, axis)))
        if len(self.x) != len(self.y):
            raise InvalidArgument("x and y differ in length.", remedy="Pass one y for each x.")
        if not all(map(math.isfinite, (*self.x, *self.y))):
            raise InvalidArgument("A series holds a number that is not finite.", remedy="Leave it out.")


@dataclass(frozen=True)
class Figure:
    """A picture as a value: title, axes, series, and notes printed below it."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        _one_of(self.x_scale, get_args(Scale), "x_scale")
        _one_of(self.y_scale, get_args(Scale), "y_scale")
        object.__setattr__(self, "series", tuple(self.series))
        object.__setattr__(self, "notes", tuple(self.notes))

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
        try:
            from matplotlib import rc_context
            from matplotlib.figure import Figure as Canvas
        except ImportError as absent:
            raise MissingExtra(
                "Drawing a figure needs matplotlib.", remedy="Run: pip install 'dalenius[plot]'"
            ) from absent
        with rc_context(_LOOK):
            canvas = Canvas(figsize=(7.2, 4.5), dpi=160, layout="constrained")
            _draw(self, canvas)
            ink = io.BytesIO()
            # Only SVG carries a date; without it the same figure is the same file.
            more: dict[str, str | None] = {"Date": None} if form == "svg" else {}
            if self.notes:
                more["Description"] = " ".join(self.notes)
            canvas.savefig(ink, format=form, metadata={"Title": self.title, **more})
        return ink.getvalue()


def _draw(figure: Figure, canvas: Canvas) -> None:
    axes = canvas.add_subplot()
    # Names are shown as they are: a $ in one is no formula.
    axes.set_title(figure.title, parse_math=False)
    axes.set_xlabel(figure.x_label, parse_math=False)
    axes.set_ylabel(figure.y_label, parse_math=False)
    axes.set(xscale=figure.x_scale, yscale=figure.y_scale)
    axes.grid(True)
    _plain_ticks(figure, axes)
    for index, series in enumerate(figure.series):
        _draw_series(series, axes, _COLORS[index % len(_COLORS)])
    if len(figure.series) > 1:
        for text in axes.legend().get_texts():
            text.set_parse_math(False)
    if figure.notes:
        lines = [line for note in figure.notes for line in textwrap.wrap(note, 105)]
        canvas.supxlabel("\n".join(lines), x=0.012, ha="left", fontsize=8, color="#555555", parse_math=False)


def _plain_ticks(figure: Figure, axes: Axes) -> None:
    """On a short logarithmic axis numbers are written out: 0.5, 1, 2, and not as powers of ten."""
    from matplotlib.ticker import FuncFormatter

    def label(value: float, _: object) -> str:
        return f"{value:g}" if f"{value:e}"[0] in "125" else ""

    for axis, scale, way in ((axes.xaxis, figure.x_scale, "x"), (axes.yaxis, figure.y_scale, "y")):
        values = [value for series in figure.series for value in getattr(series, way) if value > 0]
        if scale == "log" and values and min(values) >= 1e-3 and max(values) < 1e3 * min(values):
            axis.set_major_formatter(FuncFormatter(label))
            axis.set_minor_formatter(FuncFormatter(label))


def _draw_series(series: Series, axes: Axes, color: str) -> None:
    axes.plot(series.x, series.y, label=series.name, color=color, **_DRAWN[series.style])


def _one_of(value: str, allowed: tuple[str, ...], argument: str) -> None:
    if value not in allowed:
        raise InvalidArgument(
            f"{argument} must be one of {', '.join(allowed)}.", remedy=f"Choose {allowed[0]}."
        )
