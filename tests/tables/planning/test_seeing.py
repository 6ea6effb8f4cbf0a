"""What stands out of a noisy histogram does so by the law of the noise as it is: rounded to whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dalenius.tables.planning.seeing import SURE, WINDOWS, Blur


def tails(scale: float, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of rounded Gaussians, and with which probability each is reached: the law itself, convolved."""
    most = max(4, int(np.ceil(14 * scale + 2)))
    beyond = norm.sf((np.arange(most + 2) - 0.5) / scale)
    upper = beyond[1:-1] - beyond[2:]
    one = np.concatenate([upper[::-1], [1 - 2 * beyond[1]], upper])
    law = np.array([1.0])
    for _ in range(cells):
        law = np.convolve(law, one)
    return np.arange(-cells * most, cells * most + 1), np.cumsum(law[::-1])[::-1]


@pytest.mark.parametrize("width", WINDOWS)
@pytest.mark.parametrize("scale", [0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.8, 1, 2, 12])
def test_noise_stands_out_as_seldom_as_is_said(scale: float, width: int) -> None:
    """Exactly so in a single cell; in wider windows by less than one deviation more than is said."""
    cells = width
    sums, reached = tails(scale, cells)
    standing = Blur(scale, heavy=False, step=1.0).standing(sums.astype(float), np.full(len(sums), cells))
    some = (standing > SURE) & (standing < 8) & (reached > 1e-15)
    said, true = standing[some], norm.isf(reached[some])
    assert (said - true <= (1e-6 if cells == 1 else 1.0)).all()
    # Nor is much overlooked: what is rarer than 1 in 10^12 stands out.
    assert (standing[reached < norm.sf(7)] > SURE + 1).all()
