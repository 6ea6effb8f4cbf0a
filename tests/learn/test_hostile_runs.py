"""Runs that a hostile reader got through: examples counted twice, noise used twice, steps without a charge,
and weights that leave with private rows in them. All of them are refused.
"""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import dalenius as dp
from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.averaging import Average
from dalenius.learn.clipping import Flat
from dalenius.learn.optimizer_hooks import is_stock
from dalenius.learn.payment import Payment
from dalenius.learn.private import Private
from dalenius.learn.several import Processes
from dalenius.learn.sharded import local
from tests.learn.runs import data, network, run_of

ROWS = 12
Batch = tuple[Tensor, Tensor]


def run(model: nn.Module | None = None, **more: Any) -> Private:
    """Return a run over twelve rows, all of which are in every batch."""
    usual = {"batch_size": ROWS, "public_size": ROWS, "steps": 4, "clip": 0.01}
    return run_of(model or network(), more.pop("rows", data(ROWS)), **usual | more)


def run_by(optimizer: torch.optim.Optimizer, model: nn.Module, **more: Any) -> Private:
    sizes = {"batch_size": ROWS, "public_size": ROWS, "steps": 4, "clip": 1, "noise_multiplier": 1}
    return Private(model, optimizer, data(ROWS), **sizes | more)


def evaluating(**more: Any) -> Private:
    """Return a run by an optimizer that evaluates a closure several times."""
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=more.pop("max_iter", 2))
    return run_by(optimizer, model, **more)


def backward(private: Private, batch: Batch) -> Tensor:
    """Make the forward and the backward pass of a batch."""
    x, y = batch
    private.zero_grad()
    loss = functional.cross_entropy(private.model(x), y)
    loss.backward()
    return loss


def account(tmp_path: Path) -> Any:
    ledger = dp.Ledger(tmp_path / "people.ledger")
    return ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=100, delta=1e-4))


def lines(account: Any) -> int:
    with account.ledger.store.read() as snapshot:
        return len(list(snapshot.entries(account=account.name)))


# Steps inside of steps.


def nested_step(private: Private, batches: Iterator[Batch], batch: Batch) -> None:
    backward(private, batch)
    private.step(partial(backward, private, batch))


def next_batch(private: Private, batches: Iterator[Batch], batch: Batch) -> None:
    backward(private, next(batches))


def next_loop(private: Private, batches: Iterator[Batch], batch: Batch) -> None:
    backward(private, next(iter(private.loader)))


INSIDE: dict[str, Callable[[Private, Iterator[Batch], Batch], None]] = {
    "step": nested_step,
    "next batch": next_batch,
    "next loop": next_loop,
}


@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE.keys())
@pytest.mark.parametrize("begun", [run, evaluating], ids=["one gradient", "several gradients"])
@pytest.mark.parametrize("chunk", [512, 3])
def test_a_closure_cannot_go_on_to_another_step(
    inside: Callable[..., None], begun: Callable[..., Private], chunk: int
) -> None:
    private = begun(chunk=chunk, pay=1)
    batches = iter(private.loader)
    batch = next(batches)
    with pytest.raises(NotSound, match="inside of a step"):
        private.step(lambda: inside(private, batches, batch))
    assert private.steps == 0 == private._payment.paid


def test_a_closure_of_one_gradient_computes_it_by_backward_alone() -> None:
    private = run()
    learn = private.loss(lambda model, example: functional.cross_entropy(model(example[0]), example[1]))
    recorded = private.recorded(lambda x, y: functional.cross_entropy(private.model(x), y))
    for call in (learn, lambda batch: recorded(*batch)):
        for batch in private.loader:
            with pytest.raises(InvalidArgument, match="no batch"):
                private.step(partial(call, batch))
            break
    assert private._payment.paid == 0


def test_a_hook_of_the_optimizer_cannot_make_a_step() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    private = run_by(optimizer, model, pay=1)
    batches = iter(private.loader)
    optimizer.register_step_post_hook(lambda *_: backward(private, next(batches)))
    backward(private, next(batches))
    with pytest.raises(NotSound, match="inside of a step"):
        private.step()


@pytest.mark.parametrize("caught", [False, True])
def test_a_closure_cannot_end_the_loop_that_is_watched(caught: bool) -> None:
    private = run()
    batches = iter(private.loader)
    x, y = next(batches)

    def closure() -> None:
        if caught:
            with pytest.raises(NotSound):
                next(batches)
        else:
            batches.close()  # type: ignore[attr-defined]
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).square().backward()

    with pytest.raises(NotSound):
        private.step(closure)
    assert private._payment.paid == 0


