"""Private reports without a trusted curator: randomizers on the device, estimators on the server.

    >>> from dalenius.local import FrequencyOracle
    >>> oracle = FrequencyOracle.best(domain=1000, epsilon=1)
    >>> data = oracle.encode([3, 14, 15]).to_bytes()
    >>> estimator = oracle.estimator().add(data)
    >>> estimator.count, len(estimator.estimate())
    (3, 1000)

`randomizer` has what all of them share, `reports` the bytes, `frequency` what frequency oracles share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.local.choosing import Choice
    from dalenius.local.estimator import Estimator
    from dalenius.local.frequency import FrequencyOracle
    from dalenius.local.hadamard import HadamardResponse
    from dalenius.local.hashing import LocalHashing
    from dalenius.local.kary import KaryResponse
    from dalenius.local.projective import ProjectiveResponse
    from dalenius.local.randomizer import Randomizer
    from dalenius.local.reports import Reports
    from dalenius.local.simplex import on_simplex
    from dalenius.local.simulation import simulate
    from dalenius.local.subset import SubsetSelection
    from dalenius.local.unary import UnaryEncoding
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Choice": "dalenius.local.choosing",
            "Estimator": "dalenius.local.estimator",
            "FrequencyOracle": "dalenius.local.frequency",
            "HadamardResponse": "dalenius.local.hadamard",
            "KaryResponse": "dalenius.local.kary",
            "LocalHashing": "dalenius.local.hashing",
            "ProjectiveResponse": "dalenius.local.projective",
            "Randomizer": "dalenius.local.randomizer",
            "Reports": "dalenius.local.reports",
            "SubsetSelection": "dalenius.local.subset",
            "UnaryEncoding": "dalenius.local.unary",
            "on_simplex": "dalenius.local.simplex",
            "simulate": "dalenius.local.simulation",
        },
    )

__all__ = [
    "Choice",
    "Estimator",
    "FrequencyOracle",
    "HadamardResponse",
    "KaryResponse",
    "LocalHashing",
    "ProjectiveResponse",
    "Randomizer",
    "Reports",
    "SubsetSelection",
    "UnaryEncoding",
    "on_simplex",
    "simulate",
]
