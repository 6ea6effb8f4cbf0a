"""Cross entropy, averaged over each example's own targets first.

`cross_entropy` and `nll_loss` take the mean over all targets of a batch that are not ignored: an example with
more ignored labels (padding, −100) changes the weight of every other one. While a private loop runs, that
mean is taken over the targets of each row first, and then over rows: a row weighs what it weighs alone.
With one target a row it is the same number. With class weights torch divides by the weights of all labels in
the batch: that is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from dalenius.errors import NotSound

_NLL = ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction")
_NAMES = {functional.cross_entropy: (*_NLL, "label_smoothing"), functional.nll_loss: _NLL}


class OwnMeans(TorchFunctionMode):
    """In force while a loop runs; `rows` says how many rows the batch at hand has."""

    def __init__(self, rows: Callable[[], int]) -> None:
        super().__init__()
        self._rows = rows

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Any other function is left as it is."""
        kwargs = kwargs or {}
        if func not in _NAMES:
            return func(*args, **kwargs)
        given = dict(zip(_NAMES[func], args, strict=False)) | kwargs
        target = given["target"]
        whole = given.get("reduction", "mean") == "mean" and not target.is_floating_point()
        return self._mean(func, given) if whole else func(*args, **kwargs)

    def _mean(self, func: Any, given: dict[str, Any]) -> Tensor:
        if given.get("weight") is not None:
            raise NotSound(
                f"{func.__name__} with class weights divides by the weights of all labels of a batch.",
                remedy='Use reduction="none", which weighs losses and divides by nothing, and take the mean.',
            )
        losses = func(**given | {"reduction": "none"})
        rows, kept = max(1, self._rows()), (given["target"] != given.get("ignore_index", -100))
        if losses.numel() % rows:
            raise NotSound(
                f"{func.__name__} is asked for a mean over targets that are not as many for every row.",
                remedy='Use reduction="none", and average over each example\'s own targets.',
            )
        own, count = losses.reshape(rows, -1).sum(1), kept.reshape(rows, -1).sum(1)
        return torch.mean(own / count.clamp(min=1))
