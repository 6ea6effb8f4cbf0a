"""Error bars of the mean of independent bounded terms, one of each person, none of them alike.

Let X_1, …, X_n be independent, |X_i − E X_i| ≤ b, S their sum, and v at least the mean of their variances.

Theorem (Bernstein 1924). P(|S − E S| ≥ x) ≤ 2·exp(−x²/(2(nv + bx/3))).

Theorem (Berry 1941, Esseen 1942; the constant by Shevtsova 2010). S, centred and scaled by its standard
deviation, has a distribution function within 0.56·L/√n of the normal one, where L/√n is at least Σ E|X_i − E
X_i|³/(Σ Var X_i)^{3/2}. As each cube is at most b times a variance, L = b/√(least variance) does.

Both make an interval of at least 1 − alpha, the second by the normal quantile of alpha/2 − 0.56·L/√n. Both
grow with v, so the shorter one at the true variance is within the shorter one at any bound of it. For large
n it is the normal interval, for small n half as wide again, or more where few terms are far out.

Theorem (Maurer 2003). For independent terms Q_i from 0 to c with sum Q, P(Q ≤ E Q − x) ≤ exp(−x²/(2c·E Q)).
So with probability 1 − risk, √(E Q/n) ≤ √(d + Q/n) + √d with d = c·log(1/risk)/(2n): by squares of terms
their second moments are bounded.
"""

from __future__ import annotations

import math
from typing import overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ESSEEN = 0.56
MARGIN = 1 + 1e-9
"""Far beyond the errors of floats."""
RISK = 0.1
"""The part of alpha for the variance, where reports are asked for it."""


@overload
def half_width(n: int, variance: float, reach: float, alpha: float, *, lopsided: float) -> float: ...
@overload
def half_width(n: int, variance: Floats, reach: float, alpha: float, *, lopsided: float) -> Floats: ...
def half_width(
    n: int, variance: float | Floats, reach: float, alpha: float, *, lopsided: float
) -> float | Floats:
    """Of an interval for the mean of n terms: `reach` is b, and `lopsided` L."""
    log = math.log(2 / alpha)
    shift = reach * log / 3
    bernstein = (shift + np.sqrt(shift**2 + 2 * log * n * variance)) / n
    found = np.minimum(bernstein, normal(n, variance, alpha, lopsided=lopsided)) * MARGIN
    return found if isinstance(variance, np.ndarray) else float(found)


def normal(n: int, variance: float | Floats, alpha: float, *, lopsided: float) -> float | Floats:
    """The same by the second theorem alone; infinite where n is too small for it."""
    from scipy.special import ndtri

    tail = alpha / 2 - ESSEEN * lopsided / math.sqrt(n)
    return np.sqrt(variance / n) * (-float(ndtri(tail)) if tail > 0 else math.inf) * MARGIN


def at_most(mean: float | Floats, most: float, n: int, risk: float) -> float | Floats:
    """A bound of the expected mean of n terms from 0 to `most` whose mean is `mean`, wrong with that risk."""
    d = most * math.log(1 / risk) / (2 * n)
    return (np.sqrt(d + mean) + math.sqrt(d)) ** 2 * MARGIN
