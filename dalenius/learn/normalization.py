"""Rules for normalization: its scale and shift are learned, what it normalizes by is each example's own.

What is normalized is kept for the way back, beside what it is made from. Groups of channels need no such
copy: B examples of G groups are normalized as one of B·G groups, with a scale and a shift for each example,
and the gradients of these are the shares.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn import gpu
from dalenius.learn.marks import by_example, mark, outer_of
from dalenius.learn.parts import Whole, full, single
from dalenius.learn.tape import Function, Tape

REPLACE = "Replace it by torch.nn.GroupNorm, which normalizes every example by itself."


class Scaled(torch.autograd.Function):
    """x·scale + shift along some dimensions; the gradient goes on to x, the shares onto the tape."""

    @staticmethod
    def forward(
        ctx: Any, tape: Tape, outer: int, dims: int, x: Tensor, scale: Tensor | None, shift: Tensor | None
    ) -> Tensor:
        """`dims` trailing dimensions are those of scale and shift, after dimension 1 was moved there if 0."""
        ctx.tape, ctx.outer, ctx.dims, ctx.scale, ctx.shift = tape, outer, dims, scale, shift
        ctx.examples = tape.examples
        ctx.save_for_backward(x, scale)
        return _affine(x, _aligned(scale, x, dims), _aligned(shift, x, dims))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """To x."""
        (g,), (x, scale) = gradients, ctx.saved_tensors
        for_x, for_scale, for_shift = ctx.needs_input_grad[3:]
        if for_scale:
            ctx.tape.put(ctx.scale, Whole(_summed(ctx, full(g) * full(x), ctx.scale)))
        if for_shift:
            ctx.tape.put(ctx.shift, Whole(_summed(ctx, full(g), ctx.shift)))
        aligned = _aligned(scale, x, ctx.dims)
        back = (g if aligned is None else g * aligned).to(x.dtype) if for_x else None
        return None, None, None, back, None, None


class Layer(torch.autograd.Function):
    """Normalized along trailing dimensions, scaled and shifted; on the way back it is normalized again."""

    @staticmethod
    def forward(
        ctx: Any,
        tape: Tape,
        outer: int,
        shape: tuple[int, ...],
        eps: float,
        x: Tensor,
        scale: Tensor,
        shift: Tensor | None,
    ) -> Tensor:
        """As torch does it, in single precision under autocast."""
        ctx.tape, ctx.outer, ctx.shape, ctx.scale, ctx.shift = tape, outer, shape, scale, shift
        ctx.examples, ctx.dtype = tape.examples, x.dtype
        x = full(x) if torch.is_autocast_enabled(x.device.type) else x
        found, mean, deviation = torch.native_layer_norm(x, shape, scale, shift, eps)
        ctx.save_for_backward(x, mean, deviation)
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """To x."""
        (g,), (x, mean, deviation) = gradients, ctx.saved_tensors
        scale, shift, (for_x, for_scale, for_shift) = ctx.scale, ctx.shift, ctx.needs_input_grad[4:]

        def summed(products: Tensor) -> Tensor:
            rows = by_example(products, ctx.outer, ctx.examples, len(ctx.shape))
            return rows.sum(1, dtype=single(rows))

        scales: Tensor | None
        shifts: Tensor | None
        if for_scale and for_shift and _there(ctx, x):
            from dalenius.learn.gpu import layer

            scales, shifts = layer.shares(x, g, mean, deviation, ctx.examples)
        else:
            scales = summed((full(x) - mean).mul_(deviation).mul_(g)) if for_scale else None
            shifts = summed(g.detach()) if for_shift else None
        for weight, shares in ((scale, scales), (shift, shifts)):
            if shares is not None:
                ctx.tape.put(weight, Whole(shares))
        if not for_x:
            return (None,) * 7
        wanted = [True, False, False]
        back = torch.ops.aten.native_layer_norm_backward(
            g, x, ctx.shape, mean, deviation, scale, shift, wanted
        )[0]
        return None, None, None, None, back.to(ctx.dtype), None, None


class Each(torch.autograd.Function):
    """A scale or a shift, once for each row of a batch; what comes back are the shares, for the tape."""

    @staticmethod
    def forward(ctx: Any, tape: Tape, rows: int, weight: Tensor) -> Tensor:
        """One after the other."""
        ctx.tape, ctx.weight, ctx.examples = tape, weight, tape.examples
        return weight.repeat(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, None]:
        """Nothing goes on."""
        shares = full(gradients[0]).view(ctx.examples, -1, *ctx.weight.shape).sum(1)
        ctx.tape.put(ctx.weight, Whole(shares))
        return None, None, None


def _there(ctx: Any, x: Tensor) -> bool:
    """Whether a kernel of a GPU finds both at once."""
    plain = ctx.outer == 1 and len(ctx.shape) == 1 and ctx.examples and x.dtype != torch.float64
    return bool(plain) and gpu.at_hand(x) and not gpu.traced(x)


def _affine(x: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    if scale is not None and shift is not None:
        return torch.addcmul(shift, x, scale)
    if scale is not None:
        return x * scale
    return x.clone() if shift is None else x + shift


def _aligned(weight: Tensor | None, x: Tensor, dims: int) -> Tensor | None:
    """Channels, where `dims` is 0, are dimension 1."""
    if weight is None:
        return None
    weight = weight.to(x.dtype)
    return weight if dims else weight.view(-1, *(1,) * (x.dim() - 2))


def _summed(ctx: Any, products: Tensor, weight: Tensor) -> Tensor:
    examples = ctx.examples
    if ctx.dims:
        return by_example(products, ctx.outer, examples, ctx.dims).sum(1)
    channels = products.flatten(2).sum(2) if products.dim() > 2 else products
    return by_example(channels, ctx.outer, examples, 1).sum(1).view(examples, *weight.shape)


def _scaled(
    tape: Tape, x: Tensor, outer: int, dims: int, scale: Tensor | None, shift: Tensor | None
) -> Tensor:
    if scale is None and shift is None:
        return x
    found: Tensor = Scaled.apply(tape, outer, dims, x, scale, shift)
    return found


def _read(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(names, args, strict=False)) | kwargs


def _outer(tape: Tape, func: Function, x: Tensor, *weights: Tensor | None) -> int:
    outer = outer_of(x)
    if not outer:
        raise tape.refused([one for one in weights if one is not None], func)
    return outer


def layer_norm(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """`functional.layer_norm`."""
    given = _read(("input", "normalized_shape", "weight", "bias", "eps"), args, kwargs)
    x, shape, scale, shift = given["input"], given["normalized_shape"], given.get("weight"), given.get("bias")
    outer, eps = _outer(tape, func, x, scale, shift), given.get("eps", 1e-5)
    if scale is None:
        return _scaled(tape, functional.layer_norm(x, shape, None, None, eps), outer, len(shape), None, shift)
    found: Tensor = Layer.apply(tape, outer, tuple(shape), eps, x, scale, shift)
    return found


def rms_norm(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """`functional.rms_norm`."""
    given = _read(("input", "normalized_shape", "weight", "eps"), args, kwargs)
    x, shape, scale = given["input"], given["normalized_shape"], given.get("weight")
    normal = functional.rms_norm(x, shape, None, given.get("eps"))
    return _scaled(tape, normal, _outer(tape, func, x, scale), len(shape), scale, None)


def group_norm(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """`functional.group_norm`: scale and shift of channels."""
    given = _read(("input", "num_groups", "weight", "bias", "eps"), args, kwargs)
    x, scale, shift = given["input"], given.get("weight"), given.get("bias")
    groups, eps, outer = given["num_groups"], given.get("eps", 1e-5), _outer(tape, func, x, scale, shift)
    rows, channels = x.shape[:2]
    if outer != 1 or not tape.examples or rows % tape.examples or x.dtype != full(x).dtype:
        normal = functional.group_norm(x, groups, None, None, eps)
        return _scaled(tape, normal, outer, 0, scale, shift)
    scales, shifts = (None if one is None else Each.apply(tape, rows, one) for one in (scale, shift))
    sizes = 1, rows * channels, math.prod(x.shape[2:]), rows * groups
    return torch.native_group_norm(x.contiguous(), scales, shifts, *sizes, eps)[0]


def instance_norm(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """`functional.instance_norm`, without running statistics, which are averages over all examples."""
    names = ("input", "running_mean", "running_var", "weight", "bias", "use_input_stats", "momentum", "eps")
    given = _read(names, args, kwargs)
    x, scale, shift = given["input"], given.get("weight"), given.get("bias")
    if given.get("running_mean") is not None and given.get("use_input_stats", True):
        raise NotSound(
            "Running statistics of InstanceNorm mix examples.", remedy="Set track_running_stats=False."
        )
    normal = functional.instance_norm(
        x,
        given.get("running_mean"),
        given.get("running_var"),
        None,
        None,
        given.get("use_input_stats", True),
        given.get("momentum", 0.1),
        given.get("eps", 1e-5),
    )
    return _scaled(tape, normal, _outer(tape, func, x, scale, shift), 0, scale, shift)


def batch_norm(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """`functional.batch_norm` in evaluation: its statistics are constants. In training it is refused."""
    names = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")
    given = _read(names, args, kwargs)
    if given.get("training", False):
        raise NotSound("BatchNorm in training normalizes every example by all others.", remedy=REPLACE)
    x, scale, shift = given["input"], given.get("weight"), given.get("bias")
    statistics = given["running_mean"], given["running_var"]
    normal = functional.batch_norm(x, *statistics, None, None, False, 0.0, given.get("eps", 1e-5))
    mark(normal, _outer(tape, func, x, scale, shift))
    return _scaled(tape, normal, _outer(tape, func, x, scale, shift), 0, scale, shift)
