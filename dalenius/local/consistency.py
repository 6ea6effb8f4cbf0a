"""Shares of a tree's intervals that add up: free, closer to the truth, and said on the receipt.

The shares of the intervals of one level are estimated apart from those of the others, so children do not add
up to their parent. Theorem (Hay, Rastogi, Miklau and Suciu 2010). The shares that do, and are the nearest by
least squares, weighted by variances, come by two passes: from the items up, each interval's share becomes
the mean, weighted by inverse variances, of its own and of the sum of its children's; from the top down, what
the children lack of their parent is given to them in proportion to their variances. The whole is 1.

The weights here are the variances of rare intervals, by level: public, and the same whatever the reports
are. So with levels as often as they are drawn, the shares stay unbiased. Their variances are smaller than
before, but no longer known exactly, and left out. Error bars are as before: they hold the true shares as
often.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.local.tree import TreeRanges
from dalenius.mechanisms.mechanism import Mechanism
from dalenius.release import Release

Floats = NDArray[np.float64]
NOTE = (
    "shares moved to the nearest, by least squares, of which children add up to parents: error bars as before"
)


def consistent(release: Release) -> Release:
    """By what the estimator of a tree gave."""
    tree = Mechanism.from_json(release.receipt.mechanism) if release.receipt.mechanism else None
    if not isinstance(tree, TreeRanges) or "level" not in release.columns:
        raise InvalidArgument(
            "This release is not of a tree's intervals.", remedy="Pass what estimator.estimate() gave."
        )
    level, share = np.asarray(release["level"]), np.asarray(release["share"], np.float64)
    own = [share[level == place + 1] for place in range(tree.levels)]
    moved = nearest(own, [one.variance() for one in tree.oracles], tree.branching)
    columns = {name: cells for name, cells in release.columns.items() if name != "variance"}
    return release.postprocess(NOTE, columns | {"share": np.concatenate(moved).tolist()})


def nearest(shares: list[Floats], variances: list[float], branching: int) -> list[Floats]:
    """The nearest consistent shares of levels, whose shares have these variances."""
    best, spread = [shares[-1]], [np.full(shares[-1].size, variances[-1])]
    for own, variance in zip(shares[-2::-1], variances[-2::-1], strict=True):
        below, off = _sums(best[0], own.size, branching), _sums(spread[0], own.size, branching)
        weight = off / (off + variance)
        best.insert(0, weight * own + (1 - weight) * below)
        spread.insert(0, weight * variance)
    above = np.ones(1)
    found: list[Floats] = []
    for own, off in zip(best, spread, strict=True):
        parts = own.size if above.size == 1 and not found else branching
        lack = above - _sums(own, above.size, parts)
        each = np.arange(own.size) // parts
        above = own + off * (lack / _sums(off, above.size, parts))[each]
        found.append(above)
    return found


def _sums(values: Floats, parents: int, parts: int) -> Floats:
    """Of the children of each."""
    found = np.bincount(np.arange(values.size) // parts, weights=values, minlength=parents)
    return found.astype(np.float64)
