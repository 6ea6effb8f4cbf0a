"""The exact law of the winner of a vote under rounded Gaussian noise, as floats, for audits and tests."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.mechanism import Law

FAR = 9.0
"""Standard deviations beyond which noise is left out, of probability below 1e-18 each."""
REST = 1e-12
MOST_CELLS = 2**22


def below(steps: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """P(noise < k) of the rounded Gaussian: Φ((k − ½)/scale)."""
    flat = [0.5 * math.erfc((0.5 - k) / (scale * math.sqrt(2))) for k in np.ravel(steps).tolist()]
    return np.array(flat).reshape(steps.shape)


def winner_law(counts: NDArray[np.int64], scale: Fraction) -> Law | None:
    """Over the greatest value m: P(i) = Σ_m ∫₀¹ P(i at m) Π_{j≠i} (P(j < m) + s·P(j at m)) ds.

    The integral over s decides between equal counts; None where the sum is too long.
    """
    width, reach = float(scale), math.ceil(FAR * float(scale)) + 1
    values = np.arange(int(counts.max()) - reach, int(counts.max()) + reach + 1)
    nodes, weights = np.polynomial.legendre.leggauss(counts.size // 2 + 1)
    if values.size * counts.size * nodes.size > MOST_CELLS:
        return None
    away = (values[:, None] - counts).astype(np.float64)
    under = below(away, width)
    at = below(away + 1, width) - under
    law = np.zeros(counts.size)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        factors = under + node * at
        for i in range(counts.size):
            others = np.delete(factors, i, axis=1).prod(axis=1)
            law[i] += weight * float((at[:, i] * others).sum())
    return Law(tuple(range(counts.size)), law, REST)
