"""Connectionist temporal classification: frames, transcripts and their lengths, all per row."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..architectures.data import features, given, integers
from .loop import Loop, training

SIGNS, FRAMES, LETTERS = 4, 8, 3


class Recognizer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.GRU(3, 5, batch_first=True), nn.Linear(5, SIGNS)

    def forward(self, frames: Tensor) -> Tensor:
        return self.head(self.inner(frames)[0]).log_softmax(-1)


def spoken(n: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Return frames, transcripts without the blank, and the lengths of both."""
    frames, letters = given(features(FRAMES, 3), integers(SIGNS - 1, LETTERS))(n, generator)
    heard = torch.randint(FRAMES - 1, FRAMES + 1, (n,), generator=generator)
    written = torch.randint(1, LETTERS + 1, (n,), generator=generator)
    return frames, letters + 1, heard, written


def alignment(model: nn.Module, frames: Tensor, letters: Tensor, heard: Tensor, written: Tensor) -> Tensor:
    scores = model(frames).transpose(0, 1)
    losses = functional.ctc_loss(scores, letters, heard, written, reduction="none", zero_infinity=True)
    return (losses / written).mean()


def alignment_averaged(
    model: nn.Module, frames: Tensor, letters: Tensor, heard: Tensor, written: Tensor
) -> Tensor:
    """The mean of torch, which divides the loss of each row by the length of its own transcript."""
    return nn.CTCLoss(zero_infinity=True)(model(frames).permute(1, 0, 2), letters, heard, written)


LOOPS = (
    Loop("CTC by rows", Recognizer, spoken, training(alignment)),
    Loop("CTC, mean of torch", Recognizer, spoken, training(alignment_averaged)),
)
