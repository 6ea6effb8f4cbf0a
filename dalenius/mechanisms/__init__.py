"""Mechanisms: randomized maps from private values to releases, one file each.

    >>> from dalenius.mechanisms import Laplace
    >>> mechanism = Laplace.calibrate(epsilon=1, sensitivity=1)
    >>> mechanism.scale, mechanism.loss.epsilon(delta=0).upper
    (Fraction(1, 1), 1.0)

`mechanism` has what all of them share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.mechanisms.bounded_mean import BoundedMean
    from dalenius.mechanisms.bounded_sum import BoundedSum
    from dalenius.mechanisms.covariance import Covariance
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.evaluation import Evaluation
    from dalenius.mechanisms.exponential import Exponential
    from dalenius.mechanisms.gaussian import Gaussian
    from dalenius.mechanisms.histogram import Histogram
    from dalenius.mechanisms.laplace import Laplace
    from dalenius.mechanisms.marginals import Marginals
    from dalenius.mechanisms.mechanism import Mechanism, Session
    from dalenius.mechanisms.noisy_max import ReportNoisyMax
    from dalenius.mechanisms.noisy_threshold import NoisyThreshold
    from dalenius.mechanisms.partition_selection import PartitionSelection
    from dalenius.mechanisms.permute_and_flip import PermuteAndFlip
    from dalenius.mechanisms.private_selection import PrivateSelection
    from dalenius.mechanisms.propose_test_release import ProposeTestRelease
    from dalenius.mechanisms.quantile import Quantile
    from dalenius.mechanisms.quantiles import Quantiles
    from dalenius.mechanisms.randomized_response import RandomizedResponse
    from dalenius.mechanisms.sample_and_aggregate import SampleAndAggregate
    from dalenius.mechanisms.skellam import Skellam
    from dalenius.mechanisms.smooth_sensitivity import SmoothMedian
    from dalenius.mechanisms.sparse_vector import SparseVector
    from dalenius.mechanisms.staircase import Staircase
    from dalenius.mechanisms.thresholdout import Thresholdout
    from dalenius.mechanisms.top_k import TopK
    from dalenius.mechanisms.truncated_laplace import TruncatedLaplace
    from dalenius.mechanisms.variance import Variance
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BoundedMean": "dalenius.mechanisms.bounded_mean",
            "BoundedSum": "dalenius.mechanisms.bounded_sum",
            "Covariance": "dalenius.mechanisms.covariance",
            "DiscreteGaussian": "dalenius.mechanisms.discrete_gaussian",
            "Evaluation": "dalenius.mechanisms.evaluation",
            "Exponential": "dalenius.mechanisms.exponential",
            "Gaussian": "dalenius.mechanisms.gaussian",
            "Histogram": "dalenius.mechanisms.histogram",
            "Laplace": "dalenius.mechanisms.laplace",
            "Marginals": "dalenius.mechanisms.marginals",
            "Mechanism": "dalenius.mechanisms.mechanism",
            "NoisyThreshold": "dalenius.mechanisms.noisy_threshold",
            "PartitionSelection": "dalenius.mechanisms.partition_selection",
            "PermuteAndFlip": "dalenius.mechanisms.permute_and_flip",
            "PrivateSelection": "dalenius.mechanisms.private_selection",
            "ProposeTestRelease": "dalenius.mechanisms.propose_test_release",
            "Quantile": "dalenius.mechanisms.quantile",
            "Quantiles": "dalenius.mechanisms.quantiles",
            "RandomizedResponse": "dalenius.mechanisms.randomized_response",
            "ReportNoisyMax": "dalenius.mechanisms.noisy_max",
            "SampleAndAggregate": "dalenius.mechanisms.sample_and_aggregate",
            "Session": "dalenius.mechanisms.mechanism",
            "Skellam": "dalenius.mechanisms.skellam",
            "SmoothMedian": "dalenius.mechanisms.smooth_sensitivity",
            "SparseVector": "dalenius.mechanisms.sparse_vector",
            "Staircase": "dalenius.mechanisms.staircase",
            "Thresholdout": "dalenius.mechanisms.thresholdout",
            "TopK": "dalenius.mechanisms.top_k",
            "TruncatedLaplace": "dalenius.mechanisms.truncated_laplace",
            "Variance": "dalenius.mechanisms.variance",
        },
    )

__all__ = [
    "BoundedMean",
    "BoundedSum",
    "Covariance",
    "DiscreteGaussian",
    "Evaluation",
    "Exponential",
    "Gaussian",
    "Histogram",
    "Laplace",
    "Marginals",
    "Mechanism",
    "NoisyThreshold",
    "PartitionSelection",
    "PermuteAndFlip",
    "PrivateSelection",
    "ProposeTestRelease",
    "Quantile",
    "Quantiles",
    "RandomizedResponse",
    "ReportNoisyMax",
    "SampleAndAggregate",
    "Session",
    "Skellam",
    "SmoothMedian",
    "SparseVector",
    "Staircase",
    "Thresholdout",
    "TopK",
    "TruncatedLaplace",
    "Variance",
]
