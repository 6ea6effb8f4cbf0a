"""Keep the indices of private examples within range: tokens of an embedding, and labels of a cross entropy.

torch raises an error for a token that its table does not hold, and for a label that is not a class. Whether a
run ends with an error would tell whether somebody's row holds such a value. In private passes a token is
clamped to the rows of its table, and a label that is not a class is ignored, as `ignore_index` is. Values in
range are not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

LOOKUPS = frozenset((functional.embedding, functional.embedding_bag, torch.embedding))
"""The functions that look up the rows of a table."""
CRITERIA = frozenset((functional.cross_entropy, functional.nll_loss))
"""The functions that take the numbers of classes."""
_IGNORED = -100


def with_valid_indices(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with every index in range.

    Args:
        func: One of `LOOKUPS` or `CRITERIA`.
        args: Its positional arguments.
        kwargs: Its named arguments.
    """
    if func in CRITERIA:
        return _replaced(args, kwargs, 1, "target", _valid_labels(func, args, kwargs))
    first = 1 if func is torch.embedding else 0
    tokens = _argument(args, kwargs, first, "indices" if first else "input")
    table = _argument(args, kwargs, 1 - first, "weight")
    if not isinstance(tokens, Tensor) or not isinstance(table, Tensor) or not table.shape[0]:
        return args, kwargs
    valid = tokens.clamp(0, table.shape[0] - 1)
    return _replaced(args, kwargs, first, "indices" if first else "input", valid)


def _valid_labels(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the labels, with `ignore_index` in place of those that are not a class."""
    scores, labels = (_argument(args, kwargs, place, name) for place, name in enumerate(("input", "target")))
    if not isinstance(labels, Tensor) or labels.is_floating_point() or not scores.dim():
        return labels
    ignored = _argument(args, kwargs, 4, "ignore_index")
    ignored = _IGNORED if ignored is None else ignored
    classes = scores.shape[0 if scores.dim() == 1 else 1]
    return torch.where((labels >= 0) & (labels < classes), labels.long(), ignored)


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str) -> Any:
    return args[place] if place < len(args) else kwargs.get(name)


def _replaced(
    args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str, value: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if place < len(args):
        return (*args[:place], value, *args[place + 1 :]), kwargs
    return args, kwargs | {name: value}
