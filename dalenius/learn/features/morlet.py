"""Filters of a scattering transform, in the Fourier domain: Morlet wavelets and a Gaussian.

A wavelet of scale s and angle a is a plane wave of frequency (3π/4)/2^s along a, under a Gaussian that is
0.8·2^s wide along a and `angles`/4 times as wide across, less a multiple of the Gaussian that makes its mean
nought (Bruna and Mallat 2013). The average of scale J is a round Gaussian 0.8·2^(J−1) wide. Both are folded
onto the periodic grid they are used on, so that filters reach around its edges as its images do.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

WIDTH = 0.8
"""Of a Gaussian of scale nought, in pixels."""
FREQUENCY = 3 * math.pi / 4
"""Of a wavelet of scale nought, in radians a pixel."""
FOLDS = range(-2, 3)
"""Copies of the grid that are folded onto it: all else of a filter is far below single precision."""


def wavelet(size: int, scale: int, turn: float, slant: float) -> Tensor:
    """The transform of a wavelet along the angle `turn`, `slant` times as narrow along it as across."""
    wave = _folded(size, WIDTH * 2**scale, turn, slant, FREQUENCY / 2**scale)
    bell = _folded(size, WIDTH * 2**scale, turn, slant, 0.0)
    return torch.fft.fft2(wave - wave.sum() / bell.sum() * bell).real


def average(size: int, scale: int) -> Tensor:
    """The transform of the average over about 2^scale pixels, whose sum is one."""
    bell = _folded(size, WIDTH * 2 ** (scale - 1), 0.0, 1.0, 0.0)
    return torch.fft.fft2(bell / bell.sum()).real


def _folded(size: int, width: float, turn: float, slant: float, frequency: float) -> Tensor:
    """A plane wave under a Gaussian of sum about one, on a periodic grid of size × size."""
    places = torch.arange(size, dtype=torch.float64)
    across = torch.stack([places + fold * size for fold in FOLDS])
    down, right = across[:, None, :, None], across[None, :, None, :]
    along = math.cos(turn) * down + math.sin(turn) * right
    aside = math.cos(turn) * right - math.sin(turn) * down
    bell = torch.exp(-(along**2 + (slant * aside) ** 2) / (2 * width**2))
    return (torch.polar(bell, frequency * along)).sum((0, 1)) * slant / (2 * math.pi * width**2)
