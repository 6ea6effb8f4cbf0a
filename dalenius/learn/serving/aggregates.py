"""What the models of an ensemble say, as one answer: a noisy plurality of votes, or a noisy mean.

Theorem (sample and aggregate: Nissim, Raskhodnikova and Smith 2007; votes: Papernot et al. 2017). Let a unit
have a say in one model only (`shards`), whatever that model is. For every question, chosen with sight of all
earlier answers:

    Plurality   one vote comes, goes or moves: every count moves by at most 1, one up and one down. The class
                is chosen with probability ∝ e^{votes/scale}: an exponential mechanism of bounded range
                2/scale, hence 2/scale-private and 1/(2·scale²)-zCDP. For 500 answers at ε = 2, δ = 1e-6 the
                noise between two classes has 0.97 times the deviation of that of GNMax, and it needs no δ.
    Mean        one number moves by at most upper − lower, all being clipped and rounded onto a grid one by
                one: Laplace or Gaussian noise on their sum, divided by the public number of models.

Both hold where a unit comes or goes (add_remove) or is blanked (zero_out). A model without an answer gives no
vote, or the middle of the bounds. Proof: let the shards of all other units be the same on both neighbours;
then all models but one are. Averaging over coins keeps the bound, by joint convexity. ∎
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.learn.models import Answers
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.choice import most_range
from dalenius.mechanisms.exponential import Exponential
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity, sqrt_up
from dalenius.privacy.unit import Relation, Unit
from dalenius.profiles import rounding
from dalenius.release import CONFIDENCE, Cell, Release

FINENESS = 2**20
"""Steps between the bounds of a mean."""


VOTES = "exact choice by whole numbers of votes"


class Aggregate(Protocol):
    """How answers become one."""

    @property
    def classes(self) -> tuple[Cell, ...]:
        """What is voted for; none for numbers."""

    @property
    def loss(self) -> Loss:
        """Of one answer."""

    @property
    def bounds(self) -> tuple[str, ...]:
        """What its receipt states."""

    def release(self, answers: Sequence[Answers], question: int, unit: Unit | None) -> Release:
        """One answer to one of the questions."""


@dataclass(frozen=True)
class Plurality:
    """The class with about the most votes."""

    classes: tuple[Cell, ...]
    mechanism: Exponential

    @property
    def loss(self) -> Loss:
        """Of one answer."""
        return self.mechanism.loss

    @property
    def bounds(self) -> tuple[str, ...]:
        """How far from the most votes an answer may be."""
        short = self.mechanism.shortfall(len(self.classes))
        sure = float(100 * CONFIDENCE)
        return (f"an answer has fewer than {short:g} votes less than the first, with {sure:g} %",)

    def votes(self, answers: Sequence[Answers], question: int) -> NDArray[np.int64]:
        """How many models choose each class."""
        chosen = np.array([one.chosen[question] for one in answers], dtype=np.int64)
        return np.bincount(chosen[chosen >= 0], minlength=len(self.classes)).astype(np.int64)

    def release(self, answers: Sequence[Answers], question: int, unit: Unit | None) -> Release:
        """The class that is chosen."""
        votes = self.votes(answers, question)
        made = self.mechanism.release(votes, candidates=self.classes, name="answer", unit=unit)
        return replace(made, receipt=replace(made.receipt, numerics=VOTES))

    @staticmethod
    def calibrate(
        classes: Sequence[Cell], *, epsilon: Number, delta: Number, answers: int, relation: Relation
    ) -> Plurality:
        """The least noise with which so many answers keep the promise together."""

        def price(limit: Fraction) -> Loss:
            return Exponential.price(limit, 2, relation) * answers

        limit = most_range(price, epsilon=epsilon, delta=delta, choices=answers)
        bound = Sensitivity(linf=1, relation=relation)
        return Plurality(tuple(classes), Exponential(scale=2 / limit, sensitivity=bound, grid=Grid(0)))


@dataclass(frozen=True)
class Mean:
    """About the mean of numbers within [lower, upper]."""

    lower: Fraction
    upper: Fraction
    mechanism: Additive
    classes: tuple[Cell, ...] = ()

    @property
    def loss(self) -> Loss:
        """Of one answer."""
        return self.mechanism.loss

    @property
    def bounds(self) -> tuple[str, ...]:
        """The bounds of each number."""
        return (f"each model's number clipped to [{float(self.lower):g}, {float(self.upper):g}]",)

    def total(self, answers: Sequence[Answers], question: int) -> int:
        """The sum of all numbers, each in whole steps within the bounds."""
        step = self.mechanism.step
        least, most = math.ceil(self.lower / step), math.floor(self.upper / step)
        found = (float(one.values[question]) for one in answers)
        grid, middle = self.mechanism.grid, (least + most) // 2
        assert grid is not None
        steps = (middle if math.isnan(one) else grid.aggregate(one) for one in found)
        return sum(max(least, min(most, one)) for one in steps)

    def release(self, answers: Sequence[Answers], question: int, unit: Unit | None) -> Release:
        """The mean, with the bar of the noise."""
        found = self.mechanism.release(self.total(answers, question), name="answer", unit=unit)
        value, low, high = (Fraction(one) / len(answers) for one in (found.value, found.low, found.high))
        columns = {
            "answer": [float(value)],
            "answer_low": [rounding.floor(low)],
            "answer_high": [rounding.ceiling(high)],
        }
        return found.postprocess(f"divided by {len(answers)} models", columns)

    @staticmethod
    def calibrate(
        lower: Number, upper: Number, *, epsilon: Number, delta: Number, answers: int, relation: Relation
    ) -> Mean:
        """The least noise with which so many answers keep the promise together."""
        least, most = numbers.moderate(lower, "lower"), numbers.moderate(upper, "upper")
        if not least < most:
            raise InvalidArgument("lower must be below upper.", remedy="Pass the bounds of an answer.")
        grid = Grid.within((most - least) / FINENESS)
        bound = Sensitivity(l0=1, linf=most - least, relation=relation)
        limit = numbers.epsilon(epsilon)
        law: Additive = Laplace.calibrate(epsilon=limit / answers, sensitivity=bound, grid=grid, exact=True)
        if numbers.delta(delta):
            one = Gaussian.calibrate(epsilon=limit, delta=delta, sensitivity=bound, grid=grid, exact=True)
            many = Gaussian(
                scale=one.scale * sqrt_up(Fraction(answers)), sensitivity=bound, grid=grid, exact=True
            )
            law = min(law, many, key=lambda each: each.error())
        return Mean(least, most, law)
