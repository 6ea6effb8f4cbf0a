"""Recorded passes have the parts of passes that are not, whatever sizes batches have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import dalenius as dp
from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.gradients import Watched
from dalenius.learn.recording import Recorded, sizes_up
from dalenius.learn.room import fitting


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
    """Return squared norms and a weighted sum of what the examples add, without the gain of the pass."""
    shares, gain = watched.shares(), watched.gain
    norms = {watched.names[one]: norm / gain**2 for one, norm in shares.norms().items()}
    totals = {one: torch.zeros_like(one) for one in watched.names}
    shares.add(torch.arange(1.0, shares.examples + 1) / gain, totals)
    return norms, {watched.names[one]: total for one, total in totals.items()}


@pytest.fixture(scope="module")
def compiled() -> tuple[Watched, Recorded]:
    torch.manual_seed(0)
    watched = Watched(Text())
    return watched, Recorded(watched, lambda x, y: loss_of(watched(x), y), compile=True)


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
    # A mean over six rows, whose backward pass begins with six.
    assert watched.gain == 6
    torch.testing.assert_close(found[:5], norms * 25, rtol=1e-4, atol=0)


def test_sizes_are_few_and_near() -> None:
    sizes = [sizes_up(n) for n in range(1, 1000)]
    assert all(n <= size < 1.5 * n + 1 for n, size in enumerate(sizes, 1))
    assert all(size < 1.25 * n + 1 for n, size in enumerate(sizes, 1) if n > 64)
    assert len(set(sizes)) <= 28
    assert sorted(set(sizes))[:18] == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192]


@pytest.mark.parametrize(
    ("free", "most", "size"), [(100, 1000, 12), (100, 10, 8), (10, 1000, 1), (1e6, 512, 512), (1e6, 600, 512)]
)
def test_room_is_what_two_passes_say(free: float, most: int, size: int) -> None:
    """Two examples take 20, and eight take 62: a pass takes 6, and every example 7."""
    assert fitting({2: 20, 8: 62}, free, most) == size


def test_half_results_go_on_as_they_are_if_the_criterion_is_in_single_precision() -> None:
    """The factor of the mean over rows is in the gradient before it is cut to half precision."""
    torch.manual_seed(1)
    watched, (x, y) = Watched(Text()), batch(6)
    watched.lifts = True

    def loss(given: Sequence[Tensor]) -> Tensor:
        return loss_of(watched(given[0]), given[1])

    learn = Recorded(watched, loss, compile=False)
    found = []
    with torch.autocast("cpu", torch.bfloat16):
        assert learn._exact(loss, (x, y))
        assert not learn._exact(lambda given: (watched(given[0]) * 2).float().mean(), (x, y))
        assert not learn._exact(lambda given: watched(given[0]).mean(), (x, y))
        for bare in (False, True):
            value, parts = learn._both(loss, False, bare, (x, y))
            assert watched.gain == 6
            watched.adopt(parts, 6, gain=watched.gain, padding=0)
            shares = watched.shares()
            found.append((value, torch.stack(list(shares.norms().values())).sum(0).sqrt()))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=2e-2, atol=0)


def test_without_a_gpu_a_pass_that_is_not_compiled_is_made_as_ever() -> None:
    torch.manual_seed(2)
    watched, (x, y) = Watched(Text()), batch(5)
    loss_of(watched(x), y).backward()
    wanted = of(watched)
    Recorded(watched, lambda x, y: loss_of(watched(x), y), compile=False)(x, y)
    assert all(torch.equal(a[name], b[name]) for a, b in zip(of(watched), wanted, strict=True) for name in a)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_parameter_that_a_trace_does_not_find_is_refused() -> None:
    """It would be a constant in what is compiled."""

    class Beside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 3)
            self.kept = [nn.Parameter(torch.randn(3))]
            self.scale = self.kept[0]

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.head(x) * self.kept[0]
            return found

    watched = Watched(Beside())
    learn = Recorded(watched, lambda x: watched(x).square().mean(), compile=True)
    with pytest.raises(NotSound, match="does not train"):
        learn(torch.randn(4, 4))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_run_of_recorded_passes_is_a_run() -> None:
    """Poisson batches of all sizes, clipped and charged as any."""
    torch.manual_seed(3)
    model, data = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)), torch.randn(60, 5)
    labels = torch.randint(2, (60,))
    private = dp.learn.Private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        (data, labels),
        batch_size=6,
        steps=4,
        clip=1,
        noise_multiplier=1,
        public_size=60,
    )
    learn = private.recorded(lambda x, y: functional.cross_entropy(private.model(x), y), compile=True)
    before = [one.detach().clone() for one in model.parameters()]
    for x, y in private.loader:
        private.zero_grad()
        learn(x, y)
        private.step()
    assert private.steps == 4
    assert all(not torch.equal(one, old) for one, old in zip(model.parameters(), before, strict=True))


def doubled(x: Tensor) -> Tensor:
    return x.repeat_interleave(2, 0)


def halved(model: Watched, x: Tensor) -> Tensor:
    return model(x[: len(x) // 2]).mean() + model(x[len(x) // 2 :]).mean()


@pytest.mark.parametrize("function", [lambda model, x: model(x[:3]).mean(), halved])
def test_parts_of_a_batch_are_refused(function: Callable[[Watched, Tensor], Tensor]) -> None:
    """Else an example counts twice, or two are clipped as one."""
    watched = Watched(nn.Linear(4, 2))
    learn = Recorded(watched, lambda x: function(watched, x), compile=True)
    with pytest.raises(NotSound, match=r"works along the batch|read out of private"):
        learn(torch.randn(8, 4))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_rows_that_a_recording_doubles_are_clipped_as_one() -> None:
    watched, x = Watched(nn.Linear(4, 2)), torch.randn(8, 4)

    def loss(x: Tensor) -> Tensor:
        return watched(doubled(x)).square().mean()

    with watched.looped():
        watched.begin((x,), 8)
        loss(x).backward()
        wanted = of(watched)
        Recorded(watched, loss, compile=True)(x)
        recorded = of(watched)
    for totals, right in zip(recorded, wanted, strict=True):
        assert totals.keys() == right.keys()
        for name in right:
            assert len(totals[name]) == len(right[name])
            torch.testing.assert_close(totals[name], right[name], rtol=1e-4, atol=1e-6)


def test_a_tensor_that_a_recording_is_not_given_is_refused() -> None:
    """Labels of one batch would stay for all later ones."""
    watched, labels = Watched(nn.Linear(4, 2)), torch.randint(2, (8,))

    def criterion(x: Tensor) -> Tensor:
        return functional.cross_entropy(watched(x), labels)

    learn = Recorded(watched, criterion, compile=True)
    with pytest.raises(NotSound, match="a tensor that it is not given"):
        learn(torch.randn(8, 4))


@pytest.mark.parametrize("beside", [[1, 2], torch.zeros(3), {"a": torch.zeros(2, 2)}, lambda: 1])
def test_what_is_given_beside_a_batch_is_plain(beside: Any) -> None:
    """What is known by its place would be taken for another."""
    watched = Watched(nn.Linear(4, 2))
    learn = Recorded(watched, lambda x, _: watched(x).mean(), compile=True)
    if beside == [1, 2]:
        learn(torch.randn(8, 4), beside)
        return
    with pytest.raises(InvalidArgument):
        learn(torch.randn(8, 4), beside)


def test_a_pass_that_depends_on_what_is_in_a_tensor_is_refused() -> None:
    watched = Watched(nn.Linear(4, 2))

    def loss(x: Tensor) -> Tensor:
        return watched(x).mean() if x.sum() > 0 else watched(x).sum()

    learn = Recorded(watched, loss, compile=True)
    with pytest.raises(NotSound, match="a branch"):
        learn(torch.rand(8, 4))


def test_a_single_number_that_a_recording_is_not_given_is_refused_too() -> None:
    watched, scale = Watched(nn.Linear(4, 2)), torch.tensor(0.5)
    learn = Recorded(watched, lambda x: watched(x).mean() * scale, compile=True)
    with pytest.raises(NotSound, match="a tensor that it is not given"):
        learn(torch.randn(8, 4))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_arguments_that_only_look_alike_are_recorded_by_themselves() -> None:
    """One and True are equal, and so are the places of two tensors that are all there is."""
    watched, x = Watched(nn.Linear(4, 2)), torch.randn(8, 4)

    def loss(first: Tensor | None, second: Tensor | None, how: Any) -> Tensor:
        given = first if first is not None else second
        assert given is not None
        return watched(given).mean() * (2 if first is None else 1) * (5 if how is True else 1)

    learn = Recorded(watched, loss, compile=True)
    calls: list[tuple[Any, ...]] = [(x, None, 1), (x, None, True), (None, x, 1)]
    for call in calls:
        found = learn(*call)
        watched.shares()
        torch.testing.assert_close(found, loss(*call).detach())
        watched._tape._sizes = set()


def test_a_loss_is_one_number_and_an_empty_batch_has_none() -> None:
    watched = Watched(nn.Linear(4, 2))
    learn = Recorded(watched, lambda x: watched(x).sum(1), compile=True)
    with pytest.raises(InvalidArgument, match="more than one number"):
        learn(torch.randn(8, 4))
    watched = Watched(nn.Linear(4, 2))
    summed = Recorded(watched, lambda x: watched(x).sum(), compile=True)
    summed(torch.zeros(0, 4))
    assert watched.shares().examples == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_batches_may_lie_as_they_like(compiled: tuple[Watched, Recorded]) -> None:
    watched, learn = compiled
    text = torch.randint(11, (6, 6))
    loss_of(watched(text[:, :-1]), text[:, 1:]).backward()
    wanted = of(watched)
    for size in (6, 5, 6):
        learn(text[:size, :-1], text[:size, 1:])
        found = of(watched)
    for name, total in found[1].items():
        torch.testing.assert_close(total, wanted[1][name], rtol=1e-4, atol=1e-5)


def test_nothing_is_recorded_outside_of_a_loop() -> None:
    """There cross entropy takes another mean."""
    model = nn.Linear(5, 2)
    private = dp.learn.Private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        torch.randn(60, 5),
        batch_size=6,
        steps=4,
        clip=1,
        noise_multiplier=1,
        public_size=60,
    )
    learn = private.recorded(lambda x: private.model(x).square().mean(), compile=True)
    with pytest.raises(InvalidArgument, match="no batch"):
        learn(torch.randn(6, 5))


def test_another_recording_is_made_where_plain_values_have_changed() -> None:
    """Sizes of batches are recorded at several steps: an old weight would be used for some of them."""
    watched, x = Watched(Text()), batch(6)[0]
    weight = 0.5

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return weight * loss_of(watched(x), y)

    learn = Recorded(watched, loss, compile=False)
    states = {learn._state([x])}
    weight = 0.25
    states.add(learn._state([x]))
    watched.inner.beta = 0.1
    states.add(learn._state([x]))
    watched.inner.beta = 0.2
    states.add(learn._state([x]))
    assert len(states) == 4
    assert learn._state([x]) in states
