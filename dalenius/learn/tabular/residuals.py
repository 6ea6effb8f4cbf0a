"""Residuals of the logistic model in whole numbers: how far a label is from what weights say of the row.

Margins are products of whole numbers, hence exact. A sigmoid, or for three classes and more the exponentials
of a softmax, are looked up in a table at the margin rounded down to 2^−11, from −16 to 16. So a residual is a
function of one row and of public weights alone, bit by bit, on every processor:

    two classes     y − p within ±1
    K classes       the vector 1ᵧ − p, of L1 norm 2(1 − pᵧ) ≤ 2 and L2 norm ≤ √2·(1 − pᵧ) ≤ √2
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dalenius.learn.tabular.columns import Codes
from dalenius.learn.tabular.sums import ONE, Floats, Whole
from dalenius.privacy.sensitivity import sqrt_up

FINE, FAR = 2**11, 16
"""Margins are looked up at multiples of 1/FINE, from −FAR to FAR."""
WEIGHT, MOST_WEIGHT = 2**16, 2**8
"""Weights are multiples of 1/WEIGHT, at most MOST_WEIGHT: margins of 2^13 columns stay below 2^53."""
EXACT_POWERS = 2**20

_MARGINS = np.arange(-FAR * FINE, FAR * FINE) / FINE
_SIGMOID = np.floor(ONE / (1 + np.exp(-_MARGINS)))
_POWERS = np.floor(EXACT_POWERS * np.exp(np.minimum(_MARGINS, 0)))


def norms(classes: int) -> tuple[int, Fraction]:
    """The most that the L1 and the L2 norm of a residual may be, in steps."""
    return (ONE, Fraction(ONE)) if classes == 2 else (2 * ONE, ONE * sqrt_up(Fraction(2)))


def on_grid(weights: Floats) -> Floats:
    """Weights as margins are made of them."""
    return np.clip(np.rint(weights * WEIGHT), -MOST_WEIGHT * WEIGHT, MOST_WEIGHT * WEIGHT) / WEIGHT


def residuals(rows: Whole, labels: Codes, weights: Floats) -> Whole:
    """1ᵧ − p of each row, a column for each class, or one for two classes; 0 where a label is −1."""
    margins = rows @ (weights.T * WEIGHT)
    return of_margins(np.floor(margins / (ONE * WEIGHT // FINE)), labels)


def of_margins(steps: Whole, labels: Codes) -> Whole:
    """The same from margins in whole steps of 1/FINE."""
    if steps.shape[1] == 1:
        places = np.clip(steps, -FAR * FINE, FAR * FINE - 1).astype(np.int64) + FAR * FINE
        found = (labels == 1)[:, np.newaxis] * float(ONE) - _SIGMOID[places]
    else:
        below = np.maximum(steps - steps.max(axis=1, keepdims=True), -FAR * FINE)
        powers = _POWERS[below.astype(np.int64) + FAR * FINE]
        chances = np.floor(powers * ONE / powers.sum(axis=1, keepdims=True))
        found = (labels[:, np.newaxis] == np.arange(steps.shape[1])) * float(ONE) - chances
    return np.where((labels >= 0)[:, np.newaxis], found, 0.0)
