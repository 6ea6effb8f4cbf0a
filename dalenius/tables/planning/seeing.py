"""What of a noisy histogram is more than noise.

A histogram of units has few cells that hold anyone and many that hold none. A window of cells counts as seen
when its sum stands out of its noise by more than a threshold that grows with how far off the window lies, as
a false sighting there would cost the most. Single cells come first, then windows of 2 × 2 and of 4 × 4 among
the cells that are left, for which fewer units a cell suffice. Where nothing is seen at all, the window that
stands out most is taken if it stands out somewhat. Everything here is post-processing of the noisy counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WINDOWS = (1, 2, 4)
SURE, LIKELY = 3.5, 2.5
"""How far a window at the nearest place must stand out."""


@dataclass(frozen=True)
class Blur:
    """The noise of each cell: its scale, whether it is Laplace's, of heavier tails, and its lattice.

    `scale` is the standard deviation of the noise before it is rounded; `step` the lattice that it is on.
    """

    scale: float
    heavy: bool
    step: float

    def standing(self, sums: Floats, cells: Floats) -> Floats:
        """Return how far sums of cells stand out, in deviations of a Gaussian that is as seldom so large.

        A large sum of Laplace noise is mostly one large term: P(sum > x) is about e^{−√2·x/scale}. Gaussian
        noise is rounded (`_rounded`), which counts where its scale is not well above the lattice's step.
        """
        if not self.heavy:
            return self._rounded(sums, np.maximum(cells, 1.0))
        plain = sums / (self.scale * np.sqrt(np.maximum(cells, 1.0)))
        alone = np.sqrt(2 * math.sqrt(2) * np.maximum(sums, 0.0) / self.scale)
        return np.asarray(np.minimum(plain, alone))

    def _rounded(self, sums: Floats, cells: Floats) -> Floats:
        """Return the standing of sums of rounded Gaussian noise.

        One rounded Gaussian reaches k steps with P = Φ(−(k − ½)·step/scale), exactly. n of them reach a sum s
        most easily with s/m each in m = min(n, s) cells, P ≈ Φ(−(s − m/2)/(√m·scale)), which tells where the
        scale is small; where it is large their sum is a rounded Gaussian of variance n·(scale² + step²/12).
        The larger of the two standings is taken: each falls far short where the other one holds.
        """
        half = self.step / 2
        few = np.clip(sums / self.step, 1.0, cells)
        apart = (sums - half * few) / (self.scale * np.sqrt(few))
        together = (sums - half) / np.sqrt(cells * (self.scale**2 + self.step**2 / 12))
        return np.asarray(np.maximum(apart, together))


def seen(counts: Floats, blur: Blur, places: Floats, possible: Mask) -> Floats:
    """The counts of cells that hold more than noise, 0 elsewhere.

    `places` says how far off each cell lies, and `possible` which can hold anyone at all.
    """
    free = possible.copy()
    found = np.zeros_like(possible)
    for width in WINDOWS:
        standing = _standing(counts, blur, free, width)
        far = _greatest(places, width)
        for index in _by_size(standing, standing > SURE + far):
            _take(found, free, index, width, counts.shape)
    if not found.any():
        found = _likeliest(counts, blur, places, possible)
    return np.where(found, counts, 0.0)


def _take(found: Mask, free: Mask, index: tuple[int, int], width: int, shape: tuple[int, ...]) -> None:
    """A window is taken with those of its cells that no narrower one has."""
    window = tuple(slice(at, min(at + width, end)) for at, end in zip(index, shape, strict=True))
    found[window] |= free[window]
    free[window] = False


def _likeliest(counts: Floats, blur: Blur, places: Floats, possible: Mask) -> Mask:
    """The window that stands out most against a lower threshold, if one does."""
    found, best = np.zeros_like(possible), 0.0
    for width in WINDOWS:
        above = _standing(counts, blur, possible, width) - LIKELY - 2 * _greatest(places, width)
        index = np.unravel_index(int(np.argmax(above)), above.shape)
        if above[index] > best:
            found, best = np.zeros_like(possible), float(above[index])
            _take(found, possible.copy(), (int(index[0]), int(index[1])), width, counts.shape)
    return found


def _standing(counts: Floats, blur: Blur, free: Mask, width: int) -> Floats:
    """How far each window stands out."""
    return blur.standing(_sums(np.where(free, counts, 0.0), width), _sums(free.astype(np.float64), width))


def _sums(table: Floats, width: int) -> Floats:
    """Of the window that begins at each cell, cut at the ends of the table."""
    padded = np.pad(table, ((0, width - 1), (0, width - 1)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (width, width))
    return np.asarray(views.sum(axis=(2, 3)))


def _greatest(places: Floats, width: int) -> Floats:
    padded = np.pad(places, ((0, width - 1), (0, width - 1)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (width, width))
    return np.asarray(views.max(axis=(2, 3)))


def _by_size(standing: Floats, mask: Mask) -> list[tuple[int, int]]:
    """Where the mask holds, what stands out most first."""
    at = np.argwhere(mask)
    order = np.argsort(-standing[mask], kind="stable")
    return [(int(row), int(column)) for row, column in at[order]]
