"""`Release`: a table of released values with error bars, and its receipt. See the package."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius import display
from dalenius.errors import InvalidArgument, UnknownKind
from dalenius.losses.fields import written
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.release import cells, frames
from dalenius.release.cells import Cell, Change
from dalenius.release.receipt import TAINTED, Entry, Receipt
from dalenius.statement import Made, Publication, describe

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

CONFIDENCE = Fraction(19, 20)
"""Of error bars, where nothing else is asked for."""
KIND, VERSION = "release", 1


@dataclass(frozen=True, repr=False)
class Release:
    """A table of released values with error bars, and its receipt.

    `confidence` is that of the error bars: None where there are none.
    """

    columns: Mapping[str, tuple[Cell, ...]]
    measures: tuple[str, ...]
    receipt: Receipt
    confidence: Fraction | None = CONFIDENCE

    def __post_init__(self) -> None:
        kept = {name: cells.column(column) for name, column in self.columns.items()}
        if len({len(column) for column in kept.values()}) > 1 or not set(self.measures) <= set(kept):
            raise InvalidArgument(
                "The columns of a release differ in length, or lack a measure.",
                remedy="Pass columns of one length, every measure among them.",
            )
        object.__setattr__(self, "columns", kept)
        if not any(f"{measure}_low" in kept for measure in self.measures):
            object.__setattr__(self, "confidence", None)

    # What it holds.

    @property
    def value(self) -> Any:
        """The number, where there is but one; else the first measure as an array."""
        return self._read(self.measures[0])

    @property
    def low(self) -> Any:
        """The lower end of the error bar of `value`; None where there is none."""
        return self._read(f"{self.measures[0]}_low")

    @property
    def high(self) -> Any:
        """The upper end of the error bar of `value`; None where there is none."""
        return self._read(f"{self.measures[0]}_high")

    @property
    def loss(self) -> Loss:
        """What it cost."""
        return self.receipt.loss

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in self.columns:
            raise InvalidArgument(
                f"There is no column {column!r} in this release.",
                remedy=f"Name one of these: {', '.join(self.columns)}.",
            )
        return np.array(self.columns[column])

    def _read(self, column: str) -> Any:
        if column not in self.columns:
            return None
        values = self.columns[column]
        return values[0] if len(values) == 1 else np.array(values)

    # What may be done to it, all of it free.

    def postprocess(self, note: str, columns: Mapping[str, Sequence[Cell]]) -> Release:
        """The same release with these columns instead, and a note of what was done: free, and listed."""
        notes = (*self.receipt.postprocessing, note)
        kept = {name: tuple(column) for name, column in columns.items()}
        return replace(self, columns=kept, receipt=replace(self.receipt, postprocessing=notes))

    def clamp(self, lower: Number | None = None, upper: Number | None = None) -> Release:
        """Measures and their bars held within what is known of the truth, such as lower=0 for a count."""
        named = (("lower", lower), ("upper", upper))
        least, most = (None if end is None else numbers.moderate(end, name) for name, end in named)
        if least is not None and most is not None and least > most:
            raise InvalidArgument("lower must not be above upper.", remedy="Swap lower and upper.")
        ends = [("at least", least), ("at most", most)]
        known = [f"{word} {float(end):g}" for word, end in ends if end is not None]
        held = cells.held(least, most)
        return self._changed(f"clamped to {' and '.join(known) or 'anything'}", held, held, held)

    def round(self, digits: int = 0) -> Release:
        """Measures rounded to so many decimal places, their bars outward."""
        places = numbers.count(digits, "digits", least=-300, most=300)
        low, middle, high = (cells.rounded(places, to) for to in (math.floor, round, math.ceil))
        return self._changed(f"rounded to {places} decimal places", low, middle, high)

    def bounded(self, *bounds: str) -> Release:
        """The same release, its receipt stating these bounds that were applied to the data too."""
        return replace(self, receipt=replace(self.receipt, bounds=(*self.receipt.bounds, *bounds)))

    def charged(self, entry: Entry) -> Release:
        """The same release, its receipt naming the entry of the account that paid for it."""
        if self.receipt.entry is not None:
            raise InvalidArgument(
                "This release is charged to an account already.", remedy="Charge the next release."
            )
        return replace(self, receipt=replace(self.receipt, entry=entry))

    def _changed(self, note: str, low: Change, middle: Change, high: Change) -> Release:
        ends = (("_low", low), ("", middle), ("_high", high))
        changes = {f"{measure}{end}": how for measure in self.measures for end, how in ends}
        return self.postprocess(
            note,
            {
                name: [changes[name](cell) if name in changes else cell for cell in column]
                for name, column in self.columns.items()
            },
        )

    # How it is shown and kept.

    def __str__(self) -> str:
        alarm, notes = f"{TAINTED}\n" if self.receipt.tainted else "", self.receipt.notes
        sure = "" if self.confidence is None else f"{float(100 * self.confidence):g} %"
        if self._one_line:
            shown = display.line(self.columns, self.measures) + (f" ({sure})" if sure else "")
            return f"{alarm}{shown}, {self.receipt.short}{self._flagged}{notes}"
        caption = (f"± ({sure}), " if sure else "") + self.receipt.short + self._flagged + notes
        return alarm + display.table(self.columns, self.measures, caption)

    def __repr__(self) -> str:
        if self._one_line:
            return f"<Release {self}>".replace("\n", " ")
        return f"<Release of {len(self)} rows: {', '.join(map(display.harmless, self.columns))}>"

    def _repr_html_(self) -> str:
        sure = "" if self.confidence is None else f"±: {float(100 * self.confidence):g} %. "
        alarm = TAINTED if self.receipt.tainted else None
        caption = f"{sure}{self.receipt.short}{self._flagged}{self.receipt.notes}".replace("\n", "; ")
        return display.page(self.columns, self.measures, caption, notes=self.receipt.lines(), alarm=alarm)

    @property
    def _flagged(self) -> str:
        said = display.flagged(self.columns, self.measures)
        return f"\n{said}" if said else ""

    @property
    def _one_line(self) -> bool:
        bars = {f"{measure}{end}" for measure in self.measures for end in ("", *display.BESIDE)}
        return len(self) == 1 and set(self.columns) <= bars

    def statement(
        self, publication: Publication, *, unit: Unit | None = None, delta: Number | None = None
    ) -> dict[str, Any]:
        """An entry for the registry of deployments, at its most detailed tier. See `statement`."""
        paid, failure = self.receipt, self.receipt.promise[1] if delta is None else numbers.delta(delta)
        made = Made(
            loss=paid.loss,
            delta=failure,
            unit=unit or paid.unit,
            mechanism=paid.mechanism,
            numerics=paid.numerics,
            bounds=paid.bounds,
            postprocessing=paid.postprocessing,
            charged=paid.charged if paid.entry is None else f"{paid.entry}, hash {paid.entry.hash}",
            confidence=self.confidence,
            tainted=paid.tainted,
        )
        return describe(made, publication)

    def to_pandas(self) -> pandas.DataFrame:
        """All columns, error bars too, as a pandas DataFrame; its `attrs` hold the receipt as JSON."""
        return frames.pandas_frame(self.columns, json.dumps(self.receipt.plain()))

    def to_polars(self) -> polars.DataFrame:
        """All columns, error bars too, as a polars DataFrame."""
        return frames.polars_frame(self.columns)

    def to_arrow(self) -> pyarrow.Table:
        """All columns, error bars too, as an Arrow table; the schema's metadata hold the receipt as JSON."""
        return frames.arrow_table(self.columns, json.dumps(self.receipt.plain()))

    def to_json(self) -> str:
        """The release with its receipt as JSON, never changed in meaning."""
        columns = self.columns.items()
        plain = {
            "kind": KIND,
            "version": VERSION,
            "columns": [{"name": name, "cells": cells.written(column)} for name, column in columns],
            "measures": self.measures,
            "confidence": None if self.confidence is None else written(self.confidence),
            "receipt": self.receipt.plain(),
        }
        return json.dumps(plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    @staticmethod
    def from_json(text: str) -> Release:
        """Read a release back. An unknown kind or version is refused."""
        try:
            plain = json.loads(text)
            kind, version = plain.pop("kind"), plain.pop("version")
        except (ValueError, TypeError, KeyError, AttributeError):
            raise _malformed() from None
        if (kind, version) != (KIND, VERSION):
            raise UnknownKind(
                "This is no release of a version that is known.",
                remedy="Read it with the version of Dalenius that wrote it, or a later one.",
            )
        try:
            return _release(**plain)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise _malformed() from None


def _release(*, columns: Any, measures: Any, confidence: Any, receipt: Any) -> Release:
    table = {column["name"]: tuple(map(cells.read, column["cells"])) for column in columns}
    sure = None if confidence is None else Fraction(confidence)
    return Release(table, tuple(measures), Receipt.read(**receipt), sure)


def _malformed() -> InvalidArgument:
    return InvalidArgument("This is not a release.", remedy="Pass what release.to_json() wrote.")
