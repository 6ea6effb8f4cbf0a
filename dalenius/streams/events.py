"""Events of a CSV file as the steps of a stream: which step each row falls into, by a public clock.

A clock says when the first step begins, when the last one ends, and how long a step is. It must not be taken
from the data: when the first event happened may tell on someone. Rows outside of it, or whose time cannot be
read, are left out without a word.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument
from dalenius.figures import Figure, Series
from dalenius.release import Release

if TYPE_CHECKING:
    from dalenius.streams.counter import Counter

LENGTHS = {"minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
"""Seconds of a step."""
MOST_STEPS = 10**6
LONGEST = 2**31 - 1
"""Of a field."""


@dataclass(frozen=True)
class Clock:
    """Steps of `every` seconds from `start` to `end`."""

    start: datetime
    end: datetime
    every: int

    @staticmethod
    def of(start: str, end: str, every: str) -> Clock:
        """From ISO 8601 texts, and minute, hour, day or week; what names no zone is UTC."""
        ends = [_moment(text) for text in (start, end)]
        if every not in LENGTHS or ends[0] is None or ends[1] is None or ends[0] >= ends[1]:
            raise InvalidArgument(
                "A clock needs two dates in order, and steps of a minute, hour, day or week.",
                remedy="Pass such as 2026-01-01, 2026-02-01 and day.",
            )
        found = Clock(ends[0], ends[1], LENGTHS[every])
        if found.steps > MOST_STEPS:
            raise InvalidArgument("These are over a million steps.", remedy="Choose longer steps.")
        return found

    @property
    def steps(self) -> int:
        """How many there are."""
        return -(-(self.end - self.start) // timedelta(seconds=self.every))

    def step(self, text: str) -> int | None:
        """The step of a moment; None outside of the clock."""
        found = _moment(text)
        if found is None or not self.start <= found < self.end:
            return None
        return (found - self.start) // timedelta(seconds=self.every)

    def labels(self) -> list[str]:
        """When each step begins."""
        begun = (self.start + timedelta(seconds=self.every * k) for k in range(self.steps))
        return [f"{each:%Y-%m-%d %H:%M}".removesuffix(" 00:00") for each in begun]


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def check_columns(path: Path, time: str, unit: str | None = None) -> None:
    """Refuse a file that cannot be read, or whose header lacks a column: before anything is paid for."""
    with _rows(path) as rows:
        _known(rows, time, unit)


def read_events(path: Path, clock: Clock, time: str, unit: str | None = None) -> list[list[str]]:
    """For each step the units of its events, in the order of the file; without units, empty texts."""
    found: list[list[str]] = [[] for _ in range(clock.steps)]
    with _rows(path) as rows:
        _known(rows, time, unit)
        for row in rows:
            step = clock.step(row[time] or "")
            if step is not None:
                found[step].append("" if unit is None else row[unit] or "")
    return found


@contextmanager
def _rows(path: Path) -> Iterator[csv.DictReader[str]]:
    """The rows of a file, of which none is read before it is asked for."""
    # A long field is one that is left out, or a long name, and no reason to stop.
    before = csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
            yield csv.DictReader(file)
    except (csv.Error, gzip.BadGzipFile, EOFError, zlib.error):
        raise InvalidArgument(
            "The file is no CSV, or is cut short.", remedy="Write it as one, in UTF-8."
        ) from None
    finally:
        csv.field_size_limit(before)


def _known(rows: csv.DictReader[str], time: str, unit: str | None) -> None:
    missing = {name for name in (time, unit) if name is not None} - set(rows.fieldnames or ())
    if missing:
        raise InvalidArgument(
            f"There is no column {sorted(missing)[0]!r} in the file.", remedy="Name one of its header."
        )


def counted(counter: Counter, steps: list[list[str]]) -> Release:
    """All steps added to a counter, with the value after each of them."""
    import numpy as np

    values, bounded = [], counter.mechanism.most is not None
    for units in steps:
        counter.add(np.ones(len(units), np.int64), unit=units if bounded else None)
        values.append(counter.value())
    columns = ("value", "value_low", "value_high")
    table = {name: [cell for value in values for cell in value.columns[name]] for name in columns}
    return values[-1].postprocess("the values of all steps", {"step": range(1, len(values) + 1), **table})


def picture(release: Release, labels: list[str] | None = None) -> Figure:
    """A running count with its error bars."""
    steps = release["step"].tolist()
    ends = [
        Series(f"95 %, {side}", steps, release[f"value_{side}"].tolist(), "dotted")
        for side in ("low", "high")
    ]
    series = [Series("count", steps, release["value"].tolist()), *ends]
    when = "" if not labels else f", from {labels[0]} to {labels[-1]}"
    return Figure("A running count", f"step{when}", "events", series, notes=(release.receipt.short,))
