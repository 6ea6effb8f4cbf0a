"""A loss of one example cannot ask how many others there are, draw known numbers or remember one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn import random_state
from dalenius.learn.private import Private
from tests.learn.runs import data, network, run_of

ROWS = 9
Function = Callable[[Any, Any], Tensor]


def run(model: nn.Module | None = None, **more: Any) -> Private:
    """Return a run over nine rows, all of which are in every batch."""
    usual = {"batch_size": ROWS, "public_size": ROWS, "steps": 1}
    return run_of(model or network(), data(ROWS), **usual | more)


def entropy(model: Any, example: Any) -> Tensor:
    return functional.cross_entropy(model(example[0]), example[1])


def noisy(model: Any, example: Any) -> Tensor:
    return functional.cross_entropy(model(functional.dropout(example[0])), example[1])


def one_by_one(loss: Tensor) -> Tensor:
    """Return a loss in a way that vmap cannot run: it writes an example into memory of its own."""
    memory = torch.zeros(1)
    memory[0] = loss
    return memory[0]


def learned(function: Function, model: nn.Module | None = None, **more: Any) -> Private:
    private = run(model, **more)
    learn = private.loss(function)
    for batch in private.loader:
        private.zero_grad()
        learn(batch)
        private.step()
    return private


# Sizes.

SIZES: dict[str, Callable[[Any, Tensor], Any]] = {
    "len of the batch": lambda batch, _: len(batch[0]),
    "shape of the batch": lambda batch, _: batch[0].shape[0],
    "bytes of the batch": lambda batch, _: batch[1].nbytes,
    "shape of a view": lambda batch, _: batch[0].T.shape[1],
    "len of a constant": lambda _, long: len(long),
    "entries of a constant": lambda _, long: long.numel(),
    "shape of a constant": lambda _, long: long.shape[0],
    "sum of a constant": lambda _, long: (long + 1).sum(),
    "stride of a constant": lambda _, long: long.stride(0),
}


@pytest.mark.parametrize("read", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("wrap", [lambda loss: loss, one_by_one], ids=["together", "one by one"])
def test_the_size_of_the_batch_is_not_to_be_had(read: Any, wrap: Callable[[Tensor], Tensor]) -> None:
    outside: list[Any] = []
    private = run()
    learn = private.loss(lambda model, e: wrap(entropy(model, e)) * read(*outside))
    with pytest.raises(NotSound, match="private data that is not its example"):
        for batch in private.loader:
            outside[:] = batch, torch.zeros(len(batch[0]))
            learn(batch)


def test_sizes_of_an_earlier_batch_are_not_to_be_had() -> None:
    outside: list[Tensor] = []
    private = run(steps=None, epochs=2)
    learn = private.loss(lambda model, e: entropy(model, e) * (outside[0].shape[0] if outside else 1))
    with pytest.raises(NotSound, match="private data that is not its example"):
        for _ in range(2):
            for batch in private.loader:
                private.zero_grad()
                learn(batch)
                private.step()
                outside[:] = [batch[0]]


def test_sizes_of_an_example_and_of_constants_are_to_be_had() -> None:
    constant = torch.ones(5)

    def function(model: Any, example: Any) -> Tensor:
        x = example[0]
        return entropy(model, example) * x.shape[0] / len(x) * constant.numel() / len(constant)

    assert learned(function).steps == 1


# Scripts.


class Centred(nn.Module):
    """Subtracts a mean that it holds."""

    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        return x - self.mean


# The compiler of scripts reads classes, and no texts.
Centred.__annotations__["mean"] = Tensor


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_a_script_that_holds_the_mean_of_the_batch_is_refused() -> None:
    private, centred = run(), torch.jit.script(Centred())
    learn = private.loss(lambda model, e: entropy(model, (centred(e[0]), e[1])))
    with pytest.raises(NotSound, match="TorchScript"):
        for batch in private.loader:
            centred.mean = batch[0].mean(0)
            learn(batch)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_a_scripted_model_is_refused_in_words() -> None:
    with pytest.raises(NotSound, match="TorchScript"):
        learned(entropy, torch.jit.script(network()))


# Seeds.


@contextmanager
def forked() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@contextmanager
def seeded() -> Iterator[None]:
    torch.manual_seed(0)
    yield


@contextmanager
def restored() -> Iterator[None]:
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)


@contextmanager
def reseeded() -> Iterator[None]:
    torch.manual_seed(torch.initial_seed())
    yield


SEEDS = {seed.__name__: seed for seed in (forked, seeded, restored, reseeded)}


def by_backward(private: Private, function: Function) -> Callable[[Any], Any]:
    return lambda batch: functional.cross_entropy(
        private.model(functional.dropout(batch[0])), batch[1]
    ).backward()


def by_recording(private: Private, function: Function) -> Callable[[Any], Any]:
    recorded = private.recorded(
        lambda x, y: functional.cross_entropy(private.model(functional.dropout(x)), y)
    )
    return lambda batch: recorded(*batch)


def by_loss(private: Private, function: Function) -> Callable[[Any], Any]:
    return private.loss(function)


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS)
@pytest.mark.parametrize("entrance", [by_loss, by_backward, by_recording])
def test_numbers_for_a_batch_come_from_the_seed_of_the_run(seed: Any, entrance: Any) -> None:
    private = run()
    learn = entrance(private, noisy)
    with pytest.raises(NotSound):
        for batch in private.loader:
            private.zero_grad()
            with seed():
                learn(batch)
            private.step()


def test_the_seed_of_the_run_seeds_nothing_else() -> None:
    with pytest.raises(RuntimeError, match="PrivateNumber"):
        for _ in run().loader:
            torch.Generator().manual_seed(torch.initial_seed())


def test_numbers_of_losses_one_by_one_come_from_the_seed_of_the_run() -> None:
    private = run()
    learn = private.loss(lambda model, e: one_by_one(noisy(model, e)))
    with pytest.raises(NotSound, match="seed"):
        for batch in private.loader:
            with forked():
                learn(batch)


def test_public_numbers_may_come_from_a_seed_in_between() -> None:
    private = run()
    learn = private.loss(noisy)
    for batch in private.loader:
        private.zero_grad()
        with forked():
            torch.rand(3)
        learn(batch)
        private.step()
    assert private.steps == 1


def test_a_number_of_an_earlier_call_is_not_used_again() -> None:
    class Remembering(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.noise = network(), None

        def forward(self, x: Tensor) -> Tensor:
            self.noise = torch.randn(5) if self.noise is None else self.noise
            return self.inner(x + self.noise)

    with pytest.raises(NotSound, match="kept from another example or batch"):
        learned(entropy, Remembering(), steps=2)


GPU_SEEDS: dict[str, Callable[[], Any]] = {
    "manual_seed": lambda: torch.cuda.manual_seed(0),
    "manual_seed_all": lambda: torch.cuda.random.manual_seed_all(0),
    "seed": lambda: torch.cuda.seed(),
    "set_rng_state": lambda: torch.cuda.set_rng_state(torch.zeros(16, dtype=torch.uint8)),
    "set_rng_state_all": lambda: torch.cuda.set_rng_state_all([torch.zeros(16, dtype=torch.uint8)]),
    "torch.manual_seed": lambda: torch.manual_seed(0),
}


def _own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let generators have the seed of a run, whatever tests before this one have left."""
    for kind in (random_state.CPU, random_state.GPU):
        monkeypatch.setitem(random_state._owned, kind, True)


