"""Memory by which one example, epoch or run could reach another: it is found however it is referred to."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.ao.quantization import FusedMovingAvgObsFakeQuantize, MovingAverageMinMaxObserver
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.dataflow.private_numbers import PrivateNumber
from dalenius.learn.fitting import fit
from dalenius.learn.private import Private
from tests.learn.runs import data, network, run_of


def run(model: nn.Module | None = None, rows: Any = None, **more: Any) -> Private:
    """Return a run over nine rows, all of which are in every batch."""
    usual = {"batch_size": 9, "public_size": 9, "steps": 1}
    return run_of(network() if model is None else model, data(9) if rows is None else rows, **usual | more)


# What is kept from one epoch to the next.

ALIASES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "data": lambda mean, x: mean.data.mul_(0.5).add_(x.mean(0)),
    "detach": lambda mean, x: mean.detach().add_(x.mean(0)),
    "a slice": lambda mean, x: mean[:].add_(x.mean(0)),
    "an entry": lambda mean, x: mean[0].add_(x.mean()),
    "a view": lambda mean, x: mean.view(5).copy_(x.mean(0)),
}


@pytest.mark.parametrize("write", ALIASES.values(), ids=ALIASES)
def test_a_running_mean_is_refused_in_the_next_epoch(write: Callable[[Tensor, Tensor], Any]) -> None:
    private, mean = run(steps=None, epochs=2), torch.zeros(5)

    def epoch() -> None:
        for x, y in private.loader:
            private.zero_grad()
            functional.cross_entropy(private.model(x - mean), y).backward()
            write(mean, x)
            private.step()

    epoch()
    with pytest.raises(NotSound, match="earlier batch"):
        epoch()


def test_a_mean_of_one_run_is_refused_in_another() -> None:
    mean = torch.zeros(5)
    for _ in once(run(), lambda x: mean.data.add_(x.mean(0))):
        pass
    private = run()
    with pytest.raises(NotSound, match="earlier batch"):
        for x, y in private.loader:
            functional.cross_entropy(private.model(x - mean), y).backward()
    private = run()
    learn = private.loss(lambda model, row: functional.cross_entropy(model(row[0] - mean), row[1]))
    with pytest.raises(NotSound, match="private data that is not its example"):
        for batch in private.loader:
            learn(batch)


def test_a_counter_that_is_made_anew_is_refused() -> None:
    counter = [torch.zeros(())]

    def function(model: nn.Module, row: tuple[Tensor, Tensor]) -> Tensor:
        counter[0] = counter[0] + 1
        return alone(model, row) * torch.cos(counter[0])

    with pytest.raises(NotSound):
        learned(function)


def once(private: Private, use: Callable[[Tensor], Any]) -> Any:
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        use(x)
        private.step()
        yield x


def test_values_that_were_kept_do_not_steer_the_next_epoch() -> None:
    private, stats = run(steps=None, epochs=2), torch.zeros(2, 5)
    for _ in once(private, lambda x: stats[0].add_(x.mean(0))):
        pass
    for x, y in private.loader:
        assert isinstance(stats[0, 0].item(), PrivateNumber)
        with pytest.raises(NotSound):
            assert stats[0, 0].item() > 1
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()


def test_what_the_garbage_collector_does_not_show_stays_private() -> None:
    kept = torch.zeros(5)
    gc.freeze()
    try:
        for _ in once(run(), lambda x: kept.data.add_(x.mean(0))):
            pass
        assert isinstance(kept[0].item(), PrivateNumber)
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_what_was_kept_of_a_loop_is_not_stored() -> None:
    kept = [x.mean(0) for x in once(run(), lambda x: None)]
    with pytest.raises(NotSound):
        torch.save(kept[0], io.BytesIO())


# What the loss of one example keeps for the next one.


def learned(function: Any, model: nn.Module | None = None) -> Private:
    private = run(model)
    learn = private.loss(function)
    for batch in private.loader:
        private.zero_grad()
        learn(batch)
        private.step()
    return private


def alone(model: nn.Module, row: tuple[Tensor, Tensor]) -> Tensor:
    """Return a loss that torch.vmap cannot run, so that examples run one after the other."""
    logits = torch.zeros(3)
    logits[0] = model(row[0])[0]
    return functional.cross_entropy(model(row[0]) + logits, row[1])


COUNTER = torch.zeros(())
TABLE = torch.arange(6.0)
SPARSE = torch.ones(2).to_sparse()
KEPT: dict[str, Callable[[], Any]] = {
    "a counter": lambda: COUNTER.add_(1),
    "a counter by operator": lambda: COUNTER.__iadd__(1),
    "a table that moves": lambda: TABLE.copy_(TABLE.roll(1)),
    "a result": lambda: torch.add(COUNTER, 1, out=COUNTER),
    "a view": lambda: TABLE[2:].mul_(0.9),
    "a sparse table": lambda: (torch.ones(2).to_sparse(), SPARSE.mul_(-1)),
    "a list of tensors": lambda: torch._foreach_add_([COUNTER, TABLE], 1),
}


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
def test_a_tensor_that_counts_examples_is_refused(keep: Callable[[], Any]) -> None:
    def function(model: nn.Module, row: tuple[Tensor, Tensor]) -> Tensor:
        keep()
        return alone(model, row) * torch.cos(COUNTER / 20) * TABLE[0]

    with pytest.raises(NotSound):
        learned(function)


@pytest.mark.parametrize("function", [alone, None], ids=["one by one", "at once"])
def test_an_observer_of_ranges_is_refused_before_it_sees_an_example(function: Any) -> None:
    observer = FusedMovingAvgObsFakeQuantize(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255)
    model = nn.Sequential(observer, network())
    with pytest.raises(NotSound):
        learned(function or (lambda m, row: functional.cross_entropy(m(row[0]), row[1])), model)
    assert observer.activation_post_process.max_val == -torch.inf


def test_statistics_that_are_updated_unseen_are_refused_in_a_loop() -> None:
    mean, variance = torch.zeros(5), torch.ones(5)
    with pytest.raises(NotSound):
        for _ in once(run(), lambda x: torch.batch_norm_update_stats(x, mean, variance, 0.1)):
            pass
    assert not mean.any()


def test_a_model_that_changed_beside_the_optimizer_begins_no_other_run(tmp_path: Path) -> None:
    class Remembering(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.seen = network(), nn.Buffer(torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)

    model = Remembering()
    private = run(model)
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
    model.seen.fill_(7.0)
    with pytest.raises(NotSound, match="changed in training"):
        private.export(tmp_path / "model")
    with pytest.raises(NotSound, match="earlier loop of this process"):
        next(iter(run(model).loader))


def test_an_error_does_not_carry_the_one_that_holds_data() -> None:
    def function(model: nn.Module, row: tuple[Tensor, Tensor]) -> Tensor:
        raise AttributeError(f"secret {row[0]}")

    def label(model: nn.Module, row: tuple[Tensor, Tensor]) -> Tensor:
        factor = torch.linalg.lu_factor(torch.zeros(3, 3) * row[1]).LU.sum()
        return functional.cross_entropy(model(row[0]), row[1]) + factor

    for failing in (function, label):
        with pytest.raises(NotSound, match="withheld") as caught:
            learned(failing)
        assert caught.value.__context__ is None and "secret" not in str(caught.value)


# What is refused by no means.


def test_distributions_are_computed_for_one_example() -> None:
    def function(model: nn.Module, row: tuple[Tensor, Tensor]) -> Tensor:
        outputs = model(row[0])
        normal = torch.distributions.Normal(outputs, torch.ones(3))
        return (
            -torch.distributions.Categorical(logits=outputs).log_prob(row[1])
            - normal.log_prob(outputs.detach()).sum()
        )

    assert learned(function).steps == 1


def test_rows_in_a_list_are_counted_as_rows() -> None:
    x, y = data(300)
    rows = list(zip(x, y, strict=True))
    private = fit(network(), rows, epsilon=5, delta=1e-6, epochs=1, progress=False, pad_to={})
    assert private.steps == 30
