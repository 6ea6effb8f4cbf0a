"""What a study costs where an account pays: every run, and every table of right and wrong answers.

A table has a cell for each group, class and answer, right or wrong. A test row falls into one cell, whatever
other rows hold: the model is paid for already, and is asked one row at a time, as sums of floats may depend
on how many rows there are. So Laplace noise of scale 1/ε in whole numbers makes a table cost ε
(`mechanisms.Histogram`), for all shares that are computed from it together.

A share of right answers has two sums R and W of m noisy cells each. Their noise is a sum of m independent
discrete Laplace variables, with P(k) proportional to e^(−|k|/b) and, for q = e^(−1/b) and 0 < s < 1/b,

    E e^(sX) = (1 − q)² / ((1 − q e^s)(1 − q e^(−s))),   P(X₁ + … + X_m ≥ t) ≤ e^(−st) (E e^(sX))^m

(Chernoff 1952); the least such t over some s bounds each sum on each side with a quarter of the risk, and
the share is between what the ends give.

All losses are fixed before a row is used, and charged as one (`account.plan`): cheaper than one by one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from dalenius.attacks.roc import Rate
from dalenius.errors import NotSound
from dalenius.ledger.account import Account
from dalenius.losses.loss import Loss
from dalenius.mechanisms.histogram import Histogram
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.release import Release
from dalenius.release.receipt import Entry, Receipt
from dalenius.report.study.data import Data, Ints
from dalenius.report.study.measuring import CONFIDENCE, Counts, Shared
from dalenius.report.study.splitting import Part

NOTHING = 0.9
"""An interval as wide as this tells nothing, and its share is left out."""
SLOPES = 200
"""Values of s that are tried."""
TOGETHER = "charged as one with all other runs and tables of the study"


@dataclass(frozen=True)
class Payment:
    """The account that pays, the ε of each table, and a number of rows that may be published."""

    account: Account
    metrics_epsilon: Number
    public_size: int
    by: str = ""
    purpose: str = "study"

    def check(self, data: Data) -> None:
        """Refuse what would be paid for wrongly. Nothing is charged."""
        unit = self.account.unit
        if unit.column is not None or unit.window is not None:
            raise NotSound(
                f"A study protects each row by itself, and the account is for each {unit}.",
                remedy="Charge an account whose unit has no column and no window: every row is then a unit.",
            )
        if not data.public:
            raise unstated()
        numbers.positive(self.metrics_epsilon, "metrics_epsilon")
        numbers.count(self.public_size, "public_size")

    def table(self, data: Data) -> Histogram:
        """The mechanism that releases a table of answers."""
        epsilon = numbers.positive(self.metrics_epsilon, "metrics_epsilon")
        return Histogram.calibrate(epsilon=epsilon, categories=_cells(data))

    def charge(self, losses: Sequence[Loss]) -> Entry:
        """All of them at once, on disk when this returns."""
        with self.account.plan(losses, by=self.by, purpose=self.purpose) as reservation:
            line = reservation.line()
            reservation.end("commit")
        return line

    def receipt(self, receipt: Receipt, entry: Entry) -> Receipt:
        """The receipt of a part of what was charged."""
        unit = self.account.unit_for(receipt.loss)
        return replace(receipt, entry=entry, unit=unit, bounds=(*receipt.bounds, TOGETHER))

    def paid(self, release: Release, entry: Entry) -> Release:
        """A table with its receipt."""
        return self.account.signed(replace(release, receipt=self.receipt(release.receipt, entry)))


def unstated() -> NotSound:
    """What is said where classes or groups would be taken from private data."""
    return NotSound(
        "Classes and groups must not be taken from the data: that they occur would be told for free.",
        remedy="State all classes, and all groups where there is a column of them.",
    )


def answered(data: Data, rows: Part, said: Ints) -> list[str]:
    """The cell of each row."""
    cells, truth = _cells(data), rows.y.numpy()
    group = np.zeros(len(truth), dtype=np.int64) if rows.group is None else rows.group
    places = (group * len(data.classes) + truth) * 2 + (said == truth)
    return [cells[place] for place in places.tolist()]


def read_counts(data: Data, release: Release) -> Counts:
    """The noisy counts in their places."""
    return np.asarray(release["n"], dtype=np.int64).reshape(-1, len(data.classes), 2)


def noisily(scale: Fraction) -> Shared:
    """The share of right answers among counts whose noise has this scale, with an interval for the noise."""

    def share(counts: Counts) -> Rate | None:
        wrong, right = (int(counts[..., i].sum()) for i in (0, 1))
        away = reach(counts[..., 0].size, scale, (1 - CONFIDENCE) / 4)
        if max(0, right) + max(0, wrong) == 0:
            return None
        low, high = _part(right - away, wrong + away), 1 - _part(wrong - away, right + away)
        return Rate(_part(right, wrong), low, high) if high - low < NOTHING else None

    return share


def reach(cells: int, scale: Fraction, risk: float) -> int:
    """How far above 0 the sum of the noise of so many cells is with probability at most `risk`."""
    most = 1 / float(scale)
    slopes = most * np.linspace(0, 1, SLOPES + 2)[1:-1]
    q = math.exp(-most)
    growth = 2 * math.log1p(-q) - np.log1p(-q * np.exp(slopes)) - np.log1p(-q * np.exp(-slopes))
    return math.ceil(float(((cells * growth - math.log(risk)) / slopes).min()) * (1 + 1e-9))


def _part(one: int, other: int) -> float:
    """The share of the one in both, counts below 0 taken for 0."""
    first, second = max(0, one), max(0, other)
    return first / (first + second) if first + second else 0.0


def _cells(data: Data) -> list[str]:
    """Group, class and answer of each cell, as texts."""
    named = product(data.groups or ("",), data.classes, ("wrong", "right"))
    return [json.dumps([part for part in cell if part], ensure_ascii=False) for cell in named]
