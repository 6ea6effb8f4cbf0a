"""The rehearsal lets through what treats every example by itself, and finds what does not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from dalenius.errors import NotSound
from dalenius.learn.rehearsal import without_dropout

from .architectures import ARCHITECTURES, Architecture
from .runs import Criterion, data, network, run_of, train


def rehearsed(model: nn.Module, criterion: Criterion, **more: Any) -> str:
    """The reduction that was found; nothing was trained."""
    private = run_of(model, more.pop("dataset", data(40)), steps=1, **more)
    before = [one.clone() for one in model.parameters()]
    for number, (x, y) in enumerate(private.loader):
        if number == 3:
            break
        private.zero_grad()
        criterion(private.model(x), y).backward()
        private.step()
    assert all(torch.equal(one, old) for one, old in zip(model.parameters(), before, strict=True))
    return private.reduction


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
def test_the_reduction_is_found(criterion: Criterion, reduction: str) -> None:
    assert rehearsed(network(), criterion) == reduction


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
def test_a_criterion_that_mixes_examples_is_refused(criterion: Criterion) -> None:
    with pytest.raises(NotSound) as caught:
        rehearsed(network(), criterion)
    assert caught.value.remedy


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
def test_a_model_that_mixes_examples_is_refused(how: str) -> None:
    with pytest.raises(NotSound):
        rehearsed(Mixing(how), nn.CrossEntropyLoss())


class Functional(nn.Module):
    """Drops out by functions, as attention and hand-written models do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head, self.drop = nn.Linear(5, 8), nn.Linear(8, 3), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.dropout(self.inner(x), 0.5, self.training).unsqueeze(1)
        x = functional.scaled_dot_product_attention(x, x, x, dropout_p=0.3)
        return self.head(self.drop(x).squeeze(1))


def test_dropout_of_all_kinds_passes_and_is_on_again_after() -> None:
    model = Functional()
    private = run_of(model, data(40), steps=2)
    train(private)
    assert private.steps == 2 and model.drop.training
    assert not torch.equal(model(torch.ones(99, 5)), model(torch.ones(99, 5)))


def test_dropout_is_on_again_after_a_failure() -> None:
    model = Functional()
    with pytest.raises(ValueError), without_dropout(model):
        model(torch.ones(2, 5))
        raise ValueError
    assert model.drop.training
    assert not torch.equal(model(torch.ones(99, 5)), model(torch.ones(99, 5)))


PASSING = [entry for entry in ARCHITECTURES if not entry.awkward and not entry.batch_dim]


class Rows(Dataset[Any]):
    def __init__(self, architecture: Architecture, count: int) -> None:
        self.inputs = architecture.sample(count)[1]

    def __len__(self) -> int:
        return len(self.inputs[-1])

    def __getitem__(self, i: int) -> tuple[Tensor, ...]:
        return tuple(one[i] for one in self.inputs)


@pytest.mark.parametrize("architecture", PASSING[::4], ids=lambda entry: entry.name)
def test_architectures_pass_on_rows_that_are_made_up(architecture: Architecture) -> None:
    private = run_of(architecture.sample(1)[0], Rows(architecture, 6), batch_size=3, steps=1)
    for inputs in private.loader:
        private.zero_grad()
        architecture.loss(private.model(*inputs[:-1]), inputs[-1]).mean().backward()
        private.step()
    assert private.steps == 1 and private.reduction == "mean"


@pytest.mark.slow
@pytest.mark.parametrize("architecture", PASSING, ids=lambda entry: entry.name)
def test_every_architecture_passes(architecture: Architecture) -> None:
    test_architectures_pass_on_rows_that_are_made_up(architecture)


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
    private = run_of(Bag(), Words(), steps=2)
    for batch in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(words=batch["words"]), batch["label"]).backward()
        private.step()
    assert private.steps == 2


def test_a_collate_function_is_used_for_all_batches() -> None:
    def collate(rows: list[Any]) -> tuple[Tensor, Tensor]:
        return torch.stack([one["words"] for one in rows]), torch.tensor([one["label"] for one in rows])

    private = run_of(Bag(), Words(), steps=2, collate=collate)
    for words, labels in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(words=words), labels).backward()
        private.step()
    assert private.steps == 2


def test_a_rehearsal_uses_no_value_of_the_data() -> None:
    x, y = torch.full((40, 5), 77.0), torch.full((40,), 2)
    private = run_of(network(), (x, y), steps=1)
    for number, (rows, labels) in enumerate(private.loader):
        if number == 3:
            break
        assert not (rows == 77).any() and (labels < 2).all()
        private.zero_grad()
        functional.cross_entropy(private.model(rows), labels).backward()
        private.step()


def test_a_loop_without_rehearsal_says_so_on_the_receipt() -> None:
    private = run_of(network(), data(40), rehearse=False)
    train(private)
    assert "not rehearsed" in str(private.receipt.warnings)
