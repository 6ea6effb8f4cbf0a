"""Rows as whole numbers: bounds that are public, and labels among classes that are public.

A cell is moved and divided by what its column's bounds say, rounded toward zero to a multiple of 2^−15, and
held within [−1, 1]; a column whose least is 0 is only divided, so that zeros stay zeros and a sparse row
stays sparse. A row longer than a stated norm is made shorter (`privacy.quantized.clip_norm`). All of it is a
function of the one row. An infinite cell is at the end of its bounds. A row with a cell that holds no number
(NaN), or a label that is not among the classes, adds nothing to anything, as if it were absent; nothing is
said about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.learn.tabular.sums import ONE, Floats, Whole
from dalenius.mechanisms.categories import find, values
from dalenius.mechanisms.contributions import column, size, table
from dalenius.mechanisms.tally import check_bounds
from dalenius.privacy import numbers
from dalenius.privacy.quantized import clip_norm
from dalenius.privacy.sensitivity import sqrt_up

MOST_COLUMNS = 2**12
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """How columns are scaled: (value − middle)/half, from `least` to 1; and the norms of rows. All public."""

    middle: tuple[float, ...]
    half: tuple[float, ...]
    least: tuple[float, ...]
    l1: Fraction
    l2: Fraction

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.middle)

    def rows(self, data: Any) -> tuple[Whole, NDArray[np.bool_]]:
        """Rows in steps of 1/ONE, and which of them hold numbers only; those of the others are zeros."""
        cells = table(data, self.width)
        with np.errstate(all="ignore"):
            scaled = np.trunc((cells - np.array(self.middle)) / np.array(self.half) * ONE)
        present = ~np.isnan(scaled).any(axis=1)
        held = np.clip(np.where(present[:, np.newaxis], scaled, 0.0), np.array(self.least) * ONE, ONE)
        if self.l2 < sqrt_up(Fraction(self.width)):
            held = clip_norm(held.astype(np.int64), self.l2 * ONE, norm="l2").astype(np.float64)
        if self.l1 < self.width:
            held = clip_norm(held.astype(np.int64), self.l1 * ONE, norm="l1").astype(np.float64)
        return held, present

    def scaled(self, data: Any) -> Floats:
        """Rows to be predicted; a cell that holds no number counts as 0, the middle of its bounds."""
        held = np.where(np.isnan(cells := table(data, self.width)), np.array(self.middle), cells)
        return self.rows(held)[0] / ONE


def read_columns(
    bounds: Any,
    width: int,
    *,
    l2_norm: Any = None,
    l1_norm: Any = None,
    centered: bool = False,
) -> Columns:
    """Bounds as (lower, upper), each a number for all columns or one for each."""
    lower, upper = read_bounds(bounds, width)
    keep = [not centered and least == 0 for least in lower]
    ends = [*zip(lower, upper, keep, strict=True)]
    middle = tuple(0.0 if zero else float((least + most) / 2) for least, most, zero in ends)
    half = tuple(float(most if zero else (most - least) / 2) for least, most, zero in ends)
    least_scaled = tuple(0.0 if zero else -1.0 for zero in keep)
    box1, box2 = Fraction(width), sqrt_up(Fraction(width))
    l2 = box2 if l2_norm is None else min(box2, numbers.positive(l2_norm, "l2_norm"))
    l1 = box1 if l1_norm is None else min(box1, numbers.positive(l1_norm, "l1_norm"))
    # Each norm bounds the other: ‖x‖₂ ≤ ‖x‖₁ ≤ √d·‖x‖₂.
    return Columns(middle, half, least_scaled, min(l1, box2 * l2), min(l2, l1))


def read_bounds(bounds: Any, width: int) -> tuple[list[Fraction], list[Fraction]]:
    """The ends of each column's bounds, which have to be given."""
    if not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        raise InvalidArgument(
            "Columns need bounds: the least and the most a value may be, from public knowledge. "
            "They are never taken from the data.",
            remedy="Pass bounds=(lower, upper), each a number for all columns or a list with one for each.",
        )
    ends = []
    for side, name in zip(bounds, ("lower", "upper"), strict=True):
        listed = [side] * width if np.ndim(side) == 0 else list(side)
        if len(listed) != width:
            raise InvalidArgument(
                f"The {name} bounds are {len(listed)}, and there are {width} columns.",
                remedy="Give each column its bounds.",
            )
        ends.append([numbers.exact(end, name) for end in listed])
    for least, most in zip(*ends, strict=True):
        check_bounds(least, most)
    return ends[0], ends[1]


def width_of(data: Any) -> int:
    """How many columns a table has: a fact of its type, not of its rows."""
    if hasattr(data, "tocsr") or np.dtype(getattr(data, "dtype", None)).kind == "c":
        raise InvalidArgument(
            "Complex data not supported, nor sparse input.", remedy="Pass X as an array of real numbers."
        )
    # How long the first of a list of rows is would be told by that row alone.
    shape: tuple[int, ...] = getattr(data, "shape", ())
    if len(shape) != 2 or not 1 <= shape[1] <= MOST_COLUMNS:
        raise InvalidArgument(
            f"X must be an array or a data frame with 1 to {MOST_COLUMNS} columns.",
            remedy="Reshape your data: pass an array of shape (rows, columns).",
        )
    return int(shape[1])


def none_of(records: Any) -> Any:
    """No row of a table or a column, but its type, which is refused before anything is charged."""
    try:
        return records[:0]
    except Exception:
        return np.asarray(records)[:0]


def same_length(data: Any, other: Any, name: str) -> None:
    """Two things that were given have a row each."""
    if size(other, name) != (data.shape[0] if hasattr(data, "shape") else len(data)):
        raise InvalidArgument(
            f"X and {name} differ in length.", remedy=f"Pass one entry of {name} for each row."
        )


def read_classes(classes: Any) -> list[Any]:
    """Labels that may occur, from public knowledge."""
    found = None if classes is None or isinstance(classes, str) else values(classes)
    if found is None or len(found) < 2 or len({*found}) != len(found):
        raise InvalidArgument(
            "classes must be a list of two or more different labels, from public knowledge: that a label "
            "occurs would be told without noise.",
            remedy="Pass classes=[…] with all labels that may occur.",
        )
    return found


def codes(labels: Any, classes: list[Any]) -> Codes:
    """The place of each label among the classes; −1 for one that is not there."""
    place = {label: i for i, label in enumerate(classes)}
    return np.array([find(place, label, -1) for label in values(labels)], np.int64).reshape(-1)


def target(labels: Any, lower: Fraction, upper: Fraction) -> tuple[Whole, NDArray[np.bool_]]:
    """Numbers to be predicted as steps from −ONE to ONE, and where there are any."""
    middle, half = float((lower + upper) / 2), float((upper - lower) / 2)
    with np.errstate(all="ignore"):
        scaled = np.trunc((column(labels) - middle) / half * ONE)
    present = ~np.isnan(scaled)
    return np.clip(np.where(present, scaled, 0.0), -ONE, ONE), present
