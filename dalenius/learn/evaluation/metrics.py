"""Metrics from noisy counts: all of it post-processing, and free.

Bars are those of the noise: they hold what the metric is on the rows that were counted, each by itself, with
the stated confidence. How far that is from other rows of the same kind is another matter. A row's loss, and
its confidence within a bin, were rounded toward zero to whole steps: a mean of them may be one step more than
was counted, and bars reach so much further up.

The expected calibration error is Σ_b |Σ_{rows of b} (right − confidence)|/n over bins b. Noise raises it, as
every bin adds a size; its bar supposes the worst of every bin. The AUC is that of scores rounded to bins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.learn.evaluation.bars import Bar, auc, deviation, ratio
from dalenius.learn.evaluation.tables import Plan, blurred, lost
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.shares import share
from dalenius.privacy.numbers import exact
from dalenius.profiles import rounding
from dalenius.release import Cell

Floats = NDArray[np.float64]
Columns = dict[str, list[Cell]]


@dataclass(frozen=True, eq=False)
class Counted:
    """Noisy counts in steps of any size, table by table, and their noise; alpha is what bars may miss."""

    plan: Plan
    tables: dict[str, NDArray[np.object_]]
    noise: Additive
    alpha: float

    def of(self, table: str) -> Floats:
        """The counts of a table, as numbers."""
        return np.asarray(self.tables[table] * float(self.noise.step), dtype=np.float64)

    def measure(self, metric: str) -> tuple[Columns, tuple[str, ...]]:
        """The columns of a metric, and which of them are measured."""
        columns = _METRICS[metric](self)
        return columns, tuple(name for name in columns if f"{name}_low" in columns)

    # Right and wrong.

    def accuracy(self) -> Columns:
        """The share of right answers."""
        right = np.zeros(len(self.tables["outcomes"]))
        right[self._right] = 1
        return _one("accuracy", self._share("outcomes", right, np.ones_like(right)))

    def recall(self) -> Columns:
        """The share of right answers among rows of each class."""
        size, labels = len(self.tables["outcomes"]), self.plan.classes
        each, found = size // len(labels), []
        for i, right in enumerate(self._right):
            part, whole = np.zeros(size), np.zeros(size)
            part[right], whole[i * each : (i + 1) * each] = 1, 1
            found.append(self._share("outcomes", part, whole))
        return {"label": list(labels), **_several("recall", found)}

    def confusion(self) -> Columns:
        """How many rows of each class were taken for which; None where they were taken for none."""
        labels: list[Cell] = list(self.plan.classes)
        return {
            "label": [label for label in labels for _ in range(len(labels) + 1)],
            "prediction": [*labels, None] * len(labels),
            **self._counts(self.tables["outcomes"]),
        }

    @property
    def _right(self) -> list[int]:
        """Which entries count right answers, by class."""
        count = len(self.plan.classes)
        by_kind = {"accuracy": [0], "recall": [2 * i for i in range(count)]}
        return by_kind.get(self.plan.outcomes or "", [i * (count + 1) + i for i in range(count)])

    # Confidence.

    def calibration(self) -> Columns:
        """For each bin how many rows it has, their mean confidence, and the share of right answers."""
        bins, counts = self.plan.bins, self.of("reliability")
        edges, found, sure = self.plan.edges, [], []
        for place in range(bins):
            part, whole = (self._bin(place, sides) for sides in ((0,), (0, 1)))
            found.append(self._share("reliability", part, whole))
            ends = self._upper(place)
            confidence = self._share("reliability", ends, whole)
            wide = float(edges[place + 1] - edges[place])
            sure.append([float(edges[place]) + end * wide for end in _unrounded(confidence, bins)])
        rows = counts.reshape(2, bins, 2).sum(axis=(0, 2))
        each = np.tile(np.repeat(np.eye(bins), 2, axis=1), (1, 2))
        reach = [deviation(line, self.noise, self.alpha) for line in each]
        return {
            "bin_from": edges[:-1].tolist(),
            "bin_to": edges[1:].tolist(),
            "n": rows.tolist(),
            "n_low": (rows - reach).tolist(),
            "n_high": (rows + reach).tolist(),
            **_several("confidence", [(a, b, c) for a, b, c in sure]),
            **_several("accuracy", found),
        }

    def ece(self) -> Columns:
        """The expected calibration error."""
        bins, counts, edges = self.plan.bins, self.of("reliability"), self.plan.edges
        share = self.alpha / (bins + 1)
        off, reach = np.empty(bins), np.empty(bins)
        for place in range(bins):
            ends, both = self._upper(place), self._bin(place, (0, 1))
            confidence = edges[place] * both + (edges[place + 1] - edges[place]) * ends
            weights = self._bin(place, (0,)) - confidence
            off[place], reach[place] = abs(float(weights @ counts)), deviation(weights, self.noise, share)
        total, away = float(counts.sum()), deviation(np.ones(len(counts)), self.noise, share)
        least, most = float(np.maximum(off - reach, 0).sum()), float((off + reach).sum())
        value = _held(float(off.sum()) / total) if total > 0 else 0.5
        # In all bins together the sums of confidences lack at most n steps of a bin's width.
        short = lost(bins) * float(edges[1] - edges[0])
        low = _held(least / (total + away) - short) if total + away > 0 else 0.0
        high = _held(most / (total - away) + short) if total - away > 0 else 1.0
        return _one("ece", (value, min(low, value), max(high, value)))

    def _bin(self, place: int, sides: tuple[int, ...]) -> Floats:
        """Both entries of a bin, of right (0) and wrong (1) answers."""
        found = np.zeros((2, self.plan.bins, 2))
        found[list(sides), place] = 1
        return found.reshape(-1)

    def _upper(self, place: int) -> Floats:
        """Its entries at the upper end, which say how far into the bin its rows are."""
        found = np.zeros((2, self.plan.bins, 2))
        found[:, place, 1] = 1
        return found.reshape(-1)

    def auc(self) -> Columns:
        """The area under the ROC curve."""
        first, second = self.of("scores").reshape(2, -1)
        return _one("auc", auc(second, first, self.noise, self.alpha))

    # Losses.

    def loss(self) -> Columns:
        """The mean loss, each clipped."""
        rest, part = (int(one) for one in self.tables["losses"])
        bound, found = self.plan.bound, share(part, rest, self.noise, exact(self.alpha, "alpha"))
        value, low, high = (exact(end, "share") * bound for end in _unrounded(found))
        return _one("loss", (float(value), rounding.floor(low), rounding.ceiling(high)))

    # What they share.

    def _share(self, table: str, part: Floats, whole: Floats) -> Bar:
        return ratio(part, whole, self.of(table), self.noise, self.alpha)

    def _counts(self, steps: NDArray[np.object_]) -> Columns:
        step, reach = float(self.noise.step), self.noise.reach(exact(self.alpha, "alpha"))
        ends = (("n", 0), ("n_low", -reach), ("n_high", reach))
        return {name: [float((int(k) + away) * step) for k in steps] for name, away in ends}


_METRICS: dict[str, Callable[[Counted], Columns]] = {
    "accuracy": Counted.accuracy,
    "recall": Counted.recall,
    "confusion": Counted.confusion,
    "calibration": Counted.calibration,
    "ece": Counted.ece,
    "auc": Counted.auc,
    "loss": Counted.loss,
}
METRICS = tuple(_METRICS)
"""What can be asked for."""


def _one(name: str, bar: Bar) -> Columns:
    return _several(name, [bar])


def _several(name: str, bars: list[Any]) -> Columns:
    ends = ("", "_low", "_high")
    return {f"{name}{end}": [bar[i] for bar in bars] for i, end in enumerate(ends)}


def _unrounded(bar: Bar, bins: int = 1) -> Bar:
    """The bar of a mean of parts, from that of the same parts rounded toward zero."""
    value, low, high = bar
    return value, _held(low - blurred(bins)), _held(high + lost(bins))


def _held(share: float) -> float:
    return min(max(share, 0.0), 1.0)
