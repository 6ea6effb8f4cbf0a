"""`Windows`: what a convolution adds to the gradient of its filters, as products with windows of the input.

With windows x_t of length d = channels·kernel at T places and p filters, an example's share is Σ_t g_t x_tᵀ:
an `Outer` whose right factors are never all laid out. Windows are cut for some examples at a time, so that
they stay in the cache; the weighted sum is torch's own gradient of a convolution. What is copied at once is a
row of places or, where rows are short, a row of a window with all its channels, which then come last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.learn import gpu
from dalenius.learn.parts import (
    Part,
    Whole,
    blanked,
    dear,
    full,
    held,
    pieces,
    raised,
    squares,
    tiny,
    vanished,
)

Sizes = tuple[int, ...]
SHORT = 16
"""Rows of fewer places are short."""


@dataclass(frozen=True)
class Geometry:
    """How windows lie in an input."""

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int

    def windows(self, x: Tensor, *, last: bool) -> Tensor:
        """(examples, groups, places, channels·kernel of a group), or kernel·channels with channels `last`."""
        if all(one == 1 for one in (*self.kernel, *self.stride)) and not any(self.padding):
            return x.reshape(x.shape[0], self.groups, x.shape[1] // self.groups, -1).transpose(2, 3)
        if any(self.padding):
            x = functional.pad(x, [size for pad in reversed(self.padding) for size in (pad, pad)])
        x = x.movedim(1, -1).contiguous().movedim(-1, 1) if last else x.contiguous()
        steps = x.stride()[2:]
        spans = [self.dilation[i] * (k - 1) + 1 for i, k in enumerate(self.kernel)]
        places = [(x.shape[2 + i] - span) // self.stride[i] + 1 for i, span in enumerate(spans)]
        view = x.as_strided(
            (x.shape[0], self.groups, x.shape[1] // self.groups, *self.kernel, *places),
            (
                x.stride(0),
                x.stride(1) * (x.shape[1] // self.groups),
                x.stride(1),
                *(step * self.dilation[i] for i, step in enumerate(steps)),
                *(step * self.stride[i] for i, step in enumerate(steps)),
            ),
        )
        if not last:
            return view.reshape(*view.shape[:2], -1, math.prod(places)).transpose(2, 3)
        end = 3 + len(places)
        view = view.permute(0, 1, *range(end, view.dim()), *range(3, end), 2)
        return view.reshape(*view.shape[:2], math.prod(places), -1)


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
        """Gradients (n, filters, places) and windows (n, places, length), n of all groups of all examples."""
        filters, length, places = self._lengths
        left = self.g[part].reshape(-1, filters, places)
        windows = self.geometry.windows(self.x[part], last=self._last)
        return left, windows.reshape(-1, places, length)

    @property
    def _last(self) -> bool:
        """Whether windows have their channels last."""
        return self.g.shape[-1] < SHORT < self.shape[1] * self.shape[-1]

    def _cut(self) -> Any:
        _, length, places = self._lengths
        return pieces(self.x, self.geometry.groups * length * places)

    def squared(self) -> Tensor:
        """By products of factors, or by shares that are not kept, whichever costs less."""
        found = [self._squared(part) for part in self._cut()]
        return torch.cat(found) if found else self.x.new_zeros(0)

    def _squared(self, part: slice) -> Tensor:
        left, right = self._factors(part)
        if dear(self._lengths):
            return squares(torch.bmm(left, right)).view(-1, self.geometry.groups).sum(1)
        products = torch.bmm(left.transpose(1, 2), left).mul_(torch.bmm(right, right.transpose(1, 2)))
        reach = (left.norm(dim=1) * right.norm(dim=2)).sum(1)
        found = raised(products.sum((1, 2)), reach, self._lengths).double()
        found += vanished(squares(left), squares(right), self._lengths, tiny(left))
        return found.view(-1, self.geometry.groups).sum(1)

    def add(self, weights: Tensor, total: Tensor, *, keep: bool = True) -> None:
        """The gradient of a convolution, by torch."""
        g, x = self.g * weights.to(self.g.dtype).view(-1, *(1,) * (self.g.dim() - 1)), self.x
        if g.is_cuda:
            g, x = blanked(g, weights == 0), blanked(x, weights == 0)
        with gpu.precise(g):
            found = gradients_of(g, x, total, self.geometry, (False, True))[1]
        total.add_(found) if keep else total.copy_(found)

    def whole(self) -> Tensor:
        """A product for each example and group."""
        if self.shape[1] == 1 and len(self.geometry.kernel) <= 2:
            return self._correlated()
        filters, channels, *kernel = self.shape
        sizes = (*kernel, channels) if self._last else (channels, *kernel)
        shares = self.x.new_empty(self.examples, filters, *sizes)
        for part in self._cut():
            torch.bmm(*self._factors(part), out=shares[part].view(-1, *self._lengths[:2]))
        return shares.movedim(-1, 2) if self._last else shares

    def _correlated(self) -> Tensor:
        """Of filters over one channel: the input of each example, convolved with its gradients as filters."""
        with gpu.precise(self.x):
            found = self._convolved()
        for place, size in enumerate(self.geometry.kernel):
            found = found.narrow(2 + place, 0, size)
        return found.reshape(self.examples, *self.shape)

    def _convolved(self) -> Tensor:
        one, nd = self.geometry, len(self.geometry.kernel)
        return torch.convolution(
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

    def forget(self, bad: Tensor) -> None:
        """Both factors. On a GPU it is done when they are used."""
        if not self.x.is_cuda:
            self.x, self.g = blanked(self.x, bad), blanked(self.g, bad)

    def smallest(self) -> Part:
        """The shares, where they need little memory."""
        if not held(self, self.x.numel() + self.g.numel(), self._lengths):
            return self
        return Filters(self.whole().movedim(2, -1)) if self._last else Whole(self.whole())


class Filters(Whole):
    """Shares of filters, held with their channels last."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shape = (self.shape[0], self.shape[-1], *self.shape[1:-1])

    def add(self, weights: Tensor, total: Tensor, *, keep: bool = True) -> None:
        """As they are held, and then in the order of the parameter."""
        found = total.new_empty(self.shares.shape[1:])
        super().add(weights, found, keep=False)
        found = found.movedim(-1, 1)
        total.add_(found) if keep else total.copy_(found)

    def whole(self) -> Tensor:
        """In the order of the parameter."""
        return self.shares.movedim(-1, 2)


def gradients_of(
    g: Tensor, x: Tensor, weight: Tensor, geometry: Geometry, wanted: tuple[bool, bool]
) -> tuple[Tensor, Tensor]:
    """Of a convolution, by torch: those of its input and of its filters, as far as they are wanted."""
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
