"""What of a noisy histogram is more than noise.

A histogram of units has few bins that hold anyone and many that hold none. A window of bins counts as seen
when its sum stands out of its noise by more than a threshold that grows with how far off the window lies, as
a false sighting there would cost the most: first how far from the bin where anybody may be expected, then how
far from the one that holds most. Single bins come first, then windows of 2, 4 and 8 among the bins
that are left, for which fewer units a bin suffice. Where nothing is seen at all, the window that stands out
most is taken if it stands out somewhat. Everything here is post-processing of the noisy counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.planning.deviations import Floats, gaussian_reach, laplace_reach

Mask = NDArray[np.bool_]

WINDOWS = (1, 2, 4, 8)
SURE, LIKELY = 3.0, 2.5
"""How far a window at the nearest place must stand out."""
SHORTLY, BESIDE = 6, 2.25
"""So many bins behind the last that stands out another does if it stands out so far."""
FAR = 8.0
"""How far from the bin that holds most the threshold has grown by one standard deviation."""


@dataclass(frozen=True)
class Blur:
    """The noise of each bin: its scale, whether it is Laplace's, of heavier tails, and its lattice.

    `scale` is the standard deviation of the noise before it is rounded; `step` the lattice that it is on.
    """

    scale: float
    heavy: bool
    step: float

    def standing(self, sums: Floats, cells: Floats) -> Floats:
        """Return how far sums of bins stand out, in deviations of a Gaussian that is as seldom so large.

        A large sum of Laplace noise is mostly one large term: P(sum > x) is about e^{−√2·x/scale}. Gaussian
        noise is rounded (`_rounded`), which counts where its scale is not well above the lattice's step.
        """
        if not self.heavy:
            return self._rounded(sums, np.maximum(cells, 1.0))
        plain = sums / (self.scale * np.sqrt(np.maximum(cells, 1.0)))
        alone = np.sqrt(2 * math.sqrt(2) * np.maximum(sums, 0.0) / self.scale)
        return np.asarray(np.minimum(plain, alone))

    def reach(self, coefficients: Floats, alpha: float) -> Floats:
        """Return what Σ coefficient · noise exceeds with probability at most alpha, a column for each sum."""
        if self.heavy:
            # Of noise in whole steps.
            return laplace_reach(coefficients, self.scale / math.sqrt(2), alpha)
        return gaussian_reach(coefficients, self.scale, self.step, alpha)

    def _rounded(self, sums: Floats, cells: Floats) -> Floats:
        """Return the standing of sums of rounded Gaussian noise.

        One rounded Gaussian reaches k steps with P = Φ(−(k − ½)·step/scale), exactly. n of them reach a sum s
        most easily with s/m each in m = min(n, s) bins, P ≈ Φ(−(s − m/2)/(√m·scale)), which tells where the
        scale is small; where it is large their sum is a rounded Gaussian of variance n·(scale² + step²/12).
        The larger of the two standings is taken: each falls far short where the other one holds.
        """
        half = self.step / 2
        few = np.clip(sums / self.step, 1.0, cells)
        apart = (sums - half * few) / (self.scale * np.sqrt(few))
        together = (sums - half) / np.sqrt(cells * (self.scale**2 + self.step**2 / 12))
        return np.asarray(np.maximum(apart, together))


def seen(counts: Floats, blur: Blur, places: Floats, possible: Mask, line: Floats) -> Mask:
    """Return which bins hold more than noise; what is near the bin that holds most stands out sooner.

    Args:
        counts: The noisy counts.
        blur: Their noise.
        places: How far off each bin lies, in deviations by which more must stand out.
        possible: Which bins can hold anyone at all.
        line: Where bins lie, by which they are near to each other.
    """
    found = _seen(counts, blur, places, possible)
    if not found.any():
        return _likeliest(counts, blur, places, possible)
    most = int(np.argmax(np.where(found, counts, -np.inf)))
    return _seen(counts, blur, np.abs(line - line[most]) / FAR, possible, nearest=True)


def _seen(counts: Floats, blur: Blur, places: Floats, possible: Mask, *, nearest: bool = False) -> Mask:
    """Return the bins of windows that stand out, by the farthest of their places, or the nearest."""
    free = possible.copy()
    found = np.zeros_like(possible)
    for width in WINDOWS:
        standing = _standing(counts, blur, free, width)
        far = -_greatest(-places, width) if nearest else _greatest(places, width)
        clear = np.flatnonzero(standing > SURE + far)
        for index in clear[np.argsort(-standing[clear], kind="stable")].tolist():
            _take(found, free, index, width)
    return found


def outermost(counts: Floats, blur: Blur, clear: Mask) -> int:
    """Return the last bin that stands out; shortly behind others, less is enough."""
    last = int(np.max(np.nonzero(clear)[0]))
    while True:
        near = counts[last + 1 : last + 1 + SHORTLY]
        beside = np.flatnonzero(blur.standing(near, np.ones(len(near))) > BESIDE)
        if not beside.size:
            return last
        last += 1 + int(beside[-1])


def _take(found: Mask, free: Mask, index: int, width: int) -> None:
    """Take a window with those of its bins that no narrower one has."""
    window = slice(index, index + width)
    found[window] |= free[window]
    free[window] = False


def _likeliest(counts: Floats, blur: Blur, places: Floats, possible: Mask) -> Mask:
    """Return the window that stands out most against a lower threshold, if one does."""
    found, best = np.zeros_like(possible), 0.0
    for width in WINDOWS:
        above = _standing(counts, blur, possible, width) - LIKELY - 2 * _greatest(places, width)
        index = int(np.argmax(above))
        if above[index] > best:
            found, best = np.zeros_like(possible), float(above[index])
            _take(found, possible.copy(), index, width)
    return found


def _standing(counts: Floats, blur: Blur, free: Mask, width: int) -> Floats:
    """Return how far each window stands out."""
    return blur.standing(_sums(np.where(free, counts, 0.0), width), _sums(free.astype(np.float64), width))


def _windows(row: Floats, width: int) -> Floats:
    """Return the window that begins at each bin, with the last bin behind the end."""
    padded = np.pad(row, (0, width - 1), mode="edge")
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, width))


def _sums(row: Floats, width: int) -> Floats:
    padded = np.pad(row, (0, width - 1))
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, width).sum(axis=1))


def _greatest(places: Floats, width: int) -> Floats:
    return np.asarray(_windows(places, width).max(axis=1))
