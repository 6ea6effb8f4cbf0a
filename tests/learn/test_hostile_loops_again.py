"""Further loops that were written to get around the analysis of data flow: all of them are refused.

Measured shifts of a clipped sum were between 1.4 and 4.5 clip norms, where one of nine examples was removed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from tests.learn.test_hostile_loops import Inputs, Size, run, train

Losses = Callable[[nn.Module, Tensor, Tensor], Tensor]
HISTORY = torch.zeros(5)
TABLE = torch.zeros(100)


# Values that are written into tensors.


def number_written(x: Tensor) -> Tensor:
    """Write a value that was read out into a new tensor."""
    center = torch.zeros(5)
    center[:] = x.mean().item()
    return x - center


def number_kept(x: Tensor) -> Tensor:
    """Write a value that was read out into a tensor from before the loop."""
    HISTORY[0] = x.mean().item()
    return x - HISTORY


def number_added(x: Tensor) -> Tensor:
    """Add a value that was read out, by a view."""
    center = torch.zeros(5)
    center.view(-1).add_(x.mean().item())
    return x - center


def mixed_out(x: Tensor) -> Tensor:
    """Compute what is mixed already into the memory of a public tensor."""
    center = torch.zeros(5)
    torch.mul(x.mean(0) * x.mean(0), 1.0, out=center.data)
    return x - center


# Statistics that normalization keeps.


def normalized(x: Tensor) -> Tensor:
    """Normalize by running statistics of the same batch."""
    norm = nn.BatchNorm1d(5, momentum=1.0).requires_grad_(False)
    norm(x)
    result: Tensor = norm.eval()(x)
    return result


def normalized_mixed(x: Tensor) -> Tensor:
    """Normalize by running statistics of what is mixed already."""
    norm = nn.BatchNorm1d(5, momentum=1.0).requires_grad_(False)
    norm(x + x.sum(0))
    result: Tensor = norm.eval()(x)
    return result


def normalized_by_function(x: Tensor) -> Tensor:
    """Subtract a running mean that a function wrote."""
    mean, variance = torch.zeros(5), torch.ones(5)
    functional.batch_norm(x, mean, variance, training=True, momentum=1.0)
    return x - mean


def normalized_instances(x: Tensor) -> Tensor:
    """Subtract a running mean that the normalization of instances wrote."""
    mean, variance = torch.zeros(5), torch.ones(5)
    functional.instance_norm(x[:, :, None].expand(-1, -1, 3), mean, variance, momentum=1.0)
    return x - mean


# Other tensors on the same memory, and other threads.


class Other(Tensor):
    """A type of tensors."""


def in_pool(x: Tensor) -> Tensor:
    """Take the mean over the batch in a thread of a pool."""
    with ThreadPoolExecutor(1) as pool:
        return x - pool.submit(lambda: x.mean(0)).result()


def in_thread(x: Tensor) -> Tensor:
    """Take the mean over the batch in a thread."""
    means: list[Any] = []

    def work() -> None:
        try:
            means.append(x.mean(0))
        except NotSound as error:
            means.append(error)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(means[0], NotSound):
        raise means[0]
    mean: Tensor = means[0]
    return x - mean


# Random numbers that several examples share.


def mirrored(x: Tensor) -> Tensor:
    """Add the random numbers of another example."""
    noise = torch.randn_like(x)
    return x * (1 + noise + noise.flip(0))


def rolled(x: Tensor) -> Tensor:
    """Subtract the random numbers of the next example."""
    noise = torch.randn_like(x)
    return x + noise - noise.roll(1, 0)


def reshaped(x: Tensor) -> Tensor:
    """Add random numbers in the order of another shape."""
    noise = torch.randn_like(x)
    return x * (1 + noise + noise.reshape(5, -1).t())


def seeded_aside(x: Tensor) -> Tensor:
    """Draw numbers by a public seed that is taken back."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return x + torch.randn(5, x.shape[0]).t()


def memory_set(x: Tensor) -> Tensor:
    """Replace the memory of a public tensor."""
    center = torch.zeros(5)
    center.set_(x.mean(0))
    return x - center


def written_in_lists(x: Tensor) -> Tensor:
    """Add to several tensors at once."""
    center = torch.zeros(5)
    torch._foreach_add_([center], [x.mean(0)])
    return x - center


