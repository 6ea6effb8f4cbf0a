"""How a `Figure` is drawn by matplotlib, which this module alone imports."""

from __future__ import annotations

import io
import textwrap
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from dalenius.figures.figure import Figure, Series, Style

ROOM = 80
"""Letters of names that have room beside each other below a picture."""
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DRAWN: dict[Style, dict[str, Any]] = {
    "line": {"linestyle": "-"},
    "dashed": {"linestyle": "--"},
    "dotted": {"linestyle": ":"},
    "steps": {"linestyle": "-", "drawstyle": "steps-post"},
    "points": {"linestyle": "", "marker": "o"},
    "bars": {},
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


def drawn(figure: Figure, form: str) -> bytes:
    """Return a figure as a file of "svg" or "png"; the same figure is always the same SVG."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    with rc_context(_LOOK):
        canvas = Canvas(figsize=_size(figure), dpi=160, layout="constrained")
        _draw(figure, canvas)
        ink = io.BytesIO()
        # Only SVG carries a date; without it the same figure is the same file.
        more: dict[str, str | None] = {"Date": None} if form == "svg" else {}
        if figure.notes:
            more["Description"] = " ".join(figure.notes)
        canvas.savefig(ink, format=form, metadata={"Title": figure.title, **more})
    return ink.getvalue()


def _draw(figure: Figure, canvas: Canvas) -> None:
    axes = canvas.add_subplot()
    if figure.names or any(series.style == "bars" or series.low is not None for series in figure.series):
        _draw_measured(figure, axes)
        _finish(figure, axes, canvas)
        return
    # Names are shown as they are: a $ in one is no formula.
    axes.set_title(figure.title, parse_math=False)
    axes.set_xlabel(figure.x_label, parse_math=False)
    axes.set_ylabel(figure.y_label, parse_math=False)
    _scale(figure, axes)
    axes.grid(True)
    _plain_ticks(figure, axes)
    for index, series in enumerate(figure.series):
        _draw_series(series, axes, _COLORS[index % len(_COLORS)])
    _finish(figure, axes, canvas)


def _finish(figure: Figure, axes: Axes, canvas: Canvas) -> None:
    """Add the legend and the notes."""
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


def _size(figure: Figure) -> tuple[float, float]:
    """Return inches; a column of bars grows with the number of its names."""
    rows = len(figure.names) * max(1, len(figure.series)) if _sideways(figure) else 0
    return 7.2, max(4.5, 1.6 + 0.24 * rows)


def _sideways(figure: Figure) -> bool:
    """Whether names stand in a column on the left, as beside each other they would overlap."""
    return bool(figure.names) and sum(len(name) + 2 for name in figure.names) > ROOM


def _scale(figure: Figure, axes: Axes) -> None:
    axes.set(xscale="linear" if figure.x_scale == "date" else figure.x_scale, yscale=figure.y_scale)
    if figure.x_scale == "date":
        # matplotlib does not annotate these.
        dates: Any = import_module("matplotlib.dates")
        locator = dates.AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))


def _draw_measured(figure: Figure, axes: Axes) -> None:
    """Draw bars and points with error bars, upright or sideways."""
    sideways = _sideways(figure)
    axes.set_title(figure.title, parse_math=False)
    labels = (figure.y_label, figure.x_label) if sideways else (figure.x_label, figure.y_label)
    axes.set_xlabel(labels[0], parse_math=False)
    axes.set_ylabel(labels[1], parse_math=False)
    axes.grid(True, axis="x" if sideways else "y")
    _scale(figure, axes)
    numbers, place = (axes.xaxis, axes.yaxis) if sideways else (axes.yaxis, axes.xaxis)
    if figure.y_scale == "linear":
        numbers.set_major_formatter(lambda value, _: f"{value:,.10g}")
    if figure.names:
        place.set_ticks(range(len(figure.names)), labels=figure.names)
        for label in place.get_ticklabels():
            label.set_parse_math(False)
        place.set_tick_params(length=0)
    if sideways:
        axes.invert_yaxis()
    edges = _edges(figure)
    for index, series in enumerate(figure.series):
        _draw_ends(figure, series, axes, index, edges)


def _edges(figure: Figure) -> tuple[float, float]:
    """Return where arrows end: beyond everything that is drawn."""
    known = [value for series in figure.series for ends in (series.y, series.low or (), series.high or ())
             for value in ends if value is not None]  # fmt: skip
    if any(series.style == "bars" for series in figure.series):
        known.append(0.0)
    least, most = min(known, default=0.0), max(known, default=1.0)
    if figure.y_scale == "log":
        return least / 1.5, most * 1.5
    room = (most - least or abs(most) or 1.0) / 8
    return least - room, most + room


def _draw_ends(figure: Figure, series: Series, axes: Axes, index: int, edges: tuple[float, float]) -> None:
    """Draw one series: its bars or points, and an error bar or an arrow for each."""
    color, sideways = _COLORS[index % len(_COLORS)], _sideways(figure)
    bars = series.style == "bars"
    many = len(figure.series)
    width = 0.8 / many
    # Beside each other, so that error bars at one place do not hide each other.
    span = max((max(each.x) - min(each.x) for each in figure.series if each.x), default=0.0)
    shift = (index - (many - 1) / 2) * (width if figure.names else span / 150)
    x = [place + shift for place in series.x]
    if bars:
        draw = axes.barh if sideways else axes.bar
        draw(x, series.y, 0.9 * width, label=series.name, color=color, alpha=0.75)
    else:
        points = {"marker": "o"} | _DRAWN[series.style] if series.low is not None else _DRAWN[series.style]
        axes.plot(*((series.y, x) if sideways else (x, series.y)), label=series.name, color=color, **points)
    if series.low is None or series.high is None:
        return
    ink = "#333333" if bars else color
    for place, value, low, high in zip(x, series.y, series.low, series.high, strict=True):
        for end, edge, mark in ((low, edges[0], "<v"), (high, edges[1], ">^")):
            tip = edge if end is None else end
            line = ([value, tip], [place, place]) if sideways else ([place, place], [value, tip])
            axes.plot(*line, color=ink, linewidth=1.2)
            cap = mark[0 if sideways else 1] if end is None else "|" if sideways else "_"
            spot = ([tip], [place]) if sideways else ([place], [tip])
            axes.plot(*spot, color=ink, marker=cap, markersize=6, linestyle="")
