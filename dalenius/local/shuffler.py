"""`Shuffler`: reports leave in batches, without their order and whatever else they came with.

It keeps the reports themselves and nothing of how they came: no time, no address, no order. A batch leaves
with its reports permuted, each order as likely, by the library's source of bits; a batch below a public
minimum does not leave, and how many it has is not told. So whoever sees batches alone, and not the
shuffler, sees unordered collections: of n honest reports of loss L, `L.shuffled(n)`
(docs/proofs/shuffling.md), far below L for many.

What it takes: each person reports once in a batch; the shuffler does not work together with who reads the
batches; n counts honest reports alone, as those that are forged or known hide nobody (`honest` is the share
of them that is counted on). Whoever sees a report before the shuffler has the local guarantee, which takes
none of this. A client's memoised reports can be told to be the same again, so of several batches of them the
local cost holds, which `what_reports_cost` has, and no less.

What a batch tells can be asked for in each way: `batch.estimate()`, and `decode` and `range_shares`, which
take a batch where they take an estimator. `batch.into(estimator)` is the same batch, counted by an estimator
that an account paid for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from threading import Lock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.local.estimator import Estimator
from dalenius.local.randomizer import Randomizer
from dalenius.local.reports import Reports, check_format
from dalenius.local.sketch import Sketch
from dalenius.losses.loss import Loss
from dalenius.mechanisms.mechanism import risk
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.release import Release
from dalenius.release.digits import at_most

LEAST = 100
"""The smallest minimum: fewer reports hide nobody."""
KEYS = 2**62


def permutation(size: int) -> NDArray[np.int64]:
    """A uniform order: that of independent keys, all drawn again where two are the same."""
    while True:
        keys = np.asarray(noise.uniform(KEYS, size), dtype=np.int64)
        order = np.argsort(keys)
        if not np.any(np.diff(keys[order]) == 0):
            return order


@dataclass(frozen=True)
class Batch:
    """Reports that left a shuffler, with what is guaranteed to whoever sees this batch alone."""

    randomizer: Randomizer
    reports: Reports
    honest: Fraction
    delta: Fraction
    estimator: Estimator | None = None

    @property
    def counted(self) -> int:
        """How many reports are counted on; that of the person whom it protects always is."""
        return max(int(self.honest * len(self.reports)), 1)

    @cached_property
    def central(self) -> Loss:
        """Of the unordered collection, its honest reports counted."""
        return self.randomizer.loss.shuffled(self.counted)

    @property
    def notes(self) -> tuple[str, ...]:
        """Both guarantees, and what the second takes."""
        local = at_most(self.randomizer.loss.epsilon(0).upper)
        central = at_most(self.central.epsilon(self.delta).upper)
        return (
            f"local: epsilon {local} for each report, whoever sees it",
            f"shuffled: epsilon {central} at delta {float(self.delta):g} for who sees this batch alone, if "
            f"{self.counted} of its {len(self.reports)} reports are honest, one of each person, and the "
            "shuffler keeps its order secret",
        )

    def into(self, estimator: Estimator) -> Batch:
        """The same, its reports counted by an estimator that has no others: one that an account paid for."""
        check_format(estimator.randomizer.format, self.randomizer.format)
        if not estimator.count:
            estimator.fill(self.reports)
        elif not estimator.counts_only(self.reports):
            raise InvalidArgument(
                "This estimator has reports already, of which the batch cannot tell what they cost.",
                remedy="Pass an estimator that is empty.",
            )
        return replace(self, estimator=estimator)

    @property
    def collected(self) -> Estimator:
        """Its reports added up, and no others."""
        found = self.estimator or self._unpaid
        if not found.counts_only(self.reports):
            raise NotSound(
                "Other reports were added to the estimator of this batch, or it was merged: the guarantee is "
                "not theirs.",
                remedy="Ask that estimator, without the batch.",
            )
        return found

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: an estimator knows reports by which they are, and not what they are."""
        kept = {name: value for name, value in vars(self).items() if name != "_unpaid"}
        return kept | {"only": self.estimator is not None and self.estimator.counts_only(self.reports)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        only = kept["only"]
        vars(self).update({name: value for name, value in kept.items() if name != "only"})
        if only and self.estimator is not None:
            self.estimator.counted(self.reports)

    @cached_property
    def _unpaid(self) -> Estimator:
        return self.randomizer.estimator().fill(self.reports)

    def estimate(self, estimator: Estimator | None = None, *, forged: Number = 0) -> Release:
        """Return what the batch tells, both guarantees on its receipt; an account pays for the local one.

        `forged` is as in `Estimator.estimate`.
        """
        if isinstance(self.randomizer, Sketch):
            raise InvalidArgument(
                "A sketch does not list strings.", remedy="Ask about candidates: decode(batch, [...])."
            )
        found = self if estimator is None else self.into(estimator)
        return found.collected.estimate(forged=forged).bounded(*self.notes)


def estimator_of(given: Estimator | Batch) -> tuple[Estimator, tuple[str, ...]]:
    """What counted the reports, and what is guaranteed of them besides."""
    if isinstance(given, Batch):
        return given.collected, given.notes
    if isinstance(given, Estimator):
        given.check()
        return given, ()
    raise InvalidArgument("Reports are asked about by their estimator or batch.", remedy="Pass one of these.")


class Shuffler:
    """Collects reports of one randomizer, and lets them go in batches. See the module."""

    def __init__(
        self, randomizer: Randomizer, *, minimum: int, honest: Number = 1, delta: Number = Fraction(1, 10**6)
    ) -> None:
        self.randomizer = randomizer
        self.minimum = numbers.count(minimum, "minimum", least=LEAST)
        self.honest = numbers.probability(honest, "honest")
        self.delta = risk(delta)
        if not self.honest:
            raise InvalidArgument("honest must be above 0.", remedy="Count on a share of honest reports.")
        if randomizer.loss.relation != "replace":
            raise NotSound(
                "Shuffling is known to help where the value of a report is replaced.",
                remedy='Use a randomizer with relation="replace".',
            )
        self._parts: list[Reports] = []
        self._lock, self._process = Lock(), os.getpid()

    def __repr__(self) -> str:
        return f"<Shuffler, batches of at least {self.minimum} reports>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise NotSound(
            "A shuffler cannot be copied, nor go on in a forked process: its reports would leave twice.",
            remedy="Start another one, for other reports.",
        )

    def add(self, reports: Reports | bytes) -> Shuffler:
        """Take reports in; their order is forgotten when they leave."""
        read = self.randomizer.accepted(reports)
        self._single()
        with self._lock:
            self._parts.append(read)
        return self

    def batch(self) -> Batch:
        """All reports that came, in a uniform order; fewer than the minimum stay."""
        self._single()
        with self._lock:
            if sum(map(len, self._parts)) < self.minimum:
                raise NotSound(
                    f"A batch leaves with at least {self.minimum} reports, and there are fewer.",
                    remedy="Wait for more reports.",
                )
            parts, self._parts = self._parts, []
        try:
            return Batch(self.randomizer, self._mixed(parts), self.honest, self.delta)
        except BaseException:
            with self._lock:
                self._parts += parts
            raise

    def _mixed(self, parts: list[Reports]) -> Reports:
        rows = np.concatenate([part.rows for part in parts])
        tainted = noise.tainted() or any(part.tainted for part in parts)
        return Reports.owned(self.randomizer.format, rows[permutation(len(rows))], tainted)

    def _single(self) -> None:
        if self._process != os.getpid():
            self.__reduce_ex__(0)
