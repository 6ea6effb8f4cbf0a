"""Individuals: a budget for every person, kept by looking at what each one contributes.

    >>> import numpy as np
    >>> from dalenius.losses import Gaussian, GaussianDP
    >>> from dalenius.losses.individuals import IndividualFilter
    >>> limit = IndividualFilter(GaussianDP(1), people=3)
    >>> contributions = np.array([1.0, 0.5, 0.0])
    >>> [limit.active(contributions, Gaussian(2)).tolist() for _ in range(5)][-1]
    [False, True, True]

`IndividualFilter` lets people drop out as they exhaust their budgets, `PersonalSampling` lets them take part
as often as their budgets allow. What they know of a person is private; `.loss` is what a ledger charges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.losses.individuals.filter import IndividualFilter
    from dalenius.losses.individuals.sampling import PersonalSampling
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "IndividualFilter": "dalenius.losses.individuals.filter",
            "PersonalSampling": "dalenius.losses.individuals.sampling",
        },
    )

__all__ = ["IndividualFilter", "PersonalSampling"]
