"""Code of the user's that torch or this library would run where nothing is watched: it sees no batch.

Also what a batch's own size, kept memory and errors would tell after the functions that met them.
"""

from __future__ import annotations

import enum
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.arguments import is_foreign
from dalenius.learn.dataflow.private_numbers import BatchSize, PrivateInteger, PrivateNumber
from dalenius.learn.private import Private
from tests.learn.runs import data, network, run_of

Decision = Callable[[Tensor, Tensor], Any]
SEEN: list[bool] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> Iterator[None]:
    SEEN.clear()
    yield
    assert not SEEN


def run(rows: int = 9, model: nn.Module | None = None, **more: Any) -> Private:
    asked = {"batch_size": rows, "public_size": rows, "steps": 1} | more
    return run_of(network() if model is None else model, data(rows), **asked)


def decide(private: Private, decision: Decision) -> None:
    """Train by a loss of the sign that a decision gives."""
    for x, y in private.loader:
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        (loss if decision(x, y) else -loss).backward()
        private.step()


def look(x: Tensor) -> Tensor:
    SEEN.append(bool(x.max() > 1))
    return x * 1


class Index:
    """A number of the user's."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __index__(self) -> int:
        look(self.x)
        return 0


class Entries(list[Any]):
    """A list of the user's."""

    def __init__(self, x: Tensor, *entries: Any) -> None:
        super().__init__(entries)
        self.x = x

    def __iter__(self) -> Iterator[Any]:
        look(self.x)
        return super().__iter__()


def by_torch(x: Tensor) -> Any:
    return torch.overrides.handle_torch_function(look, (x,), x)


def by_operator(x: Tensor) -> Any:
    name = "dalenius_tests::peek"
    if name not in torch._library.custom_ops.OPDEFS:

        @torch.library.custom_op(name, mutates_args=())
        def peek(t: Tensor) -> Tensor:
            return look(t).clone()

    return torch.ops.dalenius_tests.peek(x)


def by_distance(x: Tensor) -> Any:
    return functional.triplet_margin_with_distance_loss(x, x, x, distance_function=lambda a, _: look(a))


BENEATH: dict[str, Callable[[Tensor], Any]] = {
    "a function as one of torch's": by_torch,
    "getattr as one of torch's": lambda x: torch.overrides.handle_torch_function(getattr, (x,), x, "shape"),
    "an operator in Python": by_operator,
    "a distance": by_distance,
    "an index": lambda x: x[:, Index(x)],  # type: ignore[index]
    "a slice": lambda x: x[:, Index(x) : 2],  # type: ignore[misc]
}


@pytest.mark.parametrize("call", BENEATH.values(), ids=BENEATH)
def test_functions_that_torch_would_call_are_refused(call: Callable[[Tensor], Any]) -> None:
    with pytest.raises(NotSound):
        decide(run(), lambda x, _: call(x) is not None)


def test_lists_of_the_users_are_read_without_their_methods() -> None:
    private = run()

    decide(private, lambda x, _: torch.stack(Entries(x, x, x)).dim() == 3)

    assert private.steps == 1


def test_an_enumeration_is_a_number() -> None:
    class Column(enum.IntEnum):
        FIRST = 0

    private = run()
    decide(private, lambda x, _: x[:, Column.FIRST].dim() == 1)

    assert private.steps == 1


def test_no_function_of_torch_is_taken_for_one_of_the_users() -> None:
    functions = torch.overrides.get_overridable_functions().values()

    assert not [func for several in functions for func in several if is_foreign(func)]


def test_hooks_on_saved_tensors_see_none() -> None:
    def pack(saved: Tensor) -> Tensor:
        look(saved)
        return saved

    def step(x: Tensor, _: Tensor) -> bool:
        scores = x.clone().requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
            (scores * x).square() * x.sum().item()
            scores.clone()[x[:, 0] > 1] = 0.0
        return True

    private = run()
    decide(private, step)

    assert private.steps == 1


class Extra(nn.Sequential):
    """A model with more state than tensors."""

    look: Callable[[], object] | None = None

    def get_extra_state(self) -> Any:
        """Return nothing, after a look."""
        return None if self.look is None else self.look() and None

    def set_extra_state(self, state: Any) -> None:
        """Take nothing."""


@pytest.mark.parametrize("way", ["extra state", "before", "after"])
def test_hooks_on_the_state_are_watched(way: str) -> None:
    model = Extra(*network())
    private, kept = run(model=model, steps=2), []

    def seeing(*_: Any) -> None:
        for x in kept:
            look(x)

    if way == "extra state":
        object.__setattr__(model, "look", seeing)
    elif way == "before":
        model.register_state_dict_pre_hook(seeing)
    else:
        model._register_state_dict_hook(seeing)

    with pytest.raises(NotSound, match="branch"):
        decide(private, lambda x, _: kept.append(x) is None)


# Sizes.


def first_size(private: Private) -> None:
    size = None
    for x, y in private.loader:
        size = x.shape[0] if size is None else size
        private.zero_grad()
        (functional.cross_entropy(private.model(x), y, reduction="sum") / size).backward()
        private.step()


