"""`decode`: how many people have each of some candidate strings, by reports that do not list strings.

Bloom filters and sketches keep sums of hashed strings; which strings to ask about is public and chosen by
whoever asks, also after the reports came. It is free: all of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from dalenius.errors import InvalidArgument
from dalenius.local.estimator import Estimator
from dalenius.local.randomizer import Estimates, Ints
from dalenius.local.strings import Words, as_bytes, words_of
from dalenius.mechanisms.mechanism import risk
from dalenius.privacy.numbers import Number
from dalenius.release import Release

MOST_CANDIDATES = 10**6


@runtime_checkable
class Decodable(Protocol):
    """A randomizer whose tallies can be asked about strings."""

    def decoded(
        self, tally: Ints, count: int, candidates: Words, alpha: float
    ) -> tuple[dict[str, list[float]], str]:
        """Columns with a row for each candidate, and how they were made."""


def decode(estimator: Estimator, candidates: Iterable[str], *, alpha: Number = 0.05) -> Release:
    """Shares of candidates; `found` where one is above zero, all together wrongly with at most `alpha`."""
    names, level = list(dict.fromkeys(candidates)), float(risk(alpha))
    randomizer = estimator.randomizer
    if not isinstance(randomizer, Decodable):
        raise InvalidArgument(
            "Reports of this randomizer are not of strings.", remedy="Use estimator.estimate()."
        )
    if not 0 < len(names) <= MOST_CANDIDATES or not all(isinstance(name, str) for name in names):
        raise InvalidArgument("candidates must be from 1 to a million strings.", remedy="Pass a list.")
    if not estimator.count:
        raise InvalidArgument("There are no reports.", remedy="Add at least one report.")
    words = words_of(as_bytes(name) for name in names)
    columns, how = randomizer.decoded(estimator.tally, estimator.count, words, level)
    found = Estimates({"item": names, **columns}, ("share",), (f"{estimator.count} reports",))
    released = randomizer.released(found, estimator.unit)
    note = f"{len(names)} candidates: {how}; found at level {level:g} for all together"
    return estimator._stamp(released.postprocess(note, released.columns))
