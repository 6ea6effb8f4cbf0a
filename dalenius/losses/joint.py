"""Parts of one release that change together: for any two neighbours all of them have the same order.

Under replace a composition lets every release have its pair (P, Q) or the reverse, whatever the others have
(`composition`). Parts of one release may be known to change together: of the bits of a Bloom filter in which
two strings differ, as many are set by the one string as by the other, so that where one bit has the pair
(P, Q) another one has (Q, P). For such a release, of independent parts with the pairs (Pᵢ, Qᵢ),

    the worst pair is (ΠPᵢ, ΠQᵢ) or its reverse, and no other order of the parts,

since it is that of independent parts. Tight where every part is. A further release after it may be turned by
its outcome, as after any other. A group of k is bounded part by part, along a path on which every step may
have either order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dalenius.losses.composition import Composition, compose, together
from dalenius.losses.fields import a_loss
from dalenius.losses.loss import Loss
from dalenius.privacy.unit import Relation
from dalenius.profiles.pair import Worst


@dataclass(frozen=True)
class Joint(Loss, kind="joint"):
    """One release whose independent parts are the terms of `loss`, each in its stated order."""

    loss: Loss
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", a_loss(self.loss, "loss").relation)

    @property
    def parts(self) -> tuple[tuple[Loss, int], ...]:
        """The parts, and how often each occurs."""
        return self.loss.terms if isinstance(self.loss, Composition) else ((self.loss, 1),)

    @property
    def tight(self) -> bool:
        """Return whether every part is tight."""
        return all(part.tight for part, _ in self.parts)

    def directions(self) -> tuple[Worst, ...] | None:
        """Return all parts in the order that is stated, and all reversed."""
        return together([(part.directions(), n) for part, n in self.parts])

    def moment(self, order: float) -> float:
        """Return the sum over the parts, or what the worse of both orders of all of them has."""
        added = sum(n * part.moment(order) for part, n in self.parts)
        return added if self.directions() is None else min(added, super().moment(order))

    def enlarged(self, size: int) -> Loss:
        """Return the group loss of every part, in any order."""
        return compose(part.group(size) * n for part, n in self.parts)
