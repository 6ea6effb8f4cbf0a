"""A tensor that was multiplied or divided by the size of the batch keeps the power of that size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.dataflow.interpreter import Analysis
from dalenius.learn.dataflow.states import AXIS, MIXED, TOTAL, VIRTUAL, State
from tests.learn.runs import data, network, run_of

Form = Callable[[Tensor], Tensor]
FORMS: dict[str, Form] = {
    "clone": torch.clone,
    "detach": torch.detach,
    "data": lambda t: t.data,
    "alias": lambda t: t.view_as(t),
    "view": lambda t: t.view(t.shape[0], 2, 3),
    "reshape": lambda t: t.reshape(-1),
    "flatten": lambda t: t.flatten(),
    "unflatten": lambda t: t.unflatten(1, (2, 3)),
    "unsqueeze": lambda t: t.unsqueeze(0),
    "squeeze": lambda t: t.squeeze(),
    "transpose": lambda t: t.t(),
    "permute": lambda t: t.permute(1, 0),
    "movedim": lambda t: t.movedim(0, 1),
    "select": lambda t: t[:, 0],
    "slice": lambda t: t[:, 1:],
    "all rows": lambda t: t[:],
    "expand": lambda t: t[None].expand(3, -1, -1),
    "repeat_interleave": lambda t: t.repeat_interleave(2, 0),
    "contiguous": lambda t: t.t().contiguous(),
    "to": lambda t: t.to(torch.float64),
    "double": lambda t: t.double(),
    "neg": torch.neg,
    "times a constant": lambda t: t * 2,
    "by a constant": lambda t: t / 3,
    "twice": lambda t: t + t,
    "mean of a row": lambda t: t.mean(1),
    "sum of a row": lambda t: t.sum(1, keepdim=True),
    "sum": torch.sum,
    "mean": torch.mean,
    "sum of the batch": lambda t: t.sum(0),
    "chunk": lambda t: t.chunk(2, 1)[0],
    "unbind": lambda t: t.unbind(1)[0],
    "cat": lambda t: torch.cat([t, t], 1),
    "stack": lambda t: torch.stack([t, t], 1),
    "square": torch.square,
    "relu": functional.relu,
    "round": torch.round,
    "whole numbers": lambda t: t.long(),
    "rounded down": lambda t: torch.div(t, 2.0, rounding_mode="floor"),
    "bits": lambda t: t.view(torch.int32),
    "plus one": lambda t: t + 1,
    "product": lambda t: t * t,
}


def state_of(form: Form, power: int) -> State | None:
    x = torch.randn(4, 6)
    outcome = Analysis().outcome(form, (x,), {}, {id(x): State(AXIS, 1, (VIRTUAL, 6), power)})
    return outcome.results[0] if outcome.results else State(MIXED)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("power", [-1, 1])
def test_the_power_is_kept_or_the_result_is_mixed(form: Form, power: int) -> None:
    before, after = state_of(form, 0), state_of(form, power)

    assert before is not None and after is not None
    if after.kind != MIXED:
        assert after == before._replace(power=before.power + power)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("power", [-1, 1])
def test_a_power_that_is_kept_is_the_true_one(form: Form, power: int) -> None:
    known = state_of(form, power)
    if known is None or known.kind not in (AXIS, TOTAL):
        return
    row = torch.tensor([[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]])

    four, eight = (form(row.expand(n, 6).clone() * float(n) ** power).double() for n in (4, 8))

    # A sum over examples that are alike is n times as large.
    expected = 2.0 ** (known.power + (known.kind == TOTAL))
    torch.testing.assert_close(eight.reshape(-1)[0], four.reshape(-1)[0] * expected)


def looped(weighted: Callable[[Tensor, Any], Tensor]) -> Callable[[Any], None]:
    def train(private: Any) -> None:
        for x, y in private.loader:
            private.zero_grad()
            losses = functional.cross_entropy(private.model(x), y, reduction="none")
            weighted(losses, x.shape[0]).backward()
            private.step()

    return train


def written(losses: Tensor, n: Any) -> Tensor:
    rows = torch.zeros(n)
    rows[:] = losses * n
    return rows.sum() / 40


def over_and_over(losses: Tensor, n: Any) -> Tensor:
    for _ in range(9):
        losses = losses * n
    for _ in range(9):
        losses = losses / n
    return losses.mean()


REFUSED = {
    "a sum that looked like a mean": lambda losses, n: (losses / n).reshape(-1).sum() * n * n / 40,
    "written rows": written,
    "high powers": over_and_over,
}


@pytest.mark.parametrize("weighted", REFUSED.values(), ids=REFUSED)
def test_powers_that_are_not_of_a_sum_or_mean_are_refused(weighted: Callable[[Tensor, Any], Tensor]) -> None:
    private = run_of(network(), data(9), batch_size=9, public_size=9, steps=1)

    with pytest.raises(NotSound):
        looped(weighted)(private)


MEANS = {
    "view": lambda losses, n: (losses / n).view(-1).sum(),
    "squeeze": lambda losses, n: (losses / n).squeeze().sum(),
    "sum in the end": lambda losses, n: (losses / n).reshape(-1).sum() * n / 9,
}


@pytest.mark.parametrize("weighted", MEANS.values(), ids=MEANS)
def test_means_of_views_are_accepted(weighted: Callable[[Tensor, Any], Tensor]) -> None:
    private = run_of(network(), data(9), batch_size=9, public_size=9, steps=1)

    looped(weighted)(private)

    assert private.steps == 1
