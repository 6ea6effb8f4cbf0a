"""Poisson samples: in every step each unit takes part by a coin of its own, unseen; also cut to a cap.

Theorem (Abadi et al. 2016 for Gaussian noise; as dominating pairs Zhu, Dong and Wang 2022, Theorem 11). If
(P, Q) dominates a step for removing a unit that takes part in it, then ((1−q)Q + qP, Q) dominates the step
on a Poisson sample at rate q, and the reverse pair does for adding one; steps on fresh samples compose.
It needs coins that are independent over units and steps: q is the same whoever else is there, so a unit that
is added or removed leaves the law of the others' coins as it is. (`losses.poisson`)

Here q = batch_size/size is a rational number and coins are exact. If there are more units than the declared
`size`, batches are larger than expected, and no unit is worse off.

Cut to a uniformly random `cap` of those drawn, memory is bounded too. Theorem in
`losses.sampling.truncated_poisson`: under add_remove, for data of `population` units at most. That bound is a
public fact about all data that may be met; data that break it are outside of the guarantee and refused.

    >>> from dalenius.losses import Gaussian
    >>> from dalenius.noise.source import Source
    >>> training = Poisson(60_123, batch_size=256, epochs=2, public_size=60_000)
    >>> training.steps, training.expected, training.batch(0, Source(b"a test")).shape
    (469, Fraction(256, 1), (254,))
    >>> training.loss(Gaussian(1)) == Gaussian(1).poisson(training.rate) * 469
    True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.sampling.choices import subset
from dalenius.learn.sampling.coins import Ints, heads
from dalenius.learn.sampling.scheme import Sampling
from dalenius.losses.loss import Loss
from dalenius.noise.bits import Bits
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation


@dataclass(frozen=True, init=False)
class Poisson(Sampling, kind="poisson"):
    """Each unit by itself, with the same probability in every step."""

    def batch(self, step: int, bits: Bits) -> Ints:
        """Those whose coins say yes, in order."""
        self._checked(step)
        return self.members.rows_of(heads(self.rate, self.members.count, bits), bits)

    def again(self, step: Loss) -> Loss:
        """One more Poisson sample."""
        return self._stated(step).poisson(self.rate)

    @property
    def how(self) -> str:
        """The rate."""
        return f"Poisson samples at the rate {self.rate}, {self.steps} steps"


@dataclass(frozen=True, init=False)
class TruncatedPoisson(Sampling, kind="truncated_poisson"):
    """The same, cut to a random `cap` where the sample is larger; there are `population` units at most."""

    cap: int
    population: int

    def __init__(
        self,
        rows: int,
        *,
        cap: int,
        population: int | None = None,
        **given: Any,
    ) -> None:
        super().__init__(rows, **given)
        bound = self.size if population is None else numbers.count(population, "population")
        self._keep(cap=numbers.count(cap, "cap"), population=bound)
        if self.members.count > bound:
            raise InvalidArgument(
                f"There are more units than population, {bound}: the guarantee does not cover such data.",
                remedy="Pass population as a public bound that holds, or use Poisson, which needs none.",
            )

    def batch(self, step: int, bits: Bits) -> Ints:
        """Those whose coins say yes, or `cap` of them."""
        self._checked(step)
        drawn = heads(self.rate, self.members.count, bits)
        kept = drawn if drawn.size <= self.cap else drawn[subset(drawn.size, self.cap, bits)]
        return self.members.rows_of(kept, bits)

    def again(self, step: Loss) -> Loss:
        """One more cut sample."""
        return self._stated(step).truncated_poisson(self.rate, population=self.population, cap=self.cap)

    @property
    def how(self) -> str:
        """The rate, the cap and the bound."""
        cut = f"cut to a random {self.cap}; the data have at most {self.population} units"
        return f"Poisson samples at the rate {self.rate}, {self.steps} steps, {cut}"

    def _related(self, asked: Relation | None) -> Relation:
        if asked not in (None, "add_remove") or not self.declared:
            raise NotSound(
                "A Poisson sample that is cut is bounded under add_remove, with a declared number of units.",
                remedy="Declare public_size and leave relation out, or use Poisson.",
            )
        return "add_remove"
