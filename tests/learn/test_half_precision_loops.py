"""In half precision 1/n is rounded, by an amount that depends on n: no gradient is to have it as a factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from tests.learn.accepted.loop import Loop, training
from tests.learn.clipped_sums import clipped_sum

ROWS, CLIP = 19, 0.01
Loss = Callable[[Any, Tensor, Tensor], Tensor]


class Encoder(nn.Module):
    """A model that keeps a penalty of each row beside what it returns."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(5, 4), nn.Linear(2, 3)
        self.penalty = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        mean, logarithm = self.first(x).chunk(2, dim=1)
        self.penalty = (mean.square() + logarithm.exp() - logarithm - 1).sum(1)
        return self.last(mean)


class Law(nn.Module):
    """A model that returns a distribution, which is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Any:
        return torch.distributions.Categorical(logits=self.inner(x).float(), validate_args=False)


def kept_penalty(model: Any, x: Tensor, y: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = functional.cross_entropy(model(x), y)
        return loss + 20 * model.inner.penalty.float().mean()


def second_pass(model: Any, x: Tensor, y: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = functional.cross_entropy(model(x), y)
    return loss + functional.cross_entropy(model(-x), y)


def returned_law(model: Any, x: Tensor, y: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        law = model(x)
    return -law.log_prob(y).mean()


def half_mean(model: Any, x: Tensor, y: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(x)
        return model.inner.penalty.bfloat16().mean().float()


def rows(n: int, bits: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows that are all alike, so that a change of all gradients adds up."""
    x = torch.randn(1, 5, generator=bits).expand(n, 5).clone()
    return x, torch.ones(n, dtype=torch.int64)


@pytest.mark.parametrize(
    ("model", "loss"), [(Encoder, kept_penalty), (Encoder, second_pass), (Law, returned_law)]
)
def test_a_row_moves_the_sum_by_the_clip_norm_at_most(model: type[nn.Module], loss: Loss) -> None:
    loop = Loop("half precision", model, rows, training(loss))
    whole = rows(ROWS, torch.Generator().manual_seed(2))
    with_it = clipped_sum(loop, whole, clip=CLIP)
    without = clipped_sum(loop, tuple(column[1:] for column in whole), clip=CLIP)
    assert 0.5 * CLIP < float((with_it - without).norm()) <= CLIP


def test_a_mean_in_half_precision_is_refused() -> None:
    loop = Loop("half precision", Encoder, rows, training(half_mean))
    with pytest.raises(NotSound, match=r"call \.float\(\) before"):
        clipped_sum(loop, rows(ROWS, torch.Generator().manual_seed(2)), clip=CLIP)
