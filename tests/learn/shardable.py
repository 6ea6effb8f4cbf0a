"""Small models that `fully_shard` is called on in several ways, beside themselves without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

from dalenius.learn.adam import Adam
from dalenius.learn.optimizer import PrivateOptimizer
from dalenius.learn.sharded import is_sharded, whole
from dalenius.noise.stream import StreamKey

BATCH, STEPS = 6, 2
Shard = Callable[..., Any]


class Block(nn.Module):
    """Attention and a network, each beside what it is added to."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norm, self.three = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out, self.scale = nn.Linear(width, width, bias=False), nn.Parameter(torch.ones(width))
        self.rest = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 11), nn.GELU(), nn.Linear(11, width))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.three(self.norm(x)).chunk(3, -1)
        seen = functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)
        x = x + self.out(seen[:, 0]) * self.scale
        return x + self.rest(x)


class Words(nn.Module):
    """From words to a word; the last layer may be the first one's table."""

    def __init__(self, *, tied: bool) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(11, 8), nn.Parameter(torch.randn(5, 8))
        self.blocks, self.last = nn.ModuleList([Block(), Block()]), nn.Linear(8, 11, bias=False)
        if tied:
            self.last.weight = self.table.weight

    def forward(self, words: Tensor) -> Tensor:
        x = self.table(words) + self.places
        for block in self.blocks:
            x = block(x)
        return self.last(x).mean(1)


class Filters(nn.Module):
    """With a parameter that is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.filters, self.norm, self.last = nn.Conv1d(1, 3, 3), nn.GroupNorm(1, 3), nn.Linear(9, 2)
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.norm(self.filters(x[:, None]))).flatten(1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layer(x)[0][:, -1])


def derived() -> nn.Module:
    """Whose weights are made of parameters."""
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2))
    nn.utils.parametrizations.weight_norm(model[0])
    return model


def frozen() -> nn.Module:
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2))
    model[0].weight.requires_grad_(False)
    return model


def each_block(model: Any, shard: Shard) -> None:
    for block in model.blocks:
        shard(block)
    shard(model)


def blocks_together(model: Any, shard: Shard) -> None:
    shard([*model.blocks])
    shard(model)


def first_child(model: nn.Module, shard: Shard) -> None:
    shard(next(model.children()))
    shard(model)


def but_one(model: Any, shard: Shard) -> None:
    """One is left whole in each process."""
    shard(model, ignored_params={model.norm.weight})


def whole_model(model: Any, shard: Shard) -> None:
    shard(model, reshard_after_forward=True)


def words() -> Tensor:
    return torch.randint(11, (BATCH, 5))


def numbers(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(BATCH, *shape, dtype=torch.float64)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor], Callable[..., None]]] = {
    "blocks": (lambda: Words(tied=False), words, each_block),
    "blocks together": (lambda: Words(tied=False), words, blocks_together),
    "tied": (lambda: Words(tied=True), words, each_block),
    "filters": (Filters, numbers(5), first_child),
    "but one": (Filters, numbers(5), but_one),
    "recurrent": (Recurrent, numbers(3, 4), whole_model),
    "derived": (derived, numbers(5), first_child),
    "frozen": (frozen, numbers(5), whole_model),
}


def trained(name: str, key: StreamKey, shard: Shard | None) -> dict[str, Tensor]:
    """Weights after some steps, of two chunks each."""
    make, data, how = MODELS[name]
    rank, count = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(0)
    model, inputs, labels = make().double(), [data() for _ in range(STEPS)], torch.randint(2, (BATCH,))
    if shard is not None:
        how(model, shard)
        assert sum(map(is_sharded, model.parameters())) >= len(list(model.parameters())) - 1
    optimizer = Adam([one for one in model.parameters() if one.requires_grad], lr=0.1)
    # A look at the model leaves some parameters whole.
    with torch.no_grad():
        model(inputs[0])
    private = PrivateOptimizer(model, optimizer, clip=1, noise_multiplier=1, batch_size=BATCH)
    private._key = key
    for x in inputs:
        for half in (range(BATCH // 2), range(BATCH // 2, BATCH)):
            own = half[rank::count]
            private.zero_grad()
            functional.cross_entropy(private.model(x[own]), labels[own]).backward()
            with torch.no_grad():
                private.model(x)
            private.step() if half.start else private.accumulate()
    assert all(is_sharded(one.grad) == is_sharded(one) for one in private.model.names)
    return {one: two.detach().clone() for one, two in whole(model.state_dict()).items()}


def sharded_or_not(key: StreamKey, shard: Shard, folder: Path) -> dict[str, Any]:
    return {name: [trained(name, key, how) for how in (None, shard)] for name in MODELS}
