"""What a survey of up to a billion people would estimate, without making their reports.

The counts of supporting reports are sums of coins, so their laws are binomial and can be drawn as such. For
k-ary randomized response and unary encodings the draw has the joint law of all estimates. For the others
each estimate has its own exact law, but estimates of different items are drawn apart from each other, and
the receipt says so.

A binomial count of many trials is the sum of those of its binary digits, so that a few tables do for all
items.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local.frequency import FrequencyOracle
from dalenius.release import Release

Ints = NDArray[np.int64]
MOST_USERS = 10**12
JOINT = "simulated from counts that are known, by the joint law of all estimates; nobody reported"
APART = (
    "simulated from counts that are known, each estimate by its own exact law, apart from the others; "
    "nobody reported"
)


def simulate(randomizer: FrequencyOracle, true_counts: Any) -> Release:
    """Estimates as so many people with each item would give them; all that goes in is taken as public."""
    true = np.asarray(true_counts)
    shaped = isinstance(randomizer, FrequencyOracle) and true.shape == (randomizer.domain,)
    if not shaped or true.dtype.kind not in "iu" or (true < 0).any() or not 0 < true.sum() <= MOST_USERS:
        raise InvalidArgument(
            "true_counts must hold a whole number of people for each item, up to 1e12 in all.",
            remedy="Pass an integer array as long as the domain.",
        )
    found, joint = randomizer.simulated(true.astype(np.int64))
    noted = replace(found, notes=(*found.notes, f"{int(true.sum())} people"))
    made = randomizer.released(noted, None)
    return made.postprocess(JOINT if joint else APART, made.columns)


def binomials(trials: Ints, chance: Fraction) -> Ints:
    """The successes of each of several numbers of trials."""
    found = np.zeros(trials.shape, np.int64)
    for digit in range(int(trials.max(initial=0)).bit_length()):
        here = np.flatnonzero(trials >> digit & 1)
        found[here] += noise.binomial(1 << digit, chance, here.size)
    return found


def uniform_counts(total: int, cells: int) -> Ints:
    """How often each of so many cells comes in so many uniform draws.

    Totals are halved down to single cells of the next power of two; draws beyond the last cell are made
    again.
    """
    found, left, deep = np.zeros(cells, np.int64), total, (cells - 1).bit_length()
    while left:
        counts = np.array([left], np.int64)
        for _ in range(deep):
            half = binomials(counts, Fraction(1, 2))
            counts = np.stack([half, counts - half], axis=1).ravel()
        found += counts[:cells]
        left = int(counts[cells:].sum())
    return found
