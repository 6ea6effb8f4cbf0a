"""Small instances of the deployed protocols, whose laws can be listed."""

from __future__ import annotations

from dalenius.local import (
    BitFlips,
    CountMeanSketch,
    FragmentPuzzle,
    HadamardSketch,
    PrefixExtending,
    Randomizer,
    Rappor,
)

DEPLOYED: list[Randomizer] = [
    Rappor(width=4, hashes=1, cohorts=4, replaced=0.5, low=0.5, high=0.75),
    Rappor(width=8, hashes=2, cohorts=1, replaced=0.25, low=0.25, high=0.75),
    Rappor(width=4, hashes=2, cohorts=2, replaced=0.5, low=0, high=1),
    CountMeanSketch.calibrate(rows=2, columns=4, epsilon=2),
    HadamardSketch.calibrate(rows=4, columns=8, epsilon=1),
    BitFlips.calibrate(domain=5, epsilon=2, chosen=3),
    BitFlips.calibrate(domain=6, epsilon=1, chosen=1),
    BitFlips.calibrate(domain=3, epsilon=1, chosen=3),
    PrefixExtending.calibrate(length=2, epsilon=1, rows=4, columns=8),
    FragmentPuzzle.calibrate(length=1, epsilon=2, rows=2, columns=16),
]
