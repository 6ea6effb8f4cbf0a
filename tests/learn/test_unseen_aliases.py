"""Objects, layouts and copies of private tensors that torch makes without a function that is seen."""

from __future__ import annotations

import copy
import io
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


WRITES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "data": lambda kept, mean: kept.data.mul_(0.9).add_(mean, alpha=0.1),
    "a whole slice": lambda kept, mean: kept[:].add_(mean),
    "a slice": lambda kept, mean: kept[:1].copy_(mean[:1]),
    "narrow": lambda kept, mean: kept.narrow(0, 0, 1).copy_(mean[:1]),
    "detach": lambda kept, mean: kept.detach().lerp_(mean, 0.1),
    "view": lambda kept, mean: kept.view(1, 5)[0].copy_(mean),
}
MADE: dict[str, Callable[[Tensor], Tensor]] = {
    "zeros": lambda x: torch.zeros(5),
    "new_zeros": lambda x: x.new_zeros(5),
    "full": lambda x: torch.full((5,), 1.0),
    "a clone": lambda x: torch.ones(5).clone(),
}


def three_batches(use: Callable[[Tensor, Tensor, Tensor | None], Tensor]) -> Any:
    """Hand a tensor, which was made in the first batch, from batch to batch."""
    private, kept = run_of(network(), data(9), batch_size=9, public_size=9, steps=3), None
    for x, y in private.loader:
        private.zero_grad()
        kept = use(x, y, kept)
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
    return kept


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_tensor_of_an_earlier_batch_is_private_once_an_alias_was_written(
    make: Callable[[Tensor], Tensor], write: Callable[[Tensor, Tensor], Any]
) -> None:
    def use(x: Tensor, y: Tensor, kept: Tensor | None) -> Tensor:
        if kept is None:
            kept = make(x)
            write(kept, x.mean(0))
        elif kept.sum() > 0:
            pass
        return kept

    with pytest.raises(NotSound, match="a branch"):
        three_batches(use)


def test_it_stays_private_after_the_loop() -> None:
    def use(x: Tensor, y: Tensor, kept: Tensor | None) -> Tensor:
        kept = torch.zeros(5) if kept is None else kept
        kept[:].add_(x.mean(0))
        return kept

    assert isinstance(three_batches(use), PrivateTensor)


def test_a_sparse_tensor_is_private_once_its_values_were_written() -> None:
    def use(x: Tensor, y: Tensor, kept: Tensor | None) -> Tensor:
        kept = torch.ones(5).to_sparse() if kept is None else kept
        assert kept.to_dense().sum() > 0
        kept._values().copy_(x.mean(0))
        return kept

    with pytest.raises(NotSound, match="a branch"):
        three_batches(use)


def test_public_tensors_of_an_earlier_batch_stay_public() -> None:
    written: list[Tensor] = []

    def use(x: Tensor, y: Tensor, kept: Tensor | None) -> Tensor:
        kept = torch.ones(5) if kept is None else kept
        written.append(torch.zeros(5))
        written[-1][:].copy_(x.mean(0))
        matrix = torch.eye(5).to_sparse()
        kept[:].add_(matrix.to_dense()[0])
        assert kept.sum() > 0
        return kept

    assert three_batches(use).tolist() == [4.0, 1.0, 1.0, 1.0, 1.0]


def test_what_another_open_run_has_written_is_private() -> None:
    left, right = (run_of(network(), data(9), batch_size=9, public_size=9, steps=1) for _ in range(2))
    mean = torch.zeros(5)
    learn = left.loss(lambda model, row: functional.cross_entropy(model(row[0] - mean), row[1]))
    with pytest.raises(NotSound, match="private data that is not its example"):
        for batch, (others, _) in zip(left.loader, right.loader, strict=True):
            mean = torch.zeros(5)
            mean[:].add_(others.mean(0))
            left.zero_grad()
            learn(batch)


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("rows", [8, 9])
def test_a_tensor_that_is_kept_shows_no_size_to_what_does_not_ask_it(rows: int) -> None:
    kept = one_step(lambda private, x, y: [x, x.mean(0)], rows)
    with torch._C.DisableTorchFunction():
        assert [tuple(torch.tensor(one).shape) for one in kept] == [(0,), (0,)]
    assert str(kept[0].shape) == f"torch.Size([{rows}, 5])" and kept[1].shape == (5,)
    with pytest.raises(NotSound):
        assert kept[0].shape[0] == one_step(lambda private, x, y: [x], rows)[0].shape[0]
    assert (kept[0] + 0).sum().item().for_logging() == pytest.approx(float(data(rows)[0].sum()), abs=1e-3)


def test_values_that_were_read_out_are_not_stored() -> None:
    kept = one_step(lambda private, x, y: [x.tolist(), private.model(x).detach().numpy()])
    for values in kept:
        with pytest.raises(NotSound, match="bytes"):
            pickle.dumps({"values": values})
        with pytest.raises(NotSound, match="bytes"):
            torch.save([values], io.BytesIO())
        assert copy.deepcopy([values])[0] is values
