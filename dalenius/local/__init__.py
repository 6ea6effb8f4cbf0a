"""Private reports without a trusted curator: randomizers on the device, estimators on the server.

    >>> from dalenius.local import FrequencyOracle
    >>> oracle = FrequencyOracle.best(domain=1000, epsilon=1)
    >>> data = oracle.encode([3, 14, 15]).to_bytes()
    >>> estimator = oracle.estimator().add(data)
    >>> estimator.count, len(estimator.estimate())
    (3, 1000)

`randomizer` has what all of them share, `reports` the bytes, `frequency` what frequency oracles share,
`reals` what those of numbers share, `ranges` those of ordered items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.local.bit_flips import BitFlips
    from dalenius.local.candidates import decode
    from dalenius.local.choosing import Choice
    from dalenius.local.client import Client
    from dalenius.local.consistency import consistent
    from dalenius.local.duchi import DuchiResponse
    from dalenius.local.estimator import Estimator
    from dalenius.local.frequency import FrequencyOracle
    from dalenius.local.haar import HaarRanges
    from dalenius.local.hadamard import HadamardResponse
    from dalenius.local.hashing import LocalHashing
    from dalenius.local.hybrid import HybridResponse
    from dalenius.local.kary import KaryResponse
    from dalenius.local.piecewise import PiecewiseResponse
    from dalenius.local.planning import Plan, plan
    from dalenius.local.prefixes import PrefixExtending
    from dalenius.local.privunit import PrivUnit
    from dalenius.local.projective import ProjectiveResponse
    from dalenius.local.puzzle import FragmentPuzzle
    from dalenius.local.randomizer import Randomizer
    from dalenius.local.ranges import range_shares
    from dalenius.local.rappor import Rappor
    from dalenius.local.reconstruction import distribution
    from dalenius.local.repeated import Costs, what_reports_cost
    from dalenius.local.reports import Reports
    from dalenius.local.shuffler import Batch, Shuffler
    from dalenius.local.simplex import on_simplex
    from dalenius.local.simulation import simulate
    from dalenius.local.sketch import CountMeanSketch, HadamardSketch
    from dalenius.local.square_wave import SquareWave
    from dalenius.local.subset import SubsetSelection
    from dalenius.local.tree import TreeRanges
    from dalenius.local.unary import UnaryEncoding
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Batch": "dalenius.local.shuffler",
            "BitFlips": "dalenius.local.bit_flips",
            "Choice": "dalenius.local.choosing",
            "Client": "dalenius.local.client",
            "Costs": "dalenius.local.repeated",
            "CountMeanSketch": "dalenius.local.sketch",
            "DuchiResponse": "dalenius.local.duchi",
            "Estimator": "dalenius.local.estimator",
            "FragmentPuzzle": "dalenius.local.puzzle",
            "FrequencyOracle": "dalenius.local.frequency",
            "HaarRanges": "dalenius.local.haar",
            "HadamardResponse": "dalenius.local.hadamard",
            "HadamardSketch": "dalenius.local.sketch",
            "HybridResponse": "dalenius.local.hybrid",
            "KaryResponse": "dalenius.local.kary",
            "LocalHashing": "dalenius.local.hashing",
            "PiecewiseResponse": "dalenius.local.piecewise",
            "Plan": "dalenius.local.planning",
            "PrefixExtending": "dalenius.local.prefixes",
            "PrivUnit": "dalenius.local.privunit",
            "ProjectiveResponse": "dalenius.local.projective",
            "Randomizer": "dalenius.local.randomizer",
            "Rappor": "dalenius.local.rappor",
            "Reports": "dalenius.local.reports",
            "Shuffler": "dalenius.local.shuffler",
            "SquareWave": "dalenius.local.square_wave",
            "SubsetSelection": "dalenius.local.subset",
            "TreeRanges": "dalenius.local.tree",
            "UnaryEncoding": "dalenius.local.unary",
            "consistent": "dalenius.local.consistency",
            "decode": "dalenius.local.candidates",
            "distribution": "dalenius.local.reconstruction",
            "on_simplex": "dalenius.local.simplex",
            "plan": "dalenius.local.planning",
            "range_shares": "dalenius.local.ranges",
            "simulate": "dalenius.local.simulation",
            "what_reports_cost": "dalenius.local.repeated",
        },
    )

__all__ = [
    "Batch",
    "BitFlips",
    "Choice",
    "Client",
    "Costs",
    "CountMeanSketch",
    "DuchiResponse",
    "Estimator",
    "FragmentPuzzle",
    "FrequencyOracle",
    "HaarRanges",
    "HadamardResponse",
    "HadamardSketch",
    "HybridResponse",
    "KaryResponse",
    "LocalHashing",
    "PiecewiseResponse",
    "Plan",
    "PrefixExtending",
    "PrivUnit",
    "ProjectiveResponse",
    "Randomizer",
    "Rappor",
    "Reports",
    "Shuffler",
    "SquareWave",
    "SubsetSelection",
    "TreeRanges",
    "UnaryEncoding",
    "consistent",
    "decode",
    "distribution",
    "on_simplex",
    "plan",
    "range_shares",
    "simulate",
    "what_reports_cost",
]
