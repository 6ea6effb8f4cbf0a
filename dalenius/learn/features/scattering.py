"""Scattering: features of an image that no data was used to make, and that a linear model learns well from.

    features = dp.learn.scattering(images)      # n × 28 × 28, from 0 to 1  →  n × 81 × 7 × 7

Images are averaged (order 0), so are absolute values of their wavelet transforms (order 1), and absolute
values of the wavelet transforms of those at coarser scales (order 2): 1 + J·L + L²·J(J−1)/2 channels for J
scales and L angles, on a grid 2^J times as coarse (Bruna and Mallat 2013). Moving an image a little changes
them little. Tramèr and Boneh 2021 found that private training on them beats that of networks from scratch.

Every number is a function of one image and of nothing else: features are preparation of a record and cost
nothing. Images are worked on in chunks of one size, filled up with blanks, so that how many there are does
not change how they are rounded. What is no number in an image spoils features of that image, and of no other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import InvalidArgument
from dalenius.learn.features.morlet import average, wavelet
from dalenius.privacy import numbers

CHUNK = 64
"""Images that are worked on at once."""


def scattering(images: Tensor, *, scales: int = 2, angles: int = 8) -> Tensor:
    """Of square images n × side × side, or of several channels: n × channels × grid × grid."""
    if not isinstance(images, Tensor) or images.dim() not in (3, 4) or images.shape[-1] != images.shape[-2]:
        raise InvalidArgument(
            "images must be a tensor of square images.",
            remedy="Pass n × side × side, or n × channels × side × side.",
        )
    flat = images.reshape(-1, *images.shape[-2:])
    found = Scattering(images.shape[-1], scales=scales, angles=angles)(flat)
    return found.reshape(len(images), math.prod(images.shape[1:-2]) * found.shape[1], *found.shape[2:])


@dataclass(frozen=True)
class Scattering:
    """The transform of images of one side."""

    side: int
    scales: int = 2
    angles: int = 8

    def __post_init__(self) -> None:
        for name in ("side", "scales", "angles"):
            object.__setattr__(self, name, numbers.count(getattr(self, name), name))
        if self.side % self.step or self.side < 2 * self.step:
            raise InvalidArgument(
                f"Images of side {self.side} have no grid of every {self.step}th pixel.",
                remedy=f"Pad them to a multiple of {self.step} above {self.step}, or take fewer scales.",
            )

    @property
    def step(self) -> int:
        """Pixels from one place of the grid to the next."""
        return int(2**self.scales)

    @property
    def channels(self) -> int:
        """Numbers at each place of the grid."""
        pairs = self.scales * (self.scales - 1) // 2
        return 1 + self.scales * self.angles + pairs * self.angles**2

    @property
    def grid(self) -> int:
        """Places along a side."""
        return self.side // self.step

    @property
    def padded(self) -> int:
        """The side of an image that is reflected at its edges, a step on each."""
        return self.side + 2 * self.step

    def __call__(self, images: Tensor) -> Tensor:
        """Features n × channels × grid × grid of images n × side × side."""
        if images.dim() != 3 or images.shape[1:] != (self.side, self.side):
            raise InvalidArgument(
                f"Images must be of side {self.side}.", remedy=f"Pass a tensor n × {self.side} × {self.side}."
            )
        found = torch.empty(len(images), self.channels, self.grid, self.grid)
        blank = torch.zeros(CHUNK, self.side, self.side)
        with torch.no_grad():
            for start in range(0, len(images), CHUNK):
                part = images[start : start + CHUNK].to(blank)
                filled = torch.cat([part, blank[len(part) :]])
                found[start : start + CHUNK] = self._chunk(filled)[: len(part)]
        return found

    def _chunk(self, images: Tensor) -> Tensor:
        edges = (self.step,) * 4
        padded = functional.pad(images[:, None], edges, mode="reflect")
        orders = self._orders(padded)
        return torch.cat([one for order in orders for one in order], 1)

    def _orders(self, padded: Tensor) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Channels of each order, by scale and angle of the first wavelet, then of the second."""
        first: list[Tensor] = []
        second: list[Tensor] = []
        spectrum = torch.fft.fft2(padded)
        for scale in range(self.scales):
            once = self._transformed(spectrum, 0, scale)
            first.append(self._averaged(once, scale))
            again = torch.fft.fft2(once) if scale < self.scales - 1 else once
            twice = [
                self._averaged(self._transformed(again[:, :, None], scale, other), other)
                for other in range(scale + 1, self.scales)
            ]
            second += [torch.cat(twice, 2).flatten(1, 2)] if twice else []
        return [self._averaged(padded, 0)], first, second

    def _transformed(self, spectrum: Tensor, level: int, scale: int) -> Tensor:
        """Absolute values of the wavelet transform at a scale, of what is 2^level times as coarse."""
        return torch.fft.ifft2(_product(spectrum, self._wavelets[level, scale], 2 ** (scale - level))).abs()

    def _averaged(self, values: Tensor, level: int) -> Tensor:
        """On the grid, of what is 2^level times as coarse as the image."""
        rows = self._averages[level]
        return rows @ values @ rows.T

    @cached_property
    def _wavelets(self) -> dict[tuple[int, int], Tensor]:
        turns = [math.pi * (self.angles // 2 - 1 - i) / self.angles for i in range(self.angles)]
        return {
            (level, scale): torch.stack(
                [wavelet(self.padded >> level, scale - level, turn, 4 / self.angles) for turn in turns]
            ).to(torch.complex64)
            for level in range(self.scales)
            for scale in range(level, self.scales)
        }

    @cached_property
    def _averages(self) -> list[Tensor]:
        return [self._average(level) for level in range(self.scales)]

    def _average(self, level: int) -> Tensor:
        """A round Gaussian is the product of one down and one across: this one is of one side."""
        size, step = self.padded >> level, self.step >> level
        bell = torch.fft.ifft2(average(size, self.scales - level)).real.sum(0)
        places = step * (1 + torch.arange(self.grid))
        return bell[(places[:, None] - torch.arange(size)) % size].float()


def _product(spectrum: Tensor, filters: Tensor, step: int) -> Tensor:
    """The spectrum of every step-th value of what is filtered: frequencies that become one are averaged."""
    size, found = spectrum.shape[-1] // step, None
    for down in range(0, step * size, size):
        for right in range(0, step * size, size):
            block = ..., slice(down, down + size), slice(right, right + size)
            one, other = spectrum[block], filters[block]
            found = one * other if found is None else found.addcmul_(one, other)
    assert found is not None
    return found / step**2
