"""Cross entropy, averaged over each example's own targets first.

`cross_entropy` and `nll_loss` take the mean over all targets of a batch that are not ignored: an example with
more ignored labels (padding, −100) changes the weight of every other one. While a private loop runs, that
mean is taken over the targets of each row first, and then over rows: a row weighs what it weighs alone.
With one target a row it is the same number. With class weights torch divides by the weights of all labels in
the batch: that is refused.

How many rows a batch has is noted on what a private model is given and returns, and follows from function to
function, so that two loops side by side do not meet.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from dalenius.errors import NotSound
from dalenius.learn.marks import note_rows, rows_noted, tensors_in

_NLL = ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction")
_NAMES = {functional.cross_entropy: (*_NLL, "label_smoothing"), functional.nll_loss: _NLL}


class OwnMeans(TorchFunctionMode):
    """In force while a loop runs."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Any other function is left as it is, and its results are of as many rows as its arguments."""
        kwargs = kwargs or {}
        if func in _NAMES:
            given = dict(zip(_NAMES[func], args, strict=False)) | kwargs
            whole = given.get("reduction", "mean") == "mean" and not given["target"].is_floating_point()
            if whole and given["input"].requires_grad:
                return _mean(func, given)
        result = func(*args, **kwargs)
        rows = next((rows for one in tensors_in((args, kwargs)) if (rows := rows_noted(one))), None)
        if rows:
            for one in tensors_in(result):
                note_rows(one, rows)
        return result


def _mean(func: Any, given: dict[str, Any]) -> Tensor:
    if given.get("weight") is not None:
        raise NotSound(
            f"{func.__name__} with class weights divides by the weights of all labels of a batch.",
            remedy='Use reduction="none", which weighs losses and divides by nothing, and take the mean.',
        )
    losses, rows = func(**given | {"reduction": "none"}), rows_noted(given["input"])
    if rows is None or losses.numel() % rows:
        raise NotSound(
            f"{func.__name__} is asked for a mean over targets of which it is not known whose they are.",
            remedy='Use reduction="none", and average over each example\'s own targets, then over examples.',
        )
    kept = given["target"] != given.get("ignore_index", -100)
    own, count = losses.reshape(rows, -1).sum(1), kept.reshape(rows, -1).sum(1)
    return torch.mean(own / count.clamp(min=1))
