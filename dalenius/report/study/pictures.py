"""The figures of a study. Each has the statement below it: a picture that travels alone says it too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalenius.attacks.roc import Rate
from dalenius.display import harmless
from dalenius.figures import Figure, Scale, Series, Style
from dalenius.report.study.measuring import Scores
from dalenius.report.study.result import Run, Study, shown

LINES = 7
"""More names than colors are drawn as places on an axis, not as lines."""
UNSURE = "One training each. The tables of the study say how sure each share is."
LISTED = 40
"""Names that a note lists."""
SPREAD = 1.5
"""How far beyond the values of ε a level is drawn."""

Shares = Callable[[Scores], Sequence[Rate | None]]


def drawn(study: Study) -> dict[str, Figure]:
    """The figures that there is something to draw for, by name."""
    found = {
        "accuracy": _accuracy(study),
        "classes": _parted(study, "class", study.classes, lambda scores: scores.by_class),
        "groups": _parted(study, "group", study.groups, lambda scores: scores.by_group),
        "clipping": _clipping(study),
        "membership": _membership(study),
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def _accuracy(study: Study) -> Figure:
    known = [(run, run.scores.accuracy) for run in study.private]
    points = [(run.epsilon or 0.0, share) for run, share in known if share is not None]
    series = [
        *_line("private", [(x, share.value) for x, share in points]),
        *_line("interval, low", [(x, share.low) for x, share in points], "dotted"),
        *_line("interval, high", [(x, share.high) for x, share in points], "dotted"),
        *_level(study, "without privacy", study.plain.scores.accuracy if study.plain else None),
    ]
    return _by_epsilon(study, "Accuracy against privacy", "share of right answers", series)


def _parted(study: Study, word: str, names: Sequence[str], shares: Shares) -> Figure | None:
    """The accuracy of each class or group: lines over ε where there are few, else a point for each."""
    if not names:
        return None
    title = f"Accuracy of each {word}"
    if len(names) > LINES:
        return _places(study, title, word, names, shares)
    series: list[Series] = []
    for place, name in enumerate(names):
        found = [(run.epsilon or 0.0, shares(run.scores)[place]) for run in study.private]
        series += _line(shown(name), [(x, share.value) for x, share in found if share is not None])
    notes = [UNSURE]
    if study.plain is not None:
        plain = zip(names, shares(study.plain.scores), strict=True)
        said = ", ".join(f"{shown(n)} {100 * s.value:.1f}%" for n, s in plain if s is not None)
        notes.append(f"Without privacy: {said}.")
    return _by_epsilon(study, title, "share of right answers", series, notes)


def _places(study: Study, title: str, word: str, names: Sequence[str], shares: Shares) -> Figure:
    runs = [*([] if study.plain is None else [study.plain]), *study.private]
    series: list[Series] = []
    for run in runs:
        found = [(float(i), s.value) for i, s in enumerate(shares(run.scores)) if s is not None]
        series += _line(run.name, found, "points")
    listed = ", ".join(f"{i} {shown(name)}" for i, name in enumerate(names[:LISTED]))
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    notes = [f"{listed}{more}.", UNSURE]
    return _figure(study, title, f"number of the {word}", "share of right answers", series, notes)


def _clipping(study: Study) -> Figure | None:
    """What clipping alone costs, and what noise costs on top."""
    middle = study.settings["clips_epsilon"]
    noisy = [run for run in study.runs if run.kind == "private" and run.epsilon == middle]
    alone = [run for run in study.runs if run.kind == "clipping"]
    if len(noisy) < 2:
        return None
    series = [
        *_line(f"clipping and the noise of epsilon {middle:g}", _by_clip(noisy)),
        *_line("clipping alone", _by_clip(alone), "dashed"),
    ]
    if study.plain is not None and study.plain.scores.accuracy is not None:
        ends = [x for x, _ in _by_clip(noisy)]
        level = study.plain.scores.accuracy.value
        series.append(Series("neither", (ends[0], ends[-1]), (level, level), "dotted"))
    label = "bound on the norm of a gradient"
    return _figure(study, "Clipping against noise", label, "share of right answers", series, scale="log")


def _membership(study: Study) -> Figure | None:
    runs = [run for run in study.private if run.membership is not None]
    if not runs:
        return None
    found = [(r.epsilon or 0.0, r.membership) for r in runs]
    areas = [(x, one.area) for x, one in found if one is not None]
    lira = [(x, one.lira.value) for x, one in found if one is not None and one.lira is not None]
    most = [(x, one.most) for x, one in found if one is not None and one.most is not None]
    plain = study.plain.membership if study.plain else None
    series = [
        *_line("measured, by loss threshold", [(x, one.value) for x, one in areas]),
        *_line("measured, by shadow models (LiRA)", lira),
        *_line("the most that the loss allows", most, "dashed"),
        *_level(study, "without privacy", plain.area if plain else None),
        *_level(study, "without privacy, by LiRA", plain.lira if plain else None),
        *_level(study, "guessing", Rate(0.5, 0.5, 0.5), "dotted"),
    ]
    away = max(one.high - one.value for _, one in areas)
    notes = [
        f"Measured areas are sure to about ± {away:.2g} (95%). What the loss allows holds on average over "
        "trainings and choices of training rows, for any attack; one model may exceed it."
    ]
    return _by_epsilon(study, "Membership inference", "area under the curve", series, notes)


def _by_clip(runs: Sequence[Run]) -> list[tuple[float, float]]:
    known = [(run.clip or 0.0, run.scores.accuracy) for run in runs]
    return sorted((x, share.value) for x, share in known if share is not None)


def _line(name: str, points: Sequence[tuple[float, float]], style: Style = "line") -> list[Series]:
    """A series, if there is a point; a single one is drawn as such."""
    if not points:
        return []
    x, y = zip(*points, strict=True)
    shown: Style = "points" if len(points) == 1 else style
    return [Series(name, x, y, shown)]


def _level(study: Study, name: str, share: Rate | None, style: Style = "dashed") -> list[Series]:
    if share is None:
        return []
    values = [run.epsilon or 1.0 for run in study.private]
    ends = min(values) / SPREAD, max(values) * SPREAD
    return [Series(name, ends, (share.value, share.value), style)]


def _by_epsilon(
    study: Study, title: str, label: str, series: Sequence[Series], notes: Sequence[str] = ()
) -> Figure:
    return _figure(study, title, "epsilon", label, series, notes, scale="log")


def _figure(
    study: Study,
    title: str,
    x_label: str,
    y_label: str,
    series: Sequence[Series],
    notes: Sequence[str] = (),
    scale: Scale = "linear",
) -> Figure:
    said = (*notes, harmless(study.statement))
    return Figure(title, x_label, y_label, series, x_scale=scale, notes=said)
