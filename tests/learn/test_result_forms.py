"""How many results there are, what type and how many dimensions they have, follows from no private value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.dataflow.private_numbers import BatchSize, PrivateInteger, PrivateNumber, private
from tests.learn.runs import data, network, run_of

ROWS = 9
SQUARE = torch.arange(25.0).view(5, 5)


def batches() -> Iterator[tuple[Any, Tensor, Tensor]]:
    """Yield a run and its batches, in each of which are all rows."""
    private = run_of(network(), data(ROWS), batch_size=ROWS, public_size=ROWS, steps=1)
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        yield private, x, y
        private.step()


def count(x: Tensor) -> Tensor:
    """Return a private whole number."""
    return (x[:, 0] > 0).sum()


REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "covariance of selected rows": lambda x: torch.cov(x[x[:, 0] > 1.2]),
    "correlation of selected rows": lambda x: torch.corrcoef(x[x[:, 0] > 1.2]),
    "covariance of a private size": lambda x: torch.cov(torch.ones(x.shape[0] - 8, 3)),
    "squeezed by an operator": lambda x: torch.ops.aten.squeeze.default(x[x[:, 0] > 1.2]),
    "tensordot by a private number": lambda x: torch.tensordot(SQUARE, SQUARE, dims=count(x).item()),
    "tensordot by a private tensor": lambda x: torch.tensordot(SQUARE, SQUARE, dims=count(x).clamp(max=2)),
    "tensordot over private dimensions": lambda x: torch.tensordot(
        SQUARE, SQUARE, dims=([count(x).clamp(max=1)], [0])
    ),
    "einsum of a private list": lambda x: torch.einsum(SQUARE, [0, 1], [x.shape[0] - 9]),
    "einsum of a private value": lambda x: torch.einsum(SQUARE, [0, 1], [count(x).item()]),
    "layers by the size of the batch": lambda x: nn.LSTM(2, 2, x.shape[0]),
    "layers by another private size": lambda x: nn.GRU(2, 2, x.shape[0] - 8),
    "projections by a private size": lambda x: nn.LSTM(20, 20, 1, proj_size=x.shape[0] - 8),
}


@pytest.mark.parametrize("name", REFUSED)
def test_private_values_decide_no_form(name: str) -> None:
    with pytest.raises(NotSound):
        for _, x, _ in batches():
            REFUSED[name](x)


def test_ranks_that_no_value_decides_are_given() -> None:
    for _, x, _ in batches():
        assert torch.cov(x.T @ x).dim() == torch.cov(x).dim() == 2
        assert torch.tensordot(x, SQUARE, dims=1).dim() == 2
        assert torch.einsum(x, [0, 1], [0]).dim() == 1
        assert x[x[:, 0] > 0].unsqueeze(0).dim() == 3


ZERO, ONE = 0, 1
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "5 // v": lambda v: 5 // v,
    "5 % v": lambda v: 5 % v,
    "5 / v": lambda v: 5 / v,
    "divmod(5, v)": lambda v: divmod(5, v)[0],
    "v ** -1": lambda v: v**-1,
    "2 ** -v": lambda v: 2**-v,
    "v // 2.0": lambda v: v // 2.0,
    "round(v / v)": lambda v: round(v / v),
    "round(v)": lambda v: round(v),
}


@pytest.mark.parametrize("kind", [PrivateInteger, PrivateNumber])
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_type_of_a_result_is_the_same_for_all_values(name: str, kind: type[Any]) -> None:
    if kind is PrivateNumber and name in ("5 % v", "divmod(5, v)"):
        pytest.skip("private values have no remainders, whatever they are")
    assert type(OPERATIONS[name](kind(ZERO))) is type(OPERATIONS[name](kind(ONE)))


def test_a_size_by_a_size_that_may_be_zero_has_one_type() -> None:
    assert {type(BatchSize(9) // PrivateInteger(value)) for value in (0, 1, 9)} == {PrivateInteger}


def test_the_mean_of_no_values_is_a_private_number() -> None:
    assert isinstance(private([], "tolist()").mean(), PrivateNumber)


def test_a_power_is_as_large_as_a_float_at_most() -> None:
    """A power of whole numbers would take time and memory by their values."""
    assert repr(PrivateNumber(10) ** 10**9) == "nan"
