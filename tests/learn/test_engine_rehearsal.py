"""The engine gives what a loop over single examples gives, on the batches in which examples could meet."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from sizes import one_in, slow
from torch import Tensor, nn
from torch.nn import functional

from dalenius.learn.adding import Plan, Sum
from dalenius.learn.clipping import Flat
from dalenius.learn.gradients import Watched

from .engine import EXACT, apart, length
from .reference import Gradients, losses, norms, per_example_gradients

Inputs = tuple[Tensor, ...]
IGNORED = -100
TIME, WORDS, CLASSES = 6, 11, 3
CLIP = 0.3
CLOSE = 1e-9


class Dense(nn.Module):
    """Rows of five numbers, by linear layers and a normalization of each row."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm, self.head = nn.Linear(5, 8), nn.LayerNorm(8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.norm(self.inner(x))))


class Convolutional(nn.Module):
    """Rows of five numbers as a signal, by a convolution and a normalization of groups of channels."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = nn.Conv1d(1, 4, 3, padding=1), nn.GroupNorm(2, 4)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.norm(self.inner(x.unsqueeze(1)))).mean(2))


class Recurrent(nn.Module):
    """Words to a class for each word; states after the end of a text are set to zero."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.inner = nn.Embedding(WORDS, 4, padding_idx=0), nn.GRU(4, 4, batch_first=True)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, words: Tensor, there: Tensor) -> Tensor:
        return self.head(self.inner(self.table(words))[0] * there.unsqueeze(-1))


class Attentive(nn.Module):
    """Words to a class for each word, by attention to the words that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, 4)
        self.inner = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.0, batch_first=True)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, words: Tensor, there: Tensor) -> Tensor:
        return self.head(self.inner(self.table(words), src_key_padding_mask=~there))


def of_rows(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the cross entropy of each row; that of an ignored label is zero."""
    return functional.cross_entropy(outputs, labels, reduction="none", ignore_index=IGNORED)


