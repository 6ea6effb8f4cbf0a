"""The algebra of privacy loss: describe what was done to the data, then ask what it costs.

    >>> from dalenius.losses import Gaussian
    >>> loss = Gaussian(noise_multiplier=4).poisson(0.01) * 10_000
    >>> print(loss.epsilon(delta=1e-5))
    0.9468668008

Kinds of loss are frozen values; `+`, `*` and methods such as `.poisson(q)` build larger ones. Each name is
loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.losses.bound import Bound
    from dalenius.losses.bounded_range import BoundedRange
    from dalenius.losses.calibration import calibrate
    from dalenius.losses.comparison import Comparison, compare
    from dalenius.losses.composition import Composition, compose
    from dalenius.losses.concentrated import MeanConcentrated, Renyi, ZeroConcentrated
    from dalenius.losses.cost import Cost
    from dalenius.losses.discrete_gaussian import DiscreteGaussian
    from dalenius.losses.discrete_laplace import DiscreteLaplace
    from dalenius.losses.filters import Filter
    from dalenius.losses.gaussian import Gaussian, GaussianDP, GaussianMixture
    from dalenius.losses.iteration.last_iterate import LastIterate
    from dalenius.losses.joint import Joint
    from dalenius.losses.laplace import Laplace
    from dalenius.losses.loss import Loss
    from dalenius.losses.mixture import Mixture
    from dalenius.losses.odometer import Odometer
    from dalenius.losses.pate.gnmax import GNMax
    from dalenius.losses.pate.lnmax import LNMax
    from dalenius.losses.pate.smooth import SmoothGaussian
    from dalenius.losses.pure import Approximate, Pure
    from dalenius.losses.randomized_response import RandomizedResponse
    from dalenius.losses.raw import DiscretePair, PrivacyLossDistribution, TradeoffCurve
    from dalenius.losses.shuffling.randomizer import LocalRandomizer
    from dalenius.losses.skellam import Skellam
    from dalenius.losses.streams.correlated import CorrelatedGaussian
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Approximate": "dalenius.losses.pure",
            "Bound": "dalenius.losses.bound",
            "BoundedRange": "dalenius.losses.bounded_range",
            "Comparison": "dalenius.losses.comparison",
            "Composition": "dalenius.losses.composition",
            "CorrelatedGaussian": "dalenius.losses.streams.correlated",
            "Cost": "dalenius.losses.cost",
            "DiscreteGaussian": "dalenius.losses.discrete_gaussian",
            "DiscreteLaplace": "dalenius.losses.discrete_laplace",
            "DiscretePair": "dalenius.losses.raw",
            "Filter": "dalenius.losses.filters",
            "GNMax": "dalenius.losses.pate.gnmax",
            "Gaussian": "dalenius.losses.gaussian",
            "GaussianDP": "dalenius.losses.gaussian",
            "GaussianMixture": "dalenius.losses.gaussian",
            "Joint": "dalenius.losses.joint",
            "LNMax": "dalenius.losses.pate.lnmax",
            "Laplace": "dalenius.losses.laplace",
            "LastIterate": "dalenius.losses.iteration.last_iterate",
            "LocalRandomizer": "dalenius.losses.shuffling.randomizer",
            "Loss": "dalenius.losses.loss",
            "MeanConcentrated": "dalenius.losses.concentrated",
            "Mixture": "dalenius.losses.mixture",
            "Odometer": "dalenius.losses.odometer",
            "PrivacyLossDistribution": "dalenius.losses.raw",
            "Pure": "dalenius.losses.pure",
            "RandomizedResponse": "dalenius.losses.randomized_response",
            "Renyi": "dalenius.losses.concentrated",
            "Skellam": "dalenius.losses.skellam",
            "SmoothGaussian": "dalenius.losses.pate.smooth",
            "TradeoffCurve": "dalenius.losses.raw",
            "ZeroConcentrated": "dalenius.losses.concentrated",
            "calibrate": "dalenius.losses.calibration",
            "compare": "dalenius.losses.comparison",
            "compose": "dalenius.losses.composition",
        },
    )

__all__ = [
    "Approximate",
    "Bound",
    "BoundedRange",
    "Comparison",
    "Composition",
    "CorrelatedGaussian",
    "Cost",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscretePair",
    "Filter",
    "GNMax",
    "Gaussian",
    "GaussianDP",
    "GaussianMixture",
    "Joint",
    "LNMax",
    "Laplace",
    "LastIterate",
    "LocalRandomizer",
    "Loss",
    "MeanConcentrated",
    "Mixture",
    "Odometer",
    "PrivacyLossDistribution",
    "Pure",
    "RandomizedResponse",
    "Renyi",
    "Skellam",
    "SmoothGaussian",
    "TradeoffCurve",
    "ZeroConcentrated",
    "calibrate",
    "compare",
    "compose",
]