def scaled_by_look_ups(x: Tensor) -> Tensor:
    """Use a frozen table whose rows are scaled where examples look them up."""
    table = nn.Embedding(3, 5, max_norm=0.01).requires_grad_(False)
    table((x[:, 0] > 0).long())
    return x * table.weight.sum(0)


CHANGES: dict[str, Inputs] = {
    "reshaped noise": reshaped,
    "seeded aside": seeded_aside,
    "memory": memory_set,
    "lists": written_in_lists,
    "look-ups": scaled_by_look_ups,
    "number written": number_written,
    "number kept": number_kept,
    "number added": number_added,
    "mixed out": mixed_out,
    "normalized": normalized,
    "normalized mixed": normalized_mixed,
    "normalized by a function": normalized_by_function,
    "normalized instances": normalized_instances,
    "parameter": lambda x: x - nn.Parameter(x.mean(0), requires_grad=False),
    "constructor": lambda x: x - torch.Tensor(x.mean(0)),
    "another type": lambda x: x - x.mean(0).as_subclass(Other).as_subclass(Tensor),
    "thread of a pool": in_pool,
    "thread": in_thread,
    "mirrored noise": mirrored,
    "rolled noise": rolled,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_inputs_that_mix_are_refused(change: Inputs) -> None:
    with pytest.raises(NotSound):
        train(run(), change)


# The size of a batch, which is private.


def counted(x: Tensor, _: Tensor) -> Tensor:
    """Write as many ones as the batch has examples, and one more."""
    table = torch.zeros(100)
    table[: x.shape[0] + 1] = 1.0
    return table.sum() - 1


def counted_by_positions(x: Tensor, _: Tensor) -> Tensor:
    """Write a one for every example into a tensor from before the loop."""
    TABLE[torch.arange(x.shape[0])] = 1.0
    return TABLE.sum()


SIZES: dict[str, Size] = {
    "written by a number": counted,
    "written by positions": counted_by_positions,
    "sum of a slice": lambda x, y: torch.ones(100)[: x.shape[0]].sum(),
    "length of a slice": lambda x, y: torch.ones(100)[: x.shape[0]].shape[0],
    "sum of the others": lambda x, y: torch.ones(x.shape[0])[1:].sum() + 1,
    "number of the others": lambda x, y: torch.ones(x.shape[0])[1:].shape[0] + 1,
    "sum of every second": lambda x, y: torch.ones_like(y)[::2].sum() * 2 - 1,
    "in a thread": lambda x, y: ThreadPoolExecutor(1).submit(lambda: x.shape[0]).result(),
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_a_branch_on_the_size_of_a_batch_is_refused(size: Size) -> None:
    private = run()
    with pytest.raises(NotSound):
        for x, y in private.loader:
            private.zero_grad()
            loss = functional.cross_entropy(private.model(x), y)
            (loss if size(x, y) > 8.5 else -loss).backward()
            private.step()


# Losses of several views, which pair an example with another.


def noisy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Give an example's two views random numbers that other examples have too."""
    views = x.repeat_interleave(2, 0) + torch.randn_like(x).repeat(2, 1)
    return functional.cross_entropy(model(views), y.repeat_interleave(2))


def sampled(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Sample an image at positions that another example gives."""
    grid = x.repeat_interleave(2, 0)[:, :4].reshape(-1, 1, 2, 2).tanh()
    images = functional.grid_sample(torch.cat([x, x])[:, None, None, :], grid, align_corners=False)
    scores = model(functional.pad(images.reshape(-1, 2), (0, 3)))
    return functional.cross_entropy(scores, y.repeat_interleave(2))


LOSSES: dict[str, Losses] = {
    "noise": noisy,
    "samples": sampled,
    "margins": lambda model, x, y: functional.multi_margin_loss(
        model(torch.cat([x, x])), y.repeat_interleave(2)
    ),
    "members": lambda model, x, y: (
        functional.cross_entropy(model(x), y, reduction="none") * torch.isin(y, torch.arange(x.shape[0]))
    ).sum(),
    "look-up": lambda model, x, y: (
        functional.cross_entropy(model(x), y, reduction="none") * torch.linspace(0, 1, x.shape[0])[y]
    ).sum(),
}


@pytest.mark.parametrize("losses", LOSSES.values(), ids=LOSSES.keys())
def test_losses_that_pair_examples_are_refused(losses: Losses) -> None:
    private = run()
    with pytest.raises(NotSound):
        for x, y in private.loader:
            private.zero_grad()
            losses(private.model, x, y).backward()
            private.step()