def test_a_loop_that_was_broken_off_does_not_end_the_watch_of_the_next_one() -> None:
    private = run()
    first = iter(private.loader)
    next(first)
    for x, y in private.loader:
        first.close()  # type: ignore[attr-defined]
        private.zero_grad()
        with pytest.raises(NotSound, match="mixes examples"):
            functional.cross_entropy(private.model(x), y).square().backward()
        break


def test_a_loss_cannot_make_steps() -> None:
    private = run()
    batches = iter(private.loader)
    steps: list[int] = []

    def loss(model: nn.Module, example: Batch) -> Tensor:
        if not steps:
            steps.append(1)
            private.step()
            next(batches)
        return functional.cross_entropy(model(example[0]), example[1])

    learn = private.loss(loss)
    with pytest.raises(NotSound, match="inside of the function"):
        learn(next(batches))


def test_no_noise_is_added_before_a_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    private = run()
    monkeypatch.setattr(Payment, "pay_for", lambda self, step: False)
    with pytest.raises(NotSound, match="No charge"):
        for batch in private.loader:
            backward(private, batch)
            private.step()
    assert all(parameter.grad is None for parameter in private.model.names)


# Optimizers that evaluate a closure several times.


def test_an_optimizer_that_evaluates_nothing_makes_no_step() -> None:
    class Idle(torch.optim.LBFGS):
        def step(self, closure: Any) -> Any:
            return None

    model = network()
    private = run_by(Idle(model.parameters()), model)
    for batch in private.loader:
        with pytest.raises(NotSound, match="No charge"):
            private.step(partial(backward, private, batch))
        break
    assert private.steps == 0


def test_a_closure_cannot_move_the_run() -> None:
    private = evaluating()

    def closure(batch: Batch) -> Tensor:
        private.steps += 1
        return backward(private, batch)

    for batch in private.loader:
        with pytest.raises(NotSound, match="another step"):
            private.step(partial(closure, batch))
        break


def test_a_closure_that_forks_goes_on_in_one_process(tmp_path: Path) -> None:
    private = evaluating(steps=1)
    child: list[int] = []

    def closure(batch: Batch) -> Tensor:
        if not child:
            child.append(os.fork())
        return backward(private, batch)

    outcome = 1
    try:
        for batch in private.loader:
            private.step(partial(closure, batch))
        private.export(tmp_path / "weights.safetensors")
    except NotSound:
        outcome = 7
    finally:
        if child == [0]:
            os._exit(outcome)
    assert os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == 7
    assert private.steps == 1 and outcome == 1


@pytest.mark.parametrize("call", ["export", "save"])
def test_a_fork_does_not_write_files(tmp_path: Path, call: str) -> None:
    private = run(steps=1)
    for batch in private.loader:
        backward(private, batch)
        private.step()
    child = os.fork()
    if not child:
        outcome = 1
        try:
            getattr(private, call)(tmp_path / "file")
        except NotSound:
            outcome = 7
        finally:
            os._exit(outcome)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert not list(tmp_path.iterdir())


def test_a_closure_that_is_refused_costs_nothing(tmp_path: Path) -> None:
    people = account(tmp_path)
    private = evaluating(account=people)
    before = lines(people)

    def closure(batch: Batch) -> None:
        private.zero_grad()
        functional.cross_entropy(private.model(batch[0]), batch[1]).square().backward()

    with pytest.raises(NotSound):
        for batch in private.loader:
            private.step(partial(closure, batch))
    for batch in private.loader:
        assert lines(people) == before
        private.step(partial(backward, private, batch))
        break
    assert lines(people) > before and private.steps == 1
    assert private._attempts.more == 0


def test_attempts_are_spent_also_where_nothing_else_is() -> None:
    sampling = run().sampling
    payment = Payment(
        sampling,
        run().step_loss,
        account=None,
        by="",
        purpose="",
        pay="run",
        processes=Processes(),
    )
    assert payment.spent().epsilon(delta=1e-6).upper == 0
    assert payment.spent(1).epsilon(delta=1e-6).upper > 0


def test_an_optimizer_that_evaluates_one_closure_needs_it() -> None:
    private = evaluating(max_iter=1, pay=1)
    for batch in private.loader:
        if not private.steps:
            backward(private, batch)
            with pytest.raises(InvalidArgument, match="closure"):
                private.step()
            assert private._payment.paid == 0
        private.step(partial(backward, private, batch))
    assert private.steps == 4


