"""Examples that meet in a criterion, a loop or a layer: refused, or taken apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn import replacing
from dalenius.learn.gradients import Watched

from .engine import norms_of
from .reference import norms, per_example_gradients
from .runs import data, network, run_of, stepper, train

ENTROPY = nn.CrossEntropyLoss()


def entropies(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets, reduction="none")


# Criteria and loops in which examples meet.


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(12, 6), nn.Linear(6, 4)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.table(words)).transpose(1, 2)


WORDS = torch.arange(48).view(8, 6) % 12
TAGS = (WORDS % 4).masked_fill(torch.arange(6) >= torch.arange(1, 9).view(8, 1), -100)


def test_means_over_the_tokens_of_a_batch_make_one_example_change_another() -> None:
    model = Tagger()

    def share_of_the_first(rows: int) -> Tensor:
        out = model(WORDS[:rows])
        loss = functional.cross_entropy(out, TAGS[:rows], ignore_index=-100)
        (back,) = torch.autograd.grad(loss * rows, out)
        return back[0]

    assert (share_of_the_first(1) - share_of_the_first(2)).norm() > 0.1 * share_of_the_first(1).norm()


def test_means_over_the_tokens_of_a_batch_are_taken_over_each_example_first() -> None:
    private = run_of(Tagger(), (WORDS, TAGS))
    train(private)
    assert private.steps == 3


def test_means_over_the_tokens_of_a_batch_by_hand_are_refused() -> None:
    def criterion(out: Tensor, tags: Tensor) -> Tensor:
        lost = functional.cross_entropy(out, tags, ignore_index=-100, reduction="none")
        return lost.sum() / (tags >= 0).sum()

    with pytest.raises(NotSound, match=r"div .*test_hazards_mixing.py, line \d+") as caught:
        train(run_of(Tagger(), (WORDS, TAGS)), criterion)
    assert "an example's own tokens" in caught.value.remedy


def test_means_over_the_tokens_of_each_example_pass() -> None:
    def criterion(out: Tensor, tags: Tensor) -> Tensor:
        lost = functional.cross_entropy(out, tags, ignore_index=-100, reduction="none")
        return (lost.sum(1) / (tags >= 0).sum(1).clamp(min=1)).mean()

    private = run_of(Tagger(), (WORDS, TAGS))
    train(private, criterion)
    assert private.steps == 3


def test_mixing_examples_in_the_loop_is_refused() -> None:
    private = run_of(network(), data(40))
    with pytest.raises(NotSound):
        for x, y in private.loader:
            private.zero_grad()
            mixed = 0.7 * x + 0.3 * x.flip(0)
            ENTROPY(private.model(mixed), y).backward()
            private.step()


def test_labels_mixed_in_the_loop_are_refused() -> None:
    private = run_of(network(), data(40))
    with pytest.raises(NotSound):
        for x, y in private.loader:
            private.zero_grad()
            out = private.model(x)
            (0.7 * ENTROPY(out, y) + 0.3 * ENTROPY(out, y.flip(0))).backward()
            private.step()


# Modules that mix examples.


def normalizing() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(32, 3))


IMAGES = torch.randn(20, 1, 4, 4, generator=torch.Generator().manual_seed(1)), torch.arange(20) % 3


def test_batch_normalization_makes_one_example_change_another() -> None:
    model = normalizing()
    assert (model(IMAGES[0][:2])[0] - model(IMAGES[0][:3])[0]).norm() > 1e-3


def test_batch_normalization_is_refused_by_name_and_its_replacement_trains() -> None:
    with pytest.raises(NotSound, match="1 is a BatchNorm2d") as caught:
        run_of(normalizing(), IMAGES)
    assert "replaced" in caught.value.remedy
    with pytest.raises(NotSound):
        stepper(normalizing())
    model = replacing.replaced(normalizing())
    assert isinstance(model[1], nn.GroupNorm)
    private = run_of(model, IMAGES)
    train(private)
    assert private.steps == 3


def test_batch_normalization_in_evaluation_is_a_constant() -> None:
    model = normalizing()
    model[1].eval()
    gradients = per_example_gradients(model.double(), (IMAGES[0][:4].double(), IMAGES[1][:4]), entropies)
    watched = Watched(model)
    entropies(watched(IMAGES[0][:4].double()), IMAGES[1][:4]).sum().backward()
    torch.testing.assert_close(norms_of(watched.shares()), norms(gradients), rtol=1e-10, atol=0)


# Rows that a loop adds, and layers that look at all rows.


@pytest.mark.parametrize("join", [torch.cat, torch.stack], ids=["one copy after the other", "as a dimension"])
def test_rows_that_the_loop_doubles_are_clipped_as_one(join: Callable[..., Tensor]) -> None:
    """A copy that were clipped by itself would let an example add twice the bound."""
    model, (x, y) = network(), data(4)
    watched = Watched(model)
    with watched.looped():
        rows, labels = x.clone(), y.clone()
        watched.begin((rows, labels), 4)
        out = watched(join([rows, rows + 0.1])).reshape(2, -1, 3)
        functional.cross_entropy(out.flatten(0, 1), torch.cat([labels, labels])).backward()
        with watched.unwatched():
            found = norms_of(watched.shares()) / watched.gain
    pairs = torch.stack([x, x + 0.1], 1)
    both = per_example_gradients(
        model, (pairs, y), lambda out, y: entropies(out.flatten(0, 1), y.repeat_interleave(2)).mean()[None]
    )
    torch.testing.assert_close(found, norms(both).double() / 4, rtol=1e-5, atol=0)


def packed(x: Tensor) -> Tensor:
    lengths = torch.arange(1, len(x) + 1).clamp(max=x.shape[1])
    sequence = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(GRU(sequence)[0], batch_first=True)[0]


GRU = nn.GRU(5, 4, batch_first=True)


class Calling(nn.Module):
    def __init__(self, layer: nn.Module, function: Any) -> None:
        super().__init__()
        self.layer, self.function = layer, function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def layers() -> dict[str, nn.Module]:
    frequent, short = nn.Embedding(9, 4, scale_grad_by_freq=True), nn.Embedding(9, 4, max_norm=1.0)
    tracking = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
    functional_one = nn.Linear(5, 4)
    return {
        "by frequency": Calling(frequent, lambda x: frequent((x > 0).long())),
        "shortened": Calling(short, lambda x: short((x > 0).long())),
        "running statistics": Calling(tracking, tracking),
        "packed": Calling(GRU, packed),
        "batch_norm as a function": Calling(
            functional_one,
            lambda x: functional.batch_norm(functional_one(x), None, None, training=True).mean(1),
        ),
    }


@pytest.mark.parametrize("name", ["by frequency", "shortened", "running statistics", "packed"])
def test_layers_that_look_at_all_rows_are_refused(name: str) -> None:
    watched = Watched(layers()[name])
    with pytest.raises(NotSound):
        watched(torch.randn(3, 4, 5)).sum().backward()
        watched.shares()


def test_batch_normalization_by_a_function_is_refused() -> None:
    rows = torch.randn(40, 4, 5), torch.randint(3, (40,))
    with pytest.raises(NotSound):
        train(run_of(layers()["batch_norm as a function"], rows))


def test_one_tensor_for_all_examples_is_nobodys() -> None:
    """Beside a batch of as many rows as it has, it is taken for one of examples, and refused or right."""

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(5, 5)

        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(self.inner(x), x, x, attn_mask=mask)

    model, mask = Masked().double(), torch.eye(4, dtype=torch.float64)
    for n in (2, 3, 4, 5):
        x = torch.randn(n, 4, 5, dtype=torch.float64)
        watched = Watched(model)
        watched(x, mask).square().sum().backward()
        wanted = []
        for i in range(n):
            gradients = torch.autograd.grad(
                model(x[i : i + 1], mask).square().sum(), list(model.parameters())
            )
            wanted.append(float(torch.stack([one.norm() for one in gradients]).norm()))
        torch.testing.assert_close(
            norms_of(watched.shares()), torch.tensor(wanted, dtype=torch.float64), rtol=1e-9, atol=0
        )
