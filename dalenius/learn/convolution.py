"""Rules for convolutions, as products of filters with windows of the input.

With windows x_t of length d = channels·kernel at T places and p filters, an example's share is Σ_t g_t x_tᵀ:
an `Outer` whose right factors are never all laid out. Windows are cut for some examples at a time, so that
they stay in the cache; the weighted sum is torch's own gradient of a convolution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.learn.marks import outer_of, own
from dalenius.learn.parts import Part, Whole, blanked, full, held, pieces, raised
from dalenius.learn.tape import Function, Tape

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Geometry:
    """How windows lie in an input."""

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int

    def windows(self, x: Tensor) -> Tensor:
        """(examples, groups, channels·kernel of a group, places)."""
        if all(one == 1 for one in (*self.kernel, *self.stride)) and not any(self.padding):
            return x.reshape(x.shape[0], self.groups, x.shape[1] // self.groups, -1)
        if any(self.padding):
            x = functional.pad(x, [size for pad in reversed(self.padding) for size in (pad, pad)])
        x = x.contiguous()
        steps = x.stride()[2:]
        spans = [self.dilation[i] * (k - 1) + 1 for i, k in enumerate(self.kernel)]
        places = [(x.shape[2 + i] - span) // self.stride[i] + 1 for i, span in enumerate(spans)]
        view = x.as_strided(
            (*x.shape[:2], *self.kernel, *places),
            (
                *x.stride()[:2],
                *(step * self.dilation[i] for i, step in enumerate(steps)),
                *(step * self.stride[i] for i, step in enumerate(steps)),
            ),
        )
        return view.reshape(x.shape[0], self.groups, -1, math.prod(places))


@dataclass(eq=False)
class Windows(Part):
    """Sums over places of outer products of gradients with windows of an input."""

    x: Tensor
    g: Tensor
    shape: tuple[int, ...]
    geometry: Geometry

    def __post_init__(self) -> None:
        self.x, self.g = full(self.x), full(self.g)
        self.examples = self.x.shape[0]

    @property
    def _lengths(self) -> tuple[int, int, int]:
        """Filters of a group, the length of a window, places."""
        filters = self.shape[0] // self.geometry.groups
        return filters, math.prod(self.shape[1:]), math.prod(self.g.shape[2:])

    def _factors(self, part: slice) -> tuple[Tensor, Tensor]:
        """Gradients (n, filters, places) and windows (n, length, places), n of all groups of all examples."""
        filters, length, places = self._lengths
        left = self.g[part].reshape(-1, filters, places)
        return left, self.geometry.windows(self.x[part]).reshape(-1, length, places)

    def _cut(self) -> Any:
        _, length, places = self._lengths
        return pieces(self.examples, self.geometry.groups * length * places)

    def squared(self) -> Tensor:
        """By products of factors."""
        found = [self._squared(part) for part in self._cut()]
        return torch.cat(found) if found else self.x.new_zeros(0)

    def _squared(self, part: slice) -> Tensor:
        left, right = self._factors(part)
        products = torch.bmm(left.transpose(1, 2), left).mul_(torch.bmm(right.transpose(1, 2), right))
        reach = (left.norm(dim=1) * right.norm(dim=1)).sum(1)
        found = raised(products.sum((1, 2)), reach, self._lengths)
        return found.view(-1, self.geometry.groups).sum(1)

    def add(self, weights: Tensor, total: Tensor, *, keep: bool = True) -> None:
        """The gradient of a convolution, by torch."""
        g = self.g * weights.to(self.g.dtype).view(-1, *(1,) * (self.g.dim() - 1))
        found = _gradients(g, self.x, total, self.geometry, (False, True))[1]
        total.add_(found) if keep else total.copy_(found)

    def whole(self) -> Tensor:
        """A product for each example and group."""
        if self.shape[1] == 1 and len(self.geometry.kernel) <= 2:
            return self._correlated()
        shares = self.x.new_empty(self.examples, *self.shape)
        for part in self._cut():
            left, right = self._factors(part)
            torch.bmm(left, right.transpose(1, 2), out=shares[part].view(-1, *self._lengths[:2]))
        return shares

    def _correlated(self) -> Tensor:
        """Of filters over one channel: the input of each example, convolved with its gradients as filters."""
        one, nd = self.geometry, len(self.geometry.kernel)
        found = torch.convolution(
            self.x.reshape(1, -1, *self.x.shape[2:]),
            self.g.reshape(-1, 1, *self.g.shape[2:]),
            None,
            list(one.dilation),
            list(one.padding),
            list(one.stride),
            False,
            [0] * nd,
            self.examples * one.groups,
        )
        for place, size in enumerate(one.kernel):
            found = found.narrow(2 + place, 0, size)
        return found.reshape(self.examples, *self.shape)

    def forget(self, bad: Tensor) -> None:
        """Both factors."""
        self.x, self.g = blanked(self.x, bad), blanked(self.g, bad)

    def smallest(self) -> Part:
        """The shares, where they need little memory."""
        return Whole(self.whole()) if held(self, self.x.numel() + self.g.numel(), self._lengths) else self


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
            back = _gradients(g, x.to(g.dtype), weight.to(g.dtype), geometry, (True, False))[0].to(x.dtype)
        return None, None, back, None, None


def _part(part: Windows, examples: int) -> Part:
    """Where an example has several rows, their shares are summed."""
    if part.examples == examples:
        return part.smallest()
    shares = part.whole()
    return Whole(shares.view(examples, -1, *part.shape).sum(1))


def _gradients(
    g: Tensor, x: Tensor, weight: Tensor, geometry: Geometry, wanted: tuple[bool, bool]
) -> tuple[Tensor, Tensor]:
    found = torch.ops.aten.convolution_backward(
        g,
        x,
        weight,
        None,
        list(geometry.stride),
        list(geometry.padding),
        list(geometry.dilation),
        False,
        [0] * len(geometry.kernel),
        geometry.groups,
        [*wanted, False],
    )
    return found[0], found[1]


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
