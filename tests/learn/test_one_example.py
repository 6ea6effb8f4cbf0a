"""One example moves the clipped sum by at most the clip norm, in every accepted loop and architecture.

Rows are added to a batch one at a time, in a random order in which hostile rows come early and late: each
addition is one pair of batches with and without an example. All choices come from the seeds below. The
ordinary run takes one pair of each loop and architecture, the slow suite all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from .accepted import LOOPS, Loop
from .accepted.loop import training
from .architectures import ARCHITECTURES, Architecture
from .clipped_sums import CLIP, Rows, clipped_sum, hostile

EXAMPLES = 8
SEEDS, LARGE_SEEDS, ARCHITECTURE_SEEDS = (1, 2), (3,), (4,)
"""Seeds of rows: for loops on small models, for models of Hugging Face, and for architectures."""
FEWEST = 5
"""The smallest batch of architectures and of models of Hugging Face, which leaves three pairs to each."""
ORDINARY = 6
"""The smallest batch in the ordinary run, which leaves two pairs to each."""


def large(loop: Loop) -> bool:
    return loop.name.startswith("HF")


CASES = [(loop, seed) for loop in LOOPS for seed in (LARGE_SEEDS if large(loop) else SEEDS)]
PAIRS = sum(EXAMPLES - FEWEST * large(loop) for loop, _ in CASES)
PAIRS += (EXAMPLES - FEWEST) * len(ARCHITECTURES) * len(ARCHITECTURE_SEEDS)


def test_there_are_two_thousand_pairs() -> None:
    """Count the pairs of the slow suite."""
    assert PAIRS >= 2000


def shifts(total: Callable[[Rows], Tensor], rows: Rows, *, fewest: int = 0) -> list[float]:
    """Return how far each row moves the sum of the rows before it, in clip norms.

    Args:
        total: Returns the clipped sum of some rows.
        rows: The rows, added one at a time to a batch.
        fewest: The size of the first batch; the sum of an empty one is zero.
    """
    sums = [
        total(tuple(column[:count] for column in rows))
        for count in range(max(1, fewest), rows[0].shape[0] + 1)
    ]
    if not fewest:
        sums.insert(0, torch.zeros_like(sums[0]))
    assert all(torch.isfinite(value).all() for value in sums)
    return [float((after - before).norm()) / CLIP for before, after in pairwise(sums)]


def moved(loop: Loop, seed: int, *, fewest: int = 0) -> list[float]:
    """Return the shifts of hostile rows of a seed, by the real code of a loop."""
    bits = torch.Generator().manual_seed(seed)
    rows = hostile(loop.rows(EXAMPLES, bits), loop.ignored, bits)
    return shifts(partial(clipped_sum, loop, model=loop.model()), rows, fewest=fewest)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_one_example_moves_the_sum_of_a_loop_by_the_clip_norm_at_most(loop: Loop) -> None:
    assert max(moved(loop, 1, fewest=ORDINARY)) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("loop", "seed"), CASES, ids=[f"{loop.name}-{seed}" for loop, seed in CASES])
def test_one_of_many_examples_moves_the_sum_of_a_loop_by_the_clip_norm_at_most(loop: Loop, seed: int) -> None:
    found = moved(loop, seed, fewest=FEWEST * large(loop))
    assert max(found) <= 1
    # Ordinary rows are clipped: they reach the bound, but for the slack.
    assert max(found) >= 0.9


@pytest.mark.parametrize("loop", LOOPS[::8], ids=lambda loop: loop.name)
def test_an_ordinary_example_moves_the_sum_of_a_loop_by_the_clip_norm(loop: Loop) -> None:
    """The test above can fail: one row moves the sum as far as it may, but for the slack."""
    rows = loop.rows(1, torch.Generator().manual_seed(1))
    assert 0.9 <= float(clipped_sum(loop, rows).norm()) / CLIP <= 1


def loop_of(architecture: Architecture) -> Loop:
    """Return the ordinary loop over the mean of an architecture's losses."""

    def loss_of(model: nn.Module, *batch: Any) -> Tensor:
        arguments = (x.transpose(0, architecture.batch_dim) for x in batch[:-1])
        return architecture.loss(model(*arguments), batch[-1]).mean()

    def rows(n: int, generator: torch.Generator) -> Rows:
        *arguments, targets = architecture.inputs(n, generator)
        return (*(x.transpose(0, architecture.batch_dim).contiguous() for x in arguments), targets)

    name, build = architecture.name, architecture.build
    return Loop(name, build, rows, training(loss_of), random=architecture.random)


def shifts_of(architecture: Architecture, seed: int, *, fewest: int) -> list[float]:
    """Return the shifts of an architecture's rows; the ordinary loop over it is accepted."""
    return moved(loop_of(architecture), seed, fewest=fewest)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda entry: entry.name)
def test_one_example_moves_the_sum_of_an_architecture_by_the_clip_norm_at_most(
    architecture: Architecture,
) -> None:
    assert max(shifts_of(architecture, ARCHITECTURE_SEEDS[0], fewest=EXAMPLES - 1)) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", ARCHITECTURE_SEEDS)
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda entry: entry.name)
def test_one_of_many_examples_moves_the_sum_of_an_architecture_by_the_clip_norm_at_most(
    architecture: Architecture, seed: int
) -> None:
    assert max(shifts_of(architecture, seed, fewest=FEWEST)) <= 1
