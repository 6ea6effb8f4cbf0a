"""Personal budgets by sampling: who allows less takes part less often.

Theorem (Jorgensen, Yu and Cormode 2015, for pure differential privacy; Boenisch et al. 2023, for noisy
gradient descent). In each of `rounds` rounds person i takes part with probability π_i, independent of all
others and unseen, and a mechanism with the given loss is run on those who do. For person i the whole is as
private as a Poisson sample at rate π_i, made `rounds` times: conditioned on who else takes part, the theorem
of `poisson` applies, and a mixture over that is no easier to attack. For t-differential privacy and one
round that is log(1 + π_i(e^t − 1)), so π_i = (e^{ε_i} − 1)/(e^t − 1) gives ε_i. For any other loss the
largest π_i is looked for at which ε at `delta`, rounded up, is at most ε_i; who allows as much as the loss
costs always takes part.

It holds under add_remove and zero_out, as sampling does. Budgets must be public, or at least be no function
of the data they protect: with another budget a person has another guarantee. Who takes part is secret.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.calibration import calibrate
from dalenius.losses.fields import Numbers, Parameter, a_loss, whole
from dalenius.losses.individuals.people import read_tiers
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers


@dataclass(frozen=True)
class PersonalSampling:
    """Rounds of loss `each` on samples in which people of budget `epsilons`[i] take part at `rates`[i]."""

    each: Loss
    _: KW_ONLY
    epsilons: Numbers = Numbers(numbers.positive)
    delta: Parameter[Fraction] = Parameter(numbers.delta, Fraction(0))
    rounds: Parameter[int] = Parameter(whole, 1)
    rates: tuple[Fraction, ...] = field(init=False)
    _drawn: list[None] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        a_loss(self.each, "each")
        if not self.epsilons:
            raise InvalidArgument("epsilons must not be empty.", remedy="Pass the budgets there are.")
        object.__setattr__(self, "rates", tuple(self._rate(epsilon) for epsilon in self.epsilons))

    def at(self, rate: Fraction) -> Loss:
        """What it costs a person who takes part at that rate."""
        return self.each.poisson(rate) * self.rounds

    def personal(self, tier: int) -> Loss:
        """The guarantee of those with `epsilons`[tier]."""
        return self.at(self.rates[numbers.count(tier, "tier", least=0, most=len(self.rates) - 1)])

    @property
    def loss(self) -> Loss:
        """What a ledger charges: that of the highest rate."""
        return self.at(max(self.rates))

    def draw(self, tiers: ArrayLike) -> NDArray[np.bool_]:
        """Return who takes part in the next round, each person being of one tier; for the mechanism alone.

        Args:
            tiers: The index in `epsilons` of each person's budget.

        Raises:
            NotSound: All `rounds` were drawn, by this plan or by a copy of it in the same process. A plan
                that is read from a pickle, or used in another process, counts by itself.
        """
        listed = read_tiers(tiers, len(self.rates))
        # Appending is one step for all threads, and copies of a plan share the list.
        self._drawn.append(None)
        if len(self._drawn) > self.rounds:
            raise NotSound(
                f"The personal budgets are for {self.rounds} rounds, and all of them were drawn.",
                remedy="Make a plan with as many rounds as there are, which lowers the rates.",
            )
        mask = np.zeros(len(listed), np.bool_)
        for tier, rate in enumerate(self.rates):
            coins = noise.bernoulli(rate, len(listed))
            mask |= coins & (listed == tier)
        return mask

    def _rate(self, epsilon: Fraction) -> Fraction:
        if self.at(Fraction(1)).epsilon(self.delta).upper <= epsilon:
            return Fraction(1)
        found = calibrate(
            lambda times: self.at(min(1 / times, Fraction(1))),
            epsilon=epsilon,
            delta=self.delta,
            name="sampling rate",
        )
        return 1 / found
