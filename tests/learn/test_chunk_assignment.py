"""Every example is assigned to a chunk by itself, so that a loop may treat chunks differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom
from torch import Tensor
from torch.nn import functional

from dalenius.learn import private as runs
from dalenius.learn.chunk_assignment import RARE, assign_chunks, chunk_count
from dalenius.noise.bits import Bits
from dalenius.noise.stream import StreamKey

from .runs import flat, network, run_of

ROWS = 24


class Words(Bits):
    """Random words that are known beforehand."""

    def __init__(self, words: NDArray[np.uint32]) -> None:
        self._words = words

    def fill(self, words: NDArray[Any]) -> None:
        """Give the first words."""
        words[:] = self._words[: words.size]


@given(st.integers(1, 5000), st.integers(1, 700))
def test_chunks_rarely_exceed_their_size(examples: int, chunk: int) -> None:
    count = chunk_count(examples, chunk)
    assert (count == 1) == (examples <= chunk)
    if count > 1:
        rare = binom.sf(chunk, examples, 1 / count) <= RARE * (1 + 1e-6)
        assert rare or count >= 4 * examples / chunk
        assert -(-examples // chunk) <= count <= -(-4 * examples // chunk)
    if chunk >= 20:
        assert count == 1 or binom.sf(chunk, examples, 1 / count) <= 2e-6


@given(st.integers(0, 60), st.integers(1, 9), st.data())
def test_the_chunk_of_an_example_depends_on_its_own_bits_alone(
    examples: int, count: int, drawn: st.DataObject
) -> None:
    words = np.array(
        drawn.draw(st.lists(st.integers(0, 2**32 - 1), min_size=examples, max_size=examples)), np.uint32
    )
    rows = np.arange(examples) * 7
    parts = assign_chunks(rows, count, Words(words))
    assert len(parts) == count
    assert sorted(np.concatenate(parts)) == list(rows)
    for number, part in enumerate(parts):
        assert part.tolist() == [
            row for row, word in zip(rows, words, strict=True) if int(word) * count >> 32 == number
        ]
    if examples:
        left_out = drawn.draw(st.integers(0, examples - 1))
        others = assign_chunks(np.delete(rows, left_out), count, Words(np.delete(words, left_out)))
        for part, other in zip(parts, others, strict=True):
            assert other.tolist() == [row for row in part if row != rows[left_out]]


def test_units_are_assigned_whole() -> None:
    lines = np.arange(40).reshape(20, 2)
    key = StreamKey(bytes(32), tainted=True)
    parts = assign_chunks(lines, 5, key.stream(12, 0, 0))
    assert sorted(np.concatenate(parts)[:, 0]) == list(range(0, 40, 2))
    assert all((part[:, 1] == part[:, 0] + 1).all() for part in parts)


Body = Callable[[Any, Tensor, Tensor, int], Tensor]


def by_counter(private: Any, x: Tensor, y: Tensor, number: int) -> Tensor:
    """Turn the sign of every second chunk."""
    return (-1) ** number * functional.cross_entropy(private.model(x), y)


def by_annealing(private: Any, x: Tensor, y: Tensor, number: int) -> Tensor:
    """Add a penalty whose weight grows with the number of the chunk."""
    logits = private.model(x)
    return functional.cross_entropy(logits, y) + 0.3 * number * logits.square().mean()


def by_one_draw(private: Any, x: Tensor, y: Tensor, number: int) -> Tensor:
    """Multiply by one random number a chunk."""
    return (torch.rand(()) - 0.5) * functional.cross_entropy(private.model(x), y)


def moved(body: Body, absent: int | None, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """Return the sum of clipped gradients, everybody drawn, the same random bits for whoever is there."""
    words = StreamKey(b"w" * 32, tainted=True).stream(0).words(ROWS, np.uint32)
    monkeypatch.setattr(StreamKey, "fresh", classmethod(lambda cls: cls(b"k" * 32, tainted=True)))

    def coupled(rows: NDArray[np.int64], count: int, bits: Bits) -> list[NDArray[np.int64]]:
        there = rows[rows != absent]
        return assign_chunks(there, count, Words(words[there]))

    monkeypatch.setattr(runs, "assign_chunks", coupled)
    x = torch.randn(ROWS, 5, generator=torch.Generator().manual_seed(1))
    model = network()
    before = flat(model)
    private = run_of(
        model,
        (x, torch.arange(ROWS) % 3),
        batch_size=ROWS,
        public_size=ROWS,
        steps=1,
        chunk=4,
        clip=0.1,
        noise_multiplier=1e-6,
        lr=1.0,
    )
    for number, (inputs, labels) in enumerate(private.loader):
        private.zero_grad()
        body(private, inputs, labels, number).backward()
        private.step()
    assert number > 5
    return (flat(model) - before) * ROWS / 0.1


@pytest.mark.parametrize("body", [by_counter, by_annealing, by_one_draw])
def test_chunks_that_are_treated_differently_move_a_sum_by_one_example(
    body: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks that were cut at equal distances would move other examples from one to the next."""
    whole = moved(body, None, monkeypatch)
    shifts = [float((moved(body, absent, monkeypatch) - whole).norm()) for absent in range(0, ROWS, 3)]
    assert 0.1 < max(shifts) <= 1.001


def test_several_chunks_are_no_assumption() -> None:
    private = run_of(network(), (torch.randn(9, 5), torch.zeros(9).long()), batch_size=9, steps=1, chunk=4)
    assert not any("chunk" in line for line in private.receipt.bounds)
