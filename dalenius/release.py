"""`Release`: the only thing that leaves, with the `Receipt` that says what it cost and how it was made.

A release is a small table. Keys name the rows, measures are what was released; each measure comes with its
error bars as columns of their own (`n`, `n_low`, `n_high`), which hold the true value with the stated
confidence, each by itself, by the law of the noise. All of it may be published: a receipt holds public
parameters only. Whatever is computed from a release is free; `postprocess`, `clamp` and `round` list it.

It prints as a line or a table, shows in notebooks, and is kept as JSON: `kind` and `version` never change in
meaning, and what is not known is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import display
from dalenius.errors import InvalidArgument, UnknownKind
from dalenius.losses.fields import written
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.statement import Made, Publication, describe

Cell = int | float | str | bool | None
"""What a table holds."""
CONFIDENCE = Fraction(19, 20)
"""Of error bars, where nothing else is asked for."""

EXACT = "exact noise on whole grid steps, each record rounded by itself"
"""The numerical model of values that were quantized record by record."""
AGGREGATE = "exact noise on grid steps; the value was computed by the caller, whose arithmetic is not covered"
"""The numerical model of a float handed in by the caller, charged for its rounding onto the grid."""
TAINTED = "TAINTED: made with seeded noise, for tests only. It protects nobody."
"""What is said of a release whose noise can be drawn again."""

DELTAS = tuple(Fraction(1, 10**k) for k in (6, 5, 4, 3, 2, 1))
"""Where the ε of a loss that is not pure is stated: at the first at which it is finite."""
KIND, VERSION = "release", 1


@dataclass(frozen=True)
class Receipt:
    """What a release cost and how it was made."""

    loss: Loss
    mechanism: str
    numerics: str
    unit: Unit | None = None
    account: str | None = None
    entry: int | None = None
    left: str | None = None
    bounds: tuple[str, ...] = ()
    postprocessing: tuple[str, ...] = ()
    tainted: bool = False

    @property
    def charged(self) -> str:
        """Which account paid, or "uncharged"."""
        return "uncharged" if self.account is None else f"{self.account}, entry {self.entry}"

    @property
    def promise(self) -> tuple[float, Fraction]:
        """An ε that holds and the δ at which it does: 0 where the loss is pure."""
        for delta in (Fraction(0), *DELTAS):
            epsilon = self.loss.epsilon(delta).upper
            if epsilon < math.inf:
                break
        return epsilon, delta

    @property
    def cost(self) -> str:
        """The promise in words."""
        epsilon, delta = self.promise
        return f"epsilon {_most(epsilon)}" + (f" at delta {float(delta):g}" if delta else "")

    def lines(self) -> list[tuple[str, str]]:
        """Everything it states, each with its name."""
        stated = [
            ("cost", self.cost),
            ("account", self.charged + (f", {self.left} left" if self.left else "")),
            ("protects", f"{self.unit}" if self.unit else f"not stated, {self.loss.relation}"),
            ("mechanism", self.mechanism),
            ("numerics", self.numerics),
            *(("bound", bound) for bound in self.bounds),
            *(("afterwards", note) for note in self.postprocessing),
        ]
        return ([("warning", TAINTED)] if self.tainted else []) + stated

    def __str__(self) -> str:
        return "\n".join(f"{name + ':':<12}{display.harmless(text)}" for name, text in self.lines())


@dataclass(frozen=True, repr=False)
class Release:
    """A table of released values with error bars, and its receipt."""

    columns: Mapping[str, tuple[Cell, ...]]
    measures: tuple[str, ...]
    receipt: Receipt
    confidence: Fraction | None = field(default=CONFIDENCE)

    def __post_init__(self) -> None:
        kept = {name: tuple(_cell(cell) for cell in column) for name, column in self.columns.items()}
        if len({len(column) for column in kept.values()}) > 1 or not set(self.measures) <= set(kept):
            raise InvalidArgument(
                "The columns of a release differ in length, or lack a measure.",
                remedy="Pass columns of one length, every measure among them.",
            )
        object.__setattr__(self, "columns", kept)

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
        return np.array(self.columns[column])

    # What may be done to it, all of it free.

    def postprocess(self, note: str, columns: Mapping[str, Sequence[Cell]]) -> Release:
        """The same release with these columns instead, and a note of what was done: free, and listed."""
        notes = (*self.receipt.postprocessing, note)
        kept = {name: tuple(column) for name, column in columns.items()}
        return replace(self, columns=kept, receipt=replace(self.receipt, postprocessing=notes))

    def clamp(self, lower: Number | None = None, upper: Number | None = None) -> Release:
        """Measures and their bars held within what is known of the truth, such as lower=0 for a count."""
        least, most = (None if end is None else numbers.exact(end, "bound") for end in (lower, upper))
        if least is not None and most is not None and least > most:
            raise InvalidArgument("lower must not be above upper.", remedy="Swap lower and upper.")

        def held(cell: Cell) -> Cell:
            if least is not None and _number(cell) < least:
                return _same(least, cell)
            return _same(most, cell) if most is not None and _number(cell) > most else cell

        ends = [("at least", least), ("at most", most)]
        known = [f"{word} {float(end):g}" for word, end in ends if end is not None]
        return self._changed(f"clamped to {' and '.join(known) or 'anything'}", held, held, held)

    def round(self, digits: int = 0) -> Release:
        """Measures rounded to so many decimal places, their bars outward."""
        places = numbers.count(digits, "digits", least=-300, most=300)

        def way(to: Callable[[Fraction], int]) -> Callable[[Cell], Cell]:
            return lambda cell: _rounded(cell, places, to)

        return self._changed(
            f"rounded to {places} decimal places", way(math.floor), way(round), way(math.ceil)
        )

    def bounded(self, *bounds: str) -> Release:
        """The same release, its receipt stating these bounds that were applied to the data too."""
        return replace(self, receipt=replace(self.receipt, bounds=(*self.receipt.bounds, *bounds)))

    # How it is shown and kept.

    def __str__(self) -> str:
        sure = "" if self.confidence is None or not self._barred else f" ({float(100 * self.confidence):g} %)"
        foot = f"{self.receipt.cost}, {self.receipt.charged}"
        alarm = f"{TAINTED}\n" if self.receipt.tainted else ""
        if len(self) == 1 and self._only_measures:
            return f"{alarm}{display.line(self.columns, self.measures)}{sure}, {foot}"
        return alarm + display.table(self.columns, self.measures, f"±{sure}, {foot}" if sure else foot)

    def __repr__(self) -> str:
        if len(self) == 1 and self._only_measures:
            return f"<Release {self}>".replace("\n", " ")
        return f"<Release of {len(self)} rows: {', '.join(map(display.harmless, self.columns))}>"

    def _repr_html_(self) -> str:
        sure = (
            "" if self.confidence is None or not self._barred else f"±: {float(100 * self.confidence):g} %. "
        )
        caption = f"{sure}{self.receipt.cost}, {self.receipt.charged}"
        alarm = TAINTED if self.receipt.tainted else None
        return display.page(self.columns, self.measures, caption, alarm=alarm)

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
            charged=paid.charged,
            confidence=self.confidence,
            tainted=paid.tainted,
        )
        return describe(made, publication)

    def to_json(self) -> str:
        """The release with its receipt as JSON, never changed in meaning."""
        receipt = {name: value for name, value in asdict(self.receipt).items() if name != "loss"}
        plain = {
            "kind": KIND,
            "version": VERSION,
            "columns": [
                {"name": name, "cells": [*map(_plain, cells)]} for name, cells in self.columns.items()
            ],
            "measures": self.measures,
            "confidence": None if self.confidence is None else written(self.confidence),
            "receipt": {"loss": json.loads(self.loss.to_json())} | receipt,
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

    @property
    def _barred(self) -> bool:
        return any(f"{measure}_low" in self.columns for measure in self.measures)

    @property
    def _only_measures(self) -> bool:
        bars = {f"{measure}{end}" for measure in self.measures for end in ("", "_low", "_high")}
        return set(self.columns) <= bars

    def _changed(
        self,
        note: str,
        low: Callable[[Cell], Cell],
        middle: Callable[[Cell], Cell],
        high: Callable[[Cell], Cell],
    ) -> Release:
        changes = {
            f"{m}{end}": how
            for m in self.measures
            for end, how in zip(("_low", "", "_high"), (low, middle, high), strict=True)
        }
        return self.postprocess(
            note,
            {
                name: [changes[name](cell) if name in changes else cell for cell in column]
                for name, column in self.columns.items()
            },
        )

    def _read(self, column: str) -> Any:
        if column not in self.columns:
            return None
        values = self.columns[column]
        return values[0] if len(values) == 1 else np.array(values)


def _release(*, columns: Any, measures: Any, confidence: Any, receipt: Any) -> Release:
    unit = receipt.pop("unit")
    paid = Receipt(
        loss=Loss.from_json(json.dumps(receipt.pop("loss"))),
        unit=None if unit is None else Unit(**unit),
        bounds=tuple(receipt.pop("bounds")),
        postprocessing=tuple(receipt.pop("postprocessing")),
        **receipt,
    )
    table = {column["name"]: tuple(map(_value, column["cells"])) for column in columns}
    return Release(table, tuple(measures), paid, None if confidence is None else Fraction(confidence))


def _most(epsilon: float) -> str:
    """Four digits of the decimal it prints as, rounded up."""
    if math.isinf(epsilon):
        return "∞"
    return f"{Decimal(repr(epsilon)).normalize(Context(prec=4, rounding=ROUND_CEILING)):f}"


def _plain(cell: Cell) -> Any:
    """JSON has no infinities: they, and what is no number, are written as texts in an object."""
    return {"float": str(cell)} if isinstance(cell, float) and not math.isfinite(cell) else cell


def _value(plain: Any) -> Cell:
    cell = float(plain["float"]) if isinstance(plain, dict) else plain
    if not isinstance(cell, int | float | str | None):
        raise TypeError
    return cell


def _cell(cell: Any) -> Cell:
    plain: Cell = cell.item() if isinstance(cell, np.generic) else cell
    return plain


def _number(cell: Cell) -> Fraction | float:
    if isinstance(cell, int):
        return Fraction(cell)
    return cell if isinstance(cell, float) else math.nan


def _same(end: Fraction, cell: Cell) -> Cell:
    """The end as a number of the cell's type, where it is one."""
    return int(end) if isinstance(cell, int) and end.denominator == 1 else float(end)


def _rounded(cell: Cell, places: int, to: Callable[[Fraction], int]) -> Cell:
    if isinstance(cell, bool) or not isinstance(cell, int | float) or not math.isfinite(cell):
        return cell
    if isinstance(cell, int) and places >= 0:
        return cell
    found = to(Fraction(cell) * Fraction(10) ** places) / Fraction(10) ** places
    return int(found) if places <= 0 else float(found)


def _malformed() -> InvalidArgument:
    return InvalidArgument("This is not a release.", remedy="Pass what release.to_json() wrote.")
