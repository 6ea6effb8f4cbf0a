"""GNMax: the class with the most votes, Gaussian noise of `scale` votes being added to every count.

A unit is behind one teacher, whose vote moves from one class to another: two counts change by 1, an L2
distance of √2. Noise is the rounded Gaussian on whole votes, which on whole counts is post-processing of the
continuous one (`mechanisms.gaussian`), and so is the winner, equal counts being decided by fresh coins. So an
answer costs `losses.pate.GNMax` (Papernot et al. 2018: D_α = α/σ²), and `queries` of them as many times that,
which is charged as a whole when a session starts.

Tight for one answer only as σ grows (`losses.pate.gnmax`). There is no error bar: how often the winner under
noise is another one depends on the votes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.learn.pate.labelling import Counts, Labelling, begin
from dalenius.learn.pate.teachers import Teachers
from dalenius.learn.pate.winning import winner_law
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.losses.pate import gnmax as losses
from dalenius.losses.pate.votes import MOST_TEACHERS, Votes
from dalenius.mechanisms.candidates import one_of_each
from dalenius.mechanisms.mechanism import Law, Mechanism, Payer
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import Release

SILENT = -1
"""How `sample` and `probabilities` write that there was no answer."""
MOST_QUERIES = 10**7


def some(value: object, name: str) -> int:
    """A number of queries or answers."""
    return numbers.count(value, name, most=MOST_QUERIES)


class Aggregator(Mechanism):
    """What turns counts of votes into labels, for a limited number of queries."""

    queries: Parameter[int]
    relation: Relation

    @abstractmethod
    def labels(self, counts: Counts, answers: int) -> NDArray[np.int64]:
        """A label for each row of counts, SILENT where there is none; at most so many."""

    @property
    @abstractmethod
    def most_teachers(self) -> int:
        """With how many teachers there is a figure that depends on the votes."""

    @abstractmethod
    def most_figure(self, order: Fraction, queries: int) -> Fraction:
        """What that figure is at most, whatever the votes: the divergence of so many queries."""

    @abstractmethod
    def votes(self, counts: Counts, teachers: int) -> Any:
        """The counts, as what can release the figure that depends on them."""

    @property
    def most(self) -> int:
        """How many labels there are at most."""
        return self.queries

    def start(
        self,
        account: Payer | None = None,
        *,
        teachers: Teachers,
        unit: Unit | None = None,
        by: str = "",
        purpose: str = "",
    ) -> Labelling:
        """A session, all of whose labels together cost `loss`: charged now, where there is an account."""
        return begin(self, account, teachers=teachers, unit=unit, by=by, purpose=purpose)

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """The labels of private counts, a row for each query."""
        return self.released(self.labels(self.read(value), self.most).tolist(), unit)

    def released(self, labels: Sequence[int], unit: Unit | None, *, tainted: bool = False) -> Release:
        """Labels as a release, whose receipt is that of the session."""
        cells = [None if label == SILENT else label for label in labels]
        found = self._released({"label": cells}, ("label",), unit, tainted=tainted)
        note = f"one charge for a session of up to {self.queries} queries and {self.most} labels"
        return replace(found, receipt=replace(found.receipt, bounds=(note,)))

    def read(self, value: Any) -> Counts:
        """Counts as a table of whole numbers. What is refused is its type and shape, never a value."""
        found = np.asarray(value)
        if found.ndim != 2 or found.shape[1] < 2 or found.dtype.kind not in "iu":
            raise InvalidArgument(
                "Counts are whole numbers, a row for each query, a column for each of two classes or more.",
                remedy="Pass teachers.counts(queries).",
            )
        if len(found) > self.queries:
            raise InvalidArgument(
                f"These are {len(found)} queries, and {self.queries} are charged for.",
                remedy=f"Ask {self.queries} of them, or make it with queries={len(found)}.",
            )
        return found.astype(np.int64)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Labels of public counts, one row each; of a single query a number each."""
        counts = self.read(value)
        if len(counts) == 1:
            return self.labels(np.repeat(counts, size, axis=0), size)
        return np.array([self.labels(counts, self.most) for _ in range(size)])


@dataclass(frozen=True)
class GNMax(Aggregator, kind="gnmax_labels"):
    """The winners of up to `queries` votes."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    queries: Parameter[int] = Parameter(some)
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        _ = self.loss

    @property
    def loss(self) -> Loss:
        """Of a whole session."""
        return losses.GNMax(self.scale, relation=self.relation) * self.queries

    @property
    def most_teachers(self) -> int:
        """With how many teachers there is a figure that depends on the votes."""
        return MOST_TEACHERS

    def most_figure(self, order: Fraction, queries: int) -> Fraction:
        """λ/σ² a query."""
        return queries * order / self.scale**2

    def labels(self, counts: Counts, answers: int) -> NDArray[np.int64]:
        """The winners."""
        return winners(counts, self.scale)

    def votes(self, counts: Counts, teachers: int) -> Votes:
        """The counts, as what can release the figure that depends on them."""
        return Votes(counts, teachers=teachers, scale=self.scale, relation=self.relation, rounded=True)

    def worst_case(self) -> tuple[Any, Any]:
        """Two classes, one vote apart."""
        return [[1, 0]] * self.queries, [[0, 1]] * self.queries

    def probabilities(self, value: Any) -> Law | None:
        """The law of one winner."""
        counts = self.read(value)
        return winner_law(counts[0], self.scale) if len(counts) == 1 else None


def winners(counts: Counts, scale: Fraction) -> NDArray[np.int64]:
    """The class with the greatest count under noise, in each row; fresh coins decide between equal ones."""
    noisy = counts + noise.rounded_gaussian(scale, counts.size).reshape(counts.shape)
    return one_of_each(noisy == noisy.max(axis=1, keepdims=True)) if len(noisy) else np.empty(0, np.int64)