def of_words(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return each text's mean over its own counted words; zero for a text without any."""
    entropies = functional.cross_entropy(
        outputs.transpose(1, 2), labels, reduction="none", ignore_index=IGNORED
    )
    return entropies.sum(1) / (labels != IGNORED).sum(1).clamp(min=1)


def rows(n: int) -> tuple[Tensor, Tensor]:
    bits = torch.Generator().manual_seed(n)
    return torch.randn(n, 5, generator=bits, dtype=torch.float64), torch.arange(n) % CLASSES


def texts(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return words, whether they are there, and labels, of texts as long as the longest can be."""
    bits = torch.Generator().manual_seed(n)
    words = torch.randint(1, WORDS, (n, TIME), generator=bits)
    labels = torch.randint(CLASSES, (n, TIME), generator=bits)
    return words, torch.ones(n, TIME, dtype=torch.bool), labels


def first_row_times(factor: float) -> Callable[[int], Inputs]:
    def batch(n: int) -> Inputs:
        x, y = rows(n)
        return torch.cat([x[:1] * factor, x[1:]]), y

    return batch


def ignored(numbers: Callable[[int], list[int]]) -> Callable[[int], Inputs]:
    def batch(n: int) -> Inputs:
        x, y = rows(n)
        y[numbers(n)] = IGNORED
        return x, y

    return batch


def lengths(shortest: int) -> Callable[[int], Inputs]:
    def batch(n: int) -> Inputs:
        words, _, labels = texts(n)
        long = shortest + torch.arange(n) * 3 % (TIME + 1 - shortest)
        there = torch.arange(TIME) < long.unsqueeze(1)
        return words * there, there, labels.where(there, torch.tensor(IGNORED))

    return batch


def ignored_words(n: int) -> Inputs:
    """Every other word counts nothing; the first text, of all sizes, counts nothing at all."""
    words, there, labels = texts(n)
    labels[:, ::2] = IGNORED
    labels[0] = IGNORED
    return words, there, labels


ROWS: dict[str, Callable[[int], Inputs]] = {
    "ordinary": rows,
    "equal labels": lambda n: (rows(n)[0], torch.ones(n, dtype=torch.long)),
    "opposite labels": lambda n: (rows(n)[0][:1].expand(n, 5).clone(), torch.arange(n) % 2),
    "equal rows": lambda n: (torch.ones(n, 5, dtype=torch.float64), torch.ones(n, dtype=torch.long)),
    "rows of zeros": lambda n: (torch.zeros(n, 5, dtype=torch.float64), rows(n)[1]),
    "the first label ignored": ignored(lambda n: [0]),
    "all labels but one ignored": ignored(lambda n: list(range(1, n))),
    "all labels ignored": ignored(lambda n: list(range(n))),
    "a large row": first_row_times(1e8),
    "a small row": first_row_times(1e-8),
}
TEXTS: dict[str, Callable[[int], Inputs]] = {
    "ordinary": texts,
    "equal texts": lambda n: tuple(part[:1].repeat(n, 1) for part in texts(n)),
    "lengths": lengths(1),
    "ignored words": ignored_words,
}
LOSSES = {Dense: of_rows, Convolutional: of_rows, Recurrent: of_words, Attentive: of_words}
CASES = [
    pytest.param(kind, batch, id=f"{kind.__name__}, {name}")
    for kinds, batches in (((Dense, Convolutional), ROWS), ((Recurrent, Attentive), TEXTS))
    for kind in kinds
    for name, batch in batches.items()
]


def model_of(kind: type[nn.Module]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind().double()


def by_engine(
    kind: type[nn.Module], inputs: Inputs, *, mean: bool, blank: int = 0
) -> tuple[Tensor, Gradients]:
    """Return norms and the clipped sum of a pass as a training loop makes it.

    Args:
        kind: The model.
        inputs: The batch, whose last tensor holds the labels.
        mean: Whether the loss is the mean over examples, and not their sum.
        blank: How many rows of zeros the batch is filled up with, which count nothing.
    """
    examples = len(inputs[-1]) + blank
    given = tuple(torch.cat([part, part.new_zeros(blank, *part.shape[1:])]) for part in inputs)
    watched = Watched(model_of(kind))
    with watched.looped():
        watched.begin(given, examples)
        values = losses(watched, given, LOSSES[kind])
        (values.mean() if mean else values.sum()).backward()
        with watched.unwatched():
            shares = watched.shares()
            scale = (examples if mean else 1) / watched.gain
            squared = torch.stack([norm.double() for norm in shares.norms().values()]).sum(0)
            total = Sum(watched.names, Plan(Flat(CLIP), Fraction(1), Fraction(1), EXACT))
            real = (torch.arange(examples) < examples - blank).double() if blank else None
            total.add(shares, scale=scale, real=real)
            names = dict(zip(watched.names.values(), total.exact(), strict=True))
    assert watched.reduction is None or watched.reduction == ("mean" if mean else "sum")
    return squared.sqrt()[: examples - blank] * scale, names


def by_examples(kind: type[nn.Module], inputs: Inputs) -> tuple[Tensor, Gradients]:
    """Return the same by one ordinary backward pass for each example."""
    gradients = per_example_gradients(model_of(kind), inputs, LOSSES[kind])
    sizes = norms(gradients)
    factors = torch.where(sizes > CLIP, CLIP / sizes, 1.0)
    return sizes, {name: torch.einsum("n,n...->...", factors, part) for name, part in gradients.items()}


def check(kind: type[nn.Module], inputs: Inputs, *, mean: bool, blank: int = 0) -> None:
    sizes, total = by_engine(kind, inputs, mean=mean, blank=blank)
    wanted_sizes, wanted = by_examples(kind, inputs)
    torch.testing.assert_close(sizes, wanted_sizes, rtol=CLOSE, atol=CLOSE)
    assert apart(total, wanted) <= CLOSE * (1 + length(wanted))


@pytest.mark.parametrize("n", [1, 2, 5, *slow([3, 7])])
@pytest.mark.parametrize(("kind", "batch"), CASES)
def test_norms_and_sums_are_those_of_single_examples(
    kind: type[nn.Module], batch: Callable[[int], Inputs], n: int
) -> None:
    check(kind, batch(n), mean=n % 2 == 0)


@pytest.mark.parametrize("mean", [True, *slow([False])], ids=["mean", "sum"])
@pytest.mark.parametrize(("kind", "batch"), CASES)
def test_blank_rows_that_fill_up_a_batch_count_nothing(
    kind: type[nn.Module], batch: Callable[[int], Inputs], mean: bool
) -> None:
    """A chunk of fewer than two rows is filled up with zeros; texts of zeros have no word that is there."""
    inputs = batch(1)
    if kind is Attentive:
        inputs = (*inputs[:1], torch.ones_like(inputs[1]), *inputs[2:])
    check(kind, inputs, mean=mean, blank=1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
@pytest.mark.parametrize("kind", [Dense, Convolutional])
@pytest.mark.parametrize("n", [2, 5, *slow([3, 7])])
@pytest.mark.parametrize("mean", [True, False], ids=["mean", "sum"])
def test_a_row_that_is_not_finite_adds_nothing_and_moves_no_other(
    kind: type[nn.Module], value: float, n: int, mean: bool
) -> None:
    x, y = rows(n)
    spoilt = x.clone()
    spoilt[n // 2, 0] = value
    others = [i for i in range(n) if i != n // 2]
    sizes, total = by_engine(kind, (spoilt, y), mean=mean)
    wanted_sizes, wanted = by_examples(kind, (x[others], y[others]))
    torch.testing.assert_close(sizes[others], wanted_sizes, rtol=CLOSE, atol=CLOSE)
    if sizes[n // 2].isfinite():
        assert apart(total, wanted) <= CLIP * (1 + CLOSE)
    else:
        assert apart(total, wanted) <= CLOSE * (1 + length(wanted))


@pytest.mark.parametrize("n", [2, *slow([5])])
@pytest.mark.parametrize(("kind", "batch"), one_in(3, CASES))
def test_a_batch_adds_what_its_examples_add_alone(
    kind: type[nn.Module], batch: Callable[[int], Inputs], n: int
) -> None:
    """By the engine on both sides: the sum of `n` examples is that of `n` batches of one."""
    inputs = batch(n)
    _, together = by_engine(kind, inputs, mean=True)
    alone = [by_engine(kind, tuple(part[i : i + 1] for part in inputs), mean=True)[1] for i in range(n)]
    apiece = {name: torch.stack([one[name] for one in alone]).sum(0) for name in together}
    assert apart(together, apiece) <= CLOSE * (1 + length(apiece))
