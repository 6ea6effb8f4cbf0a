"""Estimates made into shares: none below zero, all together one. Free, and no longer unbiased."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.release import Release

NOTE = "shares moved to the nearest that are not negative and add up to 1: biased, error bars as before"


def on_simplex(release: Release) -> Release:
    """The nearest shares that are not negative and add up to 1, by least squares.

    They are closer to the truth all together, but each is biased; variances are left out for that reason.
    Error bars stay: they hold the true share as often as before.
    """
    if "share" not in release.columns:
        raise InvalidArgument("This release has no shares.", remedy="Pass what estimator.estimate() gave.")
    columns = {name: cells for name, cells in release.columns.items() if name != "variance"}
    moved = nearest(np.asarray(release["share"], dtype=np.float64))
    return release.postprocess(NOTE, columns | {"share": moved.tolist()})


def nearest(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The point of the simplex that is nearest (Held, Wolfe and Crowder 1974)."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, shares.size + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(shares - float(excess[last]), 0.0)
