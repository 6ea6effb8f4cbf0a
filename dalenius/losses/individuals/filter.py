"""A filter for every person: whoever would exceed their budget sits out.

Theorem (Feldman and Zrnic 2021, for Rényi divergences; Koskela, Tobaben and Honkela 2023, for Gaussian
differential privacy; docs/amplification/individuals.md has the proof). At every step a mechanism is chosen
in view of what was released, and it is run on the people who are active. Let the charge of person i at a
step bound what that person's presence among any others changes there: μ², ρ, or D_α at one α. It must be a
function of that person's own data and of what was released, of nothing else. If i is active only while the
charges of the steps that i took part in add up to at most B_i, then all that was released keeps the budget
B_i for i: for the data with and without that person it is GaussianDP(√B_i), ZeroConcentrated(B_i), Renyi(α,
B_i) or Pure(B_i).

A Gaussian step in which person i's contribution has norm s_i, against noise of σ, has μ² = (s_i/σ)². That
is so above 1 too, where rounding puts the norm of one who was clipped: up to 1 + 2⁻²⁰ they are charged for
what they contribute. In other steps they are charged for 1 + 2⁻²⁰, which the function that gives the loss of
every size is asked for; a loss that is no such function is scaled where it is Gaussian or Laplace noise on a
sum, sampled or not, and they sit out where it is not.

It holds under add_remove, and under zero_out where a null record contributes nothing. Charges are whole
numbers of a small part of the largest budget, rounded up; budgets are rounded down; so sums are exact.

What is private. Charges, sums and who is active depend on the data. They leave neither as text nor as
numbers; the mask that `active` returns is for the mechanism alone: no count of it, no mean over it, no stop
because of it may be released without noise of its own. There is no error that depends on a contribution: who
has one that is no number, negative or too large sits out. A forked process has no filter: each would spend
the whole budgets.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from threading import Lock
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.individuals.measures import (
    Budget,
    amount,
    gaussian_rate,
    measure,
    read_budgets,
    stretched,
)
from dalenius.losses.individuals.people import (
    MOST_SIZE,
    PARTS,
    TOO_MUCH,
    Floats,
    Steps,
    read_people,
    read_sizes,
    squared_units,
)
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers

Mask = NDArray[np.bool_]

LEVELS = 128
"""Contributions are rounded up to so many parts of the bound where their charge has no closed form."""


class IndividualFilter:
    """Everyone's budget. With several, `tiers` says which of `budgets` each person has."""

    __slots__ = ("__caps", "__lock", "__process", "__spent", "budgets")

    def __init__(
        self, budgets: Budget | Sequence[Budget], *, people: int | None = None, tiers: ArrayLike | None = None
    ) -> None:
        self.budgets = read_budgets(budgets)
        most = amount(self.loss)
        caps = np.array([int(amount(budget) / most * PARTS) for budget in self.budgets], np.int64)
        self.__caps: Steps = caps[read_people(people, tiers, len(caps))]
        self.__spent: Steps = np.zeros(len(self.__caps), np.int64)
        self.__lock, self.__process = Lock(), os.getpid()

    @property
    def loss(self) -> Budget:
        """What a ledger charges once for everything this filter lets through: the largest budget."""
        return max(self.budgets, key=amount)

    def personal(self, tier: int = 0) -> Budget:
        """The guarantee of a person in that tier."""
        return self.budgets[numbers.count(tier, "tier", least=0, most=len(self.budgets) - 1)]

    def active(self, contributions: ArrayLike, loss: Loss | Callable[[Fraction], Loss]) -> Mask:
        """Who takes part in a step; they are charged for it. Who sits out is not.

        `contributions` are norms over the bound on one person's, rounded up by the error of their own sum,
        and `loss` that of a Gaussian step for one who contributes 1; of any other step, a function that
        gives the loss for every contribution of at most that size, asked for sizes up to 1 + 2⁻²⁰. Whatever
        is no such function is charged in full unless the contribution is 0.
        """
        if self.__process != os.getpid():
            raise NotSound(
                "A filter cannot go on in a forked process: each would spend the whole budgets.",
                remedy="Keep the filter in the process that made it.",
            )
        sizes = read_sizes(contributions)
        if sizes.shape != self.__caps.shape:
            raise InvalidArgument("contributions must be one for each person.", remedy="Pass as many.")
        charges = self._charges(sizes, loss)
        with self.__lock:
            mask = self.__spent + charges <= self.__caps
            self.__spent += np.where(mask, charges, 0)
        return mask

    def _charges(self, sizes: Floats, loss: Loss | Callable[[Fraction], Loss]) -> Steps:
        """In units, rounded up."""
        unit = amount(self.loss) / PARTS
        # Whether floats overflow or underflow is no matter here, and would tell of a person.
        with np.errstate(all="ignore"):
            valid = (sizes >= 0) & (sizes <= MOST_SIZE)
            known = np.where(valid, sizes, 0.0)
            if isinstance(loss, Gaussian) and (rate := gaussian_rate(self.loss)) is not None:
                self._check(loss)
                units = squared_units(known, rate * loss.distance**2 / unit)
            else:
                units = self._by_level(known, loss, unit)
            units = np.where(known > 0, np.maximum(units, 1.0), 0.0)
            return np.where(valid, units, TOO_MUCH).astype(np.int64)

    def _by_level(self, known: Floats, loss: Loss | Callable[[Fraction], Loss], unit: Fraction) -> Floats:
        """The charge at every level. All are evaluated, as which of them occur depends on the data."""
        if isinstance(loss, Loss):
            each, over = [self._measured(loss, unit)] * LEVELS, stretched(loss, Fraction(MOST_SIZE))
        else:
            each = [self._measured(loss(Fraction(k, LEVELS)), unit) for k in range(1, LEVELS + 1)]
            over = loss(Fraction(MOST_SIZE))
        last = TOO_MUCH if over is None else self._measured(over, unit)
        return np.array([0.0, *each, last])[np.ceil(known * LEVELS).astype(np.int64)]

    def _measured(self, loss: Loss, unit: Fraction) -> float:
        self._check(loss)
        found = measure(loss, self.loss)
        if found is None:
            raise NotSound(
                f"This loss has no measure that adds up to {self.loss!r}.",
                remedy="Give everyone a Renyi budget, or add Gaussian noise.",
            )
        return float(min(math.ceil(found / unit), int(TOO_MUCH)))

    def _check(self, loss: Loss) -> None:
        if loss.relation != self.loss.relation:
            raise RelationMismatch(
                f"The budgets hold under {self.loss.relation}, this step's loss under {loss.relation}.",
                remedy=f"State the loss for relation={self.loss.relation!r}.",
            )

    def __repr__(self) -> str:
        return f"IndividualFilter({', '.join(map(repr, self.budgets))})"

    def __getstate__(self) -> NoReturn:
        self.__reduce__()

    def __reduce__(self) -> NoReturn:
        raise NotSound(
            "What people have spent is private and is not written anywhere.",
            remedy="Keep the filter in the process that uses it.",
        )