@pytest.mark.parametrize("seed", GPU_SEEDS.values(), ids=GPU_SEEDS)
def test_seeds_of_gpus_count_as_seeds(seed: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """There need not be a GPU: what stands for the functions of torch.cuda is asked."""
    for module, name in itertools.product((torch.cuda, torch.cuda.random), random_state._SETTING):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "default_generators", ())
    _own(monkeypatch)
    with random_state.watched_generator(lambda _: None, lambda _: None):
        assert random_state.is_own()
        with torch.random.fork_rng(devices=[]):
            seed()
        assert not random_state.is_own()
    random_state.own_seed()
    with random_state.closed_generator(), pytest.raises(NotSound):
        seed()


def test_states_and_seeds_of_gpus_are_private(monkeypatch: pytest.MonkeyPatch) -> None:
    state = torch.zeros(16, dtype=torch.uint8)
    seen: list[Tensor] = []
    for module in (torch.cuda, torch.cuda.random):
        monkeypatch.setattr(module, "get_rng_state", lambda *_: state)
        monkeypatch.setattr(module, "get_rng_state_all", lambda: [state])
        monkeypatch.setattr(module, "initial_seed", lambda: 7)
    _own(monkeypatch)
    with random_state.watched_generator(seen.append, lambda _: None):
        torch.cuda.get_rng_state()
        torch.cuda.random.get_rng_state_all()
        with pytest.raises(NotSound):
            assert torch.cuda.initial_seed() == 7
    assert [id(tensor) for tensor in seen] == [id(state)] * 2


# Python.


class Keeping(nn.Module):
    """A model that calls `keep` in forward, and changes its sign by it."""

    total = 0

    def __init__(self, keep: Callable[[Any], float]) -> None:
        super().__init__()
        self.inner, self._keep = network(), keep
        self.counts, self.position, self.settings = [0], (0,), SimpleNamespace(step=0)
        self.number = np.int64(0)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * self._keep(self)


