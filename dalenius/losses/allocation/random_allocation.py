"""Random allocation ("balls and bins"): each unit takes part in exactly one of t steps, chosen uniformly.

Theorem. Let (P, Q) dominate every step for removing one unit (P with it, Q without), whatever the outputs
of the steps before. If the unit's step is uniform on 1, …, t, independent of all else and not published,
the t steps together are dominated by
    ((1/t)Σᵢ Q^{i−1} × P × Q^{t−i}, Q^t)
for removing it. With (P', Q') dominating for adding one (P' without, Q' with), adding is dominated by the
reverse of the same made of (Q', P'). Steps may be chosen adaptively, by all earlier outputs. Tight where the
given pairs are attained by a unit that is the only one.

Proof. Dominating at every ε is Blackwell's order: for each past there is a kernel that turns P into the
step's output with the unit and Q into that without it. Applied step after step to a draw of either side,
these kernels make the outputs of the epoch with and without the unit. The other units' steps are drawn
independently, so given them the same holds, and divergences are jointly convex. (Feldman and Shenfeld 2025;
for Gaussians Chua et al. 2025; docs/proofs/allocation.md.)

With X = dP/dQ under Q and S the mean of t copies, H(ε) = E(S − e^ε)₊ + P(L = ∞); E(1 − e^ε S)₊ for adding.
One epoch is one loss: more epochs, each with fresh choices, are `* epochs`. Shuffling units into batches of
fixed sizes is another scheme, for which this does not hold. Under replace no bound by the pair of one
step is known. Under zero_out a unit zeroed out is by definition processed as one that is absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from dalenius.errors import NotSound
from dalenius.losses.fields import a_loss
from dalenius.losses.group import Group
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Concentrated, single
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation
from dalenius.profiles.allocation.atoms import allocated
from dalenius.profiles.pair import Pair, Worst

MOST_STEPS = 10**9
"""Steps of an epoch, at most."""


def allocate(loss: Loss, steps: int) -> Loss:
    """The loss of an epoch of `steps` steps of this loss, each unit taking part in one of them."""
    if loss.relation == "replace":
        raise NotSound(
            "No theorem bounds random allocation under the replace relation by the loss of one step.",
            remedy="State the loss for add_remove, where the theorem holds.",
        )
    count = numbers.count(steps, "steps", most=MOST_STEPS)
    if isinstance(loss, RandomAllocation):
        # One of its steps in one of these is one of them all.
        return allocate(loss.loss, count * loss.steps)
    return loss if count == 1 else RandomAllocation(loss, count)


@dataclass(frozen=True)
class RandomAllocation(Loss, kind="random_allocation"):
    """An epoch of `steps` steps, each unit taking part in exactly one, chosen uniformly and unseen."""

    loss: Loss
    steps: int
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", numbers.count(self.steps, "steps", least=2, most=MOST_STEPS))
        object.__setattr__(self, "relation", a_loss(self.loss, "loss").relation)
        if self.loss.relation == "replace":
            raise NotSound(
                "No theorem bounds random allocation under the replace relation by the loss of one step.",
                remedy="State the loss for add_remove, where the theorem holds.",
            )
        self.directions()

    @property
    def tight(self) -> bool:
        """Tight where the loss of one step is."""
        return self.loss.tight

    def directions(self) -> tuple[Worst, ...]:
        """Removing a unit, then adding one."""
        known = single(self.loss)
        if known is None:
            raise NotSound(
                "This loss is not known as one pair of distributions, which random allocation needs.",
                remedy="Allocate a loss of one release by itself, such as Gaussian(1) or Laplace(1).",
            )
        remove = _allocated(known[0], self.steps)
        add = _allocated(known[-1].reversed(), self.steps).reversed()
        return (((remove, 1),), ((add, 1),))

    def enlarged(self, size: int) -> Loss:
        """The path bound on the whole: each unit of a group has a step of its own."""
        return Group(self, size)

    def attained(self) -> Loss | None:
        """The same of a mechanism that meets the description of one step."""
        from dalenius.losses.attained import attained

        inner = attained(self.loss)
        return None if inner is None else allocate(inner, self.steps)

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        """That of one step, where D_α/α tends to it: allocation lowers D_α by log t·α/(α − 1) at most."""
        known = self.loss.concentration() if isinstance(self.loss, Concentrated) else None
        return known if known is not None and known[1] > 0 else None


@lru_cache(maxsize=1024)
def _allocated(pair: Pair, steps: int) -> Pair:
    return allocated(pair, steps)
