"""Shapes that depend on the longest or the shortest row of the batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tests.learn.mixing.loops import CONSTRUCTOR, Loops, seeded
from tests.learn.mixing.rows import LONGEST, Reader, Recurrent, sentences, texts

ENTROPY = nn.CrossEntropyLoss()
LOOPS = Loops("padding and lengths")

Row = tuple[Tensor, int]


def padded(rows: list[Row]) -> tuple[Tensor, Tensor]:
    """Pad all rows to the longest of the batch."""
    words = pad_sequence([words for words, _ in rows], batch_first=True)
    return words, torch.tensor([label for _, label in rows])


def padded_by_hand(rows: list[Row]) -> tuple[Tensor, Tensor]:
    """Pad all rows to the longest of the batch, without torch's function."""
    longest = max(len(words) for words, _ in rows)
    batch = torch.zeros(len(rows), longest, dtype=torch.int64)
    for number, (words, _) in enumerate(rows):
        batch[number, : len(words)] = words
    return batch, torch.tensor([label for _, label in rows])


def cut(rows: list[Row]) -> tuple[Tensor, Tensor]:
    """Cut all rows to the shortest of the batch."""
    shortest = min(len(words) for words, _ in rows)
    return torch.stack([words[:shortest] for words, _ in rows]), torch.tensor([label for _, label in rows])


def sorted_by_length(rows: list[Row]) -> tuple[Tensor, Tensor]:
    """Sort rows by length, as packing asks for, and pad them."""
    return padded(sorted(rows, key=lambda row: -len(row[0])))


def usual(private: Any) -> None:
    """Run the usual loop."""
    for words, y in private.loader:
        private.zero_grad()
        ENTROPY(private.model(words), y).backward()
        private.step()


RAGGED: dict[str, Any] = {"data": texts, "refused": CONSTRUCTOR}


@LOOPS.loop("pad_to", model=lambda: seeded(Recurrent), asked={"collate": padded_by_hand}, **RAGGED)
def character_lstm_with_the_usual_collate(private: Any) -> None:
    usual(private)


@LOOPS.loop("pad_to", model=lambda: seeded(Reader), asked={"collate": padded}, **RAGGED)
def pad_sequence_and_a_mean_over_time(private: Any) -> None:
    usual(private)


@LOOPS.loop("pad_to", model=lambda: seeded(Reader), asked={"collate": cut}, **RAGGED)
def rows_cut_to_the_shortest(private: Any) -> None:
    usual(private)


@LOOPS.loop("pad_to", model=lambda: seeded(Recurrent), asked={"collate": sorted_by_length}, **RAGGED)
def rows_sorted_by_length(private: Any) -> None:
    usual(private)


@LOOPS.loop("max|getitem|index", model=lambda: seeded(Reader), data=sentences)
def words_cut_to_the_longest(private: Any) -> None:
    for words, lengths, y in private.loader:
        private.zero_grad()
        ENTROPY(private.model(words[:, : lengths.max()]), y).backward()
        private.step()


@LOOPS.loop("tolist|min", model=lambda: seeded(Reader), data=sentences)
def words_cut_to_the_shortest(private: Any) -> None:
    for words, lengths, y in private.loader:
        private.zero_grad()
        shortest = min(lengths.tolist())
        ENTROPY(private.model(words[:, :shortest]), y).backward()
        private.step()


@LOOPS.loop("any|getitem|index", model=lambda: seeded(Reader), data=sentences)
def columns_of_padding_removed(private: Any) -> None:
    for words, _, y in private.loader:
        private.zero_grad()
        words = words[:, (words != 0).any(dim=0)]
        ENTROPY(private.model(words), y).backward()
        private.step()


@LOOPS.loop("max|div", model=lambda: seeded(Reader), data=sentences)
def losses_weighted_by_relative_length(private: Any) -> None:
    for words, lengths, y in private.loader:
        private.zero_grad()
        losses = nn.functional.cross_entropy(private.model(words), y, reduction="none")
        (losses * lengths / lengths.max()).mean().backward()
        private.step()


@LOOPS.loop("sort", model=lambda: seeded(Reader), data=sentences)
def words_sorted_by_length_but_not_labels(private: Any) -> None:
    for words, lengths, y in private.loader:
        private.zero_grad()
        _, order = lengths.sort(descending=True)
        ENTROPY(private.model(words[order]), y).backward()
        private.step()


@LOOPS.loop("div", model=lambda: seeded(Reader), data=sentences)
def losses_over_the_mean_length(private: Any) -> None:
    for words, lengths, y in private.loader:
        private.zero_grad()
        losses = nn.functional.cross_entropy(private.model(words), y, reduction="none")
        ((losses * lengths).sum() / lengths.sum()).backward()
        private.step()


class Packed(Recurrent):
    """Words to scores of classes, by the states of a packed LSTM less their mean over the packed words."""

    def forward(self, words: Tensor, lengths: Tensor | None = None) -> Tensor:
        lengths = torch.full((words.shape[0],), LONGEST) if lengths is None else lengths
        packed = pack_padded_sequence(self.table(words), lengths, batch_first=True, enforce_sorted=False)
        packed, _ = self.recurrent(packed)
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=LONGEST)
        return self.head(states.sum(1) - packed.data.mean(0))


@LOOPS.loop("pack_padded_sequence", model=lambda: seeded(Packed), data=sentences)
def states_centered_over_packed_words(private: Any) -> None:
    for words, lengths, y in private.loader:
        private.zero_grad()
        ENTROPY(private.model(words, lengths), y).backward()
        private.step()
