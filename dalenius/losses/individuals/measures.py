"""Budgets of a person, and what a step takes from one.

Each kind of budget has a measure that adds up under adaptive choice (`gauges`, docs/proofs/filter.md): μ²
for GaussianDP, ρ for ZeroConcentrated, the divergence of its own order for Renyi, the largest loss for Pure.
A step must have it without exception: events set aside are not counted for each person.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.concentrated import Renyi, ZeroConcentrated
from dalenius.losses.gauges import ConcentratedGauge, GaussianGauge, PureGauge
from dalenius.losses.gaussian import Gaussian, GaussianDP
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Poisson
from dalenius.losses.pure import Pure

Budget = GaussianDP | ZeroConcentrated | Renyi | Pure
"""What a person may spend in all."""
NOTHING = Fraction(0)
LEAST = Fraction(1, 10**12)
"""Less is not called a budget."""


def read_budgets(budgets: Budget | Sequence[Budget]) -> tuple[Budget, ...]:
    """One or more budgets of one kind and relation."""
    listed = (budgets,) if isinstance(budgets, Loss) else tuple(budgets)
    if not listed or not all(isinstance(budget, Budget) for budget in listed):
        raise InvalidArgument(
            "budgets must be GaussianDP, ZeroConcentrated, Renyi or Pure.",
            remedy="Pass such as GaussianDP(1).",
        )
    kinds = {(type(one), one.relation, one.alpha if isinstance(one, Renyi) else None) for one in listed}
    if len(kinds) > 1 or any(amount(budget) < LEAST for budget in listed):
        raise InvalidArgument(
            "budgets must be 1e-12 or more, of one kind, one relation and, for Renyi, one order.",
            remedy="State them all alike.",
        )
    if listed[0].relation == "replace":
        raise NotSound(
            "A filter for individuals compares the data with and without a person, not with another instead.",
            remedy="State the budgets for add_remove, and use .loss.under('replace') for what follows.",
        )
    if any(isinstance(budget, ZeroConcentrated) and budget.failure for budget in listed):
        raise NotSound("A budget sets events aside.", remedy="State ZeroConcentrated with delta=0.")
    return listed


def amount(budget: Budget) -> Fraction:
    """The budget in its measure."""
    if isinstance(budget, GaussianDP):
        return budget.mu**2
    return budget.rho if isinstance(budget, ZeroConcentrated) else budget.limit


def gaussian_rate(budget: Budget) -> Fraction | None:
    """What a Gaussian step takes, over its μ²; None where no budget of that kind allows one."""
    if isinstance(budget, GaussianDP):
        return Fraction(1)
    if isinstance(budget, ZeroConcentrated):
        return Fraction(1, 2)
    return budget.alpha / 2 if isinstance(budget, Renyi) else None


def stretched(loss: Loss, by: Fraction) -> Loss | None:
    """The loss of contributions `by` times as large; None where it is not known.

    Noise on a sum of contributions hides one in proportion to its norm, on a sample as well: given that the
    person takes part, the loss is that of the larger contribution, which is all that `poisson` asks.
    """
    if isinstance(loss, Gaussian):
        return Gaussian(loss.noise_multiplier / by, relation=loss.relation)
    if isinstance(loss, Laplace):
        return Laplace(loss.scale / by, relation=loss.relation)
    inner = stretched(loss.loss, by) if isinstance(loss, Poisson) else None
    return inner.poisson(loss.sampling_rate) if isinstance(loss, Poisson) and inner is not None else None


@lru_cache(maxsize=4096)
def measure(loss: Loss, budget: Budget) -> Fraction | None:
    """What a step takes from a budget of that kind; None where it cannot be measured without exception."""
    if isinstance(budget, Renyi):
        found = loss.renyi(budget.alpha).upper
        return Fraction(found) if math.isfinite(found) else None
    if isinstance(budget, GaussianDP):
        measured = GaussianGauge(NOTHING, NOTHING).measure(loss, amount(budget))
    elif isinstance(budget, Pure):
        measured = PureGauge(NOTHING, NOTHING).measure(loss, amount(budget))
    else:
        measured = ConcentratedGauge(NOTHING, NOTHING).measure(loss, amount(budget))
    return measured[0] if measured is not None and not measured[1] else None
