"""How well a classifier does on private labelled records: its accuracy, or its confusion matrix.

Theorem. A record falls into one cell: right or wrong, or the pair of its label and its prediction. So a unit
with k records moves the counts by at most k in L1 and in L2 under add_remove, by 2k and √2·k under replace,
attained in cells of their own; noise follows `laplace` or `gaussian` on whole numbers. The classes are
public; a record whose label or prediction is none of them is counted nowhere.

The error bars of a cell are the noise's law, each cell by itself. The accuracy is right/(right + wrong), with
the bars of `shares`. It says how the classifier does on these records; the classifier itself must not have
been trained on them without a charge of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Parameter
from dalenius.mechanisms.categories import find, read_categories, values
from dalenius.mechanisms.shares import share
from dalenius.mechanisms.tally import Noise, Tally, Totals, calibrated, cells, per_unit_count
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import CONFIDENCE, Cell, Release

Answer = Literal["accuracy", "confusion"]


@dataclass(frozen=True)
class Evaluation(Tally, kind="evaluation"):
    """Noise of `scale` on counts of right and wrong predictions, or of pairs of label and prediction."""

    _: KW_ONLY
    classes: Any
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    answer: Answer = "accuracy"
    per_unit: Parameter[int] = Parameter(per_unit_count, 1)
    noise: Noise = "laplace"
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "classes", read_categories(self.classes, "classes"))
        if len(self.labels) < 2:
            raise InvalidArgument("classes must be two or more.", remedy="List every class once.")
        if self.answer not in ("accuracy", "confusion"):
            raise InvalidArgument(
                "answer must be accuracy or confusion.", remedy="Pass answer as one of these names."
            )

    @property
    def labels(self) -> list[Cell]:
        """The classes."""
        found: list[Cell] = json.loads(self.classes)
        return found

    @property
    def bound(self) -> Sensitivity:
        """One cell for each record."""
        return Sensitivity.of_sum(
            l0=self.per_unit, l1=self.per_unit, nonnegative=True, relation=self.relation
        )

    @property
    def sums_grid(self) -> Grid:
        """Whole numbers."""
        return Grid(0)

    def vectors(self, value: Any) -> Steps:
        """The cell of each record of (labels, predictions); −1 where it has none."""
        labels, predictions = _pair(value)
        places = {label: i for i, label in enumerate(self.labels)}
        pairs = np.array(
            [[find(places, x, -1) for x in side] for side in (labels, predictions)], dtype=np.int64
        )
        known = (pairs >= 0).all(axis=0)
        if self.answer == "accuracy":
            cell = np.where(pairs[0] == pairs[1], 0, 1)
        else:
            cell = pairs[0] * len(self.labels) + pairs[1]
        return np.where(known, cell, -1).reshape(-1, 1)

    @property
    def missing(self) -> Steps:
        """No cell."""
        return np.array([[-1]])

    def totals(self, rows: Steps) -> Totals:
        """How many records are in each cell."""
        size = 2 if self.answer == "accuracy" else len(self.labels) ** 2
        return np.bincount(rows[:, 0] + 1, minlength=size + 1)[1:].astype(object)

    def release(
        self, value: Any, *, ids: Any = None, unit: Unit | None = None, confidence: Number = CONFIDENCE
    ) -> Release:
        """Draw once on private (labels, predictions)."""
        alpha = 1 - numbers.confidence(confidence)
        counts = self.noisy(self.rows(value, ids))
        made = (
            self._accuracy(counts, alpha, unit)
            if self.answer == "accuracy"
            else self._matrix(counts, alpha, unit)
        )
        return replace(made, confidence=1 - alpha).bounded(*self.promises(ids))

    def _accuracy(self, counts: list[int], alpha: Fraction, unit: Unit | None) -> Release:
        names = ("accuracy", "accuracy_low", "accuracy_high")
        found = share(counts[0], counts[1], self.additive, alpha)
        columns = {name: [part] for name, part in zip(names, found, strict=True)}
        made = self._released(columns, ("accuracy",), unit)
        return made.postprocess("the share of right predictions among the noisy counts", columns)

    def _matrix(self, counts: list[int], alpha: Fraction, unit: Unit | None) -> Release:
        reach, size = self.additive.reach(alpha), len(self.labels)
        columns: dict[str, list[Cell]] = {
            "label": [label for label in self.labels for _ in range(size)],
            "prediction": self.labels * size,
            "n": cells(counts, self.step),
            "n_low": cells([n - reach for n in counts], self.step),
            "n_high": cells([n + reach for n in counts], self.step),
        }
        return self._released(columns, ("n",), unit)

    def worst_case(self) -> tuple[Any, Any]:
        """A right prediction, and with it as many wrong ones as a unit may have; or instead."""
        a, b = self.labels[:2]
        right, wrong = ([a], [a]), ([a] * self.per_unit, [b] * self.per_unit)
        if self.relation == "replace":
            return ([a] * self.per_unit, [a] * self.per_unit), wrong
        return right, (right[0] + wrong[0], right[1] + wrong[1])

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float | None:
        """Of one cell; None for the accuracy, whose bars depend on the counts released."""
        return self.additive.error(alpha) if self.answer == "confusion" else None

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        classes: Iterable[Cell],
        answer: Answer = "accuracy",
        per_unit: int = 1,
        noise: Noise = "laplace",
        relation: Relation = "add_remove",
    ) -> Evaluation:
        """The least noise with which one release is (epsilon, delta)-differentially private."""
        draft = Evaluation(
            classes=classes,
            scale=1,
            answer=answer,
            per_unit=per_unit,
            noise=noise,
            relation=relation,
        )
        return calibrated(draft, epsilon=epsilon, delta=delta)


def _pair(value: Any) -> list[list[Any]]:
    """Labels and predictions, as many of the one as of the other."""
    found = value if isinstance(value, list | tuple | np.ndarray) else ()
    sides = [values(side) for side in found if hasattr(side, "__len__")]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        raise InvalidArgument(
            "value must be a pair of equally long columns: the labels, and the predictions.",
            remedy="Pass (labels, predictions), one of each for every record.",
        )
    return sides
