"""A score by boosted trees, where scikit-learn is installed: for what no column shows by itself."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.audits.families import Floats
from dalenius.audits.scores import Scores

FEWEST = 1000
"""Trees are not grown on fewer draws."""


def boosted(first: Floats, second: Floats) -> dict[str, Scores]:
    """The logarithm of the odds that trees give, learned from draws that serve for nothing else."""
    if min(len(first), len(second)) < FEWEST or find_spec("sklearn") is None:
        return {}
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    sides = np.concatenate([np.ones(len(first)), np.zeros(len(second))])
    trees = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=15, early_stopping=False)
    # Threads that wait for each other take longer on a busy machine than one that works.
    with threadpool_limits(1):
        trees.fit(np.vstack([first, second]), sides)

    def ranked(draws: NDArray[Any]) -> Floats:
        with threadpool_limits(1):
            found: Floats = np.asarray(trees.decision_function(draws), dtype=np.float64)
        return found.round(6)

    return {"tests by boosted trees": ranked}
