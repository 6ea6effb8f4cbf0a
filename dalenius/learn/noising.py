"""Noise on a sum of gradients: floats onto a grid, integers added to integers, and back.

Sums are cut to whole steps toward zero, which moves two of them apart by less than a step in each entry, as
rounding to the nearest would. A chunk at a time stays in the cache of a processor. A sum beyond ±2²⁹ steps
(2⁶¹ in 64 bits) saturates there, on every neighbour alike, before noise is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dalenius.learn import gpu
from dalenius.noise import addressed, onto
from dalenius.noise.bits import Bits
from dalenius.noise.chacha import Addressed
from dalenius.noise.exponential import Laplace
from dalenius.noise.kernel import Grid
from dalenius.noise.narrow import NarrowSampler, rounded_gaussian
from dalenius.noise.sampler import Sampler

if TYPE_CHECKING:
    from dalenius.learn.gpu.noise import DeviceNoise

CHUNK = 1 << 17
"""Numbers that are worked on at a time."""
PIECE = 1 << 20
"""Draws at a time."""
SMALL = 1 << 22
"""Tensors below this size share a stream, as every stream has its beginnings."""
WHOLE = torch.float32, torch.float64
"""Types of sums that noise is added to where they lie, in one pass."""
LIMIT = {torch.int32: 2**29, torch.int64: 2**61}
"""Where sums saturate, in steps."""


def together(totals: Iterable[Tensor]) -> list[list[Tensor]]:
    """The tensors that share a stream: a large one has its own, and all small ones have one."""
    totals = list(totals)
    small = [one for one in totals if one.numel() < SMALL]
    return [[one] for one in totals if one.numel() >= SMALL] + ([small] if small else [])


class Noise:
    """Noise of a law, whose tables are made now and not in the first step."""

    def __init__(self, norm: str, scale: Fraction) -> None:
        """Rounded Gaussian of `scale` steps, or discrete Laplace, whose grid is finer: in 64 bits."""
        gaussian, self._scale = norm == "l2", scale
        self._there: dict[torch.device, DeviceNoise] = {}
        self._sampler = rounded_gaussian(scale) if gaussian else _laplace(scale)
        self._room: NDArray[Any] = np.zeros(0, np.int32 if gaussian else np.int64)
        """Used again in every step, and blank in between."""

    def add(self, totals: Sequence[Tensor], step: float, divisor: float, bits: Bits) -> None:
        """In place: (total by 1/step, cut toward zero, + noise)·step/divisor."""
        if self.at_once(totals) and isinstance(self._sampler, NarrowSampler):
            grid = Grid(step, LIMIT[torch.int32], step / divisor)
            onto.add([one.detach().view(-1).numpy() for one in totals], self._sampler, bits, grid)
            return
        for piece in _pieces(totals):
            add_steps(piece, self._draw(sum(one.numel() for one in piece), bits), step, divisor)
        self._room.fill(0)

    def at_once(self, totals: Sequence[Tensor]) -> bool:
        """Whether noise is added where totals lie, and not drawn for pieces of them: which is other noise."""
        return isinstance(self._sampler, NarrowSampler) and not self._sampler.more and _near(totals)

    def reaches(self, total: Tensor) -> bool:
        """Whether a GPU can draw the noise of a total by itself."""
        return gpu.at_hand(total) and total.dtype in WHOLE and isinstance(self._sampler, NarrowSampler)

    def add_there(
        self, total: Tensor, step: float, divisor: float, stream: Addressed, start: int = 0
    ) -> Callable[[], None]:
        """The same on a GPU, with noise by address, that of the first entry being `start`.

        It is there once what is returned was called, which waits for the GPU.
        """
        from dalenius.learn.gpu.noise import DeviceNoise

        if total.device not in self._there:
            self._there[total.device] = DeviceNoise(addressed.rounded_gaussian(self._scale), total.device)
        grid = Grid(step, LIMIT[torch.int32], step / divisor)
        return self._there[total.device].begin(total, stream, grid, start=start)

    def _draw(self, size: int, bits: Bits) -> Tensor:
        if not self._room.size:
            self._room = np.zeros(PIECE, self._room.dtype)
        drawn = self._room[:size]
        self._sampler.fill(drawn, bits)
        return torch.from_numpy(drawn)


def _near(totals: Sequence[Tensor]) -> bool:
    return all(one.device.type == "cpu" and one.dtype in WHOLE for one in totals)


def _pieces(totals: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Parts of tensors, or several small ones, for which noise is drawn at once."""
    piece: list[Tensor] = []
    for total in totals:
        for part in total.detach().view(-1).split(PIECE):
            if sum(one.numel() for one in piece) + part.numel() > PIECE:
                yield piece
                piece = []
            piece.append(part)
    if piece:
        yield piece


@lru_cache(maxsize=16)
def _laplace(scale: Fraction) -> Sampler:
    return Sampler(Laplace(scale))


def add_steps(totals: Sequence[Tensor], noise: Tensor, step: float, divisor: float) -> None:
    """In whole steps, toward zero; what is no number was left out before."""
    limit, done = LIMIT[noise.dtype], 0
    for total in totals:
        for part in total.detach().view(-1).split(CHUNK):
            own = noise[done : done + part.numel()].to(part.device)
            done += part.numel()
            part.mul_(1 / step).clamp_(-limit, limit)
            own += part.to(own.dtype)
            part.copy_(own).mul_(step / divisor)