def by_list(model: Any) -> float:
    model.counts[0] += 1
    return (-1.0) ** model.counts[0]


def by_tuple(model: Any) -> float:
    model.position = (model.position[0] + 1,)
    return (-1.0) ** model.position[0]


def by_settings(model: Any) -> float:
    model.settings.step += 1
    return (-1.0) ** model.settings.step


def by_scalar(model: Any) -> float:
    model.number = model.number + 1
    return (-1.0) ** float(model.number)


def by_class(model: Any) -> float:
    Keeping.total += 1
    return (-1.0) ** Keeping.total


def by_parameter(model: Any) -> float:
    weight = model.inner[0].weight
    weight.count = getattr(weight, "count", 0) + 1
    return (-1.0) ** weight.count


@pytest.mark.parametrize("keep", [by_list, by_tuple, by_settings, by_scalar, by_class, by_parameter])
def test_a_model_that_counts_examples_is_refused(keep: Callable[[Any], float]) -> None:
    with pytest.raises(NotSound, match="kept another value of Python"):
        learned(lambda model, e: one_by_one(entropy(model, e)), Keeping(keep))


def of_a_variable() -> Callable[[], float]:
    count = 0

    def sign() -> float:
        nonlocal count
        count += 1
        return (-1.0) ** count

    return sign


def of_a_list() -> Callable[[], float]:
    seen: list[int] = []

    def sign() -> float:
        seen.append(0)
        return (-1.0) ** len(seen)

    return sign


def of_an_array() -> Callable[[], float]:
    seen = np.zeros(3)

    def sign() -> float:
        seen[1] += 1
        return (-1.0) ** float(seen[1])

    return sign


def of_a_generator() -> Iterator[float]:
    yield from itertools.cycle([1.0, -1.0])


SIGNS: dict[str, Callable[[], Callable[[], float]]] = {
    "a variable": of_a_variable,
    "a list": of_a_list,
    "an array": of_an_array,
    "a cycle": lambda: itertools.cycle([1.0, -1.0]).__next__,
    "a count": lambda: (lambda numbers: lambda: (-1.0) ** next(numbers))(itertools.count()),
    "a generator function": lambda: (lambda numbers: lambda: next(numbers))(of_a_generator()),
    "a generator of numpy": lambda: np.random.default_rng(0).normal,
    "a generator of numpy, held": lambda: (lambda bits: lambda: bits.normal())(np.random.default_rng(0)),
    "an old generator of numpy": lambda: (lambda bits: lambda: bits.normal())(np.random.RandomState(0)),
    "a generator of Python": lambda: random.Random(0).random,
    "a generator of Python, held": lambda: (lambda bits: lambda: bits.gauss(0, 1))(random.Random(0)),
}


@pytest.mark.parametrize("sign", SIGNS.values(), ids=SIGNS)
def test_a_function_that_remembers_examples_is_refused(sign: Callable[[], Callable[[], float]]) -> None:
    kept = sign()
    with pytest.raises(NotSound, match="kept another value of Python"):
        learned(lambda model, e: one_by_one(entropy(model, e)) * kept())


def test_what_changes_between_batches_only_may_change() -> None:
    schedule = {"factor": 1.0}
    private = run(steps=3)
    learn = private.loss(lambda model, e: one_by_one(entropy(model, e)) * schedule["factor"])
    for batch in private.loader:
        private.zero_grad()
        learn(batch)
        private.step()
        schedule["factor"] *= 0.5
    assert private.steps == 3


def test_generators_are_named_among_the_assumptions() -> None:
    assert any("generators of random numbers" in line for line in learned(entropy).receipt.bounds)


# What is accepted.


def test_a_gaussian_likelihood_is_accepted() -> None:
    def function(model: Any, example: Any) -> Tensor:
        out = model(example[0])
        return functional.gaussian_nll_loss(out[0], example[1].float(), out[1].exp())

    private = run()
    learn = private.loss(function)
    for batch in private.loader:
        private.zero_grad()
        learn(batch)
        private.step()
    assert learn.vectorized and private.steps == 1


def test_outputs_that_were_put_aside_are_refused_in_words() -> None:
    kept: list[Tensor] = []
    private = run()

    def function(model: Any, example: Any) -> Tensor:
        kept[:] = [model(example[0])]
        return functional.cross_entropy(kept[0], example[1])

    learn = private.loss(function)
    with pytest.raises(NotSound, match="put aside"):
        for batch in private.loader:
            learn(batch)
            kept[0].mean()
