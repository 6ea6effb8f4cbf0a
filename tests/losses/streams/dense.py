"""Sensitivities by trying everything, for short streams."""

from __future__ import annotations

from itertools import product

import numpy as np

from dalenius.losses.streams import Participation


def by_patterns(encoder: np.ndarray, participation: Participation) -> float:
    """max over patterns of √Σ|G_ij|: exact where CᵀC ≥ 0, and never too small, whatever the dimension."""
    gram = np.abs(encoder.T @ encoder)
    patterns = participation.patterns(encoder.shape[1])
    return max(float(np.sqrt(gram[np.ix_(steps, steps)].sum())) for steps in map(list, patterns))


def by_signs(encoder: np.ndarray, participation: Participation) -> float:
    """max over patterns and signs of ‖Cu‖: what scalar contributions surely attain."""
    best = 0.0
    for steps in participation.patterns(encoder.shape[1]):
        signs = np.array(list(product([1.0, -1.0], repeat=len(steps))))
        moved = signs @ encoder[:, list(steps)].T
        best = max(best, float(np.sqrt((moved**2).sum(axis=1).max())))
    return best
