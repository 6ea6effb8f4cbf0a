"""Noisy gradient descent by its parameters: what is assumed of them, and what follows for one step.

The theorem is in `iteration`, which says what every parameter is.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Described, Parameter, whole, written
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation

NEAR = Fraction(1, 10**100)
"""A contraction nearer to 1, but not 1, is beyond the working precision."""


def _none_kept(value: object, name: str) -> int:
    return numbers.count(value, name, least=0)


@dataclass(frozen=True, repr=False)
class Descent(Described, ABC):
    """Parameters of noisy gradient descent."""

    _: KW_ONLY
    lipschitz: Parameter[Fraction] = Parameter(numbers.positive)
    smoothness: Parameter[Fraction] = Parameter(numbers.positive)
    strong_convexity: Parameter[Fraction] = Parameter(numbers.non_negative, Fraction(0))
    diameter: Fraction | None = None
    learning_rate: Parameter[Fraction] = Parameter(numbers.positive)
    noise: Parameter[Fraction] = Parameter(numbers.positive)
    steps: Parameter[int] = Parameter(whole)
    population: Parameter[int] = Parameter(whole)
    batch: int | None = None
    after: Parameter[int] = Parameter(_none_kept, 0)
    checkpoints: Parameter[int] = Parameter(_none_kept, 0)
    units: Parameter[int] = Parameter(whole, 1)
    relation: Relation = "replace"

    def __post_init__(self) -> None:
        super().__post_init__()
        batch = self.population if self.batch is None else self.batch
        object.__setattr__(self, "batch", whole(batch, "batch"))
        if self.diameter is not None:
            object.__setattr__(self, "diameter", numbers.positive(self.diameter, "diameter"))
        if self.relation != "add_remove":
            # No more units can differ than there are.
            object.__setattr__(self, "units", min(self.units, self.population))
        self._check_assumptions()
        self._check_batches()
        if self.checkpoints:
            raise NotSound(
                f"The loss of a last iterate does not cover {self.checkpoints} checkpoints before it.",
                remedy=f"Charge plain composition, which covers all iterates: {self._step!r} * {self._used}.",
            )

    def _check_assumptions(self) -> None:
        if self.strong_convexity > self.smoothness:
            raise InvalidArgument(
                "strong_convexity must be at most smoothness.",
                remedy="Pass the lesser one as strong_convexity.",
            )
        if self.learning_rate * self.smoothness > 2:
            raise NotSound(
                "A step with learning_rate above 2/smoothness may move points apart, and no theorem holds.",
                remedy=f"Choose learning_rate at most 2/smoothness = {written(2 / self.smoothness)}.",
            )
        if 0 < 1 - self.contraction < NEAR:
            raise InvalidArgument(
                "learning_rate must leave a contraction of 1, or one at least 1e-100 below 1.",
                remedy="Choose another learning_rate, or strong_convexity=0, which always holds.",
            )

    def _check_batches(self) -> None:
        if self.population % self._size:
            raise InvalidArgument(
                "batch must divide population: batches are all of one size.", remedy="Choose such a batch."
            )
        if self.relation == "add_remove" and self.cycle > 1:
            raise NotSound(
                "A unit that comes or goes would move others to other batches.",
                remedy="State the loss for zero_out or replace, or use one batch.",
            )
        if self.after >= min(self.cycle, self.steps):
            raise InvalidArgument(
                "after must be less than steps and than the number of batches.",
                remedy="Leave it out, or count the steps after the last use of any unit.",
            )

    @property
    def _size(self) -> int:
        assert self.batch is not None
        return self.batch

    @property
    def cycle(self) -> int:
        """How many batches take turns."""
        return self.population // self._size

    @property
    def contraction(self) -> Fraction:
        """c: what a step leaves of a distance, at most."""
        rate = self.learning_rate
        return max(abs(1 - rate * self.strong_convexity), abs(1 - rate * self.smoothness))

    @property
    def uses(self) -> int:
        """How many steps use one unit, at most."""
        return -(-(self.steps - self.after) // self.cycle)

    @property
    def composed(self) -> Loss:
        """Plain composition, under which every iterate may be released."""
        return self._step * self._used

    @property
    def _step(self) -> Gaussian:
        return Gaussian(self.noise * self._size / (self.lipschitz * self._held), relation=self.relation)

    @property
    def _used(self) -> int:
        """How many steps use any of the units, at most."""
        return min(self.uses * self._filled, self.steps - self.after)

    @property
    def _held(self) -> int:
        """How many of the units one batch can hold; those that come are all of the one there is."""
        return self.units if self.relation == "add_remove" else min(self.units, self._size)

    @property
    def _filled(self) -> int:
        """How many batches the units fill."""
        return -(-self.units // self._held)
