"""A loss stated for one relation, carried over to another that a path of neighbours leads to.

To replace a unit is to remove it and to add another, so a guarantee for add_remove neighbours holds for
replace ones two steps apart; zero_out likewise (`privacy.unit` lists what holds and what does not). A release
of bounded sensitivity moves twice as far, by the triangle inequality; whatever else is known of one, the
path bound of `group` holds, which walks in either direction at each step. A composition is carried term by
term, as each release of it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dalenius.errors import InvalidArgument
from dalenius.losses.composition import Composition, compose
from dalenius.losses.concentrated import ZeroConcentrated
from dalenius.losses.fields import a_loss
from dalenius.losses.gaussian import Gaussian, GaussianDP
from dalenius.losses.group import Group
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.pate.gnmax import GNMax
from dalenius.losses.pate.lnmax import LNMax
from dalenius.losses.pure import Pure
from dalenius.losses.streams.correlated import CorrelatedGaussian
from dalenius.privacy.unit import Relation, steps_between
from dalenius.profiles.pair import Worst


def carry(loss: Loss, relation: Relation) -> Loss:
    """The loss under another relation; refused where no theorem carries it over."""
    steps = steps_between(loss.relation, relation)
    if steps == 1:
        return loss
    if isinstance(loss, Composition):
        return compose(carry(term, relation) * count for term, count in loss.terms)
    if isinstance(loss, Gaussian | CorrelatedGaussian):
        # Its distance counts the second step by itself.
        return replace(loss, relation=relation)
    if isinstance(loss, Pure):
        return Pure(loss.limit * steps, relation=relation)
    if isinstance(loss, Laplace):
        return Laplace(loss.scale / steps, relation=relation)
    if isinstance(loss, GaussianDP):
        return GaussianDP(loss.mu * steps, relation=relation)
    if isinstance(loss, ZeroConcentrated) and not loss.failure:
        return ZeroConcentrated(loss.rho * steps**2, relation=relation)
    if isinstance(loss, GNMax | LNMax):
        # Every step moves one vote.
        return replace(loss.enlarged(steps), relation=relation)
    return Carried(loss, relation)


@dataclass(frozen=True)
class Carried(Loss, kind="carried"):
    """`loss` under `relation`, by the path bound."""

    loss: Loss
    relation: Relation
    path: Group = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        steps = steps_between(a_loss(self.loss, "loss").relation, self.relation)
        if steps == 1:
            raise InvalidArgument(
                f"This loss holds under {self.relation} as it is.", remedy="Use it as it is."
            )
        object.__setattr__(self, "path", Group(self.loss, steps))

    @property
    def tight(self) -> bool:
        """No mechanism is known that attains the path bound."""
        return False

    def directions(self) -> tuple[Worst, ...] | None:
        """Those of the path."""
        return self.path.directions()

    def moment(self, order: float) -> float:
        """That of the path."""
        return self.path.moment(order)

    def enlarged(self, size: int) -> Loss:
        """A longer path."""
        return Group(self, size)
