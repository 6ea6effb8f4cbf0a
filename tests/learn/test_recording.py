"""Recorded passes have the parts of passes that are not, whatever sizes batches have."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.learn.gradients import Watched
from dalenius.learn.recording import Recorded, sizes_up


class Text(nn.Module):
    """Symbols with a tied head, attention, normalization, and a class of its own for the first."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.symbols, self.first = nn.Embedding(11, 8), nn.Parameter(torch.randn(1, 1, 8))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 11, bias=False)
        self.dropout, self.head.weight = nn.Dropout(dropout), self.symbols.weight

    def forward(self, text: Tensor) -> Tensor:
        h = torch.cat([self.first.expand(text.shape[0], -1, -1), self.symbols(text)], 1)
        h = h + self.attention(h, h, h, need_weights=False)[0]
        h = self.dropout(h)
        h += 0.5
        found: Tensor = self.head(self.norm(functional.relu(h, inplace=True)))[:, 1:]
        return found


def loss_of(logits: Tensor, wanted: Tensor) -> Tensor:
    each = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none")
    return each.view(wanted.shape).mean(1).mean()


def batch(size: int) -> tuple[Tensor, Tensor]:
    text = torch.randint(11, (size, 6))
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def of(watched: Watched) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    shares = watched.shares()
    norms = {watched.names[one]: norm for one, norm in shares.norms().items()}
    totals = {one: torch.zeros_like(one) for one in watched.names}
    shares.add(torch.arange(1.0, shares.examples + 1), totals)
    return norms, {watched.names[one]: total for one, total in totals.items()}


@pytest.fixture(scope="module")
def compiled() -> tuple[Watched, Recorded]:
    torch.manual_seed(0)
    watched = Watched(Text())
    return watched, Recorded(watched, lambda x, y: loss_of(watched(x), y), compile=True, now=lambda: False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("turn", range(2))
def test_a_compiled_pass_has_the_same_parts(compiled: tuple[Watched, Recorded], turn: int) -> None:
    """Also after weights have moved, which the recording must see."""
    watched, learn = compiled
    x, y = batch(6)
    with torch.no_grad():
        for one in watched.inner.parameters():
            one += 0.1 * torch.randn_like(one)
    loss = loss_of(watched(x), y)
    loss.backward()
    wanted = of(watched)
    assert torch.allclose(learn(x, y), loss.detach())
    for found, right in zip(of(watched), wanted, strict=True):
        assert found.keys() == right.keys()
        for name in right:
            torch.testing.assert_close(found[name], right[name], rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_examples_that_fill_up_a_batch_count_nothing(compiled: tuple[Watched, Recorded]) -> None:
    watched, learn = compiled
    x, y = batch(5)
    loss_of(watched(x), y).backward()
    shares = watched.shares()
    norms = torch.stack(list(shares.norms().values())).sum(0)
    learn(x, y)
    filled = watched.shares()
    assert (filled.examples, filled.padding) == (6, 1)
    found = torch.stack(list(filled.norms().values())).sum(0)
    # A mean over six rows.
    torch.testing.assert_close(found[:5] * 36, norms * 25, rtol=1e-4, atol=0)


def test_sizes_are_few_and_near() -> None:
    sizes = [sizes_up(n) for n in range(1, 1000)]
    assert all(n <= size < 1.5 * n + 1 for n, size in enumerate(sizes, 1))
    assert len(set(sizes)) <= 20
