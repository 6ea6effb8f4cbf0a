"""A training loop that private training must accept, with a tiny model and random rows for it.

`train(private)` is the loop as people write it, from `for … in private.loader` to `private.step()`. In each
of these loops the loss is a sum or mean over examples of per-example losses, times and plus public constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.learn.private import Private

from ..architectures.architecture import Inputs

Train = Callable[[Private], None]
LossOf = Callable[..., Tensor]


@dataclass(frozen=True)
class Loop:
    """An accepted loop.

    Args:
        name: What the loop shows; the identifier of its tests.
        build: Returns the model to train.
        rows: Returns `n` random rows as a tuple of tensors, one row per entry of dimension 0.
        train: Runs the whole loop.
        ignored: Columns of `rows` whose entries may be −100, the label that losses ignore.
        random: Whether a pass draws random numbers, in the loop or in the model.
        options: Further arguments of `Private`.
    """

    name: str
    build: Callable[[], nn.Module]
    rows: Inputs
    train: Train
    _: KW_ONLY
    ignored: tuple[int, ...] = ()
    random: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def model(self, *, seed: int = 0) -> nn.Module:
        """Return the model with weights of a seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.build()

    def private(self, model: nn.Module, rows: tuple[Tensor, ...], **options: Any) -> Private:
        """Return a run with plain SGD over `rows`, without an account.

        Args:
            model: The model to train.
            rows: The data set, as tensors of one length.
            options: Arguments of `Private`, which take precedence over those of the loop; `lr` is the rate.
        """
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.SGD(parameters, lr=options.pop("lr", 0.1))
        usual = {"batch_size": 9, "steps": 2, "clip": 1, "noise_multiplier": 1}
        return Private(model, optimizer, rows, **usual | dict(self.options) | options)


def training(loss_of: LossOf) -> Train:
    """Return the ordinary loop over a loss of the model and the columns of a batch."""

    def train(private: Private) -> None:
        for batch in private.loader:
            private.zero_grad()
            loss = loss_of(private.model, *batch)
            loss.backward()
            private.step()

    return train
