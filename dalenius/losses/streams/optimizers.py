"""Encoders with small errors, found numerically: public constants, only their sensitivity is certified.

`best_buffers` minimises the largest error factor over (θ, ω) (Dvijotham et al. 2024), `best_toeplitz` the
root-mean-square one over banded Toeplitz encoders (McKenna 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dalenius.losses.streams.buffered import inverse
from dalenius.losses.streams.certified import central_binomials, repeated
from dalenius.losses.streams.participation import Participation
from dalenius.losses.streams.toeplitz import prefix_sums_of_inverse
from dalenius.privacy import numbers
from dalenius.profiles.pair import Floats

MOST_BUFFERS = 8
SPREADS = (0.5, 0.8, 1.0)
"""Where the search for buffers starts: how far the logarithms of 1/(1 − θ) reach, as a part of log n."""
Objective = Callable[[Floats], float]


def best_buffers(
    length: int, buffers: int, participation: Participation | None
) -> tuple[list[float], list[float]]:
    """Decays and scales: a descent in the logarithms of 1 − θ and ω, from several starts."""
    from scipy.optimize import minimize

    count = numbers.count(buffers, "buffers", most=MOST_BUFFERS)
    if length < 2:
        return [0.0], [0.0]

    def loss(point: Floats) -> float:
        decays, scales = -np.expm1(-np.abs(point[:count])), np.exp(point[count:])
        if scales.sum() > 1:
            return 1e3 + float(scales.sum())
        return math.log(_squared_decoder(decays, scales, length)) + math.log(
            _squared_encoder(decays, scales, length, participation)
        )

    found = []
    for reach in SPREADS:
        gaps = math.log(length) * reach * np.arange(1, count + 1) / count
        start = np.concatenate([gaps, -gaps / 2 - 1])
        found.append(minimize(loss, start, method="BFGS", options={"gtol": 1e-8, "maxiter": 500}))
    best = min(found, key=lambda each: float(each.fun)).x
    order = np.argsort(-np.abs(best[:count]))
    decays, scales = -np.expm1(-np.abs(best[:count])), np.exp(best[count:])
    return [float(x) for x in decays[order]], [float(x) for x in scales[order]]


def _squared_decoder(decays: Floats, scales: Floats, length: int) -> float:
    """Σ b_k² in closed form: b_k = β + Σ γ_j m_j^k is a sum of geometric sequences."""
    values, weights = inverse(decays, scales)
    parts = weights / (1 - values)
    bases, factors = np.append(values, 1.0), np.append(parts, 1 - parts.sum())
    return float(factors @ _geometric(np.outer(bases, bases), length) @ factors)


def _squared_encoder(
    decays: Floats, scales: Floats, length: int, participation: Participation | None
) -> float:
    times = 1 if participation is None else participation.times(length)
    if participation is None or times == 1:
        return 1 + float(scales @ _geometric(np.outer(decays, decays), length - 1) @ scales)
    k = np.arange(length - 1, dtype=np.float64)
    column = np.concatenate([[1.0], scales @ decays[:, None] ** k])
    return float(np.sum(repeated(column, times, participation.separation, length) ** 2))


def _geometric(ratio: Floats, terms: int) -> Floats:
    """1 + r + … + r^(terms−1)."""
    near = np.abs(1 - ratio) < 1e-15
    safe = np.where(near, 0.5, ratio)
    return np.where(near, float(terms), (1 - safe**terms) / (1 - safe))


def best_toeplitz(length: int, bands: int) -> list[float]:
    """c_1, …, c_{b−1} by L-BFGS from the square root, c_0 = 1."""
    from scipy.optimize import minimize

    width = min(numbers.count(bands, "bands"), length)
    weights = np.arange(length, 0, -1) / length
    start = central_binomials(width)[1][1:]

    def loss(tail: Floats) -> tuple[float, Floats]:
        column = np.concatenate([[1.0], tail])
        with np.errstate(over="ignore", invalid="ignore"):
            decoder = prefix_sums_of_inverse(column, length)
            error, size = float(weights @ decoder**2), float(column @ column)
        if not error < 1e100:
            return 1e3, np.zeros_like(tail)
        slope = -2 * _lagged(weights * decoder, _divided(decoder, column), width) / error
        return math.log(error) + math.log(size), slope[1:] + 2 * tail / size

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return [1.0, *(float(x) for x in found.x)]


def _divided(series: Floats, column: Floats) -> Floats:
    """The power series over that of the column."""
    from scipy.signal import lfilter

    quotient: Floats = lfilter([1.0], column, series)
    return quotient


def _lagged(one: Floats, two: Floats, lags: int) -> Floats:
    """Σ_k one_{k+j}·two_k for each lag j."""
    return np.array([one[j:] @ two[: len(two) - j] for j in range(lags)])
