"""Rules for recurrent networks, step by step: every step is a linear map and its gates.

What comes in is multiplied at once for all times. The parts of the steps are united by parameter, so that
norms are of what an example adds in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.dataflow.unequal_rows import inside
from dalenius.learn.linear import product
from dalenius.learn.marks import mark, outer_of
from dalenius.learn.spreading import is_weight, spread
from dalenius.learn.tape import Function, Tape

State = tuple[Tensor, ...]
Gates = Callable[[Tensor, Tensor, State], State]
"""From what came in, what came around, and the state before: the state after, its first tensor the output."""


def _lstm(x: Tensor, h: Tensor, state: State) -> State:
    enter, forget, change, leave = (x + h).chunk(4, -1)
    cell = torch.sigmoid(forget) * state[1] + torch.sigmoid(enter) * torch.tanh(change)
    return torch.sigmoid(leave) * torch.tanh(cell), cell


def _gru(x: Tensor, h: Tensor, state: State) -> State:
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, -1), h.chunk(3, -1)
    keep = torch.sigmoid(xz + hz)
    new = torch.tanh(xn + torch.sigmoid(xr + hr) * hn)
    return ((1 - keep) * new + keep * state[0],)


def _tanh(x: Tensor, h: Tensor, _: State) -> State:
    return (torch.tanh(x + h),)


def _relu(x: Tensor, h: Tensor, _: State) -> State:
    return (torch.relu(x + h),)


GATES: dict[str, Gates] = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _tanh, "rnn_relu": _relu}


@dataclass(frozen=True)
class Layer:
    """The weights of one direction of one layer, as torch lists them."""

    enter: Tensor
    around: Tensor
    into: Tensor | None = None
    onto: Tensor | None = None
    project: Tensor | None = None

    @classmethod
    def of(cls, weights: Sequence[Tensor]) -> Layer:
        """Biases come in twos, a projection last."""
        enter, around, *rest = weights
        biases, project = rest[: len(rest) // 2 * 2], rest[len(rest) // 2 * 2 :]
        return cls(enter, around, *(biases or (None, None)), *project)


def _step(tape: Tape, gates: Gates, x: Tensor, state: State, layer: Layer) -> State:
    mark(state[0], 1)
    new, *rest = gates(x, product(tape, state[0], layer.around, layer.onto), state)
    if layer.project is not None:
        mark(new, 1)
        new = product(tape, new, layer.project)
    return (new, *rest)


def _run(
    tape: Tape, gates: Gates, x: Tensor, state: State, layer: Layer, backwards: bool, live: Tensor | None
) -> tuple[Tensor, State]:
    """Run one direction of one layer over (time, rows, …).

    Where a row is not `live`, as (time, rows, 1), its state stays what it was and its output is zero. So a
    run backwards begins at the end of each row.
    """
    flat = x.transpose(0, 1).contiguous()
    mark(flat, 1)
    ready = product(tape, flat, layer.enter, layer.into).unbind(1)
    outs: list[Tensor] = []
    for time in reversed(range(len(ready))) if backwards else range(len(ready)):
        after = _step(tape, gates, ready[time], state, layer)
        if live is None:
            state = after
            outs.append(state[0])
        else:
            pairs = zip(after, state, strict=True)
            state = tuple(torch.where(live[time], new, old.to(new.dtype)) for new, old in pairs)
            outs.append(after[0].masked_fill(~live[time], 0))
    return torch.stack(outs[::-1] if backwards else outs), state


def recurrent(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.lstm`, `torch.gru`, `torch.rnn_tanh`, `torch.rnn_relu`, as `nn.LSTM` and its kin call them."""
    if kwargs or not isinstance(args[2], list | tuple):
        raise NotSound(
            f"{func.__name__} takes packed sequences of which it is not known whose they are.",
            remedy="Pack padded rows by pack_padded_sequence(x, lengths, enforce_sorted=False), and pass "
            "them on as they are.",
        )
    x, *rest = args
    return _layers(tape, func, x, None, *rest)


def recurrent_of_unequal_rows(
    tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Tensor, ...]:
    """Functions of `dataflow.unequal_rows`: padded rows, each with its length."""
    x, lengths, *rest = args
    batch_first = rest[-1]
    live = inside(lengths, x.shape[1 if batch_first else 0], x.device).transpose(0, 1).unsqueeze(2)
    # What is after the end of a row has no influence, even where it is not finite.
    outer, x = outer_of(x), x.masked_fill(~(live.transpose(0, 1) if batch_first else live), 0)
    if outer:
        mark(x, outer)
    return _layers(tape, func, x, live, *rest)


def _layers(
    tape: Tape,
    func: Function,
    x: Tensor,
    live: Tensor | None,
    start: Any,
    weights: Sequence[Tensor],
    _: bool,
    layers: int,
    dropout: float,
    training: bool,
    both: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Run all layers, in both directions where asked to."""
    name = func.__name__
    if outer_of(x) != (1 if batch_first else x.shape[0]) and tape.examples > 1:
        raise tape.refused([one for one in weights if one in tape.names], func)
    starts = [_started(tape, func, one) for one in (start if name == "lstm" else (start,))]
    states: list[State] = list(zip(*starts, strict=True))
    x, ways = x.transpose(0, 1) if batch_first else x, 2 if both else 1
    share = len(weights) // (layers * ways)
    ends: list[State] = []
    for layer in range(layers):
        outs = []
        for number in range(layer * ways, (layer + 1) * ways):
            own = Layer.of(weights[number * share : (number + 1) * share])
            out, end = _run(tape, GATES[name], x, states[number], own, number % ways == 1, live)
            outs.append(out)
            ends.append(end)
        x = torch.cat(outs, -1)
        if dropout and training and layer < layers - 1:
            x = functional.dropout(x, dropout)
    finals = tuple(torch.stack(one) for one in zip(*ends, strict=True))
    result = x.transpose(0, 1) if batch_first else x
    mark(result, 1 if batch_first else x.shape[0])
    for one in finals:
        mark(one, one.shape[0])
    return (result, *finals)


def _started(tape: Tape, func: Function, start: Tensor) -> Tensor:
    """The first state of every row; where it is learned, spread over them."""
    if not is_weight(tape, start):
        return start
    found = spread(tape, start, tuple(start.shape), 1)
    if found is None:
        raise tape.refused([start], func)
    return found


def cell(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.lstm_cell`, `torch.gru_cell`, `torch.rnn_tanh_cell`, `torch.rnn_relu_cell`."""
    x, start, enter, around, *biases = args
    biases = [*biases, *(kwargs[one] for one in ("b_ih", "b_hh") if one in kwargs)]
    gates = GATES[func.__name__.removesuffix("_cell")]
    state = tuple(start) if isinstance(start, list | tuple) else (start,)
    if outer_of(x) != 1 or any(is_weight(tape, one) for one in state):
        raise tape.refused([enter, around], func)
    found = _step(
        tape, gates, product(tape, x, enter, *biases[:1]), state, Layer.of([enter, around, *biases])
    )
    return found if len(found) > 1 else found[0]
