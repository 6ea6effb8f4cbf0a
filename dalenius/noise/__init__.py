"""Randomness: the one source of bits, and samplers whose laws are exact.

    >>> from dalenius import noise
    >>> noise.discrete_laplace("1/3", 4).shape
    (4,)

`draws` holds the laws on the integers, `coins` Bernoulli variables, `integers` uniform ones, `selection` the
choice of a candidate, `source` the bits, and `reference` slow samplers that share nothing with the others.
Why the laws are exact: docs/proofs/noise.md. What noise protects is known to the layers above, not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.noise.coins import bernoulli, bernoulli_exp
    from dalenius.noise.draws import (
        binomial,
        discrete_gaussian,
        discrete_laplace,
        geometric,
        rounded_gaussian,
        skellam,
    )
    from dalenius.noise.integers import uniform
    from dalenius.noise.selection import exponential_mechanism, noisy_max, permute_and_flip
    from dalenius.noise.source import seeded, tainted
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "bernoulli": "dalenius.noise.coins",
            "bernoulli_exp": "dalenius.noise.coins",
            "binomial": "dalenius.noise.draws",
            "discrete_gaussian": "dalenius.noise.draws",
            "discrete_laplace": "dalenius.noise.draws",
            "exponential_mechanism": "dalenius.noise.selection",
            "geometric": "dalenius.noise.draws",
            "noisy_max": "dalenius.noise.selection",
            "permute_and_flip": "dalenius.noise.selection",
            "rounded_gaussian": "dalenius.noise.draws",
            "seeded": "dalenius.noise.source",
            "skellam": "dalenius.noise.draws",
            "tainted": "dalenius.noise.source",
            "uniform": "dalenius.noise.integers",
        },
    )

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "binomial",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_mechanism",
    "geometric",
    "noisy_max",
    "permute_and_flip",
    "rounded_gaussian",
    "seeded",
    "skellam",
    "tainted",
    "uniform",
]
