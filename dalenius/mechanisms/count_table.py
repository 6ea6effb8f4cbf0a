"""Tables of counts under noise: what histograms and marginals share.

The rows of the table are public, every record adds 1 to some of them whatever other records are, and each
row gets independent Laplace or Gaussian noise in whole numbers. With `ids`, one for each record, what a unit
contributes is bounded here; without, that it stays within the bounds is the caller's promise, and the receipt
says so.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.mechanism import Floats, Law, Mechanism, risk
from dalenius.mechanisms.new_keys import Noise
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import MOST, Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Cell, Release


class CountTable(Mechanism):
    """Counts of records in public rows."""

    # What each of them says.

    @property
    @abstractmethod
    def parts(self) -> Sequence[tuple[Additive, int]]:
        """The noise, and for how many rows in turn."""

    @property
    @abstractmethod
    def rows(self) -> dict[str, list[Cell]]:
        """The columns that name the rows."""

    @abstractmethod
    def counts(self, value: Any, ids: Any = None) -> Steps:
        """The exact count of each row."""

    @abstractmethod
    def promise(self, ids: Any) -> str:
        """What bounds a unit's contributions."""

    # What follows from it.

    def release(
        self, value: Any, *, ids: Any = None, unit: Unit | None = None, confidence: Number = CONFIDENCE
    ) -> Release:
        """Noisy counts of private records, with `ids` if a unit may have several."""
        sure = numbers.confidence(confidence)
        reach = np.concatenate([np.full(n, law.reach(risk(1 - sure))) for law, n in self.parts])
        noisy = self.counts(value, ids) + self._noise(1)[0]
        columns: dict[str, list[Cell]] = dict(self.rows)
        for name, away in (("n", 0 * reach), ("n_low", -reach), ("n_high", reach)):
            columns[name] = (noisy + away).tolist()
        found = self._released(columns, ("n",), unit)
        return replace(found, confidence=sure, receipt=replace(found.receipt, bounds=(self.promise(ids),)))

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Noisy counts of public records, a row a draw; a number where there is one count."""
        found = self.counts(value) + self._noise(size)
        return found[:, 0] if found.shape[1] == 1 else found

    def probabilities(self, value: Any) -> Law | None:
        """The law of a table of one row."""
        counts = self.counts(value).tolist()
        return self.parts[0][0].probabilities(counts[0]) if len(counts) == 1 else None

    def log_ratio(self, draws: NDArray[Any], pair: tuple[Any, Any]) -> Floats:
        """The sum over rows, whose noise is independent."""
        found = draws.reshape(len(draws), -1)
        first, second = (self.counts(value) for value in pair)
        total, start = np.zeros(len(found)), 0
        for law, n in self.parts:
            here = slice(start, start + n)
            total, start = total + law.log_ratios(found[:, here], first[here], second[here]), start + n
        return total

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float:
        """The half-width of the widest error bar."""
        return max(law.error(alpha) for law, _ in self.parts)

    def _noise(self, size: int) -> Steps:
        drawn = [law.draw(size * n).reshape(size, n) for law, n in self.parts]
        return np.clip(np.concatenate(drawn, axis=1), -MOST, MOST - 1)


def additive(noise: Noise, scale: Any, bound: Sensitivity) -> Additive:
    """The noise on whole numbers of this sensitivity."""
    if noise not in ("laplace", "gaussian"):
        raise InvalidArgument("noise must be laplace or gaussian.", remedy="Pass one of these names.")
    law: Callable[..., Additive] = Laplace if noise == "laplace" else Gaussian
    return law(scale=scale, sensitivity=bound, grid=Grid(0), exact=True)
