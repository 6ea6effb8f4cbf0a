"""LSTM, GRU and RNN taggers, in torch's own loops and in loops over cells."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .architecture import Architecture
from .data import (
    Quiet,
    TimeFirst,
    classification,
    features,
    given,
    integers,
    tagging,
    tagging_time_first,
    time_first,
)

KINDS: dict[str, type[nn.RNNBase]] = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}


class Tagger(nn.Module):
    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.recurrent = KINDS[kind](5, 8, **options)
        width = options.get("proj_size", 8) * (2 if self.recurrent.bidirectional else 1)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.recurrent(x)[0])


class LastState(nn.Module):
    """A text classifier: embedding, LSTM, and the last hidden and cell states of both its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 5)
        self.recurrent = nn.LSTM(5, 6, num_layers=2, batch_first=True)
        self.head = nn.Linear(24, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        _, (hidden, cell) = self.recurrent(self.tokens(tokens))
        return self.head(torch.cat([*hidden, *cell], dim=1))


class LearnedStart(nn.Module):
    """A GRU that starts from a raw parameter, copied for each example."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(1, 1, 6))
        self.recurrent = nn.GRU(5, 6, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.recurrent(x, self.start.repeat(1, len(x), 1))[0])


class Packed(nn.Module):
    """A classifier of rows of unequal lengths, by packed outputs that are padded again and by last states."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.recurrent = KINDS[kind](5, 6, batch_first=True, **options)
        width = 12 if self.recurrent.bidirectional else 6
        self.head, self.last = nn.Linear(width, 3), nn.Linear(6, 3)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed, ends = self.recurrent(packed)
        outputs, lengths = pad_packed_sequence(packed, batch_first=True, total_length=4)
        mean = outputs.sum(1) / lengths.to(x.device).unsqueeze(1)
        return self.head(mean) + self.last((ends[0] if isinstance(ends, tuple) else ends)[-1])


class LSTMCellLoop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(5, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = state = x.new_zeros(len(x), 6)
        outputs = []
        for step in x.unbind(1):
            hidden, state = self.cell(step, (hidden, state))
            outputs.append(self.head(hidden))
        return torch.stack(outputs, dim=1)


class GRUCellLoop(nn.Module):
    """The prediction of a step is fed to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(5 + 3, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden, guess = x.new_zeros(len(x), 6), x.new_zeros(len(x), 3)
        guesses = []
        for step in x.unbind(1):
            hidden = self.cell(torch.cat([step, guess], dim=1), hidden)
            guess = self.head(hidden)
            guesses.append(guess)
        return torch.stack(guesses, dim=1)


class LinearRecurrence(nn.Module):
    """A state-space layer: h ← a·h + B x with raw decays a in (0, 1), and y = C h + D·x."""

    def __init__(self) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.randn(8))
        self.into = nn.Linear(5, 8, bias=False)
        self.out = nn.Linear(8, 5, bias=False)
        self.skip = nn.Parameter(torch.randn(5))
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(len(x), 8)
        states = []
        for step in self.into(x).unbind(1):
            state = torch.sigmoid(self.decay) * state + step
            states.append(state)
        return self.head(torch.tanh(self.out(torch.stack(states, dim=1)) + self.skip * x))


SEQUENCES = given(features(4, 5), integers(3, 4))
TIME_FIRST = given(time_first(features(4, 5)), integers(3, 4))
UNEQUAL = given(
    features(4, 5), lambda n, generator: torch.randint(1, 5, (n,), generator=generator), integers(3)
)
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM": ("LSTM", {}),
    "LSTM, bidirectional, two layers": ("LSTM", {"bidirectional": True, "num_layers": 2}),
    "GRU": ("GRU", {}),
    "GRU, bidirectional, without bias": ("GRU", {"bidirectional": True, "bias": False}),
    "RNN": ("RNN", {}),
    "RNN, two layers of ReLU": ("RNN", {"num_layers": 2, "nonlinearity": "relu"}),
}


def tagger(name: str) -> Architecture:
    kind, options = OPTIONS[name]
    return Architecture(name, lambda: Tagger(kind, batch_first=True, **options), SEQUENCES, tagging)


def tagger_time_first(kind: str) -> Architecture:
    return Architecture(
        f"{kind}, time first",
        lambda: Tagger(kind),
        TIME_FIRST,
        tagging_time_first,
        batch_dim=1,
        awkward=True,
    )


ARCHITECTURES = (
    *(tagger(name) for name in OPTIONS),
    Architecture(
        "LSTM, projected", lambda: Quiet(Tagger("LSTM", batch_first=True, proj_size=3)), SEQUENCES, tagging
    ),
    tagger_time_first("LSTM"),
    tagger_time_first("GRU"),
    Architecture("LSTM, time first inside", lambda: TimeFirst(Tagger("LSTM")), SEQUENCES, tagging),
    Architecture("LSTM's last state", LastState, given(integers(20, 4), integers(3)), classification),
    Architecture("GRU with a learned start", LearnedStart, SEQUENCES, tagging),
    Architecture("LSTM, packed", lambda: Packed("LSTM"), UNEQUAL, classification),
    Architecture(
        "GRU, packed, bidirectional, two layers",
        lambda: Packed("GRU", bidirectional=True, num_layers=2),
        UNEQUAL,
        classification,
    ),
    Architecture("LSTM cells", LSTMCellLoop, SEQUENCES, tagging),
    Architecture("GRU cells", GRUCellLoop, SEQUENCES, tagging),
    Architecture("linear recurrence", LinearRecurrence, SEQUENCES, tagging),
)
