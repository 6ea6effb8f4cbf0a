"""`Sampling`: how the batch of every step is drawn, and what that makes of the loss of a step.

One value does both, so that what is charged is what is done. Its fields are public; how many rows there
really are, and whose they are, is not, unless the number was taken as public.

    public_size given    rates and steps follow from it alone. Neighbours differ by a unit that is there or
                         not (add_remove), and the real number of units stays private.
    public_size left out the real number of units n is taken as public: the rate is batch_size/n.
                         Neighbours then have the same n, and one unit is null in one of them (zero_out).

A null unit may be drawn, and adds nothing to any sum: it is processed as one that is absent. Therefore a step
that adds noise to a sum of what each unit brings costs under zero_out what it costs under add_remove, and a
step's loss that is stated for add_remove is restated for zero_out where its worst case is the same
(Kairouz, McMahan, Song, Thakkar, Thakurta and Xu 2021).

Sums are divided by the expected size of a batch, which is public, and never by that of the batch at hand.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import ClassVar

from numpy.typing import ArrayLike

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.chunk_assignment import chunk_count
from dalenius.learn.sampling.coins import Ints
from dalenius.learn.sampling.members import Members, members
from dalenius.learn.sampling.restated import restated
from dalenius.losses.loss import Loss
from dalenius.noise.bits import Bits
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation, read_relation

VERSION = 1
Plain = dict[str, int | str | bool | None]


@dataclass(frozen=True, init=False)
class Sampling(ABC):
    """`batch_size` of `size` units are expected in each of `steps` steps; `size` is public."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Sampling]]] = {}
    redrawn: ClassVar[bool] = True
    """Whether one more attempt at a step has a batch from a stream of its own."""

    size: int
    declared: bool
    batch_size: int
    steps: int
    rows_per_unit: int | None
    relation: Relation
    members: Members = field(repr=False, compare=False)

    def __init_subclass__(cls, *, kind: str) -> None:
        super().__init_subclass__()
        cls.kind = kind
        Sampling.kinds[kind] = cls

    def __init__(
        self,
        rows: int,
        *,
        batch_size: int,
        steps: int | None = None,
        epochs: Number | None = None,
        public_size: int | None = None,
        relation: Relation | None = None,
        units: ArrayLike | None = None,
        rows_per_unit: int | None = None,
    ) -> None:
        who = members(rows, units, rows_per_unit)
        size = _size(who, public_size)
        batch = numbers.count(batch_size, "batch_size")
        if batch > size:
            raise InvalidArgument(
                f"batch_size must not be larger than the public number of units, {size}.",
                remedy=f"Choose batch_size up to {size}.",
            )
        self._keep(size=size, declared=public_size is not None, batch_size=batch, members=who)
        self._keep(rows_per_unit=None if rows_per_unit is None else int(rows_per_unit))
        self._keep(relation=self._related(None if relation is None else read_relation(relation)))
        self._keep(steps=self.steps_of(steps, epochs))

    def _keep(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    # What a scheme says of itself.

    @abstractmethod
    def batch(self, step: int, bits: Bits) -> Ints:
        """The rows of a step, from the start of the stream of its `period`: the same bits, the same rows.

        A row number for each row, or a line of them for each unit. An empty batch is a batch.
        """

    @abstractmethod
    def again(self, step: Loss) -> Loss:
        """What one more attempt at a step costs beside the run, its batch drawn from a stream of its own."""

    @property
    @abstractmethod
    def how(self) -> str:
        """How batches are drawn, in words."""

    def _related(self, asked: Relation | None) -> Relation:
        """The relation that the loss holds for; refused where it does not."""
        given = asked or ("add_remove" if self.declared else "zero_out")
        if given == "replace":
            raise NotSound(
                f"No theorem bounds {self.kind.replace('_', ' ')} sampling under the replace relation.",
                remedy="Declare public_size and use add_remove, or sample without replacement.",
            )
        if given == "add_remove" and not self.declared:
            raise NotSound(
                "The rate would follow from the number of units, which add_remove keeps private.",
                remedy="Declare public_size, or leave relation out: the number is then taken as public.",
            )
        return given

    # What follows from it.

    @property
    def rate(self) -> Fraction:
        """The chance of a unit to be in the batch of a step, exactly."""
        return Fraction(self.batch_size, self.size)

    @property
    def expected(self) -> Fraction:
        """The expected size of a batch if there are `size` units: what sums are divided by."""
        return self.rate * self.size

    @property
    def usually_at_most(self) -> int:
        """A public number that a batch exceeds once in a billion steps: six standard deviations above."""
        expected = float(self.expected)
        return math.ceil(expected + 6 * math.sqrt(expected * (1 - float(self.rate))))

    def chunks(self, size: int) -> int:
        """Return into how many chunks of at most `size` examples a batch is cut, by public facts."""
        return chunk_count(self.usually_at_most, size)

    def loss(self, step: Loss) -> Loss:
        """The loss of the run, from what a step costs a unit that takes part in it."""
        return self.again(step) * self.steps

    def stretch(self, step: Loss, start: int, end: int) -> Loss:
        """Return the loss of the steps from `start` to before `end`, charged apart from all others.

        Args:
            step: What a step costs a unit that takes part in it.
            start: The first step of the stretch, counted from 0.
            end: The first step after the stretch.

        Raises:
            NotSound: These steps have no loss of their own under this sampling.
        """
        return self.again(step) * (end - start)

    def epoch_of(self, step: int) -> int:
        """Return the number of the epoch that a step lies in, both counted from 0."""
        return math.floor(step * self.rate)

    def epoch_start(self, epoch: int) -> int:
        """Return the first step of an epoch, at most the number of steps.

        An epoch is the time in which every unit is expected once: 1/rate steps. Where that is not a whole
        number the lengths of epochs differ by one step, so that E epochs end with the last step of a run
        of `epochs=E`.
        """
        return min(self.steps, math.ceil(epoch / self.rate))

    def period(self, step: int) -> int:
        """The number of the stream that the batch of this step is drawn from."""
        return self._checked(step)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a receipt says of the sampling."""
        who = "rows" if self.rows_per_unit is None else "units"
        if self.declared:
            known = f"rate and steps follow from the declared public size, {self.size} {who}"
        else:
            known = f"the number of {who}, {self.size}, was taken as public; neighbours: {self.relation}"
        taken = f"at most {self.rows_per_unit} rows of a unit in a step, chosen at random"
        divided = f"sums are divided by the expected batch size, {self.expected}"
        return (self.how, known, divided) + (() if self.rows_per_unit is None else (taken,))

    def plain(self) -> Plain:
        """The public fields, for JSON. How many rows there are is among them only where it is public."""
        shown = {part.name: getattr(self, part.name) for part in fields(self) if part.compare}
        return {"kind": self.kind, "version": VERSION, **shown}

    def steps_of(self, steps: int | None, epochs: Number | None) -> int:
        """Return a number of steps that is given as such or in epochs.

        Args:
            steps: The number of steps, or None.
            epochs: The number of epochs, or None: how often a unit is expected to take part.
        """
        if (steps is None) == (epochs is None):
            raise InvalidArgument("A run has steps or epochs.", remedy="Pass one of steps and epochs.")
        if steps is not None:
            return numbers.count(steps, "steps")
        return numbers.count(math.ceil(numbers.positive(epochs, "epochs") / self.rate), "steps")

    def _checked(self, step: int) -> int:
        """A step past the last is not covered by the loss."""
        return numbers.count(step, "step", least=0, most=self.steps - 1)

    def _stated(self, step: Loss) -> Loss:
        return restated(step, self.relation)


def _size(who: Members, public_size: int | None) -> int:
    if public_size is not None:
        return numbers.count(public_size, "public_size")
    if who.count == 0:
        raise InvalidArgument("There are no rows.", remedy="Pass rows, or declare public_size.")
    return who.count
