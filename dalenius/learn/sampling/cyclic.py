"""A fixed order: each unit takes part once in every epoch, always at the same place; for correlated noise.

A unit's place is uniform on the steps of an epoch, chosen by itself once for the whole run. The choices of
all others have one law for both of two neighbours, and given all choices, neighbours differ at the steps of
one place only, which are `separation` apart. The run is a mixture over choices, the same for both, so it is
no easier to tell apart than with the worst place known. That is what is charged: with independent noise one
step for each epoch that is begun; with noise correlated over `bands` steps (`learn.correlated`) the stream
`losses.streams.inverse` under the participation cyclic(separation).

One more attempt at a step has the same batch and its own noise. It adds a row to the encoder C, that of its
step once more, which a unit moves by the sum of c at distances of its steps up to there: by at most
max_o Σ_i c_{o + i·separation}. Squares of what a unit moves in two sets of rows add up. The same holds for
each of several steps that are made again (docs/proofs/correlated.md).

Nothing is gained from the secrecy of places: with independent noise `RandomAllocation` costs less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dalenius.errors import NotSound
from dalenius.learn.sampling.allocation import RandomAllocation
from dalenius.losses.bound import Bound
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.losses.streams.correlated import gaussian
from dalenius.losses.streams.inverse import BandedInverse
from dalenius.losses.streams.participation import Participation, cyclic
from dalenius.privacy import numbers

MOST_BANDS = 64


@dataclass(frozen=True, init=False)
class Cyclic(RandomAllocation, kind="cyclic"):
    """Each unit at the same step of every epoch; noise correlated over `bands` steps, 1 being none."""

    redrawn: ClassVar[bool] = False
    bands: int

    def __init__(self, rows: int, *, bands: int = 8, **given: Any) -> None:
        super().__init__(rows, **given)
        self._keep(bands=numbers.count(bands, "bands", most=MOST_BANDS))

    @property
    def separation(self) -> int:
        """Steps from one time that a unit takes part to the next: those of an epoch."""
        return self.epoch

    @property
    def participation(self) -> Participation:
        """When one unit may contribute."""
        return cyclic(self.separation)

    @property
    def stream(self) -> BandedInverse:
        """The factorization that noise is correlated by."""
        return BandedInverse.square_root(self.steps, self.bands)

    def period(self, step: int) -> int:
        """One stream for the whole run."""
        self._checked(step)
        return 0

    def loss(self, step: Loss) -> Loss:
        """Of all steps of one place together."""
        if self.bands == 1:
            return self._stated(step) * self.participation.times(self.steps)
        return self.stream.loss(_noise(step), self.participation, relation=self.relation)

    def stretch(self, step: Loss, start: int, end: int) -> Loss:
        """Return the loss of the whole run; refuse part of it, whose order and noise the rest shares."""
        if (start, end) != (0, self.steps):
            raise NotSound(
                "A fixed order, and noise that is correlated over steps, have a loss for the whole run only.",
                remedy='Pass pay="run", or sampling="poisson".',
            )
        return self.loss(step)

    def again(self, step: Loss) -> Loss:
        """On the same batch, with noise of its own."""
        if self.bands == 1:
            return self._stated(step)
        sums = [
            max(math.fsum(column[first :: self.separation]) for first in range(self.separation))
            for column in self.stream.coefficients()
        ]
        bound = Bound(math.nextafter(sums[0], 0), math.nextafter(sums[1], math.inf), True)
        return gaussian(_noise(step), bound, self.relation)

    @property
    def how(self) -> str:
        """The steps of an epoch."""
        order = f"a fixed order: each unit once every {self.separation} steps, {self.steps} steps"
        alone = self.bands == 1
        return order if alone else f"{order}; noise correlated over {self.bands} (inverse square root)"


def _noise(step: Loss) -> Fraction:
    if not isinstance(step, Gaussian):
        raise NotSound("Correlated noise is Gaussian.", remedy="Clip in the L2 norm, or choose bands=1.")
    return step.noise_multiplier
