"""What an index takes from a tensor with examples, and what is written into one.

Which examples are taken must not depend on data, or it would depend on data what is refused. An index that
was computed from data may pick along other dimensions, such as the last word of every sentence, and not along
the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dalenius.learn.marks import MIXED, batch_dimension, made, numbered, outer_of, tensors_in

Function = Callable[..., Any]


def picked(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], place: int | None) -> bool:
    """Whether it depends on data which examples are taken."""
    name = getattr(func, "__name__", "")
    if name == "index_select":
        dim, index = (*args[1:], kwargs.get("dim"), kwargs.get("index"))[:2]
        return _data(index) and (place is None or int(dim or 0) % args[0].dim() == place)
    if name == "__getitem__":
        return picks(args[1], args[0].dim(), place)
    return name == "repeat_interleave" and any(_data(one) for one in tensors_in((args[1:], kwargs)))


def picks(index: Any, dims: int, place: int | None) -> bool:
    """Whether an index says by data what to take along the dimension of the batch."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if not any(_data(one) for one in parts):
        return False
    if place is None:
        return True
    sizes = [_taken(one) for one in parts]
    rest, at = dims - sum(size for size in sizes if size is not None), 0
    for one, size in zip(parts, sizes, strict=True):
        size = rest if size is None else size
        if _data(one) and at <= place < at + size:
            return True
        at += size
    return False


def _taken(part: Any) -> int | None:
    """How many dimensions a part of an index is about; None for those that `...` stands for."""
    if part is Ellipsis:
        return None
    if isinstance(part, Tensor) and part.dtype in (torch.bool, torch.uint8):
        return part.dim()
    return 0 if part is None or isinstance(part, bool) else 1


def _data(value: Any) -> bool:
    return isinstance(value, Tensor) and outer_of(value) is not None and not made(value)


def written(buffer: Tensor, index: Any, value: Any, examples: int) -> int | None:
    """The mark of a tensor after `buffer[index] = value`."""
    old, new = outer_of(buffer), outer_of(value) if isinstance(value, Tensor) else None
    if new is None or examples < 2:
        return old if new is None else 1
    if old is not None or new == MIXED or picks(index, buffer.dim(), None):
        place = batch_dimension(tuple(buffer.shape), old, examples) if old else None
        return old if place is not None and new != MIXED and _left(index, place) else MIXED
    # A tensor of nobody's: the numbers of the examples are written instead, and looked for.
    numbers = torch.full(buffer.shape, math.nan, dtype=torch.float64, device=buffer.device)
    numbers[index] = numbered(tuple(value.shape), new, examples).to(buffer.device)
    whole = [i for i, size in enumerate(buffer.shape) if size % examples == 0]
    found = [i for i in whole if _along(numbers, i, examples)]
    return math.prod(buffer.shape[: found[0]]) if len(found) == 1 else MIXED


def _left(index: Any, place: int) -> bool:
    """Whether all along the batch is written to."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(one, Tensor) or one is None or one is Ellipsis for one in parts):
        return False
    return place >= len(parts) or parts[place] == slice(None)


def _along(numbers: Tensor, dim: int, examples: int) -> bool:
    size = numbers.shape[dim]
    line = numbered((size,), 1, examples).to(numbers.device).view(-1, *(1,) * (numbers.dim() - 1 - dim))
    return bool((numbers.isnan() | (numbers == line)).all())
