"""Rules for products with a matrix: y = x Wᵀ + b."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.learn import gpu
from dalenius.learn.marks import by_example, outer_of, own
from dalenius.learn.parts import Outer, Whole, summed
from dalenius.learn.tape import Function, Tape


class Linear(torch.autograd.Function):
    """x times a matrix; the gradient goes on to x, and the factors onto the tape."""

    @staticmethod
    def forward(ctx: Any, tape: Tape, outer: int, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """As torch does it; under autocast what is kept is what was multiplied."""
        ctx.tape, ctx.outer, ctx.weight, ctx.bias = tape, outer, weight, bias
        ctx.examples, ctx.dtype = tape.examples, x.dtype
        if torch.is_autocast_enabled(x.device.type) and x.dtype != torch.float64:
            dtype = torch.get_autocast_dtype(x.device.type)
            x, weight, bias = x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
        ctx.save_for_backward(x, weight)
        return own(gpu.linear(x, weight, bias))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """To x."""
        (g,), (x, weight) = gradients, ctx.saved_tensors
        tape, examples = ctx.tape, ctx.examples
        _, _, for_x, for_weight, for_bias = ctx.needs_input_grad
        g = gpu.aligned(g)
        left = by_example(g, ctx.outer, examples, 1)
        if for_weight:
            part = Outer(left, by_example(x, ctx.outer, examples, 1))
            tape.put(ctx.weight, part.smallest())
        if for_bias:
            tape.put(ctx.bias, Whole(summed(left)))
        back = gpu.times(g, weight.to(g.dtype)).to(ctx.dtype) if for_x else None
        return None, None, back, None, None


def linear(tape: Tape, _: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """`functional.linear(x, weight, bias)`."""
    named = dict(zip(("input", "weight", "bias"), args, strict=False)) | kwargs
    x, weight, bias = named["input"], named["weight"], named.get("bias")
    return product(tape, x, weight, bias)


def product(tape: Tape, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b, x with examples."""
    from dalenius.learn.anything import anything

    outer = outer_of(x)
    if not outer or any(outer_of(one) is not None for one in (weight, bias) if one is not None):
        return anything(tape, functional.linear, (x, weight, bias), {})
    found: Tensor = Linear.apply(tape, outer, x, weight, bias)
    return found
