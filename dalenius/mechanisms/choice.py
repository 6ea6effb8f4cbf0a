"""Choosing a candidate by utilities: what the mechanisms that choose share.

A utility is a number per candidate, larger for better ones. Neighbours move each of them by at most Δ, the
sensitivity in L∞; `monotone` declares that a unit moves all of them the same way, as it does with counts
where units come or go. Utilities are rounded toward zero onto a power-of-two grid of step g, which is
charged: each then moves by at most ⌈Δ/g⌉ steps, in the same direction as before. They saturate at 2^61
steps, which brings neighbours no further apart; NaN counts as zero.

So the utilities of any set A of candidates gain at most `span` on those of the others: twice the charged
sensitivity, or once where it is monotone. span/scale is the ε of one choice. Candidates, their number and
their names are public.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.calibration import calibrate
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.candidates import named, whole_steps
from dalenius.mechanisms.gridded import Bounded, default_grid, read_flag, read_grid, read_sensitivity
from dalenius.mechanisms.mechanism import Mechanism, risk
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import AGGREGATE, CONFIDENCE, Cell, Release

FINENESS = 14
"""On the default grid rounding costs a share of at most 2^−14."""


@dataclass(frozen=True)
class Choice(Mechanism):
    """A choice among candidates by utilities over `scale`, each of `sensitivity`."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    sensitivity: Bounded = Bounded()
    monotone: bool = False
    grid: Grid | None = None

    def __post_init__(self) -> None:
        stated = self.sensitivity
        if read_flag(self.monotone, "monotone") and stated.relation == "replace":
            raise NotSound(
                "A replaced unit may raise one utility and lower another.", remedy="Pass monotone=False."
            )
        bound = Sensitivity(linf=stated.need("linf"), relation=stated.relation)
        object.__setattr__(self, "sensitivity", bound)
        object.__setattr__(self, "grid", read_grid(self.grid, default_grid(bound, "linf", FINENESS)))
        _ = self.loss

    @abstractmethod
    def draw(self, steps: Steps, size: int) -> Steps:
        """Independent choices as indices, one row each."""

    @property
    def step(self) -> Fraction:
        """The distance between grid points."""
        assert self.grid is not None
        return self.grid.step

    @property
    def rate(self) -> Fraction:
        """A step over the scale."""
        return self.step / self.scale

    @property
    def relation(self) -> Relation:
        """Of neighbours."""
        return self.sensitivity.relation

    @property
    def charged(self) -> int:
        """How many steps a utility may move, rounding included."""
        return math.ceil(self.sensitivity.need("linf") / self.step)

    @property
    def span(self) -> int:
        """How many steps the utilities of some candidates may gain on those of others."""
        return self.charged * (1 if self.monotone else 2)

    @property
    def limit(self) -> Fraction:
        """The span over the scale: the ε of one choice."""
        return self.span * self.rate

    @property
    def numerics(self) -> str:
        """Utilities are computed by the caller."""
        return AGGREGATE

    def release(
        self,
        value: Any,
        *,
        candidates: Sequence[Cell] | None = None,
        name: str = "choice",
        unit: Unit | None = None,
    ) -> Release:
        """Choose once by private utilities: the name of the candidate, or its index."""
        steps = self.steps(value)
        names = named(candidates, steps.size)
        chosen = [names[i] for i in np.ravel(self.draw(steps, 1)).tolist()]
        return self._released({name: chosen}, (name,), unit)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Independent choices by public utilities, as indices."""
        return self.draw(self.steps(value), size)

    def steps(self, value: Any) -> Steps:
        """Utilities in grid steps."""
        assert self.grid is not None
        found = whole_steps(value, self.grid)
        if found.size == 0:
            raise InvalidArgument("There is no candidate.", remedy="Pass a utility for at least one.")
        return found

    def shortfall(self, count: int, alpha: Number = 1 - CONFIDENCE) -> float:
        """How far below the best utility the choice among `count` is with probability at most `alpha`.

        In units of utility and whole steps: scale·log((count − 1)(1 − alpha)/alpha), which one best candidate
        and the others that far below attain with the exponential mechanism.
        """
        others, chance = numbers.count(count, "count") - 1, risk(alpha)
        odds = float(others * (1 - chance) / chance)
        far = math.log(odds) / float(self.rate) if odds > 1 else 0.0
        return float(max(1, math.ceil(far * (1 + 1e-12))) * self.step) if others else 0.0

    def _apart(self, *utilities: int) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        """These utilities in steps, and where all but the last gain a whole span on the last."""
        *others, last = utilities
        fall = 0 if self.monotone else self.charged
        moved = (*(u + self.charged for u in others), last - fall)
        return tuple(u * self.step for u in utilities), tuple(u * self.step for u in moved)


class OneChoice(Choice):
    """A mechanism that chooses one candidate."""

    @staticmethod
    @abstractmethod
    def price(limit: Fraction, steps: int, relation: Relation = "add_remove") -> Loss:
        """What a choice costs whose span of so many steps is `limit` times its scale."""

    @property
    def loss(self) -> Loss:
        """By its price."""
        return self.price(self.limit, self.span, self.relation)

    @classmethod
    def calibrate(
        cls,
        *,
        epsilon: Number,
        delta: Number = 0,
        sensitivity: Sensitivity | Number,
        monotone: bool = False,
        grid: Grid | None = None,
    ) -> Self:
        """The least scale with which one choice is known to be (epsilon, delta)-differentially private."""
        bound = read_sensitivity(sensitivity)
        trial = cls(scale=about(bound, grid), sensitivity=bound, monotone=monotone, grid=grid)
        limit = most_range(lambda b: cls.price(b, trial.span), epsilon=epsilon, delta=delta)
        return cls(scale=trial.span * trial.step / limit, sensitivity=bound, monotone=monotone, grid=grid)


def log_odds(epsilon: float, lost: float) -> float:
    """Of an outcome to one against it: its probability grows by e^{(1 − lost)ε} as its odds grow by e^ε."""
    kept = (1 - lost) * epsilon
    return kept + math.log(math.expm1(-kept) / math.expm1(-lost * epsilon))


def about(sensitivity: Sensitivity, grid: Grid | None) -> Fraction:
    """A scale at which a choice costs about 1, whatever the utilities are counted in."""
    return max(sensitivity.need("linf"), grid.step if isinstance(grid, Grid) else Fraction(0))


def most_range(
    price: Callable[[Fraction], Loss], *, epsilon: Number, delta: Number, choices: int = 1
) -> Fraction:
    """The largest ε of each choice with which price(ε) is (epsilon, delta)-differentially private.

    What δ = 0 allows is always within the promise, so more is looked for beyond it.
    """
    pure = numbers.positive(epsilon, "epsilon") / choices
    if numbers.delta(delta) == 0:
        return pure
    more = calibrate(lambda b: price(pure + pure / b), epsilon=epsilon, delta=delta, name="scale")
    return pure + pure / more
