"""Recurrent networks over padded rows of unequal lengths: what packing, running and unpacking computes.

A packed sequence holds the words of all rows of a batch by time, the longest row first. The functions here
take the padded rows in their own order instead, with one length for each, so that every result has a batch
axis: the outputs, zero after the end of a row, and the states at the end of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., Any]
NAMES = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def inside(lengths: Tensor, time: int, device: torch.device) -> Tensor:
    """Return which positions of (rows, time) are before the end of each row."""
    return torch.arange(time, device=device) < lengths.to(device).unsqueeze(1)


def pack(x: Tensor, lengths: Tensor, order: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """Return rows as packed data, and how many of them reach each time.

    Args:
        x: Padded rows, in their own order.
        lengths: The length of each row, at least 1 and at most the padded one.
        order: Positions of the rows, the longest first.
        batch_first: Whether `x` is (rows, time, …), and not (time, rows, …).
    """
    batch, time = (0, 1) if batch_first else (1, 0)
    if not x.shape[batch]:
        return x.flatten(0, 1), lengths.new_zeros(x.shape[time])
    ordered = x.index_select(batch, order.to(x.device))
    data, sizes = torch._VF._pack_padded_sequence(ordered, lengths.cpu()[order.cpu()], batch_first)
    return data, sizes


def _function_of(name: str) -> tuple[Function, Function]:
    """Return a recurrent network over unequal rows, and a function of the same data flow for shapes alone."""
    equal: Function = getattr(torch, name)

    def run(
        x: Tensor,
        lengths: Tensor,
        start: Any,
        weights: Sequence[Tensor],
        bias: bool,
        layers: int,
        dropout: float,
        training: bool,
        both: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        if not lengths.shape[0]:
            result: tuple[Tensor, ...] = equal(
                x, start, weights, bias, layers, dropout, training, both, batch_first
            )
            return result
        order = lengths.argsort(descending=True)
        at, back = order.to(x.device), order.argsort().to(x.device)
        data, sizes = pack(x, lengths, order, batch_first)
        starts = [state.index_select(1, at) for state in (start if name == "lstm" else (start,))]
        begun = tuple(starts) if name == "lstm" else starts[0]
        data, *ends = equal(data, sizes, begun, weights, bias, layers, dropout, training, both)
        batch, time = (0, 1) if batch_first else (1, 0)
        out, _ = torch._VF._pad_packed_sequence(data, sizes, batch_first, 0.0, x.shape[time])
        return out.index_select(batch, back), *(end.index_select(1, back) for end in ends)

    def flow(x: Tensor, lengths: Tensor, *args: Any) -> tuple[Tensor, ...]:
        batch_first: bool = args[-1]
        out, *ends = equal(x, *args)
        mask = inside(lengths, x.shape[1 if batch_first else 0], x.device)
        mask = (mask if batch_first else mask.transpose(0, 1)).unsqueeze(2)
        return out * mask, *(end + lengths.unsqueeze(1) for end in ends)

    run.__name__ = run.__qualname__ = flow.__name__ = flow.__qualname__ = name
    return run, flow


_FUNCTIONS = {name: _function_of(name) for name in NAMES}
UNEQUAL: dict[str, Function] = {name: run for name, (run, _) in _FUNCTIONS.items()}
"""By the name of a recurrent function of torch: the same over unequal rows.

The arguments are (x, lengths, start, weights, bias, layers, dropout, training, both directions, batch first).
"""
FLOWS: dict[Function, Function] = dict(_FUNCTIONS.values())
"""Functions that can run on shapes alone, with the data flow of those over unequal rows."""
