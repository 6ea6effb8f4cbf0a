"""What a survey of up to a billion people would estimate, without making their reports.

What an estimate needs of the reports are counts: sums of coins, whose laws are binomial and can be drawn as
such (`crowds`). The draw has the joint law of all estimates for

    k-ary randomized response, unary encodings     lies are uniform; bits are drawn by themselves
    RAPPOR                                         cohorts are drawn uniformly, and bits by themselves
    numbers, and the square wave                   how often each report comes, by windows

For the other oracles, dBitFlip and Apple's sketches each estimate has its own exact law, but estimates of
different items are drawn apart from each other, and the receipt says so. Items of a domain are counted in an
array; strings and numbers in a mapping, of which the strings are the candidates that are asked about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.local import tallies
from dalenius.local.bit_rows import StringRandomizer
from dalenius.local.crowds import Ints
from dalenius.local.frequency import FrequencyOracle
from dalenius.local.randomizer import Estimates, Randomizer
from dalenius.release import Release

MOST_USERS = 10**12
JOINT = "simulated from counts that are known, by the joint law of all estimates; nobody reported"
APART = (
    "simulated from counts that are known, each estimate by its own exact law, apart from the others; "
    "nobody reported"
)


@runtime_checkable
class Crowded(Protocol):
    """A randomizer of strings or numbers whose surveys can be drawn."""

    def of_crowd(self, values: Sequence[Any], people: Ints) -> tuple[Estimates, bool]:
        """Estimates as so many people with each value would give them, and whether jointly so."""


def simulate(randomizer: Randomizer, true_counts: Any) -> Release:
    """Estimates as so many people with each item or value would give them; all of it is taken as public."""
    if isinstance(randomizer, FrequencyOracle):
        true = _items(randomizer, true_counts)
        found, joint = randomizer.simulated(true)
    elif isinstance(randomizer, Crowded):
        values, true = _values(randomizer, true_counts)
        found, joint = randomizer.of_crowd(values, true)
    else:
        raise InvalidArgument(
            "No law is known here by which a survey of this randomizer can be drawn without reports.",
            remedy="Add reports of a smaller crowd: randomizer.estimator().add(randomizer.encode(values)).",
        )
    noted = replace(found, notes=(*found.notes, f"{int(true.sum())} people"))
    made = randomizer.released(noted, None)
    return made.postprocess(JOINT if joint else APART, made.columns)


def _items(oracle: FrequencyOracle, counts: Any) -> Ints:
    true = np.asarray(counts)
    if true.shape != (oracle.domain,) or not _people(true):
        raise InvalidArgument(
            "true_counts must hold a whole number of people for each item, up to 1e12 in all.",
            remedy="Pass an integer array as long as the domain.",
        )
    return true.astype(np.int64)


def _values(randomizer: Randomizer, counts: Any) -> tuple[list[Any], Ints]:
    strings = isinstance(randomizer, StringRandomizer)
    known = counts if isinstance(counts, Mapping) else {}
    true = np.array(list(known.values())) if known else np.zeros(0, np.int64)
    fitting = all(isinstance(value, str) if strings else _number(value) for value in known)
    if not fitting or true.ndim != 1 or not _people(true):
        what, example = ("string", "{'home': 700}") if strings else ("number", "{3.5: 700}")
        raise InvalidArgument(
            f"true_counts must hold a whole number of people for each {what}, up to 1e12 in all.",
            remedy=f"Pass a mapping such as {example}.",
        )
    return list(known), true.astype(np.int64)


def _number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return isinstance(value, int | np.integer) or math.isfinite(value)


def _people(true: np.ndarray[Any, Any]) -> bool:
    """Whether these are whole numbers of people, somebody and not too many."""
    if true.dtype.kind not in "iu" or not ((true >= 0) & (true <= MOST_USERS)).all():
        return False
    return 0 < tallies.total(true.astype(np.int64)) <= MOST_USERS
