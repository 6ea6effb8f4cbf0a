"""Losses that torch.vmap cannot run are computed one by one, and no example sees how many came before it."""

from __future__ import annotations

import logging
import random
import re
import weakref
from abc import ABC
from array import array
from collections.abc import Callable
from contextvars import ContextVar
from csv import reader
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from io import StringIO
from pathlib import Path
from threading import Lock, RLock, local
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn import python_state
from dalenius.learn.private import Private
from dalenius.learn.quiet import PYTHON, seed_generators
from tests.learn.runs import data, network, run_of

ROWS = 6
Function = Callable[[Any, Any], Tensor]


def written_in_place(model: Any, example: Any) -> Tensor:
    """A loss that vmap cannot run: it writes an example into memory of its own."""
    memory = torch.zeros(1)
    memory[0] = functional.cross_entropy(model(example[0]), example[1])
    return memory[0]


def learned(function: Function, rows: tuple[Tensor, ...], model: nn.Module | None = None) -> Any:
    """Run a loss on one batch, and return whether it ran on all examples at once."""
    private = run_of(model or network(), rows, batch_size=ROWS, public_size=ROWS, steps=1)
    learn = private.loss(function)
    for batch in private.loader:
        private.zero_grad()
        learn(batch)
        private.step()
    return learn.vectorized


def texts() -> tuple[Tensor, ...]:
    return torch.randn(ROWS, 7, 5), torch.arange(1, ROWS + 1) % 3, torch.arange(1, ROWS + 1)


@pytest.mark.parametrize("draw", [random.random, np.random.random], ids=["random", "numpy"])
def test_every_example_has_secret_random_numbers_of_its_own(
    draw: Callable[[], float], capsys: pytest.CaptureFixture[str]
) -> None:

    def function(model: Any, example: Any) -> Tensor:
        print(draw())
        return written_in_place(model, example)

    seed_generators(0, PYTHON)
    public = [draw() for _ in range(4 * ROWS)]
    seed_generators(0, PYTHON)
    assert not learned(function, data(ROWS))
    drawn = list(map(float, capsys.readouterr().out.split()))
    # The attempt to run all at once draws one number, and the generators go on from there.
    assert drawn[0] == public[0]
    assert draw() == public[1]
    assert len(set(drawn[1:])) == ROWS
    assert not set(drawn[1:]) & set(public)


