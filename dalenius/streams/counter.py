"""`Counter`: the session of a mechanism that publishes sums at every step.

    counter = mechanism.start(account)
    counter.add(batch)                    one step: a number, or all numbers of a batch together
    counter.add(number, unit="ana")       whose it is, where `most` bounds what one unit may do
    counter.value()                       a release with error bars; asked again, the same one
    counter.series(numbers)               each number a step of its own, and the values of all of them
    counter.save(path)                    from now on every value is on disk before it is given
    counter.close()                       no value from now on: the file can be loaded again

The noise of a step follows from a secret key and the number of the step. So a value asked for twice, or again
after a crash, is the same value: nothing is charged or told anew. Whoever sees the memory of a counter, or
its file, sees the key, the sums and who took part: keep them as secret as the data (or see `pan_private`).
A counter that was stopped in the middle of a step is not used again, so that no noise meets two sets of data.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dalenius.errors import InvalidArgument, NotSound
from dalenius.ledger.uses import Uses
from dalenius.mechanisms.above_threshold import Single
from dalenius.mechanisms.mechanism import Payer, Stamp
from dalenius.noise.stream import StreamKey
from dalenius.privacy.records import whole_codes, whole_steps
from dalenius.privacy.unit import Unit
from dalenius.release import Release
from dalenius.release.receipt import Entry
from dalenius.streams.participants import Participants, names
from dalenius.streams.saving import Keeper
from dalenius.streams.tallies import Ints, Values

if TYPE_CHECKING:
    from dalenius.streams.continual import Continual


UNSAID: Any = object()
"""For a unit that was not passed, which is another thing than one that is missing."""


class Counter(Single):
    """A session of a `Continual` mechanism. For one thread at a time.

    Args:
        mechanism: Makes the values.
        unit: Whom they protect.
        stamp: Marks releases as paid.
        key: The key of the noise.
        account: The account that paid, in whose ledger values are noted once the counter is saved.
    """

    again: ClassVar[str] = "Load it again from its file, where it was saved, or start another."

    def __init__(
        self,
        mechanism: Continual,
        unit: Unit | None,
        stamp: Stamp,
        key: StreamKey,
        account: Payer | None = None,
    ) -> None:
        super().__init__()
        self.mechanism, self.unit, self._stamp, self._key = mechanism, unit, stamp, key
        self._tally = mechanism.tally(mechanism.width)
        self._blocks = mechanism.blocks(key, mechanism.width)
        self._drawn: Ints = np.empty((0, mechanism.width), np.int64)
        self._steps, self._first = 0, 0
        self._last: Values | None = None
        self._participants = (
            None if mechanism.most is None else Participants(mechanism.separation, mechanism.most)
        )
        self._uses = Uses.of(account, key)
        self._keeper: Keeper | None = None
        self._closed = False

    @property
    def steps(self) -> int:
        """How many there were."""
        return self._steps

    def add(self, value: Any, unit: Any = UNSAID) -> None:
        """Add one step: a whole number or a batch of them, or with categories their indices.

        Numbers are rounded toward zero, and what is no number counts as 0, or in no category. An event whose
        unit is missing does not count.
        """
        events = self._read(value)
        with self._lock:
            named = self._named(events, unit)
            self._room(1)
            with self._change():
                self._take(self._bounded(self._admitted(events, named))[None])

    def extend(self, values: Any) -> None:
        """Steps of one number each, of which only the last value can be asked for."""
        with self._lock:
            rows = self._rows(self._read(values))
            self._room(len(rows))
            with self._change():
                self._take(rows)

    def series(self, values: Any) -> Release:
        """Steps of one number each, and the values of all of them."""
        events = self._read(values)
        with self._lock:
            first, rows = self._steps + 1, self._rows(events)
            self._room(len(rows))
            with self._change():
                found = self._take(rows)
            self._keep()
            return self._released(found, first, listed=True)

    def value(self) -> Release:
        """The value at the last step."""
        with self._lock:
            self._single()
            if self._last is None:
                raise InvalidArgument("There was no step yet.", remedy="Add something first.")
            self._keep()
            return self._released(self._last, self._steps, listed=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the session in a new file, mode 0600 and secret, before every value that is given from now."""
        with self._lock:
            self._single()
            if self._keeper is not None:
                raise InvalidArgument(
                    "This counter is kept in a file already.",
                    remedy="Go on: it is written before each value.",
                )
            self._keeper = Keeper.open(path, self._uses)
            self._keep()

    def close(self) -> None:
        """Give the file up, if it is kept in one, so that it can be loaded again; no value is given after."""
        if self._process != os.getpid():
            self._ended()
            return
        with self._lock:
            self._closed = True
            self._ended()

    @property
    def entry(self) -> Entry | None:
        """The line of the account that paid."""
        nothing = np.empty((0, self.mechanism.width), np.int64)
        return self._released(nothing, 1, listed=True).receipt.entry

    # What it is made of.

    def _read(self, values: Any) -> Ints:
        """Whole numbers, or the indices of categories; no cell is refused."""
        return whole_codes(values) if self.mechanism.categories else whole_steps(values)

    def _named(self, events: Ints, unit: Any) -> list[Hashable]:
        """Whose events these are, where units are bounded."""
        if self._participants is None and unit is None:
            unit = UNSAID
        if (unit is UNSAID) != (self._participants is None):
            raise InvalidArgument(
                "unit says whose a number is, and goes with a bound on what one unit may do.",
                remedy="Pass most= to the mechanism and unit= to every add, or neither.",
            )
        return [] if self._participants is None else names(unit, events.size)

    def _admitted(self, events: Ints, named: list[Hashable]) -> Ints:
        if self._participants is None:
            return events
        return events[self._participants.admitted(named, self._steps)]

    def _bounded(self, events: Ints) -> Ints:
        mechanism = self.mechanism
        if not mechanism.categories:
            return np.sum(np.clip(events, -mechanism.largest, mechanism.largest), keepdims=True)
        inside = events[(events >= 0) & (events < mechanism.categories)]
        return np.bincount(inside, minlength=mechanism.categories).astype(np.int64)

    def _rows(self, events: Ints) -> Ints:
        if self._participants is not None:
            raise InvalidArgument(
                "A series does not say whose its numbers are.", remedy="Call add with unit, step by step."
            )
        if self.mechanism.categories:
            return np.array([self._bounded(event[None]) for event in events])
        return np.clip(events, -self.mechanism.largest, self.mechanism.largest)[:, None]

    def _room(self, steps: int) -> None:
        """Refused is a session that has ended, or is not charged for so many further steps."""
        self._single()
        end = self.mechanism.horizon
        if end is not None and self._steps + steps > end:
            raise NotSound(
                f"This stream was charged for {end} steps.",
                remedy="Start another with a longer horizon, or EndlessSum, which has none.",
            )

    def _take(self, rows: Ints) -> Values:
        found = []
        for start in range(0, len(rows), self._blocks.steps):
            part = rows[start : start + self._blocks.steps]
            found.append(self._tally.series(part, self._noise(len(part))))
            self._steps += len(part)
        if found:
            self._last = found[-1][-1:]
        return np.concatenate(found) if found else np.empty((0, self.mechanism.width), np.int64)

    def _noise(self, size: int) -> Ints:
        """Of the next steps, at most a block's."""
        while self._first + len(self._drawn) < self._steps + size:
            old, new = self._drawn[self._steps - self._first :], self._blocks.next()
            first, drawn = self._first + len(self._drawn) - len(old), np.concatenate([old, new])
            self._first, self._drawn = first, drawn
        start = self._steps - self._first
        return self._drawn[start : start + size]

    def _released(self, rows: Values, first: int, *, listed: bool) -> Release:
        found = self.mechanism.released(
            rows, self.unit, first=first, listed=listed, tainted=self._key.tainted
        )
        return self._stamp(found)

    def _go_on(self, steps: int, last: Values | None) -> None:
        """From a step on that was reached before: the noise of earlier ones is drawn again, and dropped."""
        with self._change():
            while self._first + len(self._drawn) < steps:
                new = self._blocks.next()
                self._first, self._drawn = self._first + len(self._drawn), new
            self._steps, self._last = steps, last

    def _ended(self) -> None:
        """The file can be loaded again: it holds the last value that was given, and none after it will be."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    def _single(self) -> None:
        self._check(1)
        if self._closed:
            raise InvalidArgument("This counter is closed.", remedy=self.again)

    def _keep(self) -> None:
        if self._keeper is not None and self._keeper.steps != self._steps:
            self._keeper.write(self)
