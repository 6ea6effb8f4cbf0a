"""Which of many candidate strings are there, and how often: regression on the bits of Bloom filters.

In a cohort of N reports let a bit be 1 in c. Then y = (c/N − p*)/(q* − p*) estimates without bias in which
share of filters the bit is set, with a variance of at most s(1 − s)/(N(q* − p*)²), s the chance of a 1: the
noise is known. The expected share is the sum of the shares of candidates that set the bit, plus what
strings that are no candidates set, which is taken as the same for all bits: an intercept. So shares are
found by least squares, weighted by the known variances, and are normal for many reports.

    at most half as many candidates as bits     one regression on all of them: nothing is chosen by the data
    more                                        half of the cohorts choose candidates by least squares without
                                                negative shares (as the lasso does in Erlingsson, Pihur and
                                                Korolova 2014); the other half estimates and tests them

so that the reports that test a candidate never chose it. A candidate is `found` where its share is above
zero at level alpha over the number tested (Bonferroni): if no string that is not a candidate is heavy, any
candidate that nobody has is found with probability at most alpha, all together, for many reports. Strings
that are heavy and no candidates break this law: their bits look like those of candidates. They leave larger
residuals than noise does, with which variances grow, but the remedy is to list them.

Candidates that set the same bits, or whose bits are sums of others', cannot be told apart by any number of
reports: their shares are not determined. Each of them may have any share from 0 to 1, and none is found. The
column `alike` has the number of their group, 0 for all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST = 30
"""Reports of a cohort, below which it is left out: what it says is not normal."""
ALMOST = 1e-10
"""Parts below this one are rounding."""


def regressed(
    counts: Ints, ones: Ints, filters: NDArray[np.uint8], p: float, q: float, alpha: float
) -> tuple[dict[str, list[float]], str]:
    """Columns for each candidate: share, ends, variance, p-value, found, alike; and how they came about.

    `filters` has the bits of each cohort, for each candidate.
    """
    from scipy.special import ndtr, ndtri

    used = np.flatnonzero(counts >= LEAST)
    if used.size < 2:
        raise InvalidArgument(
            f"Candidates need two cohorts or more of at least {LEAST} reports.",
            remedy="Collect more reports, or use fewer cohorts.",
        )
    candidates = filters.shape[1]
    chosen, rows, how = np.arange(candidates), used, "one regression on all candidates"
    if 2 * (candidates + 1) > used.size * ones.shape[1]:
        chosen, rows = _chosen(counts, ones, filters, p, q, used), used[1::2]
        how = "candidates chosen by one half of the cohorts, estimated and tested by the other"
    share, variance, mixed = _least_squares(*_system(counts, ones, filters[:, chosen], p, q, rows))
    alike = _alike(filters[rows], chosen, mixed)
    told = alike[chosen] == 0
    chosen, share, variance = chosen[told], share[told], variance[told]
    reach, tail = ndtri(0.975) * np.sqrt(variance), ndtr(-share / np.sqrt(variance))
    middle = float(np.median(variance)) if variance.size else 1.0
    columns = {
        "share": np.zeros(candidates),
        "share_low": np.zeros(candidates),
        "share_high": np.ones(candidates),
        # Of a share that is not determined, zero is off by at most one.
        "variance": np.where(alike, 1.0, middle),
        "p_value": np.ones(candidates),
        "found": np.zeros(candidates, bool),
    }
    tested = max(told.size, 1)
    found = (share, share - reach, share + reach, variance, tail, tail < alpha / tested)
    for column, values in zip(columns.values(), found, strict=True):
        column[chosen] = values
    return {name: column.tolist() for name, column in {**columns, "alike": alike}.items()}, how


def _system(
    counts: Ints, ones: Ints, filters: NDArray[np.uint8], p: float, q: float, rows: Ints
) -> tuple[Floats, Floats]:
    """Equations of unit variance: a row for each bit, a column for each candidate, the last the intercept."""
    n = counts[rows, None].astype(np.float64)
    s = np.clip((ones[rows] + 0.5) / (n + 1), min(p, 0.5 / n.max()), None)
    weight = (np.sqrt(n / (s * (1 - s))) * (q - p)).ravel()
    y = ((ones[rows] / n - p) / (q - p)).ravel()
    bits = filters[rows].transpose(0, 2, 1).reshape(y.size, -1).astype(np.float64)
    return np.column_stack([bits, np.ones(y.size)]) * weight[:, None], y * weight


def _least_squares(matrix: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Coefficients but the last, their variances, and how those that are not determined are mixed."""
    sizes, axes = np.linalg.eigh(matrix.T @ matrix)
    seen = sizes > ALMOST * sizes.max(initial=0.0)
    inverse = (axes[:, seen] / sizes[seen]) @ axes[:, seen].T
    found = inverse @ (matrix.T @ y)
    free = max(y.size - matrix.shape[1], 1)
    excess = max(float(np.sum((y - matrix @ found) ** 2)) / free, 1.0)
    mixed = (axes[:, ~seen] @ axes[:, ~seen].T)[:-1, :-1]
    return found[:-1], np.maximum(np.diag(inverse)[:-1] * excess, 1e-300), mixed


def _alike(filters: NDArray[np.uint8], chosen: Ints, mixed: Floats) -> Ints:
    """The groups of candidates that set the same bits, or are mixed with each other; 0 for those in none."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    candidates = filters.shape[1]
    bits = np.packbits(filters.transpose(1, 0, 2).reshape(candidates, -1), axis=1)
    _, same, many = np.unique(bits, axis=0, return_inverse=True, return_counts=True)
    same = same.ravel()
    one, other = np.nonzero(np.abs(mixed) > ALMOST**0.5)
    pairs = same[chosen[one]], same[chosen[other]]
    size = int(same.max(initial=0)) + 1
    _, group = connected_components(coo_array((np.ones(one.size), pairs), shape=(size, size)), directed=False)
    loose = (many[same] > 1) | np.isin(same, pairs[0])
    _, number = np.unique(group[same][loose], return_inverse=True)
    found = np.zeros(candidates, np.int64)
    found[loose] = number.ravel() + 1
    return found


def _chosen(counts: Ints, ones: Ints, filters: NDArray[np.uint8], p: float, q: float, used: Ints) -> Ints:
    """At most a quarter as many candidates as the other half has bits: those of the largest shares."""
    from scipy.optimize import nnls

    matrix, y = _system(counts, ones, filters, p, q, used[::2])
    share = nnls(matrix, y)[0][:-1]
    most = max(used[1::2].size * ones.shape[1] // 4, 1)
    order = np.argsort(share)[::-1][:most]
    return np.sort(order[share[order] > 0])