class Counting(nn.Module):
    """A model that counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.calls = nn.Linear(5, 3), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.inner(x) * (-1) ** self.calls


def test_a_model_that_counts_is_refused() -> None:
    with pytest.raises(NotSound, match="counted"):
        learned(written_in_place, data(ROWS), Counting())


LENGTHS: dict[str, Function] = {
    "slice": lambda model, e: model(e[0])[: e[2]].mean(0),
    "slice of a constant": lambda model, e: model(e[0]).mean(0) * torch.ones(9)[: e[2]].sum(),
    "narrow": lambda model, e: model(e[0]).narrow(0, 0, e[2]).mean(0),
    "arange": lambda model, e: model(e[0]).mean(0) * torch.arange(e[2]).sum(),
    "zeros": lambda model, e: model(e[0]).mean(0) + torch.zeros(int(e[2])).sum(),
    "split": lambda model, e: model(e[0]).split([e[2], 7 - e[2]])[0].mean(0),
    "tensor_split": lambda model, e: torch.tensor_split(model(e[0]), e[2][None])[0].mean(0),
    "repeats": lambda model, e: torch.repeat_interleave(model(e[0]), repeats=e[2], dim=0).mean(0),
    "membership": lambda model, e: model(e[0]).mean(0) * (3 in e[2]),
}


@pytest.mark.parametrize("read", LENGTHS.values(), ids=LENGTHS)
def test_values_of_an_example_give_no_sizes(read: Function) -> None:
    def function(model: Any, example: Any) -> Tensor:
        memory = torch.zeros(1)
        memory[0] = functional.cross_entropy(read(model, example), example[1])
        return memory[0]

    with pytest.raises(NotSound, match="reads values"):
        learned(function, texts())


def test_an_index_that_picks_one_entry_is_accepted() -> None:
    def function(model: Any, example: Any) -> Tensor:
        memory = torch.zeros(1)
        memory[0] = -model(example[0]).mean(0).log_softmax(0)[example[1]]
        return memory[0]

    assert not learned(function, texts())


def test_a_saved_run_is_resumed_beside_an_open_loop(tmp_path: Path) -> None:
    def run() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = network()
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    settings = {"batch_size": 5, "steps": 4, "clip": 1, "noise_multiplier": 1, "public_size": 20}
    rows, path = data(20), tmp_path / "run.state"
    first = Private(*run(), rows, **settings)
    for x, y in first.batches():
        first.zero_grad()
        functional.cross_entropy(first.model(x), y).backward()
        first.step()
        if first.steps == 2:
            break
    first.save(path)
    kept = iter(first.batches())
    next(kept)
    first.close()
    second = Private.resume(path, *run(), rows, **settings)
    second.save(path)
    second.close()
    assert Private.resume(path, *run(), rows, **settings).steps == 2


def other_type(model: Any, example: Any) -> Tensor:
    """A loss that takes single precision and double precision in turn."""
    single = torch.get_default_dtype() == torch.float32
    torch.set_default_dtype(torch.float64 if single else torch.float32)
    memory = torch.zeros(1, dtype=torch.float32)
    memory[0] = functional.cross_entropy(model(example[0]), example[1]) * (1 if single else -1)
    return memory[0]


def other_gradients(model: Any, example: Any) -> Tensor:
    """A loss that switches anomaly detection on and off."""
    torch.autograd.set_detect_anomaly(not torch.is_anomaly_enabled())
    return written_in_place(model, example) * (1 if torch.is_anomaly_enabled() else -1)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("function", [other_type, other_gradients])
def test_a_setting_that_is_flipped_from_example_to_example_is_refused(function: Function) -> None:
    """The number of examples is even, so that all settings are what they were at the end."""
    try:
        with pytest.raises(NotSound, match="setting of torch"):
            learned(function, data(ROWS))
    finally:
        torch.set_default_dtype(torch.float32)
        torch.autograd.set_detect_anomaly(False)


def test_an_attribute_that_is_flipped_from_example_to_example_is_refused() -> None:
    class Turning(nn.Linear):
        turned = False

        def forward(self, x: Tensor) -> Tensor:
            self.turned = not self.turned
            return super().forward(x) * (1 if self.turned else -1)

    with pytest.raises(NotSound, match="plain value"):
        learned(written_in_place, data(ROWS), Turning(5, 3))


def test_constants_that_are_built_at_the_first_example_are_accepted() -> None:
    constants: dict[str, Tensor] = {}

    def scaled(model: Any, example: Any) -> Tensor:
        if "scale" not in constants:
            constants["scale"] = torch.linspace(0, 1, 5)
        return written_in_place(model, (example[0] * constants["scale"], example[1]))

    assert not learned(scaled, data(ROWS))


class Tally:
    """A number that moves on whenever it is asked for, kept where a `Keeper` says."""

    number = 0

    def __getitem__(self, _: int) -> int:
        Tally.number += 1
        return Tally.number


class Slotted:
    """An object whose number is in a slot that its class names for itself."""

    __slots__ = ("__number",)

    def __init__(self) -> None:
        self.__number = 0

    def moved(self) -> int:
        self.__number += 1
        return self.__number


class Numbered(list[int]):
    """A list with a number of its own."""

    number = 0


def of_partial() -> Callable[[], int]:
    return partial(lambda kept: kept.append(0) or len(kept), [])


def of_array() -> Callable[[], int]:
    kept = array("i")
    return lambda: kept.append(0) or len(kept)


def of_bytes() -> Callable[[], int]:
    kept = bytearray()
    return lambda: kept.append(0) or len(kept)


def of_text() -> Callable[[], int]:
    kept = StringIO()
    return lambda: kept.write("step") and len(kept.getvalue()) // 4


def of_an_item() -> Callable[[], int]:
    kept = Tally()
    return lambda: kept[0]


def of_a_list_s_attribute() -> Callable[[], int]:
    kept = Numbered()

    def moved() -> int:
        kept.number += 1
        return kept.number

    return moved


def of_a_context() -> Callable[[], int]:
    kept = ContextVar("kept", default=0)
    return lambda: kept.set(kept.get() + 1) is None or kept.get()


def of_a_cache() -> Callable[[], int]:
    @cache
    def weight() -> int:
        return 1

    return lambda: weight() and weight.cache_info().hits


def of_a_module_in_a_package() -> Callable[[], int]:
    package.inner.number = 0

    def moved() -> int:
        package.inner.number += 1
        return int(package.inner.number)

    return moved


package: Any = ModuleType("package")
package.inner = ModuleType("package.inner")

KEEPERS: dict[str, Callable[[], Callable[[], int]]] = {
    "the arguments of a partial": of_partial,
    "an array": of_array,
    "bytes": of_bytes,
    "a text in memory": of_text,
    "a method with a special name": of_an_item,
    "an attribute of a list": of_a_list_s_attribute,
    "a slot with a private name": lambda: Slotted().moved,
    "a variable of a context": of_a_context,
    "hits of a cache": of_a_cache,
    "a module of a package": of_a_module_in_a_package,
}


def turned_by(moved: Callable[[], int]) -> Function:
    """Return a loss whose sign follows from how many examples came before."""
    return lambda model, example: written_in_place(model, example) * (-1) ** moved()


@pytest.mark.parametrize("keeper", KEEPERS.values(), ids=KEEPERS)
def test_a_count_is_refused_wherever_it_is_kept(keeper: Callable[[], Callable[[], int]]) -> None:
    with pytest.raises(NotSound, match="kept another value of Python"):
        learned(turned_by(keeper()), data(ROWS))


def test_an_object_that_cannot_be_read_is_refused() -> None:
    lines = reader(["0"] * 99)

    def function(model: Any, example: Any) -> Tensor:
        next(lines)
        return written_in_place(model, example) * (-1) ** lines.line_num

    with pytest.raises(NotSound, match=r"_csv\.reader.*cannot be read"):
        learned(function, data(ROWS))


def test_more_objects_than_can_be_read_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_state, "_MOST", 500)
    rows = [[row] for row in range(500)]
    with pytest.raises(NotSound, match="more than 500 objects"):
        learned(lambda model, example: written_in_place(model, example) * len(rows), data(ROWS))


def test_objects_that_change_nothing_are_accepted() -> None:
    @cache
    def weight(size: int) -> float:
        return 1 / size

    kept: list[Any] = [
        re.compile("a"),
        *(Lock(), RLock(), local(), Decimal(1), array("i", [1]), ContextVar("other"), logging.getLogger("x")),
        *(torch.float32, torch.device("cpu"), np.dtype("f4"), np.add, slice(3), range(3), memoryview(b"a")),
        *(
            partial(weight, 2),
            weakref.ref(weight),
            datetime(2020, 1, 1),
            ValueError("a"),
            ABC,
            Fraction(1, 2),
        ),
    ]

    def function(model: Any, example: Any) -> Tensor:
        return written_in_place(model, example) * weight(3) * len(kept)

    assert not learned(function, data(ROWS))
