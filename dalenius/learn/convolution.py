"""Rules for convolutions: the gradient goes on to the input, and the part of the filters onto the tape."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dalenius.learn.marks import outer_of, own
from dalenius.learn.parts import Part, Whole, full
from dalenius.learn.tape import Function, Tape
from dalenius.learn.windows import Geometry, Sizes, Windows, gradients_of


class Convolution(torch.autograd.Function):
    """A convolution; the gradient goes on to its input, and the part of its filters onto the tape."""

    @staticmethod
    def forward(
        ctx: Any, tape: Tape, geometry: Geometry, x: Tensor, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        """As torch does it."""
        ctx.tape, ctx.geometry, ctx.weight, ctx.bias = tape, geometry, weight, bias
        ctx.examples = tape.examples
        ctx.save_for_backward(x, weight)
        nd = len(geometry.kernel)
        found = torch.convolution(
            *_cast(x, weight, bias),
            list(geometry.stride),
            list(geometry.padding),
            list(geometry.dilation),
            False,
            [0] * nd,
            geometry.groups,
        )
        return own(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """To its input."""
        (g,), (x, weight) = gradients, ctx.saved_tensors
        tape, geometry, examples = ctx.tape, ctx.geometry, ctx.examples
        _, _, for_x, for_weight, for_bias = ctx.needs_input_grad
        if for_weight:
            part = Windows(x, g, tuple(weight.shape), geometry)
            tape.put(ctx.weight, _part(part, examples))
        if for_bias:
            sums = full(g).flatten(2).sum(2)
            tape.put(ctx.bias, Whole(sums.view(examples, -1, sums.shape[1]).sum(1) if examples else sums))
        back = None
        if for_x:
            back = gradients_of(g, x.to(g.dtype), weight.to(g.dtype), geometry, (True, False))[0].to(x.dtype)
        return None, None, back, None, None


def _part(part: Windows, examples: int) -> Part:
    """Where an example has several rows, their shares are summed."""
    if part.examples == examples:
        return part.smallest()
    shares = part.whole()
    return Whole(shares.view(examples, -1, *part.shape).sum(1))


def _cast(x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """`torch.convolution` is below autocast, which has to be done here."""
    if not torch.is_autocast_enabled(x.device.type):
        return x, weight, bias
    dtype = torch.get_autocast_dtype(x.device.type)
    return x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)


def convolution(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """`conv1d`, `conv2d`, `conv3d`."""
    from dalenius.learn.anything import anything

    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    given = dict(zip(names, args, strict=False)) | kwargs
    x, weight, bias = given["input"], given["weight"], given.get("bias")
    nd = weight.dim() - 2
    padding = given.get("padding", 0)
    dilation = _sizes(given.get("dilation", 1), nd)
    uneven = padding == "same" and any(
        d * (k - 1) % 2 for d, k in zip(dilation, weight.shape[2:], strict=True)
    )
    if outer_of(x) != 1 or x.dim() != nd + 2 or outer_of(weight) is not None or uneven:
        return anything(tape, func, args, kwargs)
    if padding == "same":
        padding = tuple(d * (k - 1) // 2 for d, k in zip(dilation, weight.shape[2:], strict=True))
    geometry = Geometry(
        tuple(weight.shape[2:]),
        _sizes(given.get("stride", 1), nd),
        _sizes(0 if padding == "valid" else padding, nd),
        dilation,
        int(given.get("groups", 1)),
    )
    found: Tensor = Convolution.apply(tape, geometry, x, weight, bias)
    return found


def _sizes(value: Any, nd: int) -> Sizes:
    return (
        (int(value),) * nd
        if isinstance(value, int)
        else tuple(map(int, value)) * (nd if len(value) == 1 else 1)
    )
