"""Noise on a sum of gradients: floats onto a grid, integers added to integers, and back.

A chunk at a time, so that it stays in the cache of a processor. A sum beyond ±2²⁹ steps (2⁶¹ in 64 bits)
saturates there, on every neighbour alike, before noise is added.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from dalenius.noise.bits import Bits
from dalenius.noise.exponential import Laplace
from dalenius.noise.narrow import fill_rounded_gaussian
from dalenius.noise.sampler import Sampler

CHUNK = 1 << 17
LIMIT = {torch.int32: 2**29, torch.int64: 2**61}
"""Where sums saturate, in steps."""


def add_gaussian(total: Tensor, step: float, scale: Fraction, divisor: float, bits: Bits) -> None:
    """In place: (round(total/step) + noise)·step/divisor, the noise of `scale` steps."""
    flat = total.view(-1)
    for start in range(0, flat.numel(), CHUNK):
        part = flat[start : start + CHUNK]
        drawn = np.empty(part.numel(), np.int32)
        fill_rounded_gaussian(drawn, scale, bits)
        _add(part, torch.from_numpy(drawn), step, divisor)


def add_laplace(total: Tensor, step: float, scale: Fraction, divisor: float, bits: Bits) -> None:
    """The same with discrete Laplace noise, whose grid is finer: in 64 bits."""
    flat, law = total.view(-1), _laplace(scale)
    for start in range(0, flat.numel(), CHUNK):
        part = flat[start : start + CHUNK]
        drawn = np.empty(part.numel(), np.int64)
        law.fill(drawn, bits)
        _add(part, torch.from_numpy(drawn), step, divisor)


@lru_cache(maxsize=16)
def _laplace(scale: Fraction) -> Sampler:
    return Sampler(Laplace(scale))


def _add(part: Tensor, noise: Tensor, step: float, divisor: float) -> None:
    """In whole steps; what is no number was left out before."""
    limit = LIMIT[noise.dtype]
    steps = torch.round(part * (1 / step)).clamp_(-limit, limit)
    noisy = steps.to(noise.dtype).add_(noise.to(part.device))
    part.copy_(noisy).mul_(step / divisor)
