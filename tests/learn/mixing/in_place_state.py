"""State of a model that rows write and other rows read: buffers, frozen parameters and attributes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.learn.mixing.loops import Loops
from tests.learn.mixing.rows import CLASSES, FEATURES

LOOPS = Loops("in-place state")


class TwoLayers(nn.Module):
    """Features to scores of classes, with a step between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 4), nn.Linear(4, CLASSES)

    def between(self, h: Tensor) -> Tensor:
        """Return what the last layer gets."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.tanh(self.between(self.first(x))))


@LOOPS.module("add|sub|centre")
class RunningCentreInABuffer(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(4))
        self.centre: Tensor

    def between(self, h: Tensor) -> Tensor:
        self.centre.mul_(0.9).add_(0.1 * h.detach().mean(0))
        return h - self.centre


@LOOPS.module("sub")
class RunningCentreInAnAttribute(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.centre = torch.zeros(4)

    def between(self, h: Tensor) -> Tensor:
        self.centre = 0.9 * self.centre + 0.1 * h.detach().mean(0)
        return h - self.centre


@LOOPS.module("copy|getitem|memory")
class FrozenParameterWritten(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.Parameter(torch.zeros(4), requires_grad=False)

    def between(self, h: Tensor) -> Tensor:
        self.memory.data.copy_(h.detach()[0])
        return h + self.memory


@LOOPS.module("sub|out|centre")
class StatisticsByOut(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(4))
        self.centre: Tensor

    def between(self, h: Tensor) -> Tensor:
        torch.mean(h.detach(), 0, out=self.centre)
        return h - self.centre


@LOOPS.module("numpy")
class StatisticsBySharedMemory(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.centre = torch.zeros(4)

    def between(self, h: Tensor) -> Tensor:
        self.centre.numpy()[:] = h.detach().mean(0).numpy()
        return h - self.centre


@LOOPS.module("cat|matmul|mm")
class MemoryBank(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.bank = torch.ones(16, 4)

    def between(self, h: Tensor) -> Tensor:
        self.bank = torch.cat([h.detach(), self.bank])[:16]
        return h + torch.softmax(h @ self.bank.T, dim=1) @ self.bank


@LOOPS.module("div")
class CounterOfActiveInputs(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.seen = torch.zeros(())

    def between(self, h: Tensor) -> Tensor:
        self.seen = self.seen + (h.detach() > 0).sum()
        return h / (1 + self.seen)
