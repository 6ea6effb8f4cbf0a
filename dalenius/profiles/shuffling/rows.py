"""Binomial weights, and what a fair walk exceeds, as floats with a bound on their relative error.

Weights. The ratio of neighbouring terms of a binomial law is (M−i)/(i+1) times the odds, so running
products from its largest term give all terms in a window but for a common factor; that factor is their
sum, as the whole law sums to 1. Beyond the window each term is less than the last one by at least the last
ratio, which bounds what is left out by a geometric series.

Excess. D_N is the sum of N fair signs ±1, and C_N(t) = E(D_N − t)₊ is linear between the values that D_N
takes. From running sums, all of positive terms: T_k = P(D_N ≥ d_k), C_N(d_k) = 2·Σ_{j>k} T_j, and
C_N(t) = C_N(d_k) + (d_k − t)·T_k for t between d_{k−1} and d_k. The factor comes from symmetry:
P(D_N > 0) + ½P(D_N = 0) = ½. docs/proofs/shuffling.md counts the roundings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalenius.profiles.pair import Floats, Indices
from dalenius.profiles.rounding import U

REACH = 11.5
"""How many standard deviations are looked at: what lies beyond is below 1e-28."""

CACHED = 1 << 16
"""Numbers of a table that are worked on at a time, so that they stay in the processor's cache."""


def reach(variance: float) -> float:
    """How far from the middle a binomial law of that variance is looked at (Bernstein's inequality)."""
    return REACH * math.sqrt(variance) + REACH**2 / 1.5


@dataclass(frozen=True, eq=False)
class Weights:
    """Binomial laws, one a row: `shares` of the window from `first` on, and what it may leave out.

    Places that a law does not have (below 0, above its trials) have no share.
    """

    first: Floats
    shares: Floats
    left: Floats
    right: Floats

    @property
    def units(self) -> float:
        """Relative error of a share, in units of U: six roundings a step, and those of the sum."""
        return 9.0 * float(self.shares.shape[1]) + 32


def weights(trials: Floats, odds: float) -> Weights:
    """The binomial laws of these `trials` with success `odds`, which are known to within 2U."""
    chance = odds / (1 + odds)
    most = float(trials.max())
    spread = min(math.ceil(reach(most * chance / (1 + odds))), int(most))
    top = np.minimum(np.floor((trials + 1) * chance), trials)[:, None]
    many, step = trials[:, None], np.arange(spread, dtype=np.float64)
    up, down = top + step, top - 1 - step
    terms = np.empty((len(trials), 2 * spread + 1))
    terms[:, spread] = 1.0
    np.cumprod(np.maximum(many - up, 0.0) / (up + 1) * odds, axis=1, out=terms[:, spread + 1 :])
    np.cumprod(np.maximum(down + 1, 0.0) / ((many - down) * odds), axis=1, out=terms[:, :spread][:, ::-1])
    first, last = top[:, 0] - spread, top[:, 0] + spread
    total = terms.sum(axis=1)
    left = _rest(terms[:, 0], np.maximum(first, 0.0) / ((trials - first + 1) * odds)) / total
    right = _rest(terms[:, -1], np.maximum(trials - last, 0.0) / (last + 1) * odds) / total
    return Weights(first, terms / total[:, None], left, right)


def _rest(term: Floats, ratio: Floats) -> Floats:
    """The geometric series beyond a term, with room for the roundings of term and ratio."""
    inside = np.minimum(ratio * (1 + 64 * U), 1 - U)
    return np.asarray(2 * term * inside / (1 - inside))


@dataclass(frozen=True, eq=False)
class Walks:
    """Tables of T and of C_N(d_k), d_k ≥ 0, one row for each N, from below; `spill` is added from above.

    `offset` is d_0/2: a half for odd N.
    """

    offset: Floats
    tails: Floats
    excess: Floats
    spill: Floats

    @staticmethod
    def of(steps: Floats) -> Walks:
        """Rows for walks of these lengths, increasing, all as long as the longest one needs."""
        ahead, back = np.ceil(steps / 2), np.floor(steps / 2)
        size = int(min(math.ceil(REACH / 2 * math.sqrt(float(steps[-1]))) + 2, ahead[-1] + 1))
        tails, excess = np.empty((len(steps), size)), np.empty((len(steps), size))
        last = np.empty(len(steps))
        stride = max(1, CACHED // size)
        for i in range(0, len(steps), stride):
            part = slice(i, i + stride)
            last[part] = _fill(ahead[part], back[part], tails[part], excess[part])
        fall = np.maximum(back - (size - 1), 0.0) / (ahead + size)
        spill = 4 * last * fall / (1 - fall) * (size + 1 / (1 - fall))
        return Walks((ahead - back) / 2, tails, excess, spill)

    @property
    def units(self) -> float:
        """Relative error of an entry, in units of U: two roundings a step, three sums, the factor twice."""
        return 12.0 * float(self.tails.shape[1]) + 64

    def above(self, row: Indices, t: Floats) -> Floats:
        """C_N(t) for t ≥ 0 by the tables; rounding and `spill` are not counted."""
        place = np.ceil(np.maximum(0.5 * t - self.offset[row], 0.0))
        size = self.tails.shape[1]
        k = np.minimum(place, size - 1).astype(np.intp)
        value = self.excess[row, k] + (2 * (k + self.offset[row]) - t) * self.tails[row, k]
        return np.where(place < size, np.maximum(value, 0.0), 0.0)


def _fill(ahead: Floats, back: Floats, tails: Floats, excess: Floats) -> Floats:
    """Fill rows of T and of C_N(d_k), and return the probability of the last value of each."""
    size = tails.shape[1]
    index = np.arange(size - 1, dtype=np.float64)
    tails[:, 0] = 1.0
    falls = np.maximum(back[:, None] - index, 0.0, out=tails[:, 1:])
    falls /= ahead[:, None] + (index + 1)
    np.cumprod(tails, axis=1, out=tails)
    last = tails[:, -1].copy()
    np.cumsum(tails[:, ::-1], axis=1, out=tails[:, ::-1])
    factor = 1 / (2 * tails[:, 0] - (1 - (ahead - back)))
    tails *= factor[:, None]
    excess[:, -1] = 0.0
    np.cumsum(2 * tails[:, :0:-1], axis=1, out=excess[:, -2::-1])
    return last * factor
