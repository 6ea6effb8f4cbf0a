"""Every estimator with the arguments it needs, and rows for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.learn import tabular

CLASSES = [0, 1, 2]
BOX: dict[str, Any] = {"bounds": (-1, 1)}


def made(name: str, **more: Any) -> Any:
    """An estimator for rows of three columns within ±1; codes from −1 to 1 are for no model in particular."""
    given = {
        "gradient": lambda **k: tabular.LogisticRegression(classes=CLASSES, method="gradient", **BOX, **k),
        "objective": lambda **k: tabular.LogisticRegression(classes=CLASSES, method="objective", **BOX, **k),
        "linear": lambda **k: tabular.LinearRegression(target_bounds=(0, 2), **BOX, **k),
        "gaussian": lambda **k: tabular.GaussianNB(classes=CLASSES, **BOX, **k),
        "categorical": lambda **k: tabular.CategoricalNB(classes=CLASSES, categories=[2, 2, 3], **k),
        "clusters": lambda **k: tabular.KMeans(3, **BOX, **k),
        "components": lambda **k: tabular.PCA(2, **BOX, **k),
        "trees": lambda **k: tabular.BoostedTrees(
            classes=CLASSES, trees=4, depth=3, categorical=[2], **BOX, **k
        ),
        "two": lambda **k: tabular.LogisticRegression(classes=[0, 1], method="gradient", **BOX, **k),
        "two trees": lambda **k: tabular.BoostedTrees(classes=[0, 1], trees=4, depth=3, **BOX, **k),
    }
    return given[name](**more)


PURE = ("objective", "linear", "gaussian", "categorical", "clusters", "components", "trees")
NAMES = ("gradient", *PURE)


def rows(size: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    chance = np.random.default_rng(seed)
    x = chance.uniform(-1, 1, (size, 3))
    x[:, 2] = chance.integers(-1, 2, size)
    return x, (x[:, 0] > 0) * 1 + (x[:, 1] > 0.5) * 1
