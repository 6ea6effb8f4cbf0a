"""A release that a loss dominates for one unit, though it is not made of what that loss describes.

Propose–test–release is the example: for neighbours its outcome is dominated by a test, a release and a
chance of failure made together, but not for groups, since along a path the chance of failure may grow while
the test's answer changes. So a composition that only dominates must not be enlarged term by term: a group is
bounded along the path, on the profile of the whole. For one unit it evaluates as the loss it holds, and it
composes and is subsampled like any other, since dominating pairs do (Zhu, Dong and Wang 2022).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dalenius.losses.fields import a_loss
from dalenius.losses.loss import Loss
from dalenius.privacy.unit import Relation
from dalenius.profiles.pair import Worst


@dataclass(frozen=True)
class Dominated(Loss, kind="dominated"):
    """What `loss` dominates for one unit, and nothing more is known."""

    loss: Loss
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", a_loss(self.loss, "loss").relation)

    @property
    def tight(self) -> bool:
        """That loss is itself such a release."""
        return self.loss.tight

    def directions(self) -> tuple[Worst, ...] | None:
        """Those of the loss."""
        return self.loss.directions()

    def moment(self, order: float) -> float:
        """That of the loss."""
        return self.loss.moment(order)

    def enlarged(self, size: int) -> Loss:
        """The path bound on the whole."""
        from dalenius.losses.group import Group

        return Group(self, size)
