"""Noise on a sum of gradients: floats onto a grid, integers added to integers, and back.

Sums are cut to whole steps toward zero, which moves two of them apart by less than a step in each entry, as
rounding to the nearest would. A chunk at a time stays in the cache of a processor. A sum beyond ±2²⁹ steps
(2⁶¹ in 64 bits) saturates there, on every neighbour alike, before noise is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dalenius.noise.bits import Bits
from dalenius.noise.exponential import Laplace
from dalenius.noise.narrow import fill_rounded_gaussian
from dalenius.noise.sampler import Sampler
from dalenius.noise.stream import StreamKey

CHUNK = 1 << 17
"""Numbers that are worked on at a time."""
PIECE = 1 << 20
"""Draws at a time."""
SMALL = 1 << 17
"""Tensors below this size share a stream, as every stream has its beginnings."""
LIMIT = {torch.int32: 2**29, torch.int64: 2**61}
"""Where sums saturate, in steps."""


def together(totals: Iterable[Tensor]) -> list[list[Tensor]]:
    """The tensors that share a stream: a large one has its own, and all small ones have one."""
    totals = list(totals)
    small = [one for one in totals if one.numel() < SMALL]
    return [[one] for one in totals if one.numel() >= SMALL] + ([small] if small else [])


class Noise:
    """Noise of a law, drawn into memory that is used again in every step, and blank in between."""

    def __init__(self, norm: str, scale: Fraction) -> None:
        """Rounded Gaussian of `scale` steps, or discrete Laplace, whose grid is finer: in 64 bits."""
        self._gaussian, self._scale = norm == "l2", scale
        self._room: NDArray[Any] = np.zeros(PIECE, np.int32 if self._gaussian else np.int64)
        # The table of the law is made now, not in the first step.
        self._draw(1, StreamKey.fresh().stream())
        self._room.fill(0)

    def _draw(self, size: int, bits: Bits) -> Tensor:
        drawn = self._room[:size]
        if self._gaussian:
            fill_rounded_gaussian(drawn, self._scale, bits)
        else:
            _laplace(self._scale).fill(drawn, bits)
        return torch.from_numpy(drawn)

    def add(self, totals: Sequence[Tensor], step: float, divisor: float, bits: Bits) -> None:
        """In place: (⌊total/step⌋ + noise)·step/divisor."""
        for piece in _pieces(totals):
            add_steps(piece, self._draw(sum(one.numel() for one in piece), bits), step, divisor)
        self._room.fill(0)


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
        flat = total.detach().view(-1)
        for start in range(0, flat.numel(), CHUNK):
            part = flat[start : start + CHUNK]
            own = noise[done : done + part.numel()].to(part.device)
            done += part.numel()
            part.mul_(1 / step).clamp_(-limit, limit)
            own += part.to(own.dtype)
            part.copy_(own).mul_(step / divisor)
