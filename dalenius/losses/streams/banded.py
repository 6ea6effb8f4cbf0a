"""Lower-triangular encoders with b bands, every column its own (Choquette-Choo et al. 2023).

Theorem. Columns at least b apart have disjoint supports, so under min_separation(s, most=k) with s ≥ b the
squared sensitivity is the largest Σ_{i∈π} ‖c_i‖², for contributions of any sign and dimension. It is found by
    f_m(i) = max(f_m(i+1), ‖c_i‖² + f_{m−1}(i+s)),
the most that m steps from i on can give.

Closer participation. Σ_{i,j∈π} |G_ij| is at most the largest Σ_{i∈π} u_i with u_i = G_ii + l_i + r_i, where
r_i and l_i are the largest sums of |G_ij| over steps j after and before i, at least s from it and from each
other. That is an upper bound only (the authors' Algorithm 4, for the patterns that hold i).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from dalenius.losses.bound import Bound
from dalenius.losses.fields import listed
from dalenius.losses.streams.certified import root
from dalenius.losses.streams.entries import read_entries
from dalenius.losses.streams.factorization import Factorization, check_dense, default, read_length
from dalenius.losses.streams.participation import Participation
from dalenius.profiles.pair import Floats

ALIKE = 1e-12
"""Squared norms of columns that differ by less are taken to be meant as equal."""


@dataclass(frozen=True, init=False)
class Banded(Factorization):
    """An encoder of given `columns`, each from the diagonal down, taken as the binary numbers they are."""

    columns: tuple[tuple[float, ...], ...]
    length: int = field(init=False, repr=False, compare=False)

    def __init__(self, columns: Iterable[Iterable[float]]) -> None:
        given = [listed(column, "columns") for column in listed(columns, "columns")]
        steps = read_length(len(given))
        kept = tuple(read_entries(list(column)[: steps - i], "columns") for i, column in enumerate(given))
        object.__setattr__(self, "columns", kept)
        object.__setattr__(self, "length", steps)

    @staticmethod
    def optimized(length: int, bands: int) -> Banded:
        """Unit columns with the least root-mean-square error, found numerically."""
        from dalenius.losses.streams.columns import best_columns

        return Banded(best_columns(read_length(length), bands))

    @property
    def bands(self) -> int:
        """Entries of the longest column."""
        return max(len(column) for column in self.columns)

    def sensitivity(self, participation: Participation | None = None) -> Bound:
        """By the theorem above; tight where columns do not overlap."""
        pattern, entries = default(participation), self._entries()
        squares, times = np.sum(entries**2, axis=1), pattern.times(self.length)
        units = 2 * self.bands + 2 * times + 4
        if times == 1 or pattern.separation >= self.bands:
            most = _largest(squares, pattern)
            return Bound(*root((most, most), units), True)
        most = _largest(_row_bounds(np.abs(entries), pattern), pattern)
        gap = min(pattern.separation, self.length)
        shown = np.zeros(self.length + self.bands)
        for step in range(0, self.length, gap)[:times]:
            shown[step : step + self.bands] += entries[step]
        least = float(np.sum(shown**2)) if entries.min() >= 0 else float(squares.max())
        return Bound(root((least, least), 3 * units)[0], root((most, most), 3 * units)[1], False)

    def blocks(self) -> tuple[tuple[int, Bound], ...]:
        """No column is larger than the largest; some group comes ⌈n/b⌉ times, at least with its smallest."""
        squares, bands = np.sum(self._entries() ** 2, axis=1), self.bands
        times = -(-self.length // bands)
        groups = [squares[first::bands] for first in range(self.length - (times - 1) * bands)]
        least, most = max(float(group.min()) for group in groups), float(squares.max())
        units, alike = bands + 2, most <= least * (1 + ALIKE)
        return ((times, Bound(root((least, least), units)[0], root((most, most), units)[1], alike)),)

    def row_norms(self) -> Floats:
        """From the decoder written out."""
        norms: Floats = np.sqrt(np.sum(self.decoder() ** 2, axis=1))
        return norms

    def encoder(self) -> Floats:
        """C written out."""
        check_dense(self.length)
        matrix = np.zeros((self.length, self.length))
        for i, column in enumerate(self.columns):
            matrix[i : i + len(column), i] = column
        return matrix

    def decoder(self) -> Floats:
        """AC⁻¹ written out."""
        from scipy.linalg import solve_triangular

        solved = solve_triangular(self.encoder(), np.tri(self.length).T, trans="T", lower=True)
        return np.tril(solved.T)

    def _entries(self) -> Floats:
        """One row for each column, filled up with zeros."""
        rows = np.zeros((self.length, self.bands))
        for i, column in enumerate(self.columns):
            rows[i, : len(column)] = column
        return rows


def _largest(values: Floats, pattern: Participation) -> float:
    """The largest sum of values at the steps of a pattern."""
    length, gap = len(values), min(pattern.separation, len(values))
    if pattern.fixed:
        return max(float(np.sum(values[first::gap])) for first in range(gap))
    best, times = np.zeros(length + gap), pattern.times(length)
    if times * gap >= length:
        # As many as fit: each stretch of the gap's length holds one step at most, the last stretch first.
        for end in range(length, 0, -gap):
            start = max(end - gap, 0)
            taken = np.append(values[start:end] + best[start + gap : end + gap], best[end])
            best[start:end] = np.maximum.accumulate(taken[::-1])[::-1][:-1]
        return float(best[0])
    for _ in range(times):
        taken = values + best[gap:]
        best[:length] = np.maximum.accumulate(taken[::-1])[::-1]
    return float(best[0])


def _row_bounds(entries: Floats, pattern: Participation) -> Floats:
    """u_i from above, from the entries' magnitudes."""
    length, bands = entries.shape
    after = np.zeros((bands, length))
    for d in range(bands):
        # Column i from row i + d on, against column i + d: the rows both reach.
        after[d, : length - d] = np.sum(entries[: length - d, d:] * entries[d:, : bands - d], axis=1)
    before = np.stack([np.concatenate([np.zeros(d), after[d, : length - d]]) for d in range(bands)])
    return np.asarray(after[0] + _neighbours(after, pattern) + _neighbours(before, pattern))


def _neighbours(gram: Floats, pattern: Participation) -> Floats:
    """The largest sums over distances of at least the separation, from zero and from each other."""
    bands, gap = len(gram), pattern.separation
    if pattern.fixed:
        return np.asarray(np.sum(gram[gap::gap], axis=0))
    best = np.zeros((bands + gap, gram.shape[1]))
    for _ in range(min(pattern.times(gram.shape[1]) - 1, -(-bands // gap))):
        taken = gram + best[gap:]
        best[:bands] = np.maximum.accumulate(taken[::-1], axis=0)[::-1]
    return np.asarray(best[gap])
