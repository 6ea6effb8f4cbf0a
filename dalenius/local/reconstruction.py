"""The distribution of numbers from the reports of a square wave: a likely guess, free and without error bars.

Let f be the shares of the bins and M the law of a report by bin. The likelihood of the counts c, that is Σ
c_j·log((Mf)_j), is concave in f. Expectation maximization goes uphill from the uniform distribution:

    f_i ← f_i · Σ_j M_ji·c_j/(Mf)_j / n     (EM)

and with smoothing each step is followed by the mean of every bin with its neighbours, weights 1, 2, 1 over 4
(EMS). The steps end when the likelihood gains less than 10⁻³, or 10⁻³e^ε without smoothing, as Li and others
(2020) have it; or after 10,000. Without smoothing, noise is fitted too, and the shares are spiky; with it,
so are true spikes lowered. Neither is unbiased, and no interval is known that covers: there is none.

M is a window on a constant, so that a step costs a few sums and no matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.local.square_wave import SquareWave
from dalenius.local.windows import Window
from dalenius.mechanisms.mechanism import Mechanism
from dalenius.release import Release

Floats = NDArray[np.float64]
GAIN, MOST_STEPS = 1e-3, 10_000
NOTE = "shares of bins by expectation maximization{}: biased, without error bars"


def distribution(release: Release, *, smooth: bool = True) -> Release:
    """Shares of the bins, by what a square wave's estimator gave."""
    wave = Mechanism.from_json(release.receipt.mechanism) if release.receipt.mechanism else None
    if not isinstance(wave, SquareWave) or "count" not in release.columns:
        raise InvalidArgument(
            "This release is not of a square wave's reports.", remedy="Pass what estimator.estimate() gave."
        )
    shares = maximized(np.asarray(release["count"], np.float64), wave.window, smooth=smooth)
    edges = np.linspace(float(wave.lower), float(wave.upper), wave.bins + 1)
    columns = {"from": edges[:-1].tolist(), "to": edges[1:].tolist(), "share": shares.tolist()}
    return release.postprocess(NOTE.format(" with smoothing" if smooth else ""), columns)


def maximized(counts: Floats, window: Window, *, smooth: bool) -> Floats:
    """The shares of the places of a window, by how often each report came."""
    places, total, last = window.steps + 1, counts.sum(), -np.inf
    shares = np.full(places, 1 / places)
    enough = GAIN if smooth else GAIN * float(window.ratio)
    for _ in range(MOST_STEPS):
        chances = _seen(shares, window)
        likelihood = float(counts @ np.log(chances))
        if likelihood - last < enough:
            break
        last = likelihood
        shares = shares * _told(counts / chances, window) / total
        shares = _smoothed(shares) if smooth else shares
    return shares


def _seen(shares: Floats, window: Window) -> Floats:
    """Mf: the chance of each report."""
    padded = np.concatenate([np.zeros(window.width), np.cumsum(shares), np.zeros(window.width - 1)])
    padded[window.width + shares.size :] = padded[window.width + shares.size - 1]
    near = padded[window.width :] - padded[: -window.width]
    return np.asarray((shares.sum() + (float(window.ratio) - 1) * near) / float(window.total))


def _told(weights: Floats, window: Window) -> Floats:
    """The same, transposed: for each place the sum over reports."""
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    near = sums[window.width :] - sums[: -window.width]
    return np.asarray((sums[-1] + (float(window.ratio) - 1) * near) / float(window.total))


def _smoothed(shares: Floats) -> Floats:
    """Each with its neighbours; the ends with themselves."""
    wide = np.concatenate([shares[:1], shares, shares[-1:]])
    found = (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4
    return np.asarray(found / found.sum())
