"""The binary tree: sums over dyadic blocks, each released once, make up every prefix sum.

C has a row of ones over [j·2^h, (j+1)·2^h) for each such block within the stream. A step lies in at most
⌊log₂n⌋ + 1 of them, so for one participation sens(C)² is that number of levels (Dwork et al. 2010; Chan, Shi
and Song 2011). Prefix i is the sum of one block for each binary digit of i. The decoders differ in what they
do with the rest of the noisy sums (Honaker 2015):

    plain    one block each: variance 1
    online   the best estimate of a block from it and the blocks within it: variance 2^h/(2^{h+1} − 1), since
             1/v_h = 1 + 1/(2v_{h−1}). No linear unbiased estimator that waits for nothing does better.
    full     least squares on the whole tree, at the end of the stream. CᵀC is diagonal in the Haar basis,
             with 2^m − 1 for blocks of 2^m and 2n − 1 for the constant, so prefix i has variance
             i²/(n(2n − 1)) + Σ_m min(r, 2^m − r)²/(2^m(2^m − 1)),  r = i mod 2^m.

Several participations. C ≥ 0, so sens(C)² is the largest Σ over blocks of the square of the number of steps
in them: `tree_patterns`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.losses.bound import Bound
from dalenius.losses.streams.certified import root
from dalenius.losses.streams.factorization import Factorization, check_dense, default, read_length
from dalenius.losses.streams.participation import Participation
from dalenius.losses.streams.tree_patterns import largest_squares
from dalenius.profiles.pair import Floats

Estimator = Literal["plain", "online", "full"]


@dataclass(frozen=True)
class BinaryTree(Factorization):
    """Dyadic block sums, decoded by one of three estimators."""

    length: int
    estimator: Estimator = "online"

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", read_length(self.length))
        if self.estimator not in ("plain", "online", "full"):
            raise InvalidArgument(
                "estimator must be plain, online or full.", remedy="Pass estimator as one of these names."
            )
        if self.estimator == "full" and self.length & (self.length - 1):
            raise InvalidArgument(
                "The full estimator needs a length that is a power of two.",
                remedy="Round the length up to one and leave the last steps empty, or use online.",
            )

    @property
    def levels(self) -> int:
        """⌊log₂n⌋ + 1."""
        return self.length.bit_length()

    def sensitivity(self, participation: Participation | None = None) -> Bound:
        """The root of a whole number; tight where that is known to be the largest."""
        least, most = largest_squares(self.length, default(participation))
        exact = math.isqrt(least)
        if exact**2 == least == most:
            return Bound(float(exact), float(exact))
        return Bound(*root((float(least), float(most))), least == most)

    def row_norms(self) -> Floats:
        """By the variances above."""
        steps = np.arange(1, self.length + 1)
        return np.sqrt(self._full(steps) if self.estimator == "full" else self._by_digits(steps))

    def _by_digits(self, steps: np.ndarray) -> Floats:
        total = np.zeros(self.length)
        for h in range(self.levels):
            variance = 1.0 if self.estimator == "plain" else 2.0**h / (2.0 ** (h + 1) - 1)
            total += variance * (steps >> h & 1)
        return total

    def _full(self, steps: np.ndarray) -> Floats:
        total: Floats = steps**2 / (self.length * (2.0 * self.length - 1))
        for m in range(1, self.levels):
            size = 2**m
            rest = steps % size
            total += np.minimum(rest, size - rest) ** 2 / (size * (size - 1.0))
        return total

    def encoder(self) -> Floats:
        """One row for each block, shorter ones first."""
        check_dense(self.length)
        steps, rows = np.arange(self.length), []
        for h in range(self.levels):
            rows += [steps >> h == block for block in range(self.length >> h)]
        return np.array(rows, dtype=np.float64)

    def decoder(self) -> Floats:
        """B written out: least squares, on the blocks that are complete unless `full`."""
        encoder = self.encoder()
        if self.estimator == "full":
            return np.tri(self.length) @ np.linalg.pinv(encoder)
        ends = encoder.shape[1] - 1 - np.argmax(encoder[:, ::-1], axis=1)
        return np.array([self._row(encoder, ends, step) for step in range(1, self.length + 1)])

    def _row(self, encoder: Floats, ends: np.ndarray, step: int) -> Floats:
        row, start = np.zeros(len(encoder)), 0
        for h in reversed(range(self.levels)):
            if step >> h & 1:
                block = np.zeros(self.length)
                block[start : start + 2**h] = 1.0
                start += 2**h
                own = np.all(encoder <= block, axis=1)
                if self.estimator == "plain":
                    row += np.all(encoder == block, axis=1)
                else:
                    row[own] += block @ np.linalg.pinv(encoder[own])
        return row
