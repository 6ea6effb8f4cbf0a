"""The banded encoder with unit columns and the least root-mean-square error (Choquette-Choo et al. 2023).

Unit columns have the same sensitivity, √k, under every participation of k steps with separation ≥ bands, so
one answer serves all of these. Descent on ‖AC⁻¹‖², whose slope in C is −2·BᵀB·C⁻ᵀ with B = AC⁻¹.
"""

from __future__ import annotations

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.losses.streams.certified import central_binomials
from dalenius.privacy import numbers
from dalenius.profiles.pair import Floats

MOST_COLUMNS = 1024
"""Steps up to which every column is optimized by itself."""


def best_columns(length: int, bands: int) -> Floats:
    """Unit columns from the diagonal down, one row of the answer for each: L-BFGS from the square root."""
    from scipy.linalg import solve_triangular
    from scipy.optimize import minimize

    if length > MOST_COLUMNS:
        raise InvalidArgument(
            f"Columns are optimized one by one for at most {MOST_COLUMNS} steps.",
            remedy="Use BandedToeplitz.optimized.",
        )
    width = min(numbers.count(bands, "bands"), length)
    column, band = np.indices((length, width))
    inside = column + band < length
    row, column = (column + band)[inside], column[inside]
    start = np.where(inside, central_binomials(width)[1], 0.0)

    def loss(point: Floats) -> tuple[float, Floats]:
        entries = np.zeros((length, width))
        entries[inside] = point
        norms = np.sqrt(np.sum(entries**2, axis=1))
        unit = entries / norms[:, None]
        encoder = np.zeros((length, length))
        encoder[row, column] = unit[inside]
        decoder = np.tril(solve_triangular(encoder, np.tri(length).T, trans="T", lower=True).T)
        slopes = np.zeros((length, width))
        slopes[inside] = -2 * solve_triangular(encoder, decoder.T @ decoder, lower=True).T[row, column]
        slopes = (slopes - unit * np.sum(slopes * unit, axis=1)[:, None]) / norms[:, None]
        return float(np.sum(decoder**2)) / length, slopes[inside] / length

    found = minimize(loss, start[inside], jac=True, method="L-BFGS-B", options={"maxiter": 300})
    best = np.zeros((length, width))
    best[inside] = found.x
    columns: Floats = best / np.sqrt(np.sum(best**2, axis=1))[:, None]
    return columns
