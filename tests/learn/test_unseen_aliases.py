"""Objects, layouts and copies of private tensors that torch makes without a function that is seen."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.dataflow.kept_tensors import PrivateTensor
from tests.learn.runs import data, network, run_of

TOLD: dict[str, Callable[[Tensor], Any]] = {
    "the version of a slice": lambda x: x[7:]._version == 0,
    "whether it is a view": lambda x: x.t().reshape(-1)._is_view(),
    "what it is a view of": lambda x: x.t().reshape(-1)._base is None,
    "the number in a size": lambda x: x.shape[0].value == 9,  # type: ignore[attr-defined]
    "its state in bytes": lambda x: x.__reduce_ex__(2)[1] is not None,
    "pickled bytes": lambda x: pickle.loads(pickle.dumps(x)).sum() > 0,
    "a shallow copy": lambda x: copy.copy(x).sum() > 0,
}


def one_step(use: Callable[[Any, Tensor, Tensor], Any], rows: int = 9) -> Any:
    private = run_of(network(), data(rows), batch_size=rows, public_size=rows, steps=1)
    for x, y in private.loader:
        private.zero_grad()
        kept = use(private, x, y)
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
    return kept


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_a_plain_value_of_a_tensor_s_memory_is_refused(told: Callable[[Tensor], Any]) -> None:
    with pytest.raises(NotSound):
        one_step(lambda private, x, y: told(x))


@pytest.mark.parametrize("rows", [9, 10])
def test_contiguous_gives_a_copy_whatever_the_size_of_the_batch(rows: int) -> None:
    part: list[bool] = []

    def compare(private: Any, x: Tensor, y: Tensor) -> None:
        # With nine rows the slice has one row, and any layout of it is contiguous.
        tail = x[8:].t()
        part.append(tail.contiguous() is tail)

    one_step(compare, rows)
    assert part == [False]


ALIASES: dict[str, Callable[[Tensor], Tensor]] = {
    "a parameter": nn.Parameter,
    "a constructor": torch.Tensor,
    "a buffer": nn.Buffer,
}


@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
def test_a_tensor_on_private_memory_stays_private_after_the_loop(alias: Callable[[Tensor], Tensor]) -> None:
    kept = one_step(lambda private, x, y: [alias(x.mean(0))])
    assert isinstance(kept[0], PrivateTensor)
    with pytest.raises(NotSound):
        assert kept[0].sum() > 0


def test_public_tensors_stay_plain_after_the_loop() -> None:
    public = torch.ones(3)
    kept = one_step(lambda private, x, y: [public * 2, nn.Parameter(public)])
    assert [type(one) for one in (public, *kept)] == [Tensor, Tensor, nn.Parameter]
    assert kept[0].sum() > 0
