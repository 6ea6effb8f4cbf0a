"""Batches of one size, every such set of units equally likely, fresh in every step.

Theorem (Balle, Barthe and Gaboardi 2018; `losses.sampling.without_replacement`). On b of n records, γ = b/n,
a step of profile h under replace has H(y) ≤ γ·h(1 + (y−1)/γ) for y ≥ 1, and steps compose. It holds for
neighbours of the same number of units, one of which differs. If one is removed instead, the chances of all
others change; if one is null, it takes a place in the batch all the same. Those relations are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.sampling.choices import subset
from dalenius.learn.sampling.coins import Ints
from dalenius.learn.sampling.scheme import Sampling
from dalenius.losses.loss import Loss
from dalenius.noise.bits import Bits
from dalenius.privacy.unit import Relation


@dataclass(frozen=True, init=False)
class WithoutReplacement(Sampling, kind="without_replacement"):
    """Exactly `batch_size` of the units in every step, under replace."""

    def batch(self, step: int, bits: Bits) -> Ints:
        """A random set of them, in order."""
        self._checked(step)
        return self.members.rows_of(subset(self.members.count, self.batch_size, bits), bits)

    def again(self, step: Loss) -> Loss:
        """One more such batch."""
        return self._stated(step).without_replacement(self.batch_size, self.size)

    @property
    def how(self) -> str:
        """The share."""
        return f"{self.batch_size} of {self.size} without replacement, {self.steps} steps"

    def _related(self, asked: Relation | None) -> Relation:
        if asked not in (None, "replace"):
            raise NotSound(
                f"Batches of one size have no bound under {asked}: each unit's chance depends on the others.",
                remedy='Use Poisson or RandomAllocation, or relation="replace".',
            )
        if self.size != self.members.count:
            raise InvalidArgument(
                "Under replace the number of units is public, and public_size is another.",
                remedy="Leave public_size out.",
            )
        return "replace"
