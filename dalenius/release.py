"""`Release`: the only thing that leaves, with the `Receipt` that says what it cost and how it was made.

A release is a small table. Keys name the rows, measures are what was released; each measure comes with its
error bars as columns of their own (`n`, `n_low`, `n_high`), which hold the true value with the stated
confidence, each by itself, by the law of the noise. All of it may be published: a receipt holds public
parameters only. Whatever is computed from a release is free; `postprocess` lists it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.privacy.unit import Unit

Cell = int | float | str | bool | None
"""What a table holds."""
CONFIDENCE = Fraction(19, 20)
"""Of error bars, where nothing else is asked for."""

EXACT = "exact noise on whole grid steps, each record rounded by itself"
"""The numerical model of values that were quantized record by record."""
AGGREGATE = "exact noise on grid steps; the value was computed by the caller, whose arithmetic is not covered"
"""The numerical model of a float handed in by the caller, charged for its rounding onto the grid."""


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


@dataclass(frozen=True)
class Release:
    """A table of released values with error bars, and its receipt."""

    columns: Mapping[str, tuple[Cell, ...]]
    measures: tuple[str, ...]
    receipt: Receipt
    confidence: Fraction | None = field(default=CONFIDENCE)

    def __post_init__(self) -> None:
        kept = {name: tuple(column) for name, column in self.columns.items()}
        if len({len(column) for column in kept.values()}) > 1 or not set(self.measures) <= set(kept):
            raise InvalidArgument(
                "The columns of a release differ in length, or lack a measure.",
                remedy="Pass columns of one length, every measure among them.",
            )
        object.__setattr__(self, "columns", kept)

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

    def postprocess(self, note: str, columns: Mapping[str, Sequence[Cell]]) -> Release:
        """The same release with these columns instead, and a note of what was done: free, and listed."""
        notes = (*self.receipt.postprocessing, note)
        kept = {name: tuple(column) for name, column in columns.items()}
        return replace(self, columns=kept, receipt=replace(self.receipt, postprocessing=notes))

    def _read(self, column: str) -> Any:
        if column not in self.columns:
            return None
        values = self.columns[column]
        return values[0] if len(values) == 1 else np.array(values)
