"""Rules for parameters that are spread over examples: added to them, multiplied with them, put beside them.

A parameter that is broadcast along the batch is copied for every example first, which costs no memory; what
comes back to the copies is the share of every example. All else is left to torch.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from dalenius.learn.dataflow.private_numbers import BatchSize, whole_sizes
from dalenius.learn.marks import batch_dimension, derive, derived, mark, outer_of
from dalenius.learn.parts import Whole, full
from dalenius.learn.tape import Function, Tape


class Spread(torch.autograd.Function):
    """A parameter, expanded to a shape with examples at a dimension; what comes back is summed by example."""

    @staticmethod
    def forward(ctx: Any, tape: Tape, weight: Tensor, shape: tuple[int, ...], place: int) -> Tensor:
        """An expanded view."""
        ctx.tape, ctx.weight, ctx.place = tape, weight, place
        ctx.examples = tape.examples
        return weight.expand(shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, ...]:
        """Onto the tape."""
        shape, examples = tuple(ctx.weight.shape), ctx.examples
        g = full(gradients[0]).movedim(ctx.place, 0)
        g = g.reshape(examples, g.shape[0] // max(examples, 1), *g.shape[1:]).sum(1)
        # With the batch dimension where it was, the shape is aligned with the parameter from the right.
        g = g.unsqueeze(ctx.place + 1)
        padded = (1,) * (g.dim() - 1 - len(shape)) + shape
        summed = [
            i + 1 for i, (ours, size) in enumerate(zip(padded, g.shape[1:], strict=True)) if ours != size
        ]
        g = g.sum(summed, keepdim=True) if summed else g
        ctx.tape.put(ctx.weight, Whole(g.reshape(examples, *shape)))
        return None, None, None, None


class Sliced(torch.autograd.Function):
    """What is derived from parameters and has a slice for every row, of which each example uses its own."""

    @staticmethod
    def forward(ctx: Any, tape: Tape, weight: Tensor, place: int) -> Tensor:
        """As it is."""
        ctx.tape, ctx.weight, ctx.place = tape, weight, place
        ctx.examples = tape.examples
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, ...]:
        """Onto the tape: zero but for its slices."""
        g, examples = full(gradients[0]).movedim(ctx.place, 0), ctx.examples
        shares = g.new_zeros(examples, *g.shape)
        each = len(g) // max(examples, 1)
        for i in range(examples):
            shares[i, i * each : (i + 1) * each] = g[i * each : (i + 1) * each]
        ctx.tape.put(ctx.weight, Whole(shares.movedim(1, ctx.place + 1)))
        return None, None, None


def spread(tape: Tape, weight: Tensor, shape: tuple[int, ...], place: int) -> Tensor | None:
    """The parameter, spread over the examples of such a shape; None where it is no broadcast there."""
    at = place - (len(shape) - weight.dim())
    if at >= 0 and weight.shape[at] != 1:
        if weight.shape[at] != shape[place]:
            return None
        if weight.stride(at) != 0 or not tape.examples:
            own: Tensor = Sliced.apply(tape, weight, at)
            return own
        weight = narrowed(weight, at)
    found: Tensor = Spread.apply(tape, weight, shape, place)
    return found


def narrowed(weight: Tensor, dimension: int) -> Tensor:
    """One copy of what was expanded along a dimension."""
    one = weight.narrow(dimension, 0, 1)
    derive(one)
    return one


def is_weight(tape: Tape, value: Any) -> bool:
    """Whether it is a parameter, or derived from parameters alone."""
    return isinstance(value, Tensor) and (value in tape.names or derived(value))


def elementwise(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of broadcast arguments: each parameter among them is spread to the shape of the result."""
    from dalenius.learn.anything import anything

    tensors = [one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)]
    shape = torch.broadcast_shapes(*(one.shape for one in tensors))
    place = _place(tape, tensors, shape)
    if place is None:
        return anything(tape, func, args, kwargs)
    failed = False

    def over(value: Any) -> Any:
        nonlocal failed
        if not is_weight(tape, value):
            return value
        copied = spread(tape, value, shape, place)
        failed = failed or copied is None
        return copied

    plain, named = [over(one) for one in args], {key: over(one) for key, one in kwargs.items()}
    return anything(tape, func, args, kwargs) if failed else func(*plain, **named)


def _place(tape: Tape, tensors: list[Tensor], shape: tuple[int, ...]) -> int | None:
    """The dimension of the result that holds examples, where all arguments with examples agree on it."""
    found = set()
    for one in tensors:
        outer = outer_of(one)
        if outer is None:
            continue
        place = batch_dimension(tuple(one.shape), outer, tape.examples or 1) if outer else None
        found.add(None if place is None else place + len(shape) - one.dim())
    return found.pop() if len(found) == 1 else None


def beside(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cat` and `stack`: parameters that were expanded along the batch are put beside examples."""
    from dalenius.learn.anything import anything

    named = dict(zip(("tensors", "dim"), args, strict=False)) | kwargs
    tensors = list(named.pop("tensors"))
    held = [one for one in tensors if outer_of(one)]
    place = _place(tape, held, tuple(held[0].shape)) if held else None
    copies = [
        spread(tape, one, tuple(one.shape), place) if place is not None and is_weight(tape, one) else one
        for one in tensors
    ]
    if place is None or any(one is None for one in copies):
        return anything(tape, func, args, kwargs)
    return func(copies, **named)


def expand(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`weight.expand(rows, …)`, `expand_as`, `repeat`: along the batch where the size is that of a batch."""
    weight, *sizes = args
    if not is_weight(tape, weight) or kwargs:
        return func(*whole_sizes(args), **whole_sizes(kwargs))
    if len(sizes) == 1 and isinstance(sizes[0], Tensor):
        shape, outer = tuple(sizes[0].shape), outer_of(sizes[0])
        place = batch_dimension(shape, outer, tape.examples or 1) if outer else None
    else:
        asked = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else tuple(sizes)
        place = next((i for i, size in enumerate(asked) if isinstance(size, BatchSize)), None)
        if getattr(func, "__name__", "") in ("repeat", "tile"):
            return _repeat(tape, weight, asked, place)
        late = (None,) * (len(asked) - weight.dim()) + tuple(weight.shape)
        shape = tuple(int(new) if new != -1 else int(old or 1) for new, old in zip(asked, late, strict=True))
    found = spread(tape, weight, shape, place) if place is not None else None
    if found is None:
        found = func(*whole_sizes(args))
        derive(found)
        return found
    mark(found, math.prod(shape[:place]))
    return found


def _repeat(tape: Tape, weight: Tensor, times: tuple[int, ...], place: int | None) -> Tensor:
    """By torch along all dimensions but that of the batch."""
    others = [1 if i == place else int(n) for i, n in enumerate(times)]
    found = weight.repeat(*others)
    derive(found)
    if place is None:
        return found
    shape = list(found.shape)
    if shape[place] != 1:
        whole = weight.repeat(*map(int, times))
        derive(whole)
        return whole
    shape[place] = int(times[place])
    over = spread(tape, found, tuple(shape), place)
    assert over is not None
    mark(over, math.prod(shape[:place]))
    return over