def test_an_optimizer_that_needs_a_closure_of_its_own_is_refused() -> None:
    class Searching(torch.optim.SGD):
        def step(self, closure: Any) -> Any:  # type: ignore[override]
            return super().step(closure)

    model = network()
    with pytest.raises(NotSound, match="needs a closure"):
        run_by(Searching(model.parameters(), lr=0.1), model)
    scheduled = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.optim.lr_scheduler.StepLR(scheduled, 1)
    assert run_by(scheduled, model).steps == 0


# Copies.

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_run_and_its_loader_are_not_copied(copied: Callable[[Any], Any]) -> None:
    private = run()
    for part in (private, private.loader):
        with pytest.raises(NotSound, match="not copied"):
            copied(part)


# What a receipt says of independence.


def independence(private: Private) -> list[str]:
    return [said for said in private.receipt.bounds if "independent" in said]


def test_a_receipt_names_the_entrances_that_were_used() -> None:
    private = run()
    learn = private.loss(lambda model, example: functional.cross_entropy(model(example[0]), example[1]))
    for batch in private.loader:
        if private.steps == 2:
            private.zero_grad()
            learn(batch)
        else:
            backward(private, batch)
        private.step()
        if private.steps == 2:
            assert ["by data flow" in said for said in independence(private)] == [True]
    by_flow, by_construction = independence(private)
    assert "by backward(), " in by_flow and "by data flow" in by_flow
    assert "by private.loss, " in by_construction and "by construction" in by_construction
    assert any("function of private.loss" in said for said in private.receipt.bounds)


def test_a_run_that_is_resumed_knows_the_entrances_that_were_used(tmp_path: Path) -> None:
    private = run()
    learn = private.loss(lambda model, example: functional.cross_entropy(model(example[0]), example[1]))
    for batch in private.loader:
        private.zero_grad()
        learn(batch)
        private.step()
        break
    private.save(tmp_path / "run.state")
    private.close()
    model = network()
    given = {"batch_size": ROWS, "public_size": ROWS, "steps": 4, "clip": 0.01, "noise_multiplier": 1}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    resumed = Private.resume(tmp_path / "run.state", model, optimizer, data(ROWS), **given)
    assert independence(resumed) == independence(private)
    for batch in resumed.loader:
        backward(resumed, batch)
        resumed.step()
    assert len(independence(resumed)) == 2


# Code of the user's in optimizers and averages.

held: dict[str, Tensor] = {}


def grouped(optimizer: Any, group: Any, params: Any, grads: Any, momenta: Any) -> Any:
    """Replace gradients by private values in the way of a method that the step of SGD calls."""
    result = torch.optim.SGD._init_group(optimizer, group, params, grads, momenta)
    if "x" in held:
        grads[:] = [torch.zeros_like(grad) + held["x"].mean() for grad in grads]
    return result


class Grouping(torch.optim.SGD):
    _init_group = grouped  # type: ignore[assignment]


class Descending(torch.optim.SGD):
    """An optimizer that differs from its base in nothing."""


def own_method(model: nn.Module) -> torch.optim.Optimizer:
    return Grouping(model.parameters(), lr=1.0)


def inherited_method(model: nn.Module) -> torch.optim.Optimizer:
    return type("Descent", (Grouping,), {})(model.parameters(), lr=1.0)  # type: ignore[no-any-return]


def claimed_method(model: nn.Module) -> torch.optim.Optimizer:
    kind = type("SGD", (Grouping,), {"__module__": "torch.optim.sgd", "_init_group": grouped})
    return kind(model.parameters(), lr=1.0)  # type: ignore[no-any-return]


