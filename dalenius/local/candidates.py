"""`decode`: how many people have each of some candidate strings, by reports that do not list strings.

Bloom filters and sketches keep sums of hashed strings; which strings to ask about is public and chosen by
whoever asks, also after the reports came. It is free: all of it is post-processing. A shuffled batch is asked
in the same way, and its receipt has both guarantees.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from dalenius.errors import InvalidArgument
from dalenius.local.estimator import Estimator
from dalenius.local.randomizer import Estimates, Ints
from dalenius.local.shuffler import Batch, estimator_of
from dalenius.local.strings import Words, as_bytes, words_of
from dalenius.mechanisms.mechanism import risk
from dalenius.privacy.numbers import Number
from dalenius.release import Release

MOST_CANDIDATES = 10**6
NAMED = 5
"""Groups that a receipt names, and strings of each."""


@runtime_checkable
class Decodable(Protocol):
    """A randomizer whose tallies can be asked about strings."""

    def decoded(
        self, tally: Ints, count: int, candidates: Words, alpha: float
    ) -> tuple[dict[str, list[float]], str]:
        """Columns with a row for each candidate, and how they were made."""


def decode(given: Estimator | Batch, candidates: Iterable[str], *, alpha: Number = 0.05) -> Release:
    """Shares of candidates; `found` where one is above zero, all together wrongly with at most `alpha`."""
    if isinstance(candidates, str | bytes):
        raise InvalidArgument("candidates are several strings.", remedy='Pass a list, such as ["hello"].')
    names, level = list(dict.fromkeys(candidates)), float(risk(alpha))
    estimator, notes = estimator_of(given)
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
    released = randomizer.released(found, estimator.unit, tainted=estimator.tainted)
    note = (
        f"{len(names)} candidates: {how}; found at level {level:g} for all together{_alike(columns, names)}"
    )
    return estimator._stamp(released.postprocess(note, released.columns)).bounded(*notes)


def _alike(columns: dict[str, list[float]], names: list[str]) -> str:
    """Candidates that no reports tell apart, a few of each of the first groups."""
    groups: dict[float, list[str]] = {}
    for name, group in zip(names, columns.get("alike", ()), strict=False):
        if group:
            groups.setdefault(group, []).append(name)
    shown = [", ".join(map(repr, some[:NAMED])) + ", …" * (len(some) > NAMED) for some in groups.values()]
    rest = f"; and {len(shown) - NAMED} such groups more" if len(shown) > NAMED else ""
    return "; not told apart: " + "; ".join(shown[:NAMED]) + rest if shown else ""
