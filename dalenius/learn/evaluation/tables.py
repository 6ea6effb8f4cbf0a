"""What a row adds to which counts: one unit of mass in each table, in whole steps.

    outcomes     right or wrong; by label where recalls are asked for; the pair of label and prediction for
                 a confusion matrix, where the last column counts rows that got no class
    reliability  right or wrong, by bin of the confidence; the mass is split between the two ends of the bin,
                 so that the mean of the ends is the confidence: its sum is known at no further cost
    scores       the label, by bin of the chance of the second class: for the AUC
    losses       the mass is split between 0 and the bound, so that their mean is the clipped loss

Theorem. Let a row's answer be a function of that row alone (`independence`). Then so is what it adds: whole
numbers of steps, never negative, in sum at most one unit for each table. So a unit with k rows moves m tables
by at most m·k in L1, √m·k in L2 and k in any entry under add_remove and zero_out; under replace 2m·k, √(2m)·k
and k. Proof: within a table a unit's masses are not negative and sum to at most k, so their L2 norm is at
most k, and tables have entries of their own. Both are attained by rows that fall into one entry of each
table. ∎

A row whose label is none of the classes adds nothing, as if it were absent. A row that got no class counts as
wrong, with the greatest loss, and neither in the reliability nor in the scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.learn.models import Answers
from dalenius.learn.quiet import FAILURES
from dalenius.mechanisms.categories import find
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity, sqrt_up
from dalenius.privacy.unit import Relation
from dalenius.release import Cell

GRID = Grid(-20)
"""A unit of mass is a million steps."""
WHOLE = 2**20
"""The same in steps."""
FLOATS = 2.0**-48
"""More than the roundings of the floats that a part of a unit is computed from."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """The tables of an evaluation; all of it public."""

    classes: tuple[Cell, ...]
    outcomes: str | None = None
    bins: int = 0
    scores: int = 0
    loss: str | None = None
    bound: Fraction = Fraction(1)

    @property
    def sizes(self) -> dict[str, int]:
        """How many entries each table has."""
        count = len(self.classes)
        by_outcome = {"accuracy": 2, "recall": 2 * count, "confusion": count * (count + 1)}
        asked = {
            "outcomes": 0 if self.outcomes is None else by_outcome[self.outcomes],
            "reliability": 4 * self.bins,
            "scores": 2 * self.scores,
            "losses": 2 if self.loss else 0,
        }
        return {name: size for name, size in asked.items() if size}

    @property
    def edges(self) -> Floats:
        """Between bins of the confidence: the chance of the likeliest of K classes is from 1/K to 1."""
        return np.linspace(1 / len(self.classes), 1, self.bins + 1)

    def sensitivity(self, per_unit: int, relation: Relation) -> Sensitivity:
        """How far one unit moves all entries together: see the module."""
        tables, entries = len(self.sizes), sum(self.sizes.values())
        return Sensitivity.of_sum(
            l0=min(2 * tables * per_unit, entries),
            l1=tables * per_unit,
            l2=sqrt_up(Fraction(tables)) * per_unit,
            linf=per_unit,
            nonnegative=True,
            relation=relation,
        )

    def totals(self, answers: Answers, targets: Sequence[Any], kept: NDArray[np.bool_]) -> Ints:
        """The exact sums of all entries over the rows that count, table by table."""
        found = {name: np.zeros(size, np.int64) for name, size in self.sizes.items()}
        parts = (
            self._labeled(answers, targets, kept) if self.classes else self._numbers(answers, targets, kept)
        )
        for name, entries, masses in parts:
            np.add.at(found[name], entries, np.clip(masses, 0, WHOLE))
        return np.concatenate([*found.values()])

    def _labeled(
        self, answers: Answers, targets: Sequence[Any], kept: NDArray[np.bool_]
    ) -> list[tuple[str, Ints, Ints]]:
        places = {label: i for i, label in enumerate(self.classes)}
        labels = np.array([find(places, label, -1) for label in targets], dtype=np.int64)
        rows = np.flatnonzero(kept & (labels >= 0))
        label, chosen, chances = labels[rows], answers.chosen[rows], answers.chances[rows]
        parts = []
        if self.outcomes:
            parts.append(("outcomes", self._outcome(label, chosen), np.full(len(rows), WHOLE)))
        known = chosen >= 0
        if self.bins:
            parts += self._reliability(label[known], chosen[known], chances[known])
        if self.scores:
            bins = _bin(chances[known, 1], self.scores)[0]
            parts.append(("scores", label[known] * self.scores + bins, np.full(int(known.sum()), WHOLE)))
        if self.loss:
            with np.errstate(all="ignore"):
                losses = -np.log(chances[np.arange(len(rows)), label])
            parts += self._losses(losses)
        return parts

    def _numbers(
        self, answers: Answers, targets: Sequence[Any], kept: NDArray[np.bool_]
    ) -> list[tuple[str, Ints, Ints]]:
        """Regression: a row without a target adds nothing."""
        truth = np.array([_number(one) for one in targets], dtype=np.float64)
        rows = np.flatnonzero(kept & ~np.isnan(truth))
        with np.errstate(all="ignore"):
            off = np.abs(answers.values[rows] - truth[rows])
            return self._losses(off * off if self.loss == "squared" else off)

    def _outcome(self, label: Ints, chosen: Ints) -> Ints:
        if self.outcomes == "confusion":
            return label * (len(self.classes) + 1) + np.where(chosen < 0, len(self.classes), chosen)
        return (chosen != label) + (2 * label if self.outcomes == "recall" else 0)

    def _reliability(self, label: Ints, chosen: Ints, chances: Floats) -> list[tuple[str, Ints, Ints]]:
        least = self.edges[0]
        confidence = (chances[np.arange(len(label)), chosen] - least) / (1 - least)
        place, within = _bin(confidence, self.bins)
        entry, mass = 2 * ((chosen != label) * self.bins + place), _steps(within)
        return [("reliability", entry, WHOLE - mass), ("reliability", entry + 1, mass)]

    def _losses(self, losses: Floats) -> list[tuple[str, Ints, Ints]]:
        """What is no number is the greatest loss."""
        with np.errstate(all="ignore"):
            shares = np.where(np.isnan(losses), 1.0, np.clip(losses / float(self.bound), 0.0, 1.0))
        mass = _steps(shares)
        none = np.zeros(len(losses), np.int64)
        return [("losses", none, WHOLE - mass), ("losses", none + 1, mass)]


def _bin(values: Floats, bins: int) -> tuple[Ints, Floats]:
    """The bin of a number from 0 to 1, and how far into it the number is."""
    scaled = np.clip(np.where(np.isnan(values), 0.0, values), 0.0, 1.0) * bins
    place = np.minimum(np.floor(scaled), bins - 1)
    return place.astype(np.int64), np.clip(scaled - place, 0.0, 1.0)


def lost(bins: int = 1) -> float:
    """What rounding takes from a row's part of a unit at most: one step, and what floats are off."""
    return 1 / WHOLE + blurred(bins)


def blurred(bins: int = 1) -> float:
    """What floats are off: a few roundings of a number from 0 to 1, magnified by the number of bins."""
    return bins * FLOATS


def _steps(shares: Floats) -> Ints:
    """Parts of a unit of mass, rounded toward zero."""
    return np.clip(np.floor(shares * WHOLE), 0, WHOLE).astype(np.int64)


def _number(value: Any) -> float:
    try:
        return float(value)
    except FAILURES:
        return math.nan
