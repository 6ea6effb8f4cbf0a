"""Thresholdout: a holdout set that may be asked again and again, until it has caught `overfits` overfits.

A query φ gives each record a number from 0 to 1. Its mean over the training records is returned as it is,
unless that over the n holdout records is further off than a noisy threshold; then the holdout's mean is
returned, with noise of `scale`, and one overfit is used up. On sums over the holdout, in whole steps, a
round is AboveThreshold, with noise of 2·scale on the threshold and 4·scale on the query, then a Laplace
answer.

Theorem (Dwork, Feldman, Hardt, Pitassi, Reingold and Roth 2015). Let one holdout record be replaced. With
σ = scale a round costs Pure(1/(σn)) + DiscreteLaplace(σn), and a session `overfits` rounds, one after the
other: 2·overfits/(σn) in all at δ = 0, and growing with √overfits for δ > 0. Proof. Sums move by at most 1,
and so does |Σφ(holdout) − reference|, so AboveThreshold with one yes costs 1/(2σn) + 2/(4σn). ∎

Only holdout records are protected: not their number, and training records not at all. What it is for is
generalization: answers hold for new data though queries were chosen with sight of earlier answers.

The error bar of an answer from the holdout is that of its noise, about the mean over the holdout; one that
agrees with the training set has none.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.calibration import calibrate
from dalenius.losses.fields import Parameter, whole
from dalenius.losses.loss import Loss
from dalenius.mechanisms.above_threshold import paid, whom_for
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.mechanism import Mechanism, Payer
from dalenius.mechanisms.reusable_holdout import Answer, ReusableHoldout
from dalenius.mechanisms.sparse_vector import SparseVector
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, exact_sum
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import Release

ONE = Sensitivity(l0=1, linf=1, relation="replace")
"""How far a record moves a sum of numbers from 0 to 1."""
DEFAULT = Grid(-10)
"""Of the values of a query: rounded toward zero by less than a thousandth."""
NOES = 3
"""In the worst case, so many answers come before the overfit."""
NARROW = Fraction(1, 2**50)
"""By so little is the noise raised until a loss that rounds up reads as within its limit."""


@dataclass(frozen=True)
class Thresholdout(Mechanism, kind="thresholdout"):
    """Means over a training set that differ by at most about `threshold` from a holdout of `records`."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    threshold: Parameter[Fraction] = Parameter(numbers.rate)
    records: Parameter[int] = Parameter(whole)
    overfits: Parameter[int] = Parameter(whole, 1)
    grid: Grid = DEFAULT

    def __post_init__(self) -> None:
        if not isinstance(self.grid, Grid) or self.grid.exponent > 0:
            raise InvalidArgument("grid must be a Grid of step 1 or less.", remedy="Pass Grid(-10).")
        _ = self.loss

    @cached_property
    def round(self) -> SparseVector:
        """The test up to one overfit, on sums over the holdout."""
        return SparseVector(
            scale=4 * self.scale * self.records,
            threshold_scale=2 * self.scale * self.records,
            sensitivity=ONE,
            threshold=self.threshold * self.records,
            grid=self.grid,
            exact=True,
        )

    @cached_property
    def answer(self) -> Laplace:
        """The noise on a sum over the holdout."""
        return Laplace(scale=self.scale * self.records, sensitivity=ONE, grid=self.grid, exact=True)

    @property
    def loss(self) -> Loss:
        """Of a whole session, for one holdout record."""
        return (self.round.loss + self.answer.loss) * self.overfits

    def start(
        self, account: Payer | None = None, *, unit: Unit | None = None, by: str = "", purpose: str = ""
    ) -> ReusableHoldout:
        """A session, all of whose answers together cost `loss`: charged now, where there is an account."""
        whom = whom_for(self.loss, account, unit)
        return ReusableHoldout(self, whom, paid(self, account, whom, by, purpose))

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """The answers to a list of queries, up to the last overfit that is paid for."""
        session, pairs = self.start(unit=unit), [self.sums(query) for query in value]
        return self.released([session.answer(*pair) for pair in pairs if session.left], unit)

    def released(self, answers: list[Answer], unit: Unit | None, *, tainted: bool = False) -> Release:
        """Answers as a release, whose receipt is that of the session."""
        names = ("value", "value_low", "value_high", "overfit")
        columns = {name: [answer[i] for answer in answers] for i, name in enumerate(names)}
        found = self._released(columns, ("value", "overfit"), unit, tainted=tainted)
        note = f"one charge for a session of up to {self.overfits} overfits"
        return replace(found, receipt=replace(found.receipt, bounds=(note,)))

    def sums(self, query: Any) -> tuple[Fraction, int]:
        """The mean over the training set, and the sum over the holdout in steps, of (training, holdout)."""
        if not isinstance(query, tuple) or len(query) != 2:
            raise InvalidArgument("A query is a pair of arrays.", remedy="Ask (training, holdout).")
        training, holdout = (np.ravel(self.grid.quantize(part, lower=0, upper=1)) for part in query)
        if holdout.size != self.records or not training.size:
            raise InvalidArgument(
                f"A query needs one number for each of {self.records} holdout records, and training records.",
                remedy="Pass the query's value on every record, as two arrays.",
            )
        return exact_sum(training) * self.grid.step / training.size, exact_sum(holdout)

    def reference(self, mean: Fraction) -> int:
        """What the sum over the holdout would be at the mean over the training set, in steps."""
        return int(mean * self.records / self.grid.step)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Answers to a few public queries, and whether each was an overfit; NaN after the last of these."""
        session, answer = self.round, self.answer
        bars, left = session.bar + session.shift.draw(size), np.full(size, self.overfits)
        found = []
        for mean, total in map(self.sums, value):
            off = abs(total - self.reference(mean))
            above = (off + session.query.draw(size) >= bars) & (left > 0)
            noisy = (total + answer.draw(size)) * float(self.grid.step) / self.records
            found += [
                np.where(left > 0, each, np.nan) for each in (np.where(above, noisy, float(mean)), above)
            ]
            bars = np.where(above, session.bar + session.shift.draw(size), bars)
            left = left - above
        return np.column_stack(found)

    def worst_case(self) -> tuple[Any, Any]:
        """One record that makes answers agree less, then more; the training mean is 0."""
        near = min(max(0, -(-self.round.bar * self.grid.step // 1)), self.records - 1)
        rest = np.repeat([1.0, 0.0], [int(near), self.records - 1 - int(near)])
        streams = [0.0] * NOES + [1.0], [1.0] * NOES + [0.0]
        first, second = ([(np.zeros(1), np.append(rest, own)) for own in stream] for stream in streams)
        return first, second

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        records: int,
        threshold: Number,
        overfits: int = 1,
        grid: Grid = DEFAULT,
    ) -> Thresholdout:
        """The least noise with which a session is (epsilon, delta)-private for each holdout record."""
        many, limit = whole(records, "records"), numbers.positive(epsilon, "epsilon")

        def at(ratio: Fraction) -> Thresholdout:
            return Thresholdout(
                scale=ratio / many,
                threshold=numbers.rate(threshold, "threshold"),
                records=many,
                overfits=overfits,
                grid=grid,
            )

        if numbers.delta(delta) == 0:
            ratio, more = 2 * whole(overfits, "overfits") / limit, NARROW
            while at(ratio).loss.epsilon(0).upper > limit:
                ratio, more = ratio * (1 + more), 2 * more
            return at(ratio)
        return at(calibrate(lambda ratio: at(ratio).loss, epsilon=limit, delta=delta, name="scale"))
