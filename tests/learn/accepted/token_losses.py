"""Losses of tokens with padding and ignored labels, averaged over each example's own tokens first."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..architectures.architecture import Inputs
from ..architectures.data import given, integers
from .loop import Loop, LossOf, training

WORDS, LENGTH = 11, 5


class Tagger(nn.Module):
    """Logits of every position, by its word and the words before."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.inner = nn.Embedding(WORDS, 6), nn.GRU(6, 6, batch_first=True)
        self.head = nn.Linear(6, WORDS)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.inner(self.table(words))[0])


def ragged(n: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Return words, labels and masks; of each row a random number of positions counts, none perhaps."""
    words, labels = given(integers(WORDS, LENGTH), integers(WORDS, LENGTH))(n, generator)
    lengths = torch.randint(LENGTH + 1, (n, 1), generator=generator)
    mask = (torch.arange(LENGTH) < lengths).float()
    return words, labels.masked_fill(mask == 0, -100), mask


def losses_of(model: nn.Module, words: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(words).transpose(1, 2), labels, reduction="none")


def masked_mean(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    losses = losses_of(model, words, labels)
    return ((losses * mask).sum(1) / mask.sum(1).clamp(min=1)).mean()


def masked_rows(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    losses = losses_of(model, words, labels).masked_fill(mask == 0, 0.0)
    own = losses.sum(dim=-1) / torch.clamp(mask.sum(dim=-1), min=1.0)
    return own.sum() / words.shape[0]


def counted_labels(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    kept = (labels != -100).float()
    losses = losses_of(model, words, labels)
    return torch.mean(torch.sum(losses * kept, 1) / (kept.sum(1) + 1e-6))


def flattened(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Flattened for the criterion and viewed as rows again."""
    logits = model(words)
    losses = functional.cross_entropy(logits.reshape(-1, WORDS), labels.reshape(-1), reduction="none")
    losses = losses.view(words.shape[0], -1) * mask
    return (losses.sum(1) / mask.sum(1).clamp(min=1)).mean()


def viewed_as(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The same, viewed as the shape of the labels."""
    logits = model(words)
    losses = functional.cross_entropy(logits.view(-1, WORDS), labels.view(-1), reduction="none")
    losses = losses.view(labels.size()).where(mask.bool(), torch.zeros(()))
    return (losses.sum(1) / mask.sum(1).clamp(min=1)).mean()


def plain_mean(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The mean of torch, which private training takes over the labels of each row first."""
    return functional.cross_entropy(model(words).view(-1, WORDS), labels.view(-1))


def plain_mean_of_classes_first(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    return nn.CrossEntropyLoss(ignore_index=-100)(model(words).permute(0, 2, 1), labels)


def public_length(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Divided by the padded length, which is public."""
    return (losses_of(model, words, labels) * mask).sum() / (words.shape[0] * words.shape[1])


def summed_tokens(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    return (losses_of(model, words, labels) * mask).sum(-1).sum()


def shifted(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Each word from those before."""
    logits = model(words)[:, :-1].contiguous()
    losses = functional.cross_entropy(logits.transpose(1, 2), words[:, 1:], reduction="none")
    return (losses * mask[:, 1:]).sum(1).div(mask[:, 1:].sum(1).clamp(min=1)).mean()


def vectorized(model: nn.Module, words: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    scores = model(words).log_softmax(-1)
    own = torch.einsum("nt,nt->n", scores.gather(2, words[..., None])[..., 0], mask)
    return -(own / mask.sum(1).clamp(min=1)).mean()


def tokens(name: str, loss_of: LossOf, *, rows: Inputs = ragged) -> Loop:
    return Loop(f"tokens, {name}", Tagger, rows, training(loss_of), ignored=(1,))


LOOPS = (
    tokens("masked mean of each row", masked_mean),
    tokens("masked fill, then mean of each row", masked_rows),
    tokens("labels counted in each row", counted_labels),
    tokens("flattened and viewed as rows", flattened),
    tokens("flattened and viewed as labels", viewed_as),
    tokens("mean of torch", plain_mean),
    tokens("mean of torch, classes first", plain_mean_of_classes_first),
    tokens("divided by the public length", public_length),
    tokens("summed", summed_tokens),
    tokens("shifted", shifted),
    tokens("by einsum", vectorized),
)
