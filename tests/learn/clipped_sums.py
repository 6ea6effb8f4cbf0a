"""Clipped sums of a loop's real code, and the hostile rows that they are compared on.

The sum is read where noise would be added to it, in `Sum.release`, so that everything before is the real
path: the loader, the loop, the backward pass, clipping and summation.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from dalenius.learn.adding import Sum

from .accepted.loop import Loop

Rows = tuple[Tensor, ...]
CLIP = 0.01
"""Far below the gradient norms of the tiny models, so that ordinary examples are clipped."""


def clipped_sum(loop: Loop, rows: Rows, *, model: nn.Module | None = None, clip: float = CLIP) -> Tensor:
    """Run a loop over all `rows` and return the clipped sum of its first step before noise, as one vector.

    Args:
        loop: The loop; its real code runs.
        rows: The rows of every batch: the sampling rate is 1.
        model: The model to train, which stays as it is; by default a new one of seed 0.
        clip: The clip norm.
    """
    count = rows[0].shape[0]
    sums: list[Tensor] = []
    release = Sum.release

    def recorded(self: Sum, *path: Any, **more: Any) -> None:
        sums.append(torch.cat([total.detach().double().reshape(-1) for total in self.exact()]))
        release(self, *path, **more)

    model = loop.model() if model is None else model
    whole: dict[str, Any] = {"batch_size": count, "public_size": count, "clip": clip, "lr": 0.0}
    if "epochs" not in loop.options:
        whole["steps"] = 1
    with patch.object(Sum, "release", recorded), PrefixStable() if loop.random else nullcontext():
        loop.train(loop.private(model, rows, **whole))
    return sums[0]


class PrefixStable(TorchDispatchMode):
    """Random tensors whose first entries do not depend on how many entries there are.

    With a row removed from the end of a batch every other row keeps its random numbers, so that two sums
    differ by what the row adds and not by chance. Calls are numbered: pass after pass draws the same numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run any operation; entries of a random tensor are replaced by numbers of this call's stream."""
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        # Fused attention on a CPU has no dropout: with dropout it is made of simpler operations.
        fused = name.startswith("_scaled_dot_product")
        if fused or torch.Tag.nondeterministic_seeded not in func.tags:
            return result
        self._calls += 1
        stream = np.random.Generator(np.random.Philox(key=self._calls))
        return result.copy_(torch.as_tensor(DRAWS[name](stream, result, args)).reshape(result.shape))


# A private loop refuses modes that are not torch's.
PrefixStable.__module__ = "torch.testing"


def _uniform(stream: np.random.Generator, like: Tensor, args: Any) -> Any:
    return stream.random(like.numel())


def _within(stream: np.random.Generator, like: Tensor, args: Any) -> Any:
    """Numbers of aten.uniform_(tensor, low, high)."""
    low, high = args[1:3] if len(args) > 2 else (0.0, 1.0)
    return low + (high - low) * stream.random(like.numel())


def _normal(stream: np.random.Generator, like: Tensor, args: Any) -> Any:
    return stream.standard_normal(like.numel())


def _normal_of(stream: np.random.Generator, like: Tensor, args: Any) -> Any:
    """Numbers of aten.normal(means, deviations) or aten.normal(mean, deviation, size)."""
    if not any(isinstance(given, Tensor) for given in args[:2]):
        return args[0] + args[1] * _normal(stream, like, args)
    mean, deviation = torch.broadcast_tensors(*(torch.as_tensor(given).detach() for given in args[:2]))
    return (mean + deviation * torch.as_tensor(_normal(stream, like, args)).view(mean.shape)).numpy()


def _coins(stream: np.random.Generator, like: Tensor, args: Any) -> Any:
    """Coins of aten.bernoulli_(tensor, p), where p is left out if it is a half."""
    return (stream.random(like.numel()) < (args[1] if len(args) > 1 else 0.5)).astype(np.float64)


def _coins_of(stream: np.random.Generator, like: Tensor, args: Any) -> Any:
    """Coins of aten.bernoulli(probabilities)."""
    return (stream.random(like.numel()) < args[0].detach().double().reshape(-1).numpy()).astype(np.float64)


def _integers(stream: np.random.Generator, like: Tensor, args: Any) -> Any:
    """Integers of aten.randint(high, size) or aten.randint.low(low, high, size)."""
    low, high = (args[0], args[1]) if isinstance(args[1], int) else (0, args[0])
    return low + np.floor(stream.random(like.numel()) * (high - low)).astype(np.int64)


def _binomial(stream: np.random.Generator, like: Tensor, args: Any) -> Any:
    """Numbers of aten.binomial(counts, probabilities)."""
    return stream.binomial(args[0].numpy().astype(np.int64), args[1].double().numpy())


def _simplex(stream: np.random.Generator, like: Tensor, args: Any) -> Any:
    """Rows of aten._sample_dirichlet(concentrations)."""
    draws = stream.standard_gamma(args[0].double().numpy())
    return draws / draws.sum(-1, keepdims=True)


DRAWS: dict[str, Callable[[np.random.Generator, Tensor, Any], Any]] = {
    "rand": _uniform,
    "rand_like": _uniform,
    "uniform_": _within,
    "randn": _normal,
    "randn_like": _normal,
    "normal_": _normal,
    "normal": _normal_of,
    "bernoulli_": _coins,
    "bernoulli": _coins_of,
    "randint": _integers,
    "binomial": _binomial,
    "_sample_dirichlet": _simplex,
}


def hostile(rows: Rows, ignored: tuple[int, ...], bits: torch.Generator) -> Rows:
    """Return rows in random order, of which about half are hostile.

    Of eight rows one is a duplicate of another; one is not a number, one infinite and one huge (1e30) in one
    of its columns of floats, or in a single entry of it; one has some ignored labels and one nothing else.

    Args:
        rows: At least eight rows.
        ignored: Columns whose entries may be −100.
        bits: The source of the choices.
    """
    columns = [column.clone() for column in rows]
    floats = [column for column in columns if column.is_floating_point()]
    for column in columns:
        column[0] = column[1]
    for row, value in ((2, float("nan")), (3, float("inf")), (4, 1e30)):
        for column in _some(floats, bits):
            _spoil(column[row : row + 1].view(-1), value, bits)
    for place in ignored:
        labels = columns[place]
        labels[5] = labels[5].masked_fill(torch.rand(labels[5].shape, generator=bits) < 0.5, -100)
        labels[6] = -100
    order = torch.randperm(columns[0].shape[0], generator=bits)
    return tuple(column[order] for column in columns)


def _some(columns: list[Tensor], bits: torch.Generator) -> list[Tensor]:
    """Return one of the columns, or all of them."""
    if len(columns) < 2 or torch.rand((), generator=bits) < 0.5:
        return columns
    return [columns[int(torch.randint(len(columns), (), generator=bits))]]


def _spoil(entries: Tensor, value: float, bits: torch.Generator) -> None:
    """Set one of the entries, or all of them, to a value."""
    if torch.rand((), generator=bits) < 0.5:
        entries.fill_(value)
    else:
        entries[int(torch.randint(entries.numel(), (), generator=bits))] = value
