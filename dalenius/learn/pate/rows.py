"""Rows, labels and predictions, each read by itself: a value that is no class is −1, never an error."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.contributions import column

Ints = NDArray[np.int64]


def estimator(model: Any) -> Any:
    """What has `fit` and `predict`; a torch module is given them."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from dalenius.learn.pate.network import Network

        return Network(model)
    if not all(callable(getattr(model, name, None)) for name in ("fit", "predict")) or isinstance(
        model, type
    ):
        raise InvalidArgument(
            "A teacher or a student is an object with fit and predict, or a torch module.",
            remedy="Pass such as LogisticRegression(), or dp.learn.pate.Network(module, epochs=20).",
        )
    return model


def taken(rows: Any, numbers: Ints) -> Any:
    """These rows, in this order, in the form they have."""
    if hasattr(rows, "iloc"):
        return rows.iloc[numbers]
    return rows[numbers] if hasattr(rows, "shape") else [rows[i] for i in numbers.tolist()]


def labels_of(values: Any, classes: int) -> Ints:
    """Classes as whole numbers, −1 for what is none."""
    with np.errstate(all="ignore"):
        found = column(values)
        whole = np.isfinite(found) & (found == np.floor(found)) & (found >= 0) & (found < classes)
        return np.where(whole, found, -1).astype(np.int64)


def predicted(model: Any, rows: Any, classes: int) -> Ints:
    """What a model says of each row."""
    return labels_of(np.ravel(np.asarray(model.predict(rows))), classes)
