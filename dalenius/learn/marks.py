"""Which tensors of a forward pass hold examples, and where in them.

Read in row-major order, a tensor that holds B examples is an array of shape (outer, B, inner): `outer` says
all. It is 1 where the batch leads; reshaping leaves it as it is, as does all that works on later dimensions;
transposing, indexing and reducing leading dimensions may change it, and `moved` finds out how by sending the
numbers of the examples through the same function.

A tensor without a mark follows from constants and parameters alone. One whose mark is `MIXED` holds data, but
it is not known whose: where it meets a parameter, training is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Any

import torch
from torch import Tensor

MIXED = 0
"""The mark of a tensor that holds data of nobody knows whom."""
_MARK = "_dalenius_outer"
_DERIVED = "_dalenius_derived"
_ROWS = "_dalenius_rows"
_MADE = "_dalenius_made"


class Rows(int):
    """The size of a batch, as read off an input: what is expanded by it is expanded by examples."""


def mark(tensor: Tensor, outer: int) -> None:
    """Say where it holds examples."""
    setattr(tensor, _MARK, outer)


def outer_of(tensor: Tensor) -> int | None:
    """The mark of a tensor, if it has one."""
    found: int | None = getattr(tensor, _MARK, None)
    return found


def make(tensor: Tensor) -> None:
    """Say that it is a constant, as large as the batch."""
    setattr(tensor, _MADE, True)


def made(tensor: Tensor) -> bool:
    """Whether it was said to be a constant."""
    return hasattr(tensor, _MADE)


def note_rows(tensor: Tensor, rows: int) -> None:
    """Say how many rows the batch has that it comes from."""
    setattr(tensor, _ROWS, rows)


def rows_noted(tensor: Tensor) -> int | None:
    """How many rows were said, if any."""
    found: int | None = getattr(tensor, _ROWS, None)
    return found


def marks(tensor: Tensor) -> dict[str, Any]:
    """All that was said of it."""
    return {name: value for name, value in vars(tensor).items() if name in (_MARK, _DERIVED, _ROWS, _MADE)}


def put_marks(tensor: Tensor, found: Mapping[str, Any]) -> None:
    """Say the same of another."""
    for name, value in found.items():
        setattr(tensor, name, value)


def derive(tensor: Tensor) -> None:
    """Say that it follows from parameters alone."""
    setattr(tensor, _DERIVED, True)


def derived(tensor: Tensor) -> bool:
    """Whether it was said to follow from parameters alone."""
    return hasattr(tensor, _DERIVED)


def own(tensor: Tensor) -> Tensor:
    """The same memory as a tensor that is no view: nobody may write into a view made by a custom function."""
    found: Tensor = torch.ops.aten._unsafe_view(tensor, tensor.shape) if tensor._is_view() else tensor
    return found


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors among arguments or results."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from tensors_in(one)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from tensors_in(one)


def found_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The same of a call, quickly where arguments are not nested."""
    found: list[Tensor] = []
    for one in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(one, Tensor):
            found.append(one)
        elif isinstance(one, tuple | list | dict):
            found.extend(tensors_in(one))
    return found


def replaced(value: Any, new: Callable[[Tensor], Any]) -> Any:
    """The same arguments with other tensors."""
    if isinstance(value, Tensor):
        return new(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replaced(one, new) for one in value))
    if isinstance(value, tuple | list):
        return type(value)(replaced(one, new) for one in value)
    if type(value) is dict:
        return {key: replaced(one, new) for key, one in value.items()}
    if isinstance(value, dict):
        # Outputs with named fields are such, and stay so.
        found = copy(value)
        for key, one in value.items():
            found[key] = replaced(one, new)
        return found
    return value


def batch_dimension(shape: tuple[int, ...], outer: int, examples: int) -> int | None:
    """The dimension that starts with a new example, where there is one."""
    before = 1
    for place, size in enumerate(shape):
        if before == outer and size % examples == 0 and (size > 1 or examples == 1):
            return place
        before *= size
    return None


def by_example(tensor: Tensor, outer: int, examples: int, trailing: int) -> Tensor:
    """As (examples, positions, …), the last `trailing` dimensions kept."""
    last = tensor.shape[tensor.dim() - trailing :]
    if not examples:
        return tensor.reshape(0, 1, *last)
    if outer == 1 or examples == 1:
        return tensor.reshape(examples, -1, *last)
    inner = math.prod(tensor.shape[: tensor.dim() - trailing]) // (outer * examples)
    return (
        tensor.reshape(outer, examples, inner, *last).transpose(0, 1).reshape(examples, outer * inner, *last)
    )


def numbered(shape: tuple[int, ...], outer: int, examples: int) -> Tensor:
    """For every entry of such a tensor, the number of its example."""
    numbers = torch.arange(examples, dtype=torch.float64).view(1, examples, 1)
    return numbers.expand(outer, examples, math.prod(shape) // (outer * examples)).reshape(shape)


def moved(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], outer: int, examples: int
) -> list[int]:
    """Where each result of a function that moves entries of its first argument holds examples, or `MIXED`."""
    source = args[0]
    place = batch_dimension(tuple(source.shape), outer, examples)
    if place is None:
        numbers = numbered(tuple(source.shape), outer, examples)
        results = function(numbers.to(source.device), *args[1:], **kwargs)
        return [_read(one, examples) for one in tensors_in(results)]
    # A view of one number for each step along the batch: where a result is a view, its strides say it all.
    size = source.shape[place]
    line = torch.arange(size, dtype=torch.float64, device=source.device)
    strides = [int(i == place) for i in range(source.dim())]
    results = function(line.as_strided(source.shape, strides), *args[1:], **kwargs)
    return [_along(one, size, line) for one in tensors_in(results)]


def _along(result: Tensor, size: int, line: Tensor) -> int:
    if result.data_ptr() == line.data_ptr() and result._is_view():
        steps = [i for i, stride in enumerate(result.stride()) if stride and result.shape[i] > 1]
        if len(steps) == 1 and result.shape[steps[0]] == size and result.stride(steps[0]) == 1:
            return math.prod(result.shape[: steps[0]])
        return 1 if size == 1 else MIXED
    return _read(result, size)


def _read(numbers: Tensor, examples: int) -> int:
    """Off the numbers themselves, or sums of equal ones."""
    flat = numbers.reshape(-1).to(torch.float64)
    if examples == 1 or flat.numel() == 0:
        return 1
    changes = int((flat != flat[0]).to(torch.uint8).argmax())
    if changes == 0 or flat.numel() % (changes * examples):
        return MIXED
    outer = flat.numel() // (changes * examples)
    expected = numbered((flat.numel(),), outer, examples).to(flat.device)
    factor = flat.max() / (examples - 1)
    return outer if bool(torch.all(flat == expected * factor)) else MIXED
