"""Confident GNMax: a label only where teachers agree, which is tested with noise of its own.

Each query first asks whether the largest count plus rounded Gaussian noise of `test_scale` reaches
`threshold`, a whole number of votes; if so, GNMax with `scale` gives the label. One unit moves the largest
count by at most 1. Every query is charged for its test, answered or not, and `answers` labels are: after
these a session ends (`losses.pate.confident`, Papernot et al. 2018): μ² = queries/σ₁² + 2·answers/σ₂².

Which queries were answered, and how many, is public: it is part of what was charged for.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.learn.pate.gnmax import SILENT, Aggregator, some, winners
from dalenius.learn.pate.labelling import Counts
from dalenius.learn.pate.winning import below, winner_law
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.losses.pate.agreed import MOST_TEACHERS, ConfidentVotes
from dalenius.losses.pate.confident import confident_votes
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation


@dataclass(frozen=True)
class ConfidentGNMax(Aggregator, kind="confident_gnmax_labels"):
    """Up to `answers` winners among `queries` votes, where the largest count reaches `threshold`."""

    _: KW_ONLY
    threshold: Parameter[int] = Parameter(numbers.count)
    test_scale: Parameter[Fraction] = Parameter(numbers.positive)
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    queries: Parameter[int] = Parameter(some)
    answers: Parameter[int] = Parameter(some)
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        _ = self.loss

    @property
    def most(self) -> int:
        """How many labels there are at most."""
        return self.answers

    @property
    def loss(self) -> Loss:
        """Of a whole session."""
        limits = {"queries": self.queries, "answers": self.answers}
        return confident_votes(**limits, test_scale=self.test_scale, scale=self.scale, relation=self.relation)

    @property
    def most_teachers(self) -> int:
        """With how many teachers there is a figure that depends on the votes."""
        return MOST_TEACHERS

    def most_figure(self, order: Fraction, queries: int) -> Fraction:
        """λ/2σ₁² a test and λ/σ₂² an answer."""
        answers = min(self.answers, queries)
        return queries * order / (2 * self.test_scale**2) + answers * order / self.scale**2

    def labels(self, counts: Counts, answers: int) -> NDArray[np.int64]:
        """The winners where the test is passed, until so many were given."""
        tested = counts.max(axis=1, initial=0) + noise.rounded_gaussian(self.test_scale, len(counts))
        passed = tested >= self.threshold
        given = passed & (np.cumsum(passed) <= answers)
        return np.where(given, winners(counts, self.scale), SILENT)

    def votes(self, counts: Counts, teachers: int) -> ConfidentVotes:
        """The counts, as what can release the figure that depends on them."""
        return ConfidentVotes(
            counts,
            teachers=teachers,
            threshold=self.threshold,
            test_scale=self.test_scale,
            scale=self.scale,
            answers=self.answers,
            relation=self.relation,
        )

    def worst_case(self) -> tuple[Any, Any]:
        """Two classes, one vote apart, where noise decides on the test as well."""
        high = self.threshold
        return [[high + 1, high]] * self.queries, [[high, high + 1]] * self.queries

    def cases(self) -> list[tuple[Any, Any]]:
        """That, and a largest count that grows: what the test tells alone."""
        high = self.threshold
        grown = [[high, 0]] * self.queries, [[high - 1, 1]] * self.queries
        return [self.worst_case(), grown]

    def probabilities(self, value: Any) -> Law | None:
        """The law of one answer, no label first."""
        counts = self.read(value)
        law = winner_law(counts[0], self.scale) if len(counts) == 1 else None
        if law is None:
            return None
        far = np.array([self.threshold - int(counts[0].max())], np.float64)
        silent = float(below(far, float(self.test_scale))[0])
        return Law((SILENT, *law.outcomes), np.append(silent, (1 - silent) * law.masses), law.rest)
