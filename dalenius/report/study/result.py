"""`Study`: what was found, as a frozen value: runs with their shares of right answers, and a statement.

study.json      everything, with stable keys
*.png           each figure, with the statement below it
index.html      one page with all of it, which loads nothing from elsewhere
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from dalenius.attacks.roc import Rate
from dalenius.display import harmless
from dalenius.errors import InvalidArgument
from dalenius.figures import Figure
from dalenius.release import Release
from dalenius.release.receipt import Receipt

if TYPE_CHECKING:
    from dalenius.report.study.measuring import Membership, Scores

Kind = Literal["plain", "private", "clipping"]
"""Without privacy; with it; or with clipping and next to no noise."""
VERSION = 1
LONGEST = 40
"""Letters of a name that are shown."""


@dataclass(frozen=True)
class Run:
    """One training: its noise and clipping where it has any, and how well it did."""

    name: str
    kind: Kind
    scores: Scores
    epsilon: float | None = None
    clip: float | None = None
    noise_multiplier: float | None = None
    membership: Membership | None = None
    receipt: Receipt | None = None
    released: Release | None = None
    """The noisy table that the scores are computed from, where an account paid for it."""
    grid: bool = False
    """Whether it belongs to the comparison of bounds on the norm alone."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the keys are stable."""
        found, attack = self.scores, self.membership
        return {
            "name": self.name,
            "kind": self.kind,
            "epsilon": self.epsilon,
            "clip": self.clip,
            "noise_multiplier": self.noise_multiplier,
            "accuracy": _rate(found.accuracy),
            "by_class": [*map(_rate, found.by_class)],
            "by_group": [*map(_rate, found.by_group)],
            "class_gap": gap(found.by_class),
            "group_gap": gap(found.by_group),
            "membership": None
            if attack is None
            else {
                "area": _rate(attack.area),
                "lira": _rate(attack.lira),
                "most": attack.most,
                "attack": attack.attack.to_dict(),
            },
            "receipt": None if self.receipt is None else self.receipt.plain(),
            "released": None if self.released is None else json.loads(self.released.to_json()),
        }


@dataclass(frozen=True)
class Study:
    """A study of one data set; `statement` says whether what it found may be shown to others."""

    data: str
    statement: str
    charged: bool
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    runs: tuple[Run, ...]
    settings: Mapping[str, Any]
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))

    @property
    def plain(self) -> Run | None:
        """The run without privacy, if there is one."""
        return next((run for run in self.runs if run.kind == "plain"), None)

    @property
    def private(self) -> tuple[Run, ...]:
        """The private runs, by ε; those that only compare bounds on the norm are not among them."""
        chosen = [run for run in self.runs if run.kind == "private" and not run.grid]
        return tuple(sorted(chosen, key=lambda run: run.epsilon or 0.0))

    @property
    def figures(self) -> dict[str, Figure]:
        """All figures by name."""
        from dalenius.report.study.pictures import drawn

        return drawn(self)

    def figure(self, name: str = "accuracy") -> Figure:
        """The figure of that name."""
        known = self.figures
        if name not in known:
            raise InvalidArgument(
                f"This study has no figure {name}.", remedy=f"Choose one of {', '.join(known)}."
            )
        return known[name]

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """The table of all runs: names of columns, and a row for each."""
        attacked = any(run.membership for run in self.runs)
        shadowed = any(run.membership and run.membership.lira for run in self.runs)
        head = ["run", "clip", "noise", "accuracy", *(["change"] if self.plain else []), "worst class"]
        head += ["worst group"] * bool(self.groups) + ["membership AUC"] * attacked + ["LiRA AUC"] * shadowed
        return head, [self._row(run, attacked, shadowed) for run in self.runs]

    def _row(self, run: Run, attacked: bool, shadowed: bool) -> list[str]:
        base = None if self.plain is None else self.plain.scores.accuracy
        found = [run.name, _number(run.clip), _number(run.noise_multiplier), percent(run.scores.accuracy)]
        if base is not None:
            found.append(difference(run.scores.accuracy, base))
        found.append(_worst(self.classes, run.scores.by_class))
        if self.groups:
            found.append(_worst(self.groups, run.scores.by_group))
        if attacked:
            found.append(_area(None if run.membership is None else run.membership.area))
        if shadowed:
            found.append(_area(None if run.membership is None else run.membership.lira))
        return found

    def table(self) -> str:
        """The runs as a table of text, below the statement."""
        head, rows = self.rows()
        lines = [[harmless(cell) for cell in line] for line in (head, *rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([harmless(self.statement), "", *padded])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the keys are stable."""
        return {
            "kind": "study",
            "version": VERSION,
            "private": self.charged,
            "statement": self.statement,
            "data": self.data,
            "classes": [*self.classes],
            "groups": [*self.groups],
            "settings": dict(self.settings),
            "left_out": [*self.left_out],
            "runs": [run.to_dict() for run in self.runs],
        }

    def save(self, folder: str | Path) -> Path:
        """Write study.json, the figures and index.html into a folder, new or empty; gives the page."""
        from dalenius.report.study.page import page

        place = Path(folder)
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise taken(place)
        place.mkdir(parents=True, exist_ok=True)
        known, ink = self.figures, {}
        (place / "study.json").write_text(
            json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False), encoding="utf-8"
        )
        for name, figure in known.items():
            ink[name] = figure.save(place / f"{name}.png").read_bytes()
        target = place / "index.html"
        target.write_text(page(self, known, ink), encoding="utf-8")
        return target


def taken(place: Path) -> InvalidArgument:
    """What is said of a folder that is not to be written over."""
    return InvalidArgument(f"{place} is there already.", remedy="Name a folder that is not there yet.")


def percent(share: Rate | None) -> str:
    """A share with the larger half of its interval."""
    if share is None:
        return "–"
    away = max(share.high - share.value, share.value - share.low)
    return f"{100 * share.value:.1f}% ± {100 * away:.1f}"


def gap(shares: Sequence[Rate | None]) -> float | None:
    """How far the best is above the worst, of two or more that are known."""
    known = [share.value for share in shares if share is not None]
    return max(known) - min(known) if len(known) > 1 else None


def shown(name: str) -> str:
    """A name of a class or group, harmless and not too long."""
    return harmless(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…")


def difference(share: Rate | None, base: Rate | None) -> str:
    """Points above or below."""
    return "" if share is None or base is None else f"{100 * (share.value - base.value):+.1f}"


def _worst(names: tuple[str, ...], shares: tuple[Rate | None, ...]) -> str:
    known = [(share.value, name) for name, share in zip(names, shares, strict=True) if share is not None]
    if not known:
        return "–"
    value, name = min(known)
    some = "" if len(known) == len(shares) else f" ({len(known)} of {len(shares)} known)"
    return f"{shown(name)}: {100 * value:.1f}%{some}"


def _area(found: Rate | None) -> str:
    if found is None:
        return ""
    return f"{found.value:.3f} ± {max(found.high - found.value, found.value - found.low):.3f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _rate(share: Rate | None) -> dict[str, float] | None:
    return None if share is None else asdict(share)
