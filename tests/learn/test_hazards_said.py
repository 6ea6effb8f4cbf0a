"""How batches are drawn, where noise comes from, and what is said of a run."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.gradients import Watched
from dalenius.noise.source import seeded

from .engine import apart, clipped_sum
from .runs import data, flat, network, run_of, stepper, train

ENTROPY = nn.CrossEntropyLoss()


def entropies(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets, reduction="none")


# Batches, seeds and what is said.


def test_a_shuffled_loader_is_refused() -> None:
    loader = DataLoader(TensorDataset(*data(40)), batch_size=8, shuffle=True)
    with pytest.raises(NotSound, match="shuffled") as caught:
        run_of(network(), loader)
    assert "loader.dataset" in caught.value.remedy
    run_of(network(), loader.dataset)


def test_torchs_seed_fixes_no_noise_and_a_step_leaves_its_generator_alone() -> None:
    moves = []
    for _ in range(2):
        torch.manual_seed(7)
        model = network()
        private, state = stepper(model), torch.get_rng_state()
        private.step()
        assert torch.equal(torch.get_rng_state(), state)
        moves.append(flat(model))
    assert not torch.equal(*moves)
    # Noise of torch's own generator would have been the same.
    naive = [torch.manual_seed(7) and torch.randn(3) for _ in range(2)]
    assert torch.equal(*naive)


def test_a_seed_fixes_noise_and_taints_the_receipt() -> None:
    runs = []
    for _ in range(2):
        with seeded(b"for a test"):
            model = network()
            private = run_of(model, data(40))
            train(private)
        runs.append(flat(model))
        assert private.receipt.tainted
    assert torch.equal(*runs)
    assert not run_of(network(), data(40)).receipt.tainted


def test_two_steps_on_a_batch_and_none_are_refused() -> None:
    private = run_of(network(), data(40))
    batches = iter(private.loader)
    x, y = next(batches)
    ENTROPY(private.model(x), y).backward()
    private.step()
    with pytest.raises(InvalidArgument, match="no batch"):
        private.step()
    private = run_of(network(), data(40))
    batches = iter(private.loader)
    next(batches)
    with pytest.raises(InvalidArgument, match="without a step"):
        next(batches)


def test_a_closure_is_refused() -> None:
    with pytest.raises(NotSound, match="closure"):
        stepper(network()).step(lambda: torch.zeros(()))


def test_nothing_that_is_said_depends_on_who_was_drawn(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs that drew different batches say the same."""
    said = []
    for rows in (40, 0):
        with caplog.at_level(logging.DEBUG):
            x, y = data(40)
            private = run_of(network(), (x[: rows or 1], y[: rows or 1]), public_size=40)
            train(private)
        receipt = private.receipt
        said.append(
            (
                str(receipt),
                repr(receipt.loss),
                private.steps,
                caplog.text,
                capsys.readouterr(),
                len(str(receipt)),
                len(private.loader),
                repr(private),
                repr(private.loader),
            )
        )
    assert said[0] == said[1]


def test_sums_do_not_depend_on_who_else_is_there_but_by_adding_up() -> None:
    x, y = data(6)
    model = network().double()
    whole = Watched(model)
    entropies(whole(x.double()), y).sum().backward()
    together = clipped_sum(whole, whole.shares(), 0.4)
    added: dict[str, Tensor] = {}
    for i in range(6):
        one = Watched(model)
        entropies(one(x[i : i + 1].double()), y[i : i + 1]).sum().backward()
        for name, part in clipped_sum(one, one.shares(), 0.4).items():
            added[name] = added.get(name, torch.zeros_like(part)) + part
    assert apart(together, added) <= 1e-12
