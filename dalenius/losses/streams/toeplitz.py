"""Lower-triangular Toeplitz encoders: column j of C is the sequence c_0, c_1, … from row j on.

Theorem (Kalinin and Lampert 2024, Theorem 2). If c is non-negative and falls, the sensitivity under
min_separation(b, most=k) is that of the pattern 0, b, 2b, …, (k−1)b:  ‖Σ_{j<k} c shifted by jb‖.
Proof: G_ij = Σ_{s<n−j} c_s c_{s+j−i} for i ≤ j falls as j grows and as j − i grows. The m-th step of a
pattern is not before (m−1)b and two of its steps are no closer than those of that one: no term of Σ G_ij is
larger.

The same proof gives more:
  * For a cyclic participation the distances are fixed, so any c ≥ 0 will do: the first cycle is the worst.
  * With separation ≥ bands the columns do not overlap and Σ‖c_i‖² is left, for any c.
  * For any c at all, |G_ij| is at most that of c̄_s = max_{t≥s} |c_t|, which is non-negative and falls: its
    sensitivity is an upper bound (and that of |c| will do where the distances are fixed).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dalenius.losses.bound import Bound
from dalenius.losses.streams.certified import Enclosed, norm, repeated
from dalenius.losses.streams.entries import read_entries
from dalenius.losses.streams.factorization import Factorization, check_dense, default, read_length
from dalenius.losses.streams.participation import Participation
from dalenius.profiles.pair import Floats


class Toeplitz(Factorization):
    """A lower-triangular Toeplitz encoder, known by its first column."""

    @abstractmethod
    def coefficients(self) -> Enclosed:
        """Enclose c_0, c_1, …; what is left out is zero."""

    @abstractmethod
    def decoder_coefficients(self) -> Floats:
        """The first column of B = AC⁻¹, which is Toeplitz too; `length` numbers."""

    @property
    def positive(self) -> bool:
        """Whether c ≥ 0."""
        return True

    @property
    def falling(self) -> bool:
        """Whether c ≥ 0 and no term is larger than the one before."""
        return True

    def sensitivity(self, participation: Participation | None = None) -> Bound:
        """By the theorem above; tight where it is exact."""
        pattern, (least, most) = default(participation), self._magnitudes()
        times, gap = pattern.times(self.length), pattern.separation
        apart = times == 1 or gap >= len(most)
        if not (apart or pattern.fixed or self.falling):
            most = np.maximum.accumulate(most[::-1])[::-1]
        exact = apart or self.falling or (self.positive and pattern.fixed)
        shown = times if apart or self.positive else 1
        return Bound(self._norm(least, shown, gap)[0], self._norm(most, times, gap)[1], exact)

    def blocks(self) -> tuple[tuple[int, Bound], ...]:
        """Those of the first group, which comes no less often than others, with columns cut no shorter."""
        least, most = self._magnitudes()
        times, rest = divmod(self.length, len(most))
        parts = [(times, len(most))] + [(1, rest)] * (rest > 0)
        return tuple(
            (count, Bound(self._norm(least[:size], 1, size)[0], self._norm(most[:size], 1, size)[1]))
            for count, size in parts
        )

    def _magnitudes(self) -> Enclosed:
        low, high = self.coefficients()
        ends = np.abs(low), np.abs(high)
        return np.where((low > 0) | (high < 0), np.minimum(*ends), 0.0), np.maximum(*ends)

    def _norm(self, column: Floats, times: int, gap: int) -> tuple[float, float]:
        total = repeated(column, times, gap, self.length)
        return norm(total, total, 2 * math.log2(times) + 2)

    def row_norms(self) -> Floats:
        """Row i of B holds its first i + 1 coefficients."""
        norms: Floats = np.sqrt(np.cumsum(self.decoder_coefficients() ** 2))
        return norms

    def encoder(self) -> Floats:
        """C written out."""
        low, high = self.coefficients()
        return _matrix((low + high) / 2, self.length)

    def decoder(self) -> Floats:
        """B written out."""
        return _matrix(self.decoder_coefficients(), self.length)


def _matrix(column: Floats, length: int) -> Floats:
    check_dense(length)
    padded = np.zeros(length)
    padded[: len(column)] = column
    lag = np.subtract.outer(np.arange(length), np.arange(length))
    return np.where(lag >= 0, padded[np.maximum(lag, 0)], 0.0)


def prefix_sums_of_inverse(column: Floats, length: int) -> Floats:
    """The first column of AC⁻¹: each number follows from the ones before by the bands of C."""
    from scipy.signal import lfilter

    impulse = np.zeros(length)
    impulse[0] = 1.0
    sums: Floats = np.cumsum(lfilter([1.0], column, impulse))
    return sums


@dataclass(frozen=True, init=False)
class BandedToeplitz(Toeplitz):
    """An encoder of given `entries` c_0, c_1, …, taken as the binary numbers they are."""

    length: int
    entries: tuple[float, ...]

    def __init__(self, length: int, entries: Iterable[float]) -> None:
        object.__setattr__(self, "length", read_length(length))
        object.__setattr__(self, "entries", read_entries(entries, "entries")[: self.length])

    @staticmethod
    def optimized(length: int, bands: int) -> BandedToeplitz:
        """The entries with the least root-mean-square error for their number, found numerically."""
        from dalenius.losses.streams.optimizers import best_toeplitz

        steps = read_length(length)
        return BandedToeplitz(steps, best_toeplitz(steps, bands))

    @property
    def positive(self) -> bool:
        """Whether no entry is negative."""
        return min(self.entries) >= 0

    @property
    def falling(self) -> bool:
        """Whether they fall to zero."""
        column = (*self.entries, 0.0)
        return all(one >= two for one, two in pairwise(column))

    def coefficients(self) -> Enclosed:
        """The entries, exactly."""
        column = np.array(self.entries)
        return column, column

    def decoder_coefficients(self) -> Floats:
        """By the recurrence of the inverse."""
        return prefix_sums_of_inverse(np.array(self.entries), self.length)
