"""Functions with a backward pass of their own.

A `torch.autograd.Function` is accepted once `dalenius.learn.register_function` was told that it works row by
row; without that name in `dalenius.learn` there is no loop here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import dalenius.learn

from .classification import LABELED, WIDTH
from .loop import Loop, training


class Swish(torch.autograd.Function):
    """x·sigmoid(x), which keeps its input only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return gradients[0] * gate * (1 + x * (1 - gate))


class StraightThrough(torch.autograd.Function):
    """Rounded on the way forward, passed on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.round(4 * x) / 4

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


class Activated(nn.Module):
    def __init__(self, function: type[torch.autograd.Function]) -> None:
        super().__init__()
        self.first, self.function, self.head = nn.Linear(WIDTH, 8), function, nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.function.apply(self.first(x)))


def registered(function: type[torch.autograd.Function]) -> nn.Module:
    dalenius.learn.register_function(function)
    return Activated(function)


def cross_entropy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y)


LOOPS: tuple[Loop, ...] = ()
if hasattr(dalenius.learn, "register_function"):
    LOOPS = (
        Loop("function of one's own", lambda: registered(Swish), LABELED, training(cross_entropy)),
        Loop("straight-through", lambda: registered(StraightThrough), LABELED, training(cross_entropy)),
    )
