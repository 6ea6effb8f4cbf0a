"""Where examples lie is followed through a forward pass, or refused: no sizes that coincide deceive it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.gradients import Watched

from .engine import apart, clipped_sum, length, norms_of
from .reference import clipped_mean, losses, norms, per_example_gradients

T, D = 4, 6
SIZES = (1, 2, 3, 4, 5, 6, 8)
"""Batches as long as a sequence, a vector, a number of heads and none of these."""
Formula = Callable[[Any, Tensor], Tensor]


class Written(nn.Module):
    """A formula of (n, 4, 6) with a linear map `a`, a table `e`, a matrix `w` and vectors."""

    def __init__(self, formula: Formula) -> None:
        super().__init__()
        self.formula = formula
        self.a, self.e = nn.Linear(D, D), nn.Embedding(T, D)
        self.conv, self.narrow = nn.Conv1d(T, T, 3, padding=1), nn.Linear(3, 3)
        self.w, self.v = nn.Parameter(torch.randn(D, D)), nn.Parameter(torch.randn(D))
        self.time, self.token = nn.Parameter(torch.randn(T, 1, 1)), nn.Parameter(torch.randn(1, 1, D))

    def forward(self, x: Tensor) -> Tensor:
        return self.formula(self, x)


def weighted(outputs: Tensor, _: Tensor) -> Tensor:
    flat = outputs.flatten(1)
    return (flat * torch.linspace(0.5, 1.5, flat.shape[1], dtype=flat.dtype)).square().mean(1)


def halves(m: Any, x: Tensor) -> Tensor:
    left, right = m.a(torch.cat([x, x.square()])).chunk(2)
    return left * right


def by_time(m: Any, x: Tensor) -> Tensor:
    steps = torch.zeros(T, len(x), D, dtype=x.dtype)
    for t in range(T):
        steps[t] = x[:, t]
    return m.a(steps).transpose(0, 1)


def permuted(m: Any, x: Tensor) -> Tensor:
    order = x.sum((1, 2)).argsort()
    return m.a(x[order])[order.argsort()]


def routed(m: Any, x: Tensor) -> Tensor:
    chosen = (x[:, 0, 0] > 0).nonzero()[:, 0]
    return (m.a(x) + x).index_add(0, chosen, m.a(x[chosen]))


def token_written(m: Any, x: Tensor) -> Tensor:
    y = m.a(x).clone()
    y[:, 0] = m.v
    return y * x


def token_added_in_place(m: Any, x: Tensor) -> Tensor:
    y = m.a(x)
    y += m.v
    return y * x


def last(m: Any, x: Tensor) -> Tensor:
    return m.a(x[torch.arange(x.size(0)), x[:, :, 0].argmax(1)])


RIGHT: dict[str, Formula] = {
    "two batches end to end": halves,
    "two batches in a stack": lambda m, x: m.a(torch.stack([x, x.square()])).tanh().std(0),
    "beside each other": lambda m, x: m.a(torch.stack([x, x.square()], 1)).tanh().sum(1),
    "repeated": lambda m, x: m.a(x.repeat(2, 1, 1)).tanh()[: len(x)],
    "tiled": lambda m, x: m.a(x.tile(2, 1, 1)).tanh()[len(x) :],
    "interleaved": lambda m, x: m.a(x.repeat_interleave(2, 0)).tanh().view(len(x), 2, T, D).sum(1),
    "expanded in front": lambda m, x: (x.expand(3, *x.shape) * m.w[:3].view(3, 1, 1, D)).tanh().sum(0),
    "time first": lambda m, x: m.a(x.transpose(0, 1) + m.time).transpose(0, 1),
    "by keyword": lambda m, x: m.a(torch.transpose(input=x, dim0=0, dim1=1)).transpose(0, 1),
    "time first, reduced": lambda m, x: m.a(x.transpose(0, 1).logsumexp(0)),
    "time first, in norm": lambda m, x: m.a(x.transpose(0, 1).norm(dim=0)),
    "time first, the largest": lambda m, x: m.a(x.transpose(0, 1).max(0).values),
    "time first, doubled": lambda m, x: m.a(torch.cat([x.transpose(0, 1)] * 2)).tanh().sum(0),
    "two layouts": lambda m, x: m.a(x.sum(1)[None] * x.transpose(0, 1)).sum(0),
    "time first, folded": lambda m, x: m.a(x.transpose(0, 1).flatten(0, 1)).view(T, -1, D).transpose(0, 1),
    "heads first": lambda m, x: torch.cat(m.narrow(torch.cat(x.split(3, 2))).chunk(2), 2),
    "batch last": lambda m, x: (m.w @ x.permute(1, 2, 0)).permute(2, 0, 1),
    "batch last by einsum": lambda m, x: (torch.einsum("btd->dtb", m.a(x)) * m.v.view(D, 1, 1)).permute(
        2, 1, 0
    ),
    "einsum to the last": lambda m, x: m.a(torch.einsum("btd,ed->etb", x, m.w).permute(2, 1, 0).tanh()),
    "einsum to the middle": lambda m, x: m.a(torch.einsum("btd,ed->tbe", x, m.w)).transpose(0, 1),
    "einsum with dots": lambda m, x: torch.einsum("...d,ed->...e", x, m.w),
    "einsum without arrow": lambda m, x: torch.einsum("btd,de", x, m.w),
    "constants of more dimensions": lambda m, x: (
        m.a(x[:, 0] * torch.arange(1, 4).view(3, 1, 1)).tanh().sum(0)
    ),
    "vector after": lambda m, x: x @ m.v,
    "vector before": lambda m, x: m.time.view(T) @ x,
    "written by time": by_time,
    "added in place": token_added_in_place,
    "last words": last,
    "last words, gathered": lambda m, x: m.a(
        x.gather(1, x[:, :, :1].argmax(1, keepdim=True).expand(-1, 1, D))
    ),
    "picked parameters": lambda m, x: x + m.w[(x[:, :, 0] > 0).long()],
    "looked up": lambda m, x: x + functional.embedding((x[:, :, 0] > 0).long(), m.w),
    "positions": lambda m, x: x + m.e(torch.arange(T)),
    "positions for each": lambda m, x: x + m.e(torch.arange(T).expand(len(x), T)),
    "token in front": lambda m, x: torch.cat([m.token.expand(x.shape[0], 1, -1), x], 1),
    "token in front, by len": lambda m, x: torch.cat([m.token.expand(len(x), 1, -1), x], 1),
    "learned queries": lambda m, x: functional.scaled_dot_product_attention(m.w.expand(len(x), D, D), x, x),
    "baddbmm": lambda m, x: torch.baddbmm(m.token, x, m.w.expand(len(x), D, D)),
    "constants only": lambda m, x: x + m.a(torch.ones(x.shape[0], 1, D, dtype=x.dtype)),
    "constants without a batch": lambda m, x: x * m.a(torch.ones(T, D, dtype=x.dtype)),
    "derived weights": lambda m, x: functional.linear(x, (m.w @ m.w).tanh() / m.w.norm(dim=1)),
    "used both ways": lambda m, x: functional.linear(functional.linear(x, m.w), m.w.t()),
    "each time by itself": lambda m, x: torch.stack([m.a(one) for one in x.unbind(1)], 1),
    "routed by data": routed,
    "a value, no gradient": lambda m, x: functional.linear(x, m.a.weight.detach()) * m.a(x),
}


def written_backwards(m: Any, x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    y[torch.arange(len(x) - 1, -1, -1)] = x
    return m.a(y).flip(0)


REFUSED: dict[str, Formula] = {
    "reversed": lambda m, x: m.a(x.flip(0)).flip(0),
    "written backwards": written_backwards,
    "rolled": lambda m, x: m.a(x.roll(1, 0)).roll(-1, 0),
    "gathered along the batch": lambda m, x: m.a(
        torch.take_along_dim(x, torch.arange(len(x)).view(-1, 1, 1), 0)
    ),
    "sorted by data": permuted,
    "chosen by data": lambda m, x: m.a(x[x[:, 0, 0] > -99]),
    "padded with examples": lambda m, x: m.a(functional.pad(x, (0, 0, 0, 0, 1, 1)))[1:-1],
    "one by one": lambda m, x: torch.stack([m.a(x[i]) for i in range(len(x))]),
    "two parts": lambda m, x: torch.cat([m.a(x[:1]), m.a(x[1:])]),
    "mixed by softmax": lambda m, x: m.a(x.softmax(0)),
    "a parameter written into": token_written,
    "vmap in the model": lambda m, x: torch.vmap(lambda one: one @ m.w)(x),
}


def check(formula: Formula, n: int, *, views: int = 1) -> None:
    torch.manual_seed(n)
    model = Written(formula).double()
    inputs = torch.randn(n * views, T, D, dtype=torch.float64), torch.zeros(n * views)
    by_row = per_example_gradients(model, inputs, weighted)
    wanted = {name: one.view(n, views, *one.shape[1:]).sum(1) for name, one in by_row.items()}
    watched = Watched(model, rows_per_example=views)
    losses(watched, inputs, weighted).sum().backward()
    shares, sizes = watched.shares(), norms(wanted)
    torch.testing.assert_close(norms_of(shares), sizes, rtol=1e-9, atol=0)
    clip = float(sizes.median()) * 0.9
    sums = {name: one * n for name, one in clipped_mean(wanted, clip=clip).items()}
    assert apart(clipped_sum(watched, shares, clip), sums) <= 1e-9 * length(sums)


@pytest.mark.parametrize("name", RIGHT)
def test_a_layout_is_followed_at_every_batch_size(name: str) -> None:
    for n in SIZES:
        check(RIGHT[name], n)


@pytest.mark.parametrize("name", RIGHT)
def test_a_layout_is_followed_where_examples_have_two_rows(name: str) -> None:
    for n in (1, 2, 3):
        check(RIGHT[name], n, views=2)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_followed_is_refused_at_every_batch_size_whatever_the_data(name: str) -> None:
    for n in SIZES[1:]:
        with pytest.raises(NotSound):
            check(REFUSED[name], n)


def test_a_model_called_on_batches_of_two_sizes_is_refused() -> None:
    watched = Watched(nn.Linear(D, 1))
    (watched(torch.randn(4, D)).sum() + watched(torch.randn(2, D)).sum()).backward()
    with pytest.raises(NotSound, match="different sizes"):
        watched.shares()


def test_a_model_called_twice_on_the_same_examples_counts_the_sum() -> None:
    model = nn.Linear(D, 1, bias=False)
    watched, x = Watched(model), torch.randn(4, D)
    (watched(x).sum() + watched(3 * x).sum()).backward()
    torch.testing.assert_close(norms_of(watched.shares()), 4 * x.double().norm(dim=1), rtol=1e-5, atol=0)


@pytest.mark.parametrize("layer", [nn.Linear(D, D), nn.Conv1d(T, T, 3), nn.Conv1d(T, T, 1), nn.GRU(D, D)])
def test_results_may_be_changed_in_place(layer: nn.Module) -> None:
    def formula(m: Any, x: Tensor) -> Tensor:
        y = layer(x) if not isinstance(layer, nn.GRU) else layer(x.transpose(0, 1))[0].transpose(0, 1)
        y *= 2
        return torch.relu_(y) + m.e((x[:, :, 0] > 0).long()).mul_(2).mean(2, keepdim=True)

    layer.double().requires_grad_(False)
    check(formula, 3)


def test_what_was_changed_in_place_before_the_way_back_is_refused() -> None:
    def formula(m: Any, x: Tensor) -> Tensor:
        y = x.clone()
        z = functional.prelu(y, m.v[:1])
        y += 1
        return z * y

    with pytest.raises(NotSound):
        check_alone(formula)


def check_alone(formula: Formula) -> None:
    watched = Watched(Written(formula))
    weighted(watched(torch.randn(3, T, D)), torch.zeros(3)).sum().backward()


def test_a_refusal_names_the_parameter() -> None:
    with pytest.raises(NotSound, match=r"a\.weight"):
        check(REFUSED["reversed"], 3)
