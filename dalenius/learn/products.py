"""Rules for `matmul` and its kin, where one side is a parameter."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dalenius.learn.linear import product
from dalenius.learn.marks import batch_dimension, derive, outer_of
from dalenius.learn.spreading import is_weight, spread
from dalenius.learn.tape import Function, Tape


def turned(weight: Tensor) -> Tensor:
    """The transpose of a parameter, which is derived from it."""
    found = weight.t()
    derive(found)
    return found


def matmul(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """x @ W is a linear map; anything else multiplies every example with a copy of its own."""
    from dalenius.learn.anything import anything

    if kwargs or len(args) != 2:
        return anything(tape, func, args, kwargs)
    left, right = args
    if is_weight(tape, right) and right.dim() == 2 and left.dim() >= 2 and outer_of(left):
        last = batch_dimension(tuple(left.shape), outer_of(left) or 1, tape.examples or 1)
        if last is not None and last < left.dim() - 1:
            return product(tape, left, turned(right))
    first, second = _copied(tape, left, right), _copied(tape, right, left)
    if first is None or second is None:
        return anything(tape, func, args, kwargs)
    return torch.matmul(first, second)


def _copied(tape: Tape, one: Tensor, other: Tensor) -> Tensor | None:
    """A matrix of its own for every example of the other side, whose batch is not a side of the matrix."""
    if not is_weight(tape, one):
        return one
    outer = outer_of(other)
    place = batch_dimension(tuple(other.shape), outer, tape.examples or 1) if outer else None
    if place is None or place >= other.dim() - 2 or one.dim() < 2:
        return None
    batch = torch.broadcast_shapes(one.shape[:-2], other.shape[:-2])
    return spread(tape, one, (*batch, *one.shape[-2:]), place + len(batch) + 2 - other.dim())


def addmm(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """b + x W, as `addmm` writes it."""
    from dalenius.learn.anything import anything

    if (
        kwargs
        or len(args) != 3
        or not is_weight(tape, args[2])
        or not outer_of(args[1])
        or args[0].dim() != 1
    ):
        return anything(tape, func, args, kwargs)
    bias, x, weight = args
    return product(tape, x, turned(weight), bias)
