"""A compiled model has the same gradients. `eager` traces and splits graphs as any backend does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dalenius.learn.gradients import Watched


class Stack(nn.Module):
    """Linear maps and attention."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.last = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x))
        h = self.norm(h + self.attention(h, h, h, need_weights=False)[0])
        found: Tensor = self.last(h).mean(1)
        return found


def inside(model: nn.Module) -> tuple[Watched, Any]:
    watched = Watched(torch.compile(model, backend="eager"))
    return watched, watched


def outside(model: nn.Module) -> tuple[Watched, Any]:
    watched = Watched(model)
    return watched, torch.compile(watched, backend="eager")


@pytest.mark.parametrize("compiled", [inside, outside])
@pytest.mark.filterwarnings("ignore:Dynamo")
def test_a_compiled_model_has_the_same_gradients(
    compiled: Callable[[nn.Module], tuple[Watched, Any]],
) -> None:
    torch.manual_seed(0)
    model, x, y = Stack(), torch.randn(5, 4, 6), torch.randint(3, (5,))
    plain = Watched(model)
    found = []
    for watched, call in ((plain, plain), compiled(model)):
        nn.functional.cross_entropy(call(x), y, reduction="sum").backward()
        shares = watched.shares()
        totals = {one: torch.zeros_like(one) for one in watched.names}
        shares.add(torch.arange(1.0, 6), totals)
        found.append((shares.norms(), totals))
    for one in model.parameters():
        for before, after in zip(*found, strict=True):
            torch.testing.assert_close(after[one], before[one])
