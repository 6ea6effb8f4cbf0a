"""Error bars of shares, by exact tails.

Let c of n reports support an item: one of each person who has it with probability p, of each other person
with q. Then c is a sum of n independent coins, of which the mean chance is m = f·p + (1 − f)·q for a share
f.

Theorem (Hoeffding 1956, Theorem 4). For a whole number c ≥ n·m + 1, P(sum ≥ c) is at most that of Bin(n, m);
for c ≤ n·m − 1, P(sum ≤ c) is. So the m for which neither tail of Bin(n, m) at c is below alpha/2, together
with those within 1/n of c/n, hold the truth with probability at least 1 − alpha: the interval of Clopper and
Pearson (1934), an end of it never inside c/n ∓ 1/n. Shares follow as f = (m − q)/(p − q).

That interval is as wide as for people drawn at random, too wide for a large share of which p and q tell
much. For those its ends are moved inward by the tails of the sum itself, Bin(nf, p) + Bin(n − nf, q), which
are within those of Bin(n, m): the first count is cut into pieces, and each piece taken at its end that makes
the tail larger. Moving only some ends is safe, as every end stays outside of the interval of exact tails.
Ends are widened by a part in 10^9, far beyond the errors of floats.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MARGIN = 1e-9
PIECES, REACH, STEPS = 256, 9.0, 8
"""Into which a count is cut, as far as so many standard deviations; halvings of how far an end may move."""
GAIN, MOST_MOVED = 0.15, 64
"""The part of a variance that is not the randomizer's, from which ends are moved; and of how many counts."""


def mean_chance(counts: Ints, n: Ints | int, alpha: float) -> tuple[Floats, Floats]:
    """Ends for the mean chance of n coins, so many of which came up, by the theorem; 0 to 1 for no coins."""
    from scipy.special import betaincinv

    some = np.maximum(n, 1).astype(np.float64) if isinstance(n, np.ndarray) else np.float64(max(n, 1))
    c = np.asarray(counts, dtype=np.float64)
    low = np.where(c > 0, betaincinv(np.maximum(c, 1), some - np.maximum(c, 1) + 1, alpha / 2), 0.0)
    less = np.minimum(c, some - 1)
    high = np.where(c < some, betaincinv(less + 1, some - less, 1 - alpha / 2), 1.0)
    low, high = np.minimum(low, (c - 1) / some), np.maximum(high, (c + 1) / some)
    low, high = low * (1 - MARGIN), high * (1 + MARGIN)
    none = np.asarray(n) == 0
    return np.where(none, 0.0, np.maximum(low, 0.0)), np.where(none, 1.0, np.minimum(high, 1.0))


def share(counts: Ints, n: int, p: float, q: float, alpha: float) -> tuple[Floats, Floats]:
    """Ends for the share of people with an item that so many of n reports support."""
    different, places = np.unique(counts, return_inverse=True)
    wide = MARGIN / n / (p - q)
    low, high = ((end - q) / (p - q) for end in mean_chance(different, n, alpha))
    low, high = np.clip(low - wide, 0.0, 1.0), np.clip(high + wide, 0.0, 1.0)
    mean = np.clip(different / n, q, p)
    gain = (mean - q) * (p - mean) / np.maximum(mean * (1 - mean), MARGIN)
    some = np.argsort(gain)[::-1][:MOST_MOVED]
    some = some[gain[some] > GAIN]
    # The lower end, and the upper one of the complement.
    low[some] = _moved(n - different[some], low[some], n, 1 - p, 1 - q, alpha / 2)
    high[some] = 1 - _moved(different[some], 1 - high[some], n, q, p, alpha / 2)
    return low[places], high[places]


def _moved(counts: Ints, ends: Floats, n: int, p: float, q: float, tail: float) -> Floats:
    """Lower ends, moved up as far as so many or fewer remain less likely than `tail`; p < q.

    Of people with an item whose share is at least the end, p is the chance; of the others q.
    """
    if not counts.size:
        return ends
    refused = np.floor(ends * n).astype(np.int64)
    likely = np.clip(np.ceil((counts - n * q) / (p - q)), refused, n).astype(np.int64)
    for _ in range(STEPS):
        middle = (refused + likely) // 2
        too_few = _at_most(counts, n, middle, p, q) < tail * (1 - MARGIN)
        refused, likely = np.where(too_few, middle, refused), np.where(too_few, likely, middle)
    return np.asarray(np.maximum(refused / n - MARGIN / n, 0.0))


def _at_most(counts: Ints, n: int, m: Ints, p: float, q: float) -> Floats:
    """Not less than P(Bin(m, p) + Bin(n − m, q) ≤ counts), and nearly that."""
    reach = REACH * np.sqrt(m * p * (1 - p)) + 1
    steps = np.linspace(-1, 1, PIECES + 1)
    cuts = np.clip(np.floor(m * p + reach * steps[:, None]), 0, m + 1)
    below = _cdf(cuts - 1, m, p)
    rest = _cdf(counts - cuts, n - m, q)
    pieces = np.diff(below, axis=0, append=1.0)
    return np.asarray(below[0] + (pieces * rest).sum(axis=0))


def _cdf(k: Floats, n: Ints, chance: float) -> Floats:
    """P(Bin(n, chance) ≤ k)."""
    from scipy.special import betainc

    inside = np.clip(k, 0, np.maximum(n - 1, 0))
    found = betainc(np.maximum(n - inside, 1), inside + 1, 1 - chance)
    return np.where(k < 0, 0.0, np.where(k >= n, 1.0, found))


def trials(low: Ints, high: Ints, n: int, chance: float, alpha: float) -> tuple[Ints, Ints]:
    """Ends, up to n, for the number of trials of which from `low` to `high` succeeded.

    Of the numbers for which neither tail is below alpha/2, the least for `low` and the greatest for `high`.
    """
    from scipy.special import betainc

    tail = alpha / 2 * (1 - MARGIN)

    def at_least(m: Ints) -> NDArray[np.bool_]:
        some = np.maximum(low, 1)
        enough = betainc(some, np.maximum(m - some, 0) + 1, chance) >= tail
        return np.asarray((low == 0) | ((m >= low) & enough), dtype=np.bool_)

    def too_many(m: Ints) -> NDArray[np.bool_]:
        rest = np.maximum(m - high, 1)
        return np.asarray((m > high) & (betainc(rest, high + 1, 1 - chance) < tail), dtype=np.bool_)

    first = least(np.broadcast_to(n, low.shape), at_least)
    beyond = least(np.broadcast_to(n + 1, high.shape), too_many)
    return first, beyond - 1


def least(most: Ints, test: Callable[[Ints], NDArray[np.bool_]]) -> Ints:
    """The least number up to `most` that passes, entry by entry, where all greater ones do; else `most`."""
    low, high = np.full(most.shape, -1, np.int64), np.array(most, np.int64)
    while (high - low > 1).any():
        middle = (low + high) // 2
        passed = test(np.maximum(middle, 0)) & (middle >= 0)
        wide = high - low > 1
        high, low = np.where(wide & passed, middle, high), np.where(wide & ~passed, middle, low)
    return high
