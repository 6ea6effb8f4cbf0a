"""Sums of whole-number contributions under noise: what the bounded aggregates share.

A record gives a vector of whole steps whose norms are bounded whatever it holds, and a unit has at most
`per_unit` records. So the sums have the sensitivity of `bound`, they are exact in 128 bits and clamped once
at the end, and Laplace or Gaussian noise is added to them in integers (`laplace`, `gaussian`). Everything
that follows, a mean, a variance, an accuracy, is post-processing.

Laplace noise on a vector costs no more than on one number of the same L1 norm (`losses.laplace`). Where that
norm is made of pieces that cannot come together in one sum, it costs the composition of the pieces, which is
less at every δ > 0: under replace what is never negative loses at most k and gains at most k, elsewhere.

A record without a number (NaN) contributes nothing, as if absent: that is within every bound under add_remove
and zero_out. Under replace, where the number of records is public, it counts as 0, clipped.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.calibration import calibrate
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.loss import Loss
from dalenius.mechanisms import contributions
from dalenius.mechanisms.additive import LEFT_OUT, Additive
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import MOST, Grid, Steps, exact_sum
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation, read_relation
from dalenius.release import Cell

Noise = Literal["laplace", "gaussian"]
"""The law of the noise."""
MOST_POINTS, MOST_OUTCOMES = 2**20, 2**16
"""Up to which the law of one sum, and the joint law of several, is written out."""

Kind = TypeVar("Kind", bound="Tally")


class Tally(Mechanism):
    """Noise of `scale` on sums of bounded contributions."""

    scale: Any
    per_unit: Any
    noise: Noise
    relation: Relation

    def __post_init__(self) -> None:
        read_relation(self.relation)
        if self.noise not in ("laplace", "gaussian"):
            raise InvalidArgument(
                "noise must be laplace or gaussian.", remedy="Pass noise as one of these names."
            )

    # What each of them says.

    @property
    @abstractmethod
    def bound(self) -> Sensitivity:
        """How far one unit moves the sums."""

    @property
    @abstractmethod
    def sums_grid(self) -> Grid:
        """The grid of the sums."""

    @abstractmethod
    def vectors(self, value: Any) -> Steps:
        """Each record's contribution, one row each."""

    # What follows from it.

    @cached_property
    def additive(self) -> Additive:
        """The noise."""
        law: Callable[..., Additive] = Laplace if self.noise == "laplace" else Gaussian
        return law(scale=self.scale, sensitivity=self.bound, grid=self.sums_grid, exact=True)

    @property
    def pieces(self) -> int:
        """Into how many sums, at least, the L1 norm of a unit's worst contribution is spread evenly."""
        return 1

    @property
    def loss(self) -> Loss:
        """That of the noise, at the sensitivity in steps; Laplace noise costs each piece by itself."""
        if self.noise == "gaussian" or self.pieces == 1:
            return self.additive.loss
        each = int(self.bound.need("l1") / self.step) // self.pieces
        return DiscreteLaplace(self.scale / self.step, sensitivity=each, relation=self.relation) * self.pieces

    @property
    def step(self) -> Fraction:
        """The distance between neighbouring sums."""
        return self.sums_grid.step

    def rows(self, value: Any, ids: Any = None) -> Steps:
        """The contributions that count: all, or as many of each unit as it may have."""
        rows = self.vectors(value)
        if ids is None:
            return rows
        contributions.same_length(ids, len(rows))
        return rows[contributions.kept(ids, self.per_unit)]

    def totals(self, rows: Steps) -> Steps:
        """The exact sum of each column, held within ±2^62 steps."""
        return np.array([max(-MOST, min(MOST, exact_sum(column))) for column in rows.T], dtype=np.int64)

    def noisy(self, rows: Steps) -> list[int]:
        """The sums of these rows under noise."""
        exact = self.totals(rows)
        found: list[int] = (exact + np.clip(self.additive.draw(exact.size), -MOST, MOST - 1)).tolist()
        return found

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Independent draws of the noisy sums on public records, one row each."""
        exact = self.totals(self.vectors(value))
        noise = np.clip(self.additive.draw(size * exact.size), -MOST, MOST - 1)
        found = np.array((exact + noise.reshape(size, exact.size)) * float(self.step))
        return found[:, 0] if exact.size == 1 else found

    def probabilities(self, value: Any) -> Law | None:
        """The joint law of the noisy sums, where it has few outcomes."""
        totals, points = (
            self.totals(self.vectors(value)).tolist(),
            2 * self.additive.reach(Fraction(LEFT_OUT)) + 1,
        )
        if points ** len(totals) > (MOST_POINTS if len(totals) == 1 else MOST_OUTCOMES):
            return None
        known = [law for law in map(self.additive.probabilities, totals) if law is not None]
        if len(known) == 1:
            return known[0]
        outcomes = product(*([float(outcome) for outcome in law.outcomes] for law in known))
        masses = known[0].masses
        for law in known[1:]:
            masses = np.outer(masses, law.masses).ravel()
        return Law(tuple(outcomes), masses, math.fsum(law.rest for law in known))

    def promises(self, ids: Any) -> tuple[str, ...]:
        """How many records a unit has, for the receipt."""
        if ids is not None:
            return (f"at most {self.per_unit} records per unit, chosen by a hash of its id",)
        return (
            ()
            if self.per_unit == 1
            else (f"at most {self.per_unit} records per unit, by the caller's promise",)
        )


def calibrated(draft: Kind, *, epsilon: Number, delta: Number) -> Kind:
    """The draft with the least noise that makes one release (epsilon, delta)-differentially private."""
    limit, failure = numbers.positive(epsilon, "epsilon"), numbers.delta(delta)

    def scaled(scale: Fraction) -> Kind:
        return cast(Kind, replace(cast(Any, draft), scale=scale))

    if draft.noise == "laplace" and draft.pieces > 1:
        norm = draft.bound.need("l1")
        if failure == 0:
            ratio = 1 / limit
        else:
            ratio = calibrate(lambda b: scaled(norm * b).loss, epsilon=limit, delta=failure, name="scale")
        # The ε of a composition is evaluated with rounding, and must read as within the limit too.
        while scaled(norm * ratio).loss.epsilon(failure).upper > limit:
            ratio *= 1 + Fraction(1, 10**15)
        return scaled(norm * ratio)
    law: Callable[..., Additive] = Laplace.calibrate if draft.noise == "laplace" else Gaussian.calibrate
    found = law(epsilon=limit, delta=failure, sensitivity=draft.bound, grid=draft.sums_grid, exact=True)
    return scaled(found.scale)


def check_bounds(lower: Fraction, upper: Fraction) -> None:
    """Bounds that leave room between them."""
    if not lower < upper:
        raise InvalidArgument(
            "lower must be below upper.", remedy="Pass the least and the most a value may be."
        )


def per_unit_count(value: object, name: str) -> int:
    """How many records a unit may have."""
    return numbers.count(value, name, most=10**6)


def cells(steps: list[int], step: Fraction) -> list[Cell]:
    """Steps as numbers: whole ones on a grid of whole numbers."""
    whole = step.denominator == 1
    return [int(k * step) if whole else float(k * step) for k in steps]
