"""`Network`: a torch module as an estimator, for teachers and students: plain training, nothing private."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

AT_ONCE = 4096
"""Rows of one forward pass when predicting."""


class Network:
    """A module that gives a score for each class, trained by Adam on cross entropy."""

    def __init__(
        self,
        module: nn.Module,
        *,
        epochs: int = 20,
        batch_size: int = 32,
        lr: Number = 0.001,
        weight_decay: Number = 0,
    ) -> None:
        self.module = module
        self.epochs = numbers.count(epochs, "epochs")
        self.batch_size = numbers.count(batch_size, "batch_size")
        self.lr = float(numbers.positive(lr, "lr"))
        self.weight_decay = float(numbers.non_negative(weight_decay, "weight_decay"))

    def fit(self, rows: Any, labels: Any) -> Network:
        """Train the module where it is."""
        x, y = _tensor(rows), torch.as_tensor(np.asarray(labels, np.int64))
        optimizer = torch.optim.Adam(self.module.parameters(), lr=self.lr, weight_decay=self.weight_decay)
        self.module.train()
        for _ in range(self.epochs):
            for part in torch.randperm(len(x)).split(self.batch_size):
                optimizer.zero_grad()
                nn.functional.cross_entropy(self.module(x[part]), y[part]).backward()
                optimizer.step()
        return self

    def predict(self, rows: Any) -> NDArray[np.int64]:
        """The class with the greatest score; −1 where a score is no number."""
        self.module.eval()
        with torch.no_grad():
            scores = torch.cat([self.module(part) for part in _tensor(rows).split(AT_ONCE)])
        lost = scores.isnan().any(dim=1)
        return np.asarray(scores.argmax(dim=1).masked_fill(lost, -1).numpy(), np.int64)


def _tensor(rows: Any) -> Tensor:
    """Floats of single precision, where rows are floats."""
    found = torch.as_tensor(rows)
    return found.float() if found.is_floating_point() else found
