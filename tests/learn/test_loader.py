"""An iteration over a run's loader is one epoch, or the whole run where its length was given in steps."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from dalenius.errors import InvalidArgument
from dalenius.learn.private import Private
from dalenius.learn.sampling import Poisson, RandomAllocation
from dalenius.learn.stretches import Stretches

from .runs import data, network, run_of


def learn(private: Private, x: Any, y: Any) -> None:
    private.zero_grad()
    functional.cross_entropy(private.model(x), y).backward()
    private.step()


def epochs_of(count: float, **more: Any) -> Private:
    return run_of(network(), data(40), steps=None, epochs=count, public_size=40, **more)


def test_epochs_are_iterations_and_the_last_one_ends_the_run() -> None:
    private = epochs_of(3, chunk=3)
    ends = []
    for epoch in range(3):
        assert private.epoch == epoch and len(private.loader) == 5
        for x, y in private.loader:
            assert len(private.loader) == 5
            learn(private, x, y)
        ends.append(private.steps)
    assert ends == [5, 10, 15] and private.epoch == 3
    with pytest.raises(InvalidArgument, match="all of its 15 steps") as caught:
        next(iter(private.loader))
    assert "epochs" in caught.value.remedy
    with pytest.raises(InvalidArgument, match="all of its 15 steps"):
        next(private.batches())


def test_steps_are_one_iteration() -> None:
    private = run_of(network(), data(40), steps=12, public_size=40)
    assert len(private.loader) == 12 and private.epoch == 0
    for x, y in private.loader:
        learn(private, x, y)
    assert private.steps == 12 and private.epoch == 1 and len(private.loader) == 12


def test_batches_are_those_of_the_whole_run() -> None:
    private = epochs_of(2)
    for x, y in private.batches():
        assert len(private.loader) == 10
        learn(private, x, y)
    assert private.steps == 10 and private.epoch == 2


def test_an_iteration_that_is_broken_off_is_continued_by_the_next(tmp_path: Path) -> None:
    private, ends = epochs_of(2), []
    for x, y in private.loader:
        learn(private, x, y)
        if private.steps == 3:
            break
    private.save(tmp_path / "run.state")
    private.close()
    model = network()
    again = Private.resume(
        tmp_path / "run.state",
        model,
        type(private.optimizer)(model.parameters(), lr=0.5),
        data(40),
        batch_size=8,
        epochs=2,
        clip=1,
        noise_multiplier=1,
        public_size=40,
    )
    for _ in range(again.epoch, 2):
        for x, y in again.loader:
            learn(again, x, y)
        ends.append(again.steps)
    assert ends == [5, 10]


@given(size=st.integers(1, 60), batch=st.integers(1, 60), epochs=st.integers(1, 7), allocated=st.booleans())
def test_as_many_iterations_as_epochs_make_every_step_once(
    size: int, batch: int, epochs: int, allocated: bool
) -> None:
    kind = RandomAllocation if allocated else Poisson
    sampling = kind(0, batch_size=min(size, batch), epochs=epochs, public_size=size)
    passes, step = Stretches(sampling, "epoch"), 0
    longest = -(-size // min(size, batch))
    for _ in range(epochs):
        start, end = passes.around(step)
        assert start == step and end - start in (longest - 1, longest) and end > start
        assert all(passes.around(inside) == (start, end) for inside in range(start, end))
        step = end
    assert step == sampling.steps


def test_part_of_an_epoch_is_a_shorter_iteration() -> None:
    sampling = Poisson(0, batch_size=8, epochs=Fraction(5, 2), public_size=40)
    passes = Stretches(sampling, "epoch")
    assert [passes.around(step) for step in (0, 5, 12)] == [(0, 5), (5, 10), (10, 13)]


def test_what_a_run_says_of_itself_is_public() -> None:
    private = epochs_of(2, delta=1e-5)
    assert repr(private.loader) == "Loader(0 of 10 steps made; an iteration is one epoch, 5 steps)"
    said = repr(private)
    assert said.startswith("Private(Sequential, 0 of 10 steps made, 0 paid for; the run costs epsilon ")
    assert "at delta 1e-05; Poisson samples at the rate 1/5, 10 steps" in said
