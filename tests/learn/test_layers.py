"""Layers with bounds of their own are summed on the way back: the same sums, and nothing is kept."""

from __future__ import annotations

import pytest
import torch
from sizes import one_in
from torch import Tensor, nn

import dalenius as dp
from dalenius.errors import NotSound
from dalenius.learn.clipping import PerLayer
from dalenius.learn.optimizer import PrivateOptimizer
from dalenius.learn.parts import Summed

from .architectures import ARCHITECTURES, Architecture
from .reference import losses

CERTAIN = [entry for entry in ARCHITECTURES if not entry.random and not entry.batch_dim]


def private_of(model: nn.Module, clip: float = 0.1) -> PrivateOptimizer:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return PrivateOptimizer(
        model, optimizer, clip=PerLayer(clip), noise_multiplier=1, batch_size=4, reduction="sum"
    )


def unsummed(private: PrivateOptimizer) -> int:
    """How many parts are on the tape as they came."""
    parts = private.model._tape._parts.values()
    return sum(type(one) is not Summed for some in parts for one in some)


def sums(private: PrivateOptimizer) -> list[Tensor]:
    private.accumulate()
    found = [one.clone() for one in private._sum.exact()]
    private._fresh = True
    return found


@pytest.mark.parametrize("architecture", one_in(3, CERTAIN), ids=lambda entry: entry.name)
def test_the_same_sums_as_of_parts_that_are_kept(architecture: Architecture) -> None:
    model, inputs = architecture.sample(4, dtype=torch.float64)
    private = private_of(model)
    found, kept = [], []
    try:
        for _ in range(3):
            losses(private.model, inputs, architecture.loss).sum().backward()
            kept.append(unsummed(private))
            found.append(sums(private))
    except NotSound:
        assert architecture.awkward
        return
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    assert kept[1] <= kept[0]


class Twice(nn.Module):
    """A layer that is used as often as asked."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last, self.times = nn.Linear(3, 3), nn.Linear(3, 1), 1

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.times):
            x = torch.tanh(self.layer(x))
        found: Tensor = self.last(x).sum(1)
        return found


def test_nothing_but_sums_is_kept() -> None:
    private = private_of(Twice())
    for wanted in (4, 0):
        private.zero_grad()
        private.model(torch.randn(4, 3)).sum().backward()
        assert unsummed(private) == wanted
        sums(private)


def test_a_layer_may_be_used_more_often_and_less_often_than_before() -> None:
    """The norm is that of the sum of all uses, as in a longer sequence."""
    torch.manual_seed(0)
    model, x = Twice(), torch.randn(4, 3)
    private = private_of(model)
    for model.times in (2, 5, 1, 3):
        private.model(x).sum().backward()
        found, fresh = sums(private), private_of(model)
        fresh.model(x).sum().backward()
        for one, two in zip(found, sums(fresh), strict=True):
            torch.testing.assert_close(one, two)


def test_parts_that_come_after_the_sum_are_refused() -> None:
    """The norm of the sum of both would be clipped as two."""
    private, x = private_of(Twice()), torch.randn(4, 3)
    private.model(x).sum().backward()
    sums(private)
    loss = private.model(x).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(NotSound, match="more often"):
        loss.backward()
    with pytest.raises(NotSound, match="not taken in"):
        private.model(x)
    private.model(x).sum().backward()
    sums(private)


def test_an_example_that_is_no_number_adds_nothing() -> None:
    torch.manual_seed(0)
    model, x = Twice(), torch.randn(4, 3)
    private = private_of(model)
    found = []
    for spoiled in (False, True, False):
        x[2] = torch.nan if spoiled else 0
        weights = torch.tensor([1.0, 1, 1 if spoiled else 0, 1])
        (private.model(x) * weights).sum().backward()
        found.append(sums(private))
    for one, two in zip(found[1], found[2], strict=True):
        torch.testing.assert_close(one, two)


def test_a_pass_that_was_not_taken_in_is_not_forgotten() -> None:
    private = private_of(Twice())
    for _ in range(2):
        private.model(torch.randn(4, 3)).sum().backward()
        sums(private)
    private.model(torch.randn(4, 3)).sum().backward()
    with pytest.raises(NotSound, match="not taken in"):
        private.model(torch.randn(4, 3))


def test_a_run_by_layers_is_a_run() -> None:
    """Poisson batches in chunks, and empty ones; the first pass shows what the others sum on the way."""
    torch.manual_seed(3)
    model, data = Twice(), torch.randn(30, 3)
    private = dp.learn.Private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        data,
        batch_size=2,
        steps=8,
        clip=PerLayer(1),
        noise_multiplier=1,
        public_size=30,
        chunk=2,
    )
    summed = []
    for (x,) in private.loader:
        private.zero_grad()
        private.model(x).mean().backward()
        summed.append(unsummed(private) == 0)
        private.step()
    assert private.steps == 8
    assert not summed[0] and all(summed[1:])
