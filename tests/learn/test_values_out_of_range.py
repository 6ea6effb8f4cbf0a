"""No value of a row ends a run or is shown by an error: functions of torch are total in private passes."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.adding import Sum
from dalenius.learn.index_range import with_valid_indices

from .runs import data, network, run_of

ROWS, ODD, CLIP = 9, 4, 0.01
LABEL, NUMBER = 731, float("nan")
Loss = Callable[[Any, Tensor, Tensor], Tensor]
"""From a model and rows, or one row, to the loss of each: whatever the number of leading dimensions."""


def matrices(x: Tensor) -> Tensor:
    return x[..., :4].unflatten(-1, (2, 2))


def entropy_of(model: Any, x: Tensor, labels: Tensor) -> Tensor:
    return functional.binary_cross_entropy(
        model(x)[..., 0].sigmoid(), labels.clamp(0, 1).float(), reduction="none"
    )


def factor(x: Tensor) -> Tensor:
    square = matrices(x)
    return torch.linalg.cholesky(square @ square.mT + torch.eye(2))


LOSSES: dict[str, tuple[Loss, float]] = {
    "binary cross entropy": (entropy_of, NUMBER),
    "gather": (lambda m, x, y: m(x).gather(-1, y.unsqueeze(-1)).squeeze(-1), LABEL),
    "a negative label": (lambda m, x, y: m(x).gather(-1, y.unsqueeze(-1)).squeeze(-1), -5),
    "a table": (lambda m, x, y: m(x)[..., 0] * torch.arange(3.0)[y], LABEL),
    "index_select": (
        lambda m, x, y: m(x)[..., 0] * torch.arange(3.0).index_select(0, y.view(-1)).view(y.shape),
        LABEL,
    ),
    "one-hot": (lambda m, x, y: (m(x) * functional.one_hot(y, 3)).sum(-1), LABEL),
    "scatter": (
        lambda m, x, y: (m(x) * torch.zeros_like(x[..., :3]).scatter(-1, y.unsqueeze(-1), 1.0)).sum(-1),
        LABEL,
    ),
    "a law of classes": (lambda m, x, y: -Categorical(logits=m(x)).log_prob(y), LABEL),
    "a margin": (
        lambda m, x, y: functional.multi_margin_loss(m(x), y, reduction="none").view(y.shape),
        LABEL,
    ),
    "coins": (lambda m, x, y: m(x).sum(-1) * torch.bernoulli(x[..., 0].sigmoid()), NUMBER),
    "classes": (lambda m, x, y: m(x)[..., 0] * torch.multinomial(x.softmax(-1), 1)[..., 0], NUMBER),
    "counts": (lambda m, x, y: m(x)[..., 0] * torch.poisson(x[..., 0].exp()), NUMBER),
    "noise": (lambda m, x, y: m(x)[..., 0] * torch.normal(0 * x[..., 0], x[..., 0].exp()), NUMBER),
    "an inverse": (lambda m, x, y: m(x)[..., 0] * torch.linalg.inv(matrices(x)).sum((-1, -2)), 0.0),
    "an equation": (
        lambda m, x, y: torch.linalg.solve(matrices(x), m(x)[..., :2].unsqueeze(-1)).sum((-1, -2)),
        0.0,
    ),
    "a factor": (lambda m, x, y: m(x)[..., 0] * factor(x).sum((-1, -2)), NUMBER),
    "a quotient": (lambda m, x, y: m(x)[..., 0] * (12 // y), 0),
    "a quotient of two": (lambda m, x, y: m(x)[..., 0] * torch.div(2, y, rounding_mode="trunc"), 0),
    "the least quotient": (
        lambda m, x, y: m(x)[..., 0] * torch.div(y, y * 0 - 1, rounding_mode="trunc"),
        -(2**63),
    ),
    "a remainder": (lambda m, x, y: m(x)[..., 0] * (12 % y + torch.fmod(y, y) + torch.remainder(2, y)), 0),
    "a norm of a matrix": (
        lambda m, x, y: m(x)[..., 0] * torch.linalg.matrix_norm(matrices(x), "nuc").detach(),
        NUMBER,
    ),
    "singular values": (lambda m, x, y: m(x)[..., 0] * torch.linalg.svdvals(matrices(x)).sum(-1), NUMBER),
}


def sum_of(loss: Loss, rows: tuple[Tensor, ...], *, together: bool, chunk: int = 16) -> Tensor:
    """Run one step, and return the clipped sum before noise."""
    private = run_of(
        network(), rows, batch_size=len(rows[0]), public_size=len(rows[0]), steps=1, clip=CLIP, chunk=chunk
    )
    sums: list[Tensor] = []
    release = Sum.release

    def recorded(self: Sum, *path: Any, **more: Any) -> None:
        sums.append(torch.cat([total.detach().double().reshape(-1) for total in self.exact()]))
        release(self, *path, **more)

    learn = private.loss(lambda model, example: loss(model, *example))
    with patch.object(Sum, "release", recorded):
        for x, y in private.loader:
            private.zero_grad()
            if together:
                loss(private.model, x, y).mean().backward()
            else:
                learn((x, y))
            private.step()
    return sums[0]


def rows_with(value: float) -> tuple[Tensor, Tensor]:
    x, y = data(ROWS)
    if isinstance(value, int):
        y[ODD] = value
    else:
        x[ODD] = value
    return x, y


@pytest.mark.parametrize(("loss", "value"), LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("together", [True, False], ids=["backward", "one example"])
def test_an_odd_row_ends_no_run(loss: Loss, value: float, together: bool) -> None:
    assert sum_of(loss, rows_with(value), together=together).isfinite().all()


@pytest.mark.parametrize("name", ["binary cross entropy", "gather", "one-hot", "a factor", "singular values"])
@pytest.mark.parametrize("together", [True, False], ids=["backward", "one example"])
def test_an_odd_row_changes_nothing_for_others(name: str, together: bool) -> None:
    loss, value = LOSSES[name]
    rows = rows_with(value)
    others = tuple(torch.cat([column[:ODD], column[ODD + 1 :]]) for column in rows)
    moved = sum_of(loss, rows, together=together) - sum_of(loss, others, together=together)
    assert float(moved.norm()) <= CLIP * (1 + 1e-5)


def test_values_in_range_and_their_gradients_are_not_changed() -> None:
    probabilities = torch.tensor([0.0, 0.25, 1.0], requires_grad=True)
    (changed, _), _ = with_valid_indices(
        functional.binary_cross_entropy, (probabilities, torch.tensor([0.0, 0.5, 1.0])), {}
    )
    assert torch.equal(changed, probabilities)
    (gradient,) = torch.autograd.grad(changed.sum(), probabilities)
    assert torch.equal(gradient, torch.ones(3))
    index = (slice(None), torch.tensor([-3, 0, 2]))
    (_, picked), _ = with_valid_indices(torch.Tensor.__getitem__, (torch.ones(2, 3), index), {})
    assert torch.equal(picked[1], index[1])


def test_public_indices_out_of_range_raise_their_error() -> None:
    table, index = torch.ones(3), torch.tensor([7])
    args, _ = with_valid_indices(torch.Tensor.__getitem__, (table, index), {}, lambda _: False)
    assert args[1] is index


def test_an_error_that_values_cause_shows_nothing() -> None:
    private = run_of(network(), rows_with(0.0), batch_size=ROWS, public_size=ROWS, steps=1)
    with pytest.raises(RuntimeError, match="withheld") as caught:
        for x, _ in private.loader:
            torch.linalg.lu_factor(matrices(x))
    shown = "".join(traceback.format_exception(caught.value))
    assert "Batch element" not in shown and "float32 on cpu" in shown


def test_an_error_that_shapes_cause_is_shown() -> None:
    private = run_of(network(), data(ROWS), batch_size=ROWS, public_size=ROWS, steps=1)
    with pytest.raises(RuntimeError, match=r"\[7, -1\]"):
        for x, _ in private.loader:
            private.model(x).view(7, -1)


def test_packed_lengths_are_those_of_the_padded_rows() -> None:
    packed = nn.utils.rnn.pack_padded_sequence
    model = nn.GRU(5, 3, batch_first=True)
    rows = torch.randn(ROWS, 6, 5), torch.full((ROWS,), 3)
    rows[1][ODD] = LABEL
    private = run_of(model, rows, batch_size=ROWS, public_size=ROWS, steps=1)
    for x, lengths in private.loader:
        private.zero_grad()
        _, last = private.model(packed(x, lengths, batch_first=True, enforce_sorted=False))
        last.sum((0, 2)).mean().backward()
        private.step()
    assert private.steps == 1


@pytest.mark.parametrize("value", [NUMBER, float("inf"), 3e38])
def test_histograms_of_an_example_are_total(value: float) -> None:
    def loss(model: Any, x: Tensor, y: Tensor) -> Tensor:
        return model(x)[0] * torch.histc(x, 4)[0] * torch.quantile(torch.arange(3.0), x[0])

    assert sum_of(loss, rows_with(value), together=False).isfinite().all()


def test_a_quotient_that_is_defined_is_not_changed() -> None:
    numbers, divisors = torch.tensor([7, -7, 0, -(2**63)]), torch.tensor([-1, 2, 5, 3])
    for func in (torch.floor_divide, torch.remainder, torch.fmod):
        (_, divisor), _ = with_valid_indices(func, (numbers, divisors), {})
        assert torch.equal(divisor, divisors)
    halves = torch.zeros(2)
    (_, divisor), _ = with_valid_indices(torch.remainder, (torch.ones(2), halves), {})
    assert divisor is halves


@pytest.mark.parametrize(
    ("fail", "shown"),
    [
        (lambda x: x[20], "out of bounds"),
        (lambda x: x.select(0, 20), "out of"),
        (lambda x: x @ torch.ones(9, 4), r"\[n, 5\] X \[9, 4\]"),
        (lambda x: x.view(7, -1, 3), "5n"),
    ],
)
def test_the_text_of_an_error_is_the_same_for_every_batch_that_fails(
    fail: Callable[[Tensor], Any], shown: str
) -> None:
    texts = set()
    # Of these sizes one is that of the features, another a number of the call.
    for rows in (5, 8, 9, 20):
        private = run_of(network(), data(rows), batch_size=rows, public_size=rows, steps=1)
        with pytest.raises((RuntimeError, IndexError), match=shown) as caught:
            for x, _ in private.loader:
                fail(x)
        texts.add(str(caught.value))
    assert len(texts) == 1


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("together", [True, False], ids=["backward", "one example"])
def test_a_search_for_what_is_not_a_number_is_refused_whatever_the_rows_are(together: bool) -> None:
    with pytest.raises(NotSound, match="detect_anomaly"), torch.autograd.detect_anomaly():
        sum_of(entropy_of, data(ROWS), together=together)
    with torch.autograd.detect_anomaly(check_nan=False):
        sum_of(entropy_of, rows_with(NUMBER), together=together)


@pytest.mark.parametrize("hook", ["register_hook", "register_post_accumulate_grad_hook"])
@pytest.mark.parametrize("together", [True, False], ids=["backward", "one example"])
def test_hooks_on_parameters_from_before_the_run_are_refused_by_name(hook: str, together: bool) -> None:
    model = network()
    getattr(model[0].weight, hook)(lambda value: None)
    private = run_of(model, data(ROWS), batch_size=ROWS, public_size=ROWS, steps=1)
    learn = private.loss(lambda model, example: functional.cross_entropy(model(example[0]), example[1]))
    with pytest.raises(NotSound, match=r"hook on the gradient of 0\.weight"):
        for x, y in private.loader:
            private.zero_grad()
            functional.cross_entropy(private.model(x), y).backward() if together else learn((x, y))
