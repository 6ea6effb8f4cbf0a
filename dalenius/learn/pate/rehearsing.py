"""A model is tried on made-up rows before it meets data, as later its errors are not to be seen.

Made-up rows have the shape and type of the data's and none of their values; every class has two of them.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.learn.pate.rows import labels_of, predicted
from dalenius.learn.quiet import quiet

EACH = 2
"""Made-up rows of a class."""
SOME_ROWS = "Pass synthetic=(x, y), a few made-up rows of the form of yours with a label of every class."


def rehearse(model: Any, rows: Any, classes: int, synthetic: tuple[Any, Any] | None) -> Any:
    """A copy trained on made-up rows; refused where that fails, or says nothing of them."""
    x, y = (
        synthetic if synthetic is not None else (made_up(rows, classes), np.arange(EACH * classes) % classes)
    )
    trial, labels = copy.deepcopy(model), labels_of(y, classes)
    with quiet():
        try:
            trial.fit(copy.deepcopy(x), labels)
        except Exception as error:
            raise InvalidArgument(
                f"The model fails on made-up rows: {type(error).__name__}: {error}.",
                remedy=f"Pass a model for rows of this shape. {SOME_ROWS}",
            ) from error
    tried(trial, x, len(labels), classes)
    return trial


def tried(trial: Any, rows: Any, count: int, classes: int) -> None:
    """Refuse public rows of which a model of made-up rows does not say a class each."""
    with quiet():
        try:
            said = predicted(trial, copy.deepcopy(rows), classes)
        except Exception as error:
            raise InvalidArgument(
                f"A model of made-up rows fails on these: {type(error).__name__}: {error}.",
                remedy="Pass rows of the form that teachers are trained on.",
            ) from error
    if said.shape != (count,) or (said < 0).any():
        raise InvalidArgument(
            "What the model predicts is not one class, 0 to classes - 1, for each row.",
            remedy="Number the classes from 0 on, and let predict give one of these numbers for each row.",
        )


def made_up(rows: Any, classes: int) -> Any:
    """Rows of numbers in a pattern."""
    shape, kind = getattr(rows, "shape", None), getattr(rows, "dtype", None)
    if shape is None or kind is None or hasattr(rows, "iloc"):
        raise InvalidArgument("Rows like these cannot be made up.", remedy=SOME_ROWS)
    size = (EACH * classes, *tuple(shape)[1:])
    pattern = np.sin(np.arange(1, int(np.prod(size)) + 1)).reshape(size)
    if not isinstance(rows, np.ndarray):
        return _tensor(rows, pattern)
    if kind.kind not in "biuf":
        raise InvalidArgument("Rows like these cannot be made up.", remedy=SOME_ROWS)
    return pattern.astype(kind) if kind.kind == "f" else (pattern > 0).astype(kind)


def _tensor(rows: Any, pattern: Any) -> Any:
    """The same as a tensor."""
    if not hasattr(rows, "new_tensor"):
        raise InvalidArgument("Rows like these cannot be made up.", remedy=SOME_ROWS)
    return rows.new_tensor(pattern if rows.dtype.is_floating_point else pattern > 0)
