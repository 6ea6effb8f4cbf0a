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

Forged reports. Let at most m of the n reports be forged, that is, anything that a device can send, also in
view of all other reports; and let f be the share among the others, who are honest. Of c supporters between
c − m and c are honest then.

Theorem. The lower end of (c − m of n − m) and the upper end of (c of n − m) hold f with probability at least
1 − alpha. Proof: if j ≤ m reports are forged, k ≤ j of which support the item, then the interval of (c − k of
n − j) holds f. Its lower end, where P(Bin(n − j, x) ≥ c − k) = alpha/2, is least for k = j = m: taking a
success and its trial away makes that probability larger for every x, since Bin(i, x) ≤ Bin(i − 1, x) + 1.
The upper end is largest for k = 0 and j = m, as fewer trials with as many successes allow a larger chance.

Range. A share is from 0 to 1, and an interval is cut there. An estimate beyond has the interval of the
nearest share, which is wider than what the cut would leave and so holds the truth as often: no interval is
shorter than noise is large. Where an interval is off the range by more than DOUBTFUL times its own width,
hardly any noise explains it: reports are forged, or of another program. It is opened to the whole range, and
the receipt says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
MARGIN = 1e-9
PIECES, REACH, STEPS = 256, 9.0, 8
"""Into which a count is cut, as far as so many standard deviations; halvings of how far an end may move."""
DOUBTFUL = 2.0
"""Widths of an interval, by which it is off the range of what is estimated, from which noise is no reason."""
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


def share(
    counts: Ints, n: int, p: float, q: float, alpha: float, *, forged: int = 0
) -> tuple[Floats, Floats, Flags]:
    """Return ends for the share of honest people with an item, and which of them are open.

    Args:
        counts: How many reports support each item.
        n: How many reports there are.
        p: With which probability the report of a person with the item supports it.
        q: With which probability the report of another person supports it.
        alpha: With which probability an interval may be wrong.
        forged: How many reports are forged, at most.
    """
    different, places = np.unique(counts, return_inverse=True)
    honest = max(n - forged, 0)
    first, last = np.maximum(different - forged, 0), np.minimum(different, honest)
    open_ = _off(mean_chance(first, honest, alpha)[0], mean_chance(last, honest, alpha)[1], q, p)
    if not honest:
        return np.zeros(counts.shape), np.ones(counts.shape), open_[places]
    first = np.minimum(first, int(honest * p))
    last = np.maximum(last, math.ceil(honest * q))
    wide = MARGIN / honest / (p - q)
    low = (mean_chance(first, honest, alpha)[0] - q) / (p - q)
    high = (mean_chance(last, honest, alpha)[1] - q) / (p - q)
    low, high = np.clip(low - wide, 0.0, 1.0), np.clip(high + wide, 0.0, 1.0)
    mean = np.clip(different / n, q, p)
    gain = (mean - q) * (p - mean) / np.maximum(mean * (1 - mean), MARGIN)
    some = np.argsort(gain)[::-1][:MOST_MOVED]
    some = some[gain[some] > GAIN]
    # The lower end, and the upper one of the complement.
    low[some] = _moved(honest - first[some], low[some], honest, 1 - p, 1 - q, alpha / 2)
    high[some] = 1 - _moved(last[some], 1 - high[some], honest, q, p, alpha / 2)
    low, high = np.where(open_, 0.0, low), np.where(open_, 1.0, high)
    return low[places], high[places], open_[places]


def in_part(
    counts: Ints,
    totals: Ints,
    n: int,
    support: tuple[float, float],
    there: float,
    alphas: tuple[float, float],
    forged: int,
) -> tuple[Floats, Floats, Flags]:
    """Return ends for shares of which only some reports tell, and which of them are open.

    Of the honest people with an item each is told of with probability `there`, and then supported with p; so
    the supporters bound how many of these people are told of, and this number bounds how many there are.

    Args:
        counts: How many reports support each item.
        totals: How many reports tell of each item.
        n: How many reports there are.
        support: p and q, among reports that tell of an item.
        there: With which probability a report of a person with the item tells of it.
        alphas: With which probabilities each of the two bounds may be wrong.
        forged: How many reports are forged, at most; all of them may tell of one item.
    """
    p, q = support
    honest, told = max(n - forged, 0), np.maximum(totals - forged, 0)
    low = mean_chance(np.maximum(counts - forged, 0), told, alphas[0])[0]
    high = mean_chance(np.minimum(counts, told), told, alphas[0])[1]
    low, high, open_ = held((low - q) / (p - q), (high - q) / (p - q), 0.0, 1.0)
    # Fewer are told of where more are forged: the least of them below, and the most above.
    first, last = np.ceil(low * told - 1e-6), np.floor(high * totals + 1e-6)
    if not honest:
        return np.zeros(counts.shape), np.ones(counts.shape), open_
    ends = trials(first.astype(np.int64), np.minimum(last, honest).astype(np.int64), honest, there, alphas[1])
    least, most = (np.where(open_, whole, end / honest) for whole, end in zip((0.0, 1.0), ends, strict=True))
    return least, most, open_


def held(low: Floats, high: Floats, least: float, most: float) -> tuple[Floats, Floats, Flags]:
    """Return ends within a range, each interval as wide as noise is large, and which of them are open.

    Of an interval that is off the range, or hardly within, half its width remains at the end of the range; a
    quarter of the range where that is less.

    Args:
        low: The lower ends, before the range is applied.
        high: The upper ends.
        least: The least that what is estimated can be.
        most: The most that it can be.
    """
    open_, half = _off(low, high, least, most), np.minimum((high - low) / 2, (most - least) / 4)
    low, high = np.minimum(low, most - half), np.maximum(high, least + half)
    low, high = np.where(open_, least, low), np.where(open_, most, high)
    return np.clip(low, least, most), np.clip(high, least, most), open_


def _off(low: Floats, high: Floats, least: float, most: float) -> Flags:
    """Return which intervals are off a range by more than noise explains."""
    far = DOUBTFUL * (high - low)
    return np.asarray((low - far > most) | (high + far < least))


def doubts(open_: Flags) -> tuple[str, ...]:
    """Return what a receipt says of intervals that were opened, if any were."""
    many = int(np.count_nonzero(open_))
    if not many:
        return ()
    return (
        f"noise does not explain {many} of the estimates, which are off their range by more than twice the "
        "width of their interval: reports are forged, or of another program. Their intervals are open; all "
        "others assume honest reports",
    )


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
