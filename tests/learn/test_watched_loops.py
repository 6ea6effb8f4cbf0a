"""A training loop passes if it treats every example by itself, and is refused before a charge if not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from dalenius.errors import NotSound
from dalenius.learn import random_state
from dalenius.learn.batch_draws import Draws
from dalenius.learn.dataflow.states import Writes
from dalenius.ledger.account import Account

from .architectures import ARCHITECTURES, Architecture
from .runs import Criterion, data, flat, network, run_of, train


@pytest.mark.parametrize(
    ("criterion", "reduction"),
    [
        (nn.CrossEntropyLoss(), "mean"),
        (nn.CrossEntropyLoss(reduction="sum"), "sum"),
        (lambda out, y: functional.cross_entropy(out, y, reduction="none").sum(), "sum"),
        (lambda out, y: functional.cross_entropy(out, y, reduction="none").mean(), "mean"),
        (nn.CrossEntropyLoss(label_smoothing=0.1), "mean"),
        (lambda out, y: functional.mse_loss(out, functional.one_hot(y, 3).float()), "mean"),
        (lambda out, y: functional.nll_loss(out.log_softmax(1), y) + 0.1 * out.square().mean(), "mean"),
    ],
)
def test_the_reduction_is_recognized(criterion: Criterion, reduction: str) -> None:
    private = run_of(network(), data(40))
    train(private, criterion)
    assert private.reduction == reduction


def refused(model: nn.Module, criterion: Criterion, account: Account) -> NotSound:
    """Return how a loop is refused: in its first step, before anything is charged or moved."""
    private = run_of(model, data(40), account=account, public_size=40, noise_multiplier=9)
    before = flat(model)
    with pytest.raises(NotSound) as caught:
        train(private, criterion)
    assert caught.value.remedy and torch.equal(flat(model), before)
    assert private.steps == 0 and [entry.event for entry in account.entries()] == ["open"]
    return caught.value


def contrastive(out: Tensor, y: Tensor) -> Tensor:
    near = functional.normalize(out, dim=1) @ functional.normalize(out, dim=1).t()
    return functional.cross_entropy(near / 0.1, torch.arange(len(out)))


@pytest.mark.parametrize(
    "criterion",
    [
        contrastive,
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 2.0])),
        lambda out, y: (functional.cross_entropy(out, y, reduction="none").square().mean()).sqrt(),
        lambda out, y: functional.cross_entropy(out - out.mean(0), y),
        lambda out, y: functional.cross_entropy(out, y) ** 2,
        lambda out, y: functional.cross_entropy(out, y) + out.var(0, correction=0).sum(),
        lambda out, y: functional.cross_entropy(out, y) / len(out),
        lambda out, y: functional.cross_entropy(out, y, reduction="none").max(),
    ],
    ids=["contrastive", "weights", "root", "centred", "squared", "variance", "twice divided", "largest"],
)
def test_a_criterion_that_mixes_examples_is_refused(criterion: Criterion, account: Account) -> None:
    assert "line" in str(refused(network(), criterion, account))


class Mixing(nn.Module):
    """A model in which examples meet."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.inner, self.head = how, nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.inner(x))
        mixed = {
            "mean": x - x.mean(0),
            "attention": torch.softmax(x @ x.t(), 1) @ x,
            "shifted": x + 0.3 * x.roll(1, 0),
            "sorted": x.sort(0).values,
            "total": x / x.norm(),
            "first": x + x[:1],
        }
        return self.head(mixed[self.how])


@pytest.mark.parametrize("how", ["mean", "attention", "shifted", "sorted", "total", "first"])
def test_a_model_that_mixes_examples_is_refused(how: str, account: Account) -> None:
    assert "line" in str(refused(Mixing(how), nn.CrossEntropyLoss(), account))


