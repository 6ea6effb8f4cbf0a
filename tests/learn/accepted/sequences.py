"""Sequences of unequal lengths: pooling, masks, packing, teacher forcing, CTC, bags of words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..architectures.data import given, integers
from .loop import Loop, training

WORDS, LENGTH, WIDTH = 11, 5, 6


def texts(n: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Return words, lengths of at least one word, and labels; positions past the length hold word 0."""
    words, labels = given(integers(WORDS, LENGTH), integers(3))(n, generator)
    lengths = torch.randint(1, LENGTH + 1, (n,), generator=generator)
    return words.masked_fill(torch.arange(LENGTH) >= lengths[:, None], 0), lengths, labels


class LastState(nn.Module):
    """The state at the last word of each row."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.inner = nn.Embedding(WORDS, WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.inner(self.table(words))
        return self.head(states[torch.arange(words.shape[0]), lengths - 1])


class LastByWords(LastState):
    """The same, with lengths that the model counts by itself, as for decoders of Hugging Face."""

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.inner(self.table(words))
        last = (words != 0).int().sum(-1).sub(1).clamp(min=0)
        return self.head(states.gather(1, last[:, None, None].expand(-1, 1, WIDTH)).squeeze(1))


class MeanPooling(LastState):
    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.inner(self.table(words))
        mask = (torch.arange(words.shape[1])[None, :] < lengths[:, None]).unsqueeze(-1)
        return self.head((states * mask).sum(1) / mask.sum(1).clamp(min=1))


class MaxPooling(LastState):
    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.inner(self.table(words))
        outside = torch.arange(LENGTH) >= lengths.unsqueeze(1)
        return self.head(states.masked_fill(outside.unsqueeze(2), -1e9).max(dim=1).values)


class Packed(LastState):
    """Packed by length, which sorts the rows and puts them back."""

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(
            self.table(words), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        _, (hidden, _) = self.inner(packed)
        return self.head(hidden[-1])


class Unpacked(LastState):
    """Packed, run and padded again to the public length."""

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(
            self.table(words), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.inner(packed)[0], batch_first=True, total_length=LENGTH)
        return self.head(states.sum(1) / LENGTH)


class UnpackedToNoLength(LastState):
    """Packed, run and padded again, with a mean over time.

    In an ordinary loop this mixes: rows are padded to the longest of the batch. In a private loop they are
    padded to the length that they had before they were packed, which is public.
    """

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(
            self.table(words), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.inner(packed)[0], batch_first=True)
        return self.head(states.mean(1))


class MaskedAttention(nn.Module):
    """An encoder with a padding mask, and a mean over the words of each row."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, dropout=0.0, batch_first=True)
        self.inner = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        outside = torch.arange(words.shape[1]) >= lengths[:, None]
        states = self.inner(self.table(words), src_key_padding_mask=outside)
        kept = (~outside).unsqueeze(-1).float()
        return self.head((states * kept).sum(1) / kept.sum(1))


class BiasedAttention(MaskedAttention):
    """An additive mask of each row, by scaled_dot_product_attention."""

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        x = self.table(words)
        bias = torch.zeros(words.shape[0], 1, LENGTH)
        bias = bias.masked_fill(torch.arange(LENGTH) >= lengths[:, None, None], float("-inf"))
        return self.head(functional.scaled_dot_product_attention(x, x, x, attn_mask=bias).mean(1))


class Bag(nn.Module):
    """An embedding bag of flat words with offsets, all rows of the same padded length."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(WORDS, WIDTH, mode=mode, padding_idx=0), nn.Linear(WIDTH, 3)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        offsets = torch.arange(words.shape[0]) * words.shape[1]
        return self.head(self.bag(words.reshape(-1), offsets))


class Translator(nn.Module):
    """A decoder that is given the right words before each position."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS + 1, WIDTH)
        self.encoder, self.decoder = (nn.GRU(WIDTH, WIDTH, batch_first=True) for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        _, state = self.encoder(self.source(source))
        begin = torch.full((target.shape[0], 1), WORDS)
        before = torch.cat([begin, target[:, :-1].clamp(min=0)], dim=1)
        return self.head(self.decoder(self.target(before), state)[0])


def classify(model: nn.Module, words: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(words, lengths), labels)


def translate(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    logits = model(source, target)
    return functional.cross_entropy(logits.reshape(-1, WORDS), target.reshape(-1), ignore_index=-100)


LOOPS = (
    Loop("state at the last word", LastState, texts, training(classify)),
    Loop("state at the last word, counted", LastByWords, texts, training(classify)),
    Loop("mean over the words of a row", MeanPooling, texts, training(classify)),
    Loop("maximum over the words of a row", MaxPooling, texts, training(classify)),
    Loop("packed sequences", Packed, texts, training(classify)),
    Loop("packed sequences, padded again", Unpacked, texts, training(classify)),
    Loop("packed sequences, padded to no given length", UnpackedToNoLength, texts, training(classify)),
    Loop("attention with a padding mask", MaskedAttention, texts, training(classify)),
    Loop("attention with an additive mask", BiasedAttention, texts, training(classify)),
    Loop("embedding bag with offsets, mean", lambda: Bag("mean"), texts, training(classify)),
    Loop("embedding bag with offsets, sum", lambda: Bag("sum"), texts, training(classify)),
    Loop(
        "teacher forcing",
        Translator,
        given(integers(WORDS, LENGTH), integers(WORDS, 4)),
        training(translate),
        ignored=(1,),
    ),
)