def replaced_method(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer._init_group = partial(grouped, optimizer)  # type: ignore[method-assign]
    return optimizer


class Rate(float):
    """A learning rate that is computed where it is used."""

    def __neg__(self) -> float:
        return -float(held["x"].mean()) if "x" in held else -1.0


class Settings(dict[str, Any]):
    """Settings that are computed where they are used."""

    def __getitem__(self, key: str) -> Any:
        if key == "lr" and "x" in held:
            return held["x"].mean()
        return super().__getitem__(key)


def own_rate(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=Rate(1.0))


def own_settings(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer.param_groups[:] = [Settings(group) for group in optimizer.param_groups]
    return optimizer


OPTIMIZERS = [own_method, inherited_method, claimed_method, replaced_method, own_rate, own_settings]


@pytest.mark.parametrize("made", OPTIMIZERS, ids=lambda made: made.__name__)
def test_methods_that_the_step_of_an_optimizer_calls_are_watched(
    made: Callable[[nn.Module], torch.optim.Optimizer], tmp_path: Path
) -> None:
    model = network()
    private = run_by(made(model), model)
    held.clear()
    with pytest.raises(NotSound):
        for batch in private.loader:
            if private.steps == 1:
                held["x"] = batch[0]
            backward(private, batch)
            private.step()
    held.clear()
    assert private.steps == 1
    if made is not own_rate:
        # The rate was refused when it was read, before weights were moved by it.
        with pytest.raises(NotSound):
            private.export(tmp_path / "weights.safetensors")


def test_an_optimizer_of_closures_with_a_method_of_its_own_trains() -> None:
    class Gathering(torch.optim.LBFGS):
        def _gather_flat_grad(self) -> Tensor:
            return super()._gather_flat_grad() * 0.5  # type: ignore[no-any-return]

    model = network()
    private = run_by(Gathering(model.parameters(), lr=0.1, max_iter=2), model)
    for batch in private.loader:
        private.step(partial(backward, private, batch))
    assert private.steps == 4


def test_optimizers_of_torch_are_stock() -> None:
    parameters = [nn.Parameter(torch.zeros(2, 2))]
    for kind in (torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop, Descending, dp.learn.Adam):
        optimizer = kind(parameters, lr=0.1)
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
        assert is_stock(optimizer)
    assert not is_stock(Grouping(parameters, lr=0.1))


@pytest.mark.parametrize("raised", [None, ValueError])
def test_weights_that_a_hook_was_refused_for_are_not_exported(
    raised: type[Exception] | None, tmp_path: Path
) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    private = run_by(optimizer, model)

    def hook(*_: Any) -> None:
        with torch.no_grad():
            model[0].weight[0].copy_(held["x"][0])
        if raised is not None:
            raise raised

    optimizer.register_step_post_hook(hook)
    for batch in private.loader:
        held["x"] = batch[0]
        backward(private, batch)
        with pytest.raises(raised or NotSound):
            private.step()
        break
    held.clear()
    with pytest.raises(NotSound):
        private.export(tmp_path / "weights.safetensors")


class Published(Average):
    def published(self, state: Any) -> dict[str, Any]:
        return {**super().published(state), "more": held["x"]}


def test_an_average_with_code_of_its_own_is_refused() -> None:
    model = network()
    with pytest.raises(NotSound, match="subclass of Average"):
        run(model, average=Published(model))
    with pytest.raises(InvalidArgument, match="average must be"):
        run(model, average=5)
    with pytest.raises(AttributeError):
        Average(model).update = lambda: None  # type: ignore[method-assign]


# Tensors that answer for themselves.


class Answering(Tensor):
    """A tensor whose `detach` returns other data."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.detach and "x" in held:
            return held["x"]
        return super().__torch_function__(func, types, args, kwargs or {})


def test_tensors_of_other_classes_are_refused() -> None:
    held.clear()
    model = network()
    model.register_buffer("kept", torch.zeros(5).as_subclass(Answering))
    with pytest.raises(NotSound, match="Answering"):
        run(model)
    model = network()
    model[0].bias = nn.Parameter(torch.zeros(8).as_subclass(Answering))
    with pytest.raises(NotSound, match="Answering"):
        run(model)


def test_tensors_are_not_exchanged_for_those_of_other_classes(tmp_path: Path) -> None:
    held.clear()
    model = network()
    model.register_buffer("kept", torch.zeros(5))
    private = run(model, steps=1)
    for batch in private.loader:
        backward(private, batch)
        private.step()
        model.kept = model.kept.as_subclass(Answering)
        held["x"] = batch[0][0]
    with pytest.raises(NotSound, match="Answering"):
        private.export(tmp_path / "weights.safetensors")
    held.clear()


def test_tensors_with_methods_of_their_own_are_refused(tmp_path: Path) -> None:
    held.clear()
    model = network()
    model.register_buffer("kept", torch.zeros(5))
    private = run(model, steps=1)
    for batch in private.loader:
        backward(private, batch)
        private.step()
        model.kept.detach = partial(torch.clone, batch[0][0])  # type: ignore[method-assign]
    with pytest.raises(NotSound, match="a detach of its own"):
        private.export(tmp_path / "weights.safetensors")
    with pytest.raises(NotSound, match="a detach of its own"):
        run(model)


def test_an_attribute_does_not_make_a_shard_of_a_tensor() -> None:
    tensor: Any = torch.zeros(3)
    tensor.device_mesh, tensor.to_local = None, lambda: torch.ones(3)
    assert local(tensor) is tensor


# Failures that depend on private examples.


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_recording_that_fails_on_a_batch_ends_the_run() -> None:
    x, y = data(ROWS)
    scale = torch.eye(2).repeat(ROWS, 1, 1)
    private = run(rows=(x, y, scale), steps=3)

    def function(x: Tensor, y: Tensor, scale: Tensor) -> Tensor:
        factors = torch.norm(scale, p="nuc", dim=(-2, -1))
        return (functional.cross_entropy(private.model(x), y, reduction="none") * factors).mean()

    learn = private.recorded(function, compile=True)
    for batch in private.loader:
        private.zero_grad()
        if private.steps == 1:
            with pytest.raises(NotSound, match="withheld") as error:
                learn(*batch)
            assert "svd" not in str(error.value)
            private.zero_grad()
            with pytest.raises(NotSound, match="failed on private examples"):
                private.step()
            break
        learn(*batch)
        private.step()
        scale.fill_(torch.nan)
    assert private.steps == 1


class Words(nn.Module):
    """Mean of the vectors of words, of which number 0 is padding; the table may be an output layer, too."""

    def __init__(self, *, tied: bool = False) -> None:
        super().__init__()
        self.table, self.tied = nn.Embedding(6, 3, padding_idx=0), tied

    def forward(self, words: Tensor) -> Tensor:
        vectors = self.table(words).mean(-2)
        return functional.linear(vectors, self.table.weight) if self.tied else vectors


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("clip", [1, dp.learn.PerLayer(1)], ids=["flat", "by layer"])
@pytest.mark.parametrize("length", [4, 0])
def test_batches_without_words_are_steps_like_others(tied: bool, clip: Any, length: int) -> None:
    words = torch.zeros(40, length, dtype=torch.int64)
    rows = words, torch.randint(3, (40,))
    private = run_of(Words(tied=tied), rows, batch_size=1, steps=12, clip=clip, public_size=40)
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
    assert private.steps == 12


# What cannot be trained, or written, is refused before anything is charged.


def parameters(model: nn.Module) -> list[nn.Parameter]:
    return list(model.parameters())


def test_models_and_optimizers_that_cannot_be_trained_are_refused(tmp_path: Path) -> None:
    people = account(tmp_path)
    before = lines(people)
    lazy, spectral, model = nn.LazyLinear(3), nn.Linear(5, 3, dtype=torch.complex64), network()
    for given, match in ((lazy, "no shape"), (spectral, "complex")):
        with pytest.raises(InvalidArgument, match=match):
            run(given, account=people)
    with pytest.raises(InvalidArgument, match="SparseAdam"):
        run_by(torch.optim.SparseAdam(parameters(model)), model, account=people)
    with pytest.raises(InvalidArgument, match="torch module"):
        run_by(torch.optim.SGD(parameters(model), lr=0.1), None, account=people)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="account must be"):
        run(account=5)
    assert lines(people) == before


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_data_whose_rows_cannot_be_picked_are_refused() -> None:
    rows = [torch.randn(1 + number, 5) for number in range(ROWS)]
    sparse, labels = torch.eye(ROWS, 5), torch.zeros(ROWS, dtype=torch.int64)
    for features in (
        torch.nested.nested_tensor(rows),
        torch.nested.nested_tensor(rows, layout=torch.jagged),
        sparse.to_sparse(),
        sparse.to_sparse_csr(),
    ):
        with pytest.raises(InvalidArgument, match=r"nested|sparse"):
            run(rows=(features, labels))
    with pytest.raises(InvalidArgument, match="sparse"):
        run(rows=torch.utils.data.TensorDataset(sparse.to_sparse(), labels))


@pytest.mark.parametrize("call", ["export", "save"])
def test_files_are_written_to_folders_that_are_there(call: str, tmp_path: Path) -> None:
    private = run(steps=1)
    for batch in private.loader:
        backward(private, batch)
        private.step()
    write = getattr(private, call)
    with pytest.raises(InvalidArgument, match="no folder"):
        write(tmp_path / "missing" / "file")
    with pytest.raises(InvalidArgument, match="is a folder"):
        write(tmp_path)
    with pytest.raises(InvalidArgument, match="path"):
        write(5)
    assert not list(tmp_path.iterdir())


def test_clipping_of_the_users_own_is_refused() -> None:
    class Wide(Flat):
        def factors(self, norms: Any, bound: float, names: Any) -> Any:
            return {name: torch.ones_like(norm) for name, norm in norms.items()}

    with pytest.raises(NotSound, match="Wide"):
        run_of(network(), data(9), clip=Wide(1))


def test_the_size_of_a_batch_is_not_an_attribute_of_the_model() -> None:
    model = run_of(network(), data(9)).model
    assert not {"rows", "examples"} & set(dir(model))