class Functional(nn.Module):
    """Drops out by functions, as attention and hand-written models do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head, self.drop = nn.Linear(5, 8), nn.Linear(8, 3), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.dropout(self.inner(x), 0.5, self.training).unsqueeze(1)
        x = functional.scaled_dot_product_attention(x, x, x, dropout_p=0.3)
        return self.head(self.drop(x).squeeze(1))


def test_dropout_of_all_kinds_passes_and_is_on() -> None:
    model = Functional()
    private = run_of(model, data(40), steps=2)
    train(private)
    assert private.steps == 2 and model.drop.training
    assert not torch.equal(model(torch.ones(99, 5)), model(torch.ones(99, 5)))


PASSING = [entry for entry in ARCHITECTURES if not entry.awkward and not entry.batch_dim]


class Rows(Dataset[Any]):
    def __init__(self, architecture: Architecture, count: int) -> None:
        self.inputs = architecture.sample(count)[1]

    def __len__(self) -> int:
        return len(self.inputs[-1])

    def __getitem__(self, i: int) -> tuple[Tensor, ...]:
        return tuple(one[i] for one in self.inputs)


@pytest.mark.parametrize("architecture", PASSING[::6], ids=lambda entry: entry.name)
def test_an_architecture_passes(architecture: Architecture) -> None:
    private = run_of(architecture.sample(1)[0], Rows(architecture, 6), batch_size=3, steps=1, pad_to={})
    for inputs in private.loader:
        private.zero_grad()
        architecture.loss(private.model(*inputs[:-1]), inputs[-1]).mean().backward()
        private.step()
    assert private.steps == 1 and private.reduction == "mean"


@pytest.mark.slow
@pytest.mark.parametrize("architecture", PASSING, ids=lambda entry: entry.name)
def test_every_architecture_passes(architecture: Architecture) -> None:
    test_an_architecture_passes(architecture)


class Words(Dataset[Any]):
    """Rows as dicts: words and a label."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {"words": torch.arange(4) * (i + 1) % 12, "label": i % 3}


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(12, 4), nn.Linear(4, 3)

    def forward(self, *, words: Tensor) -> Tensor:
        return self.head(self.table(words).mean(1))


def test_rows_that_are_dicts_of_words_pass() -> None:
    private = run_of(Bag(), Words(), steps=2, pad_to={})
    for batch in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(words=batch["words"]), batch["label"]).backward()
        private.step()
    assert private.steps == 2


def test_a_collate_function_is_used_for_all_batches() -> None:
    def collate(rows: list[Any]) -> tuple[Tensor, Tensor]:
        return torch.stack([one["words"] for one in rows]), torch.tensor([one["label"] for one in rows])

    private = run_of(Bag(), Words(), steps=2, collate=collate, pad_to={})
    for words, labels in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(words=words), labels).backward()
        private.step()
    assert private.steps == 2


def test_a_loop_sees_rows_of_the_data_and_no_others() -> None:
    """The body of the loop runs once for each chunk of a batch; rows that fill up a chunk are zeros."""
    private = run_of(network(), (torch.full((40, 5), 77.0), torch.full((40,), 2)), steps=2)
    seen = []
    for x, y in private.loader:
        seen.append(x)
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
    assert private.steps == 2 and len(seen) == 2
    rows = torch.cat([x.for_logging() for x in seen])
    assert ((rows == 77) | (rows == 0)).all()


def test_the_receipt_says_how_independence_was_established() -> None:
    private = run_of(network(), data(40))
    train(private)
    assert "checked by data flow" in str(private.receipt)


def test_a_copy_of_a_watched_model_shares_no_weak_references() -> None:
    """A copied weak reference to a storage frees it twice, which corrupts the memory of the process."""
    writes = Writes()
    tensors = [torch.ones(3) for _ in range(8)]
    for tensor in tensors:
        writes.hold(tensor)
        writes.note(tensor)
    copied = copy.deepcopy(writes)
    assert not copied and not copied.holds(tensors[0])
    assert writes and writes.holds(tensors[0])


def test_torch_s_generator_is_put_back_after_each_loop() -> None:
    private = run_of(network(), data(40), batch_size=8, steps=None, epochs=2)
    before = torch.get_rng_state(), torch.initial_seed()
    for _ in range(2):
        for x, y in private.loader:
            private.zero_grad()
            functional.cross_entropy(private.model(functional.dropout(x)), y).backward()
            private.step()
        assert type(torch.initial_seed()) is int and torch.initial_seed() == before[1]
        assert torch.equal(torch.get_rng_state(), before[0])


def test_torch_s_generator_is_put_back_once_the_last_of_several_loops_has_ended() -> None:
    left, right = (run_of(network(), data(40), steps=steps) for steps in (1, 3))
    before = torch.get_rng_state()
    loops = iter(left.loader), iter(right.loader)
    for private, loop in zip((left, right), loops, strict=True):
        x, y = next(loop)
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
    assert not list(loops[0])
    assert random_state.run_seed() == Draws._seed
    loops[1].close()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_seed_that_a_loop_has_set_stays() -> None:
    private = run_of(network(), data(40), steps=1)
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x), y).backward()
        private.step()
        torch.manual_seed(5)
    assert torch.initial_seed() == 5