@pytest.mark.parametrize("more", [{"steps": 2}, {"chunk": 3}], ids=["of another batch", "of another chunk"])
def test_a_size_that_was_kept_is_not_that_of_the_batch(more: dict[str, Any]) -> None:
    with pytest.raises(NotSound, match="shape"):
        first_size(run(**more))


def test_sizes_of_two_batches_are_not_compared() -> None:
    sizes: list[Any] = []

    with pytest.raises(NotSound, match="comparison"):
        decide(run(steps=2), lambda x, _: sizes.append(x.shape[0]) is None and sizes[0] == sizes[-1])


def test_a_batch_has_two_examples() -> None:
    private = run()

    decide(private, lambda x, _: not x.shape[0] < 2 and x.shape[0] >= 2 and x.shape[0] > 1)

    assert private.steps == 1


SIZES: dict[str, Decision] = {
    "a seed": lambda x, y: torch.manual_seed(len(x)) is None,
    "layers": lambda x, y: len(nn.LSTM(1, 1, num_layers=len(x)).all_weights) == 9,
    "repeated": lambda x, y: len(torch.nn.modules.utils._reverse_repeat_tuple((1,), len(x))) == 9,
    "a memory": lambda x, y: torch.ones(4).set_(torch.ones(len(x), 4)).shape[0] == 9,
    "an operator's memory": lambda x, y: torch.ops.aten.set_.source_Tensor(torch.ones(4), torch.ones(len(x))),
    "an output": lambda x, y: torch.add(x, 1, out=torch.empty(9, 2)).dim(),
    "bytes": lambda x, y: pickle.dumps(x.shape[0]),
    "attributes": lambda x, y: vars(x.shape[0]),
}


@pytest.mark.parametrize("decision", SIZES.values(), ids=SIZES)
def test_sizes_are_not_told(decision: Decision) -> None:
    with pytest.raises(NotSound):
        decide(run(), decision)


@pytest.mark.parametrize("rows", [8, 9])
def test_checks_of_libraries_have_one_outcome_for_every_batch(rows: int) -> None:
    def fits(x: Tensor) -> bool:
        try:
            nn.GRU(9, 1).requires_grad_(False)(x.t())
        except RuntimeError:
            return False
        return True

    private = run(rows)
    outcomes: list[bool] = []
    decide(private, lambda x, _: outcomes.append(fits(x)) is None)

    assert outcomes == [False]


class Spy(float):
    """A number of the user's that looks at what it is added to."""

    def __radd__(self, other: Any) -> float:
        SEEN.append(isinstance(other, float) and not isinstance(other, PrivateNumber))
        return 0.0


@pytest.mark.parametrize("number", [Spy(1), np.float64(1), np.int64(1), True], ids=repr)
def test_sums_with_private_numbers_are_computed_by_plain_ones(number: Any) -> None:
    for private in (PrivateNumber(2.0), PrivateInteger(2)):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            results = [private + number, private / (number - 1), private // (number - 1)]

        assert not warned
        assert all(isinstance(result, PrivateNumber | PrivateInteger) for result in results)


def test_texts_of_private_numbers_do_not_fail() -> None:
    large = PrivateInteger(10) * 10**5000
    decimal, whole = "%f", "%d"
    texts = [f"{large}", f"{BatchSize(1 << 21):c}", decimal % large, whole % PrivateNumber(float("nan"))]

    assert all(texts)


# Warnings, and what is left after the loop.


def test_warnings_of_torch_are_not_recorded() -> None:
    recorded: list[Any] = []

    def warned(x: Tensor, _: Tensor) -> bool:
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            x[:, 0][x[:, 0] > 1e9].std()
        recorded.extend(record)
        return True

    decide(run(), warned)

    assert not recorded


FAILING: dict[str, Callable[[Tensor], Any]] = {
    "a factor": lambda x: torch.linalg.cholesky(-(x.t() @ x)),
    "an index": lambda x: torch.zeros(1)[(x[:, 0] > -1e9).long()],
    "a single entry": lambda x: x[:, 0][x[:, 0] > 1e9].item(),
    "a maximum of nothing": lambda x: x[:, 0][x[:, 0] > 1e9].max(),
    "another shape": lambda x: x + torch.zeros(4, 3),
}


@pytest.mark.parametrize("call", FAILING.values(), ids=FAILING)
def test_what_fails_on_private_tensors_after_the_loop_ends_the_run(call: Callable[[Tensor], Any]) -> None:
    private = run(steps=None, epochs=2)
    for _ in range(2):
        for x, y in private.loader:
            private.zero_grad()
            functional.cross_entropy(private.model(x), y).backward()
            if private.steps:
                with pytest.raises(NotSound, match="failed on private examples"):
                    private.step()
                return
            private.step()
        with pytest.raises((RuntimeError, IndexError, ValueError), match="not shown"):
            call(x)


def test_dimensions_of_a_selection_are_not_told_after_the_loop() -> None:
    kept: list[Tensor] = []
    decide(run(), lambda x, _: kept.append(x) is None)
    (x,) = kept

    assert torch.cat([x, x]).squeeze(1).dim() == 2
    with pytest.raises(NotSound):
        x[:, 0][x[:, 0] > 1e9].squeeze()
