"""`Randomizer`: what runs on a device. It turns one person's value into one private report.

A randomizer is a mechanism: a frozen value whose parameters are exact and public, so that its reports can be
audited, charged and written down like any other. It holds no secret of the server. A report is ε-locally
private: whatever the value, each report is at most e^ε times likelier than with any other value, with no
curator to be trusted. Who reports, and how often, is not hidden; so neighbours differ in the value
(`replace`, or `zero_out` where no value counts as a fixed one).

The server needs of a report only a sum: `tally` gives whole numbers that are added up over reports, in any
order and on any number of machines, and `estimates` reads the sum. What is not in the domain counts as a
fixed value, which each randomizer names: no error depends on a value.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import tallies
from dalenius.local.estimator import Estimator
from dalenius.local.reports import Format, Reports, Rows, check_format
from dalenius.mechanisms.mechanism import Mechanism, Payer
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation, Unit, read_relation
from dalenius.profiles.balls import ball, lower
from dalenius.release import Cell, Release

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CHUNK, LONG = 1 << 17, 1 << 22
"""Numbers that are drawn at a time, so that they stay near the processor; where reports have many, more."""
SHORT_OF = 1 - Fraction(1, 2**50)
MOST_RATIO = 2**60
"""A report that tells more than this tells everything."""


@dataclass(frozen=True)
class Estimates:
    """What a sum of reports says: columns of a release, their measures, and notes for its receipt."""

    columns: Mapping[str, Sequence[Cell]]
    measures: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Randomizer(Mechanism):
    """A value becomes a report. See the module."""

    _: KW_ONLY
    relation: Relation = "replace"

    def __post_init__(self) -> None:
        if read_relation(self.relation) == "add_remove":
            raise NotSound(
                "Every person's report is a row: who takes part is not hidden, so add_remove does not hold.",
                remedy='Use relation="replace", or "zero_out" with a null value for who does not take part.',
            )

    # The device.

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Below what the numbers of a report are, and how many there are."""

    @abstractmethod
    def read(self, values: Any) -> NDArray[Any]:
        """Values as an array with a row for each person, whatever is in them."""

    def read_one(self, value: Any) -> NDArray[Any]:
        """One person's value, as a row."""
        return self.read([value])

    @abstractmethod
    def randomize(self, values: NDArray[Any]) -> Rows:
        """A report of each value that was read."""

    def key(self, read: NDArray[Any]) -> bytes:
        """By which a `Client` remembers a value that was read: one law of reports for each key."""
        return read.tobytes()

    @cached_property
    def format(self) -> Format:
        """What its reports look like."""
        below, fields = self.shape
        return Format(hashlib.sha256(self.to_json().encode()).digest()[:16], below, fields)

    @property
    def bits(self) -> int:
        """Of one report."""
        return self.format.bits

    def encode(self, values: Any) -> Reports:
        """A private report of each person's value."""
        read, form = self.read(values), self.format
        rows, step = np.empty((len(read), form.fields), form.kind), _at_once(form.fields)
        for start in range(0, len(read), step):
            part = self.randomize(read[start : start + step])
            rows[start : start + step] = part.reshape(-1, form.fields)
        return Reports.owned(form, rows, tainted=noise.tainted())

    # The server.

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many numbers a tally has."""

    def possible(self, rows: Rows) -> NDArray[np.bool_]:
        """Which reports a device can have made: all that are in range, where nothing else is said."""
        return np.ones(len(rows), np.bool_)

    def accepted(self, reports: Reports | bytes) -> Reports:
        """Reports as devices make them; where any are not, all are refused."""
        read = reports if isinstance(reports, Reports) else Reports.from_bytes(reports, self.format)
        check_format(read.format, self.format)
        step = _at_once(self.format.fields)
        for start in range(0, len(read), step):
            if not self.possible(read.rows[start : start + step]).all():
                raise InvalidArgument(
                    "Among these reports are some that no device makes.",
                    remedy="Read them by Reports.from_bytes(data, randomizer.format), and keep "
                    "reports.take(np.flatnonzero(randomizer.possible(reports.rows))).",
                )
        return read

    def adds_up(self, tally: Ints, count: int) -> bool:
        """Whether so many reports can have this tally: each is counted once, where nothing else is said."""
        return tallies.parts_of(tally, count)

    @abstractmethod
    def tally(self, rows: Rows) -> Ints:
        """The sum over reports of what the estimate needs."""

    @abstractmethod
    def estimates(self, tally: Ints, count: int) -> Estimates:
        """What the tally of so many reports says."""

    def estimates_despite(self, tally: Ints, count: int, forged: int) -> Estimates:
        """Return what the tally says, with intervals that hold although some reports are forged.

        Args:
            tally: The sum of the reports.
            count: How many reports there are.
            forged: How many of them are forged, at most.

        Raises:
            NotSound: What forged reports can do is not bounded for this randomizer.
        """
        if forged:
            raise NotSound(
                "What forged reports can do to these estimates is not bounded.",
                remedy="Use a frequency oracle or DuchiResponse, or leave forged out.",
            )
        return self.estimates(tally, count)

    def estimator(
        self, account: Payer | None = None, *, unit: Unit | None = None, by: str = "", purpose: str = ""
    ) -> Estimator:
        """Collects reports. One report of each person is charged now, where there is an account."""
        return Estimator.start(self, account, unit=unit, by=by, purpose=purpose)

    def released(self, found: Estimates, unit: Unit | None, *, tainted: bool = False) -> Release:
        """Estimates as a release, whose receipt is that of one report of each person."""
        made = self._released(found.columns, found.measures, unit, tainted=tainted)
        return made.bounded("one report of each", *found.notes)

    # What a mechanism has.

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """The reports themselves: numbers, or where a report has several, their bytes in hexadecimal."""
        rows = self.encode(value).rows
        column: list[Cell] = rows[:, 0].tolist() if rows.shape[1] == 1 else [_digits(row) for row in rows]
        return self._released({"report": column}, ("report",), unit)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Reports of one public value: numbers, or rows of them."""
        rows = self.randomize(np.repeat(self.read_one(value), size, axis=0))
        return rows[:, 0] if rows.ndim == 2 and rows.shape[1] == 1 else rows


def _at_once(fields: int) -> int:
    """Reports that are drawn at a time."""
    return CHUNK if fields == 1 else max(LONG // fields, 1)


def _digits(row: Rows) -> str:
    return row.astype(row.dtype.newbyteorder(">")).tobytes().hex()


def ratio_of(epsilon: Number) -> Fraction:
    """A rational number that is below e^ε, by less than a part in 2^49: how much likelier a report may be."""
    limit = numbers.epsilon(epsilon)
    with workprec(192):
        most = lower(ball(min(limit, Fraction(50))).exp())
    return max(min(Fraction(most) * SHORT_OF, Fraction(MOST_RATIO)), Fraction(1))


def read_ratio(value: object, name: str) -> Fraction:
    """A likelihood ratio above 1."""
    found = numbers.at_least(value, name, 1)
    if not 1 < found <= MOST_RATIO:
        raise InvalidArgument(
            f"{name} must be above 1 and at most 2^60.",
            remedy="Use calibrate(epsilon=...), which chooses it.",
        )
    return found
