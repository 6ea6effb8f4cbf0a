"""Cross entropy, averaged over each example's own targets first.

`cross_entropy` and `nll_loss` take the mean over all targets of a batch that are not ignored: an example with
more ignored labels (padding, −100) changes the weight of every other one. In a private pass that mean is
taken over the targets of each row first, and then over rows: a row weighs what it weighs alone. With one
target a row it is the same number. With class weights torch divides by the weights of all labels in the
batch: that is refused.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.marks import by_example

_NLL = ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction")
NAMES = {functional.cross_entropy: (*_NLL, "label_smoothing"), functional.nll_loss: _NLL}
"""The functions that average over targets, with the names of their arguments."""


def averages(func: Any, given: dict[str, Any]) -> bool:
    """Return whether a call takes the mean over labels."""
    return (
        given.get("reduction", "mean") == "mean"
        and given.get("size_average") is None
        and given.get("reduce") is None
        and isinstance(given.get("target"), Tensor)
        and not given["target"].is_floating_point()
    )


def mean_by_example(func: Any, given: dict[str, Any], rows: int, outer: int) -> Tensor:
    """Return the mean over rows of the mean over each row's targets that are not ignored.

    Args:
        func: `functional.cross_entropy` or `functional.nll_loss`.
        given: Its arguments by name.
        rows: How many rows the batch has.
        outer: Where the losses of single targets hold the batch (`marks`).
    """
    if given.get("weight") is not None:
        raise NotSound(
            f"{func.__name__} with class weights divides by the weights of all labels of a batch"
            f"{user_line()}.",
            remedy='Use reduction="none", which weighs losses and divides by nothing, and take the mean.',
        )
    losses, kept = func(**given | {"reduction": "none"}), given["target"] != given.get("ignore_index", -100)
    own = by_example(losses.reshape(-1), outer, rows, 0).sum(1)
    count = by_example(kept.reshape(-1), outer, rows, 0).sum(1)
    return torch.mean(own / count.clamp(min=1))
