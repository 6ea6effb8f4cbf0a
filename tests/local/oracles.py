"""Small oracles of every kind, whose laws can be listed, and the law of what each supports."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dalenius.local import (
    FrequencyOracle,
    HadamardResponse,
    KaryResponse,
    LocalHashing,
    ProjectiveResponse,
    SubsetSelection,
    UnaryEncoding,
)
from dalenius.local.randomizer import Estimates

SMALL: list[FrequencyOracle] = [
    KaryResponse.calibrate(domain=5, epsilon=1),
    UnaryEncoding.optimized(domain=4, epsilon=1),
    UnaryEncoding.symmetric(domain=4, epsilon=2),
    LocalHashing.calibrate(domain=7, epsilon=1),
    LocalHashing(domain=7, ratio=3, values=3),
    HadamardResponse(domain=6, ratio=3, blocks=1),
    HadamardResponse(domain=8, ratio=8, blocks=4),
    SubsetSelection.calibrate(domain=6, epsilon=0.5),
    ProjectiveResponse(domain=13, ratio=3, order=3),
    ProjectiveResponse(domain=18, ratio=3, order=4),
    ProjectiveResponse(domain=9, ratio=2, order=2),
]

AT_ONCE = 32


def named(oracle: FrequencyOracle) -> str:
    return f"{type(oracle).__name__}-{oracle.domain}"


def supported(oracle: FrequencyOracle) -> np.ndarray:
    """For each report that is listed, in the order of its law, which items it supports."""
    law = oracle.probabilities(0)
    assert law is not None
    rows = np.array(law.outcomes).reshape(len(law.outcomes), -1)
    return np.array([oracle.supporters(oracle.tally(row[None])) for row in rows])


def by_count(estimates: Callable[[np.ndarray], Estimates], counts: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of what follows from a count alone: few counts at a time, as one survey has them.

    With many at a time ends are moved inward for some only (`intervals`).
    """
    different, places = np.unique(counts, return_inverse=True)
    parts = [estimates(part).columns for part in np.split(different, range(AT_ONCE, different.size, AT_ONCE))]
    names = [name for name in parts[0] if name != "item"]
    every = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return {name: column[places].reshape(counts.shape) for name, column in every.items()}
