"""Sums of whole-number contributions under noise: what the bounded aggregates share.

A record gives a vector of whole steps whose norms are bounded whatever it holds, and a unit has at most
`per_unit` records. So the sums have the sensitivity of `bound`, and Laplace or Gaussian noise is added to
them in integers (`laplace`, `gaussian`). Sums are exact: a record has at most 2^62 steps, so that fewer than
2^65 records stay within the 128 bits at which a sum would be clamped, and noise is added to whole numbers of
any size. Everything that follows, a mean, a variance, an accuracy, is post-processing.

Laplace noise on a vector costs no more than on one number of the same L1 norm (`losses.laplace`). Where that
norm is made of pieces that cannot come together in one sum, it costs the composition of the pieces, which is
less at every δ > 0: under replace what is never negative loses at most k and gains at most k, elsewhere.

A record without a number (NaN) contributes nothing, as if absent: that is within every bound under add_remove
and zero_out. Under replace, where the number of records is public, it counts as 0, clipped. A record without
an id, where ids are given, is left out; under replace with one record a unit it counts as one without a
number.
"""

from __future__ import annotations

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
from dalenius.losses import gaussian as gaussian_losses
from dalenius.losses.loss import Loss
from dalenius.mechanisms import contributions
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.laplace_ratio import check_epsilon, least_ratio
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.mechanisms.step_noise import LEFT_OUT
from dalenius.noise.reading import MOST_SCALE
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps, exact_sum
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation, read_relation
from dalenius.profiles import rounding
from dalenius.release import Cell

Noise = Literal["laplace", "gaussian"]
"""The law of the noise."""
MOST_POINTS, MOST_OUTCOMES = 2**20, 2**16
"""Up to which the law of one sum, and the joint law of several, is written out."""
MOST_BOUND = 10**100
"""The farthest from zero that a bound may be, and the inverse of the least distance of two."""

Totals = NDArray[np.object_]
"""Sums in steps, as integers of any size."""

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

    @property
    @abstractmethod
    def missing(self) -> Steps:
        """The contribution of a record that holds nothing, as one row."""

    # What follows from it.

    @cached_property
    def additive(self) -> Additive:
        """The noise."""
        law: Callable[..., Additive] = Laplace if self.noise == "laplace" else Gaussian
        return law(scale=self.scale, sensitivity=self.bound, grid=self.sums_grid, exact=True)

    @property
    def loss(self) -> Loss:
        """That of the noise, at the sensitivity in steps."""
        return self.additive.loss

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
        kept = contributions.kept(ids, self.per_unit)
        if self.relation == "replace" and self.per_unit == 1:
            nobody = contributions.units_of(ids)[1] == contributions.NOBODY
            rows, kept = np.where(nobody[:, np.newaxis], self.missing, rows), kept | nobody
        return rows[kept]

    def totals(self, rows: Steps) -> Totals:
        """The exact sum of each column."""
        return np.array([exact_sum(column) for column in rows.T], dtype=object)

    def noisy(self, rows: Steps) -> list[int]:
        """The sums of these rows under noise."""
        exact = self.totals(rows)
        found: list[int] = (exact + self.additive.draw(exact.size)).tolist()
        return found

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Independent draws of the noisy sums on public records, one row each."""
        exact = np.array([float(total * self.step) for total in self.totals(self.vectors(value))])
        noise = self.additive.draw(size * exact.size).reshape(size, exact.size)
        found: NDArray[Any] = exact + noise * float(self.step)
        return found[:, 0] if exact.size == 1 else found

    def probabilities(self, value: Any) -> Law | None:
        """The joint law of the noisy sums, where it has few outcomes."""
        totals = self.totals(self.vectors(value)).tolist()
        points = 2 * self.additive.reach(Fraction(LEFT_OUT)) + 1
        if points ** len(totals) > (MOST_POINTS if len(totals) == 1 else MOST_OUTCOMES):
            return None
        law = self.additive.probabilities(0)
        if law is None:
            return None
        moved = [[outcome + total * self.step for outcome in law.outcomes] for total in totals]
        if len(moved) == 1:
            return Law(tuple(moved[0]), law.masses, law.rest)
        masses = law.masses
        for _ in moved[1:]:
            masses = np.outer(masses, law.masses).ravel()
        outcomes = product(*([float(outcome) for outcome in side] for side in moved))
        return Law(tuple(outcomes), masses, len(moved) * law.rest)

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
    limit, failure = numbers.epsilon(epsilon), numbers.delta(delta)
    if draft.noise == "gaussian":
        return _gaussian(draft, limit, failure)
    norm = draft.bound.need("l1")
    check_epsilon(limit, norm / draft.step)
    ratio = least_ratio(lambda b: _scaled(draft, norm * b).loss, epsilon=limit, delta=failure)
    # The ε of a composition is evaluated with rounding, and must read as within the limit too.
    spread = norm > draft.bound.need("linf")
    while spread and _scaled(draft, norm * ratio).loss.epsilon(failure).upper > limit:
        ratio *= 1 + Fraction(1, 10**15)
    return _scaled(draft, norm * ratio)


def _gaussian(draft: Kind, epsilon: Fraction, delta: Fraction) -> Kind:
    if delta == 0:
        raise InvalidArgument(
            "Gaussian noise needs delta above 0.", remedy="Pass delta such as 1e-6, or noise='laplace'."
        )
    found = gaussian_losses.Gaussian.calibrate(epsilon=epsilon, delta=delta)
    scale = found.noise_multiplier * draft.bound.need("l2")
    if scale > MOST_SCALE * draft.step:
        raise InvalidArgument(
            "Noise for this epsilon and delta has more than 2^50 steps of the grid.",
            remedy="Choose a larger epsilon or delta.",
        )
    return _scaled(draft, scale)


def _scaled(draft: Kind, scale: Fraction) -> Kind:
    return cast(Kind, replace(cast(Any, draft), scale=scale))


def check_bounds(lower: Fraction, upper: Fraction) -> None:
    """Bounds that leave room between them, and for sums of their squares."""
    if not lower < upper:
        raise InvalidArgument(
            "lower must be below upper.", remedy="Pass the least and the most a value may be."
        )
    if max(abs(lower), abs(upper)) > MOST_BOUND or (upper - lower) * MOST_BOUND < 1:
        raise InvalidArgument(
            "lower and upper must be within 1e100 of zero, and 1e-100 or more apart.",
            remedy="Choose other bounds, or another unit of measurement for values and bounds.",
        )


def per_unit_count(value: object, name: str) -> int:
    """How many records a unit may have."""
    return numbers.count(value, name, most=10**6)


def cells(steps: list[int], step: Fraction) -> list[Cell]:
    """Steps as numbers: whole ones on a grid of whole numbers."""
    whole = step.denominator == 1
    return [int(k * step) if whole else float(k * step) for k in steps]


def outward(value: Fraction, low: Fraction, high: Fraction) -> list[Cell]:
    """A number as a float, and the ends of its bar as floats that are no nearer."""
    return [float(value), rounding.floor(low), rounding.ceiling(high)]
