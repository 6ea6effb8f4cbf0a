"""Small randomizers of numbers, distributions, ranges and vectors, and surveys drawn as counts of reports."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dalenius.local import (
    DuchiResponse,
    HaarRanges,
    HadamardResponse,
    HybridResponse,
    KaryResponse,
    PiecewiseResponse,
    PrivUnit,
    Randomizer,
    SquareWave,
    TreeRanges,
)
from dalenius.local.crowds import binomials

NUMBERS = [
    DuchiResponse.calibrate(lower=-1, upper=1, epsilon=1),
    DuchiResponse.one_bit_mean(most=24, epsilon=2),
    PiecewiseResponse.calibrate(lower=-1, upper=1, epsilon=1, steps=8),
    PiecewiseResponse.calibrate(lower=10, upper=30, epsilon=4, steps=9),
    PiecewiseResponse(lower=0, upper=1, ratio=2, steps=3, width=5),
    HybridResponse.calibrate(lower=-1, upper=1, epsilon=1, steps=8),
    HybridResponse.calibrate(lower=0, upper=5, epsilon=3, steps=10),
    HybridResponse(lower=0, upper=1, ratio=2, steps=4, width=3, blend=0.25),
    HybridResponse(lower=0, upper=1, ratio=2, steps=4, width=3, blend=0),
    HybridResponse(lower=0, upper=1, ratio=2, steps=4, width=3, blend=1),
]
WAVES = [
    SquareWave.calibrate(lower=0, upper=1, epsilon=1, bins=8),
    SquareWave(lower=-5, upper=5, ratio=3, bins=6, width=2),
]
RANGES = [
    HaarRanges.calibrate(domain=8, epsilon=1),
    HaarRanges.calibrate(domain=13, epsilon=2),
    HaarRanges.calibrate(domain=2, epsilon=1),
    TreeRanges.calibrate(domain=9, epsilon=1, branching=3),
    TreeRanges.calibrate(domain=23, epsilon=2),
    TreeRanges(
        domain=7,
        branching=4,
        oracles=(KaryResponse(domain=2, ratio=3), HadamardResponse(domain=7, ratio=3, blocks=1)),
    ),
]
LISTED: list[Randomizer] = [*NUMBERS, *WAVES, *RANGES]
VECTORS = [PrivUnit.calibrate(dimension=3, epsilon=1), PrivUnit.calibrate(dimension=2, epsilon=3, radius=10)]


def named(randomizer: Randomizer) -> str:
    return f"{type(randomizer).__name__}-{randomizer.bits}"


def surveys(randomizer: Randomizer, people: dict[float, int], repeats: int) -> np.ndarray:
    """So many tallies of people with these values, by the exact law of counts: a row for each survey."""
    found = np.zeros((repeats, randomizer.cells), np.int64)
    for value, many in people.items():
        law = randomizer.probabilities(value)
        assert law is not None
        masses = [Fraction(mass).limit_denominator(10**12) for mass in law.masses.tolist()]
        left, rest = np.full(repeats, many), sum(masses)
        for cell, mass in enumerate(masses[:-1]):
            drawn = binomials(left, mass / rest)
            found[:, cell] += drawn
            left, rest = left - drawn, rest - mass
        found[:, -1] += left
    return found
