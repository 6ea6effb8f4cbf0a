"""Batches of a shuffled data set: what one pass costs at least. No bound from above is known.

Theorem (Chua et al. 2024, "How private are DP-SGD implementations?"). A pass over T batches in a random
order, each record in one of them, adds noise of σ to the sum of each. Let one record be +1 in the one data
set and zeroed out in the other, and all others −1. Shifted, the T sums are N(2e_t, σ²I) and
N(e_t, σ²I) with t uniform in 1, …, T. The event that the largest exceeds c has the probabilities
    P = 1 − Φ(c/σ)^{T−1}·Φ((c−2)/σ),    Q = 1 − Φ(c/σ)^{T−1}·Φ((c−1)/σ),
and (ε, δ) needs P ≤ e^ε Q + δ, so ε ≥ log((P − δ)/Q) at every c. The best c is looked for in plain floats,
and the bound there is found in balls and rounded down.

The other records tell that a batch is short of one of them: in a Poisson sample, or under random
allocation, where each record is placed by itself, they do not.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.errors import NotSound
from dalenius.losses.fields import ratio
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.profiles.balls import ball, lower
from dalenius.profiles.pair import Floats

PRECISION = 256
"""Bits in which the bound is found, beside those that the smallest tail takes."""
MOST_BITS = 20_000
"""So many at most: for less noise the bound is lower than it could be."""
TRIED = 2001
"""Thresholds that are tried at each of two looks."""
DELTA = Fraction(1, 10**6)
"""The δ of the figure in an error, where none is given."""


def shuffled_batches_lower(noise_multiplier: Number, steps: int, delta: Number) -> float:
    """What ε of one pass of `steps` shuffled batches is at least, when a record may be zeroed out."""
    sigma, count = ratio(noise_multiplier, "noise_multiplier"), numbers.count(steps, "steps")
    failure = numbers.delta(delta)
    if failure == 0:
        return math.inf
    best = _best(float(sigma), count, float(failure))
    with workprec(PRECISION + min(math.ceil(4 / sigma**2), MOST_BITS)):
        first, second = (_exceeds(ball(best), ball(sigma), mean, count) for mean in (2, 1))
        gain = first - ball(failure)
        return max(lower((gain / second).log()), 0.0) if gain > 0 else 0.0


def refusal(loss: Loss, steps: int | None = None, delta: Number = DELTA) -> NotSound:
    """Why shuffled batches are refused, with the figure for a Gaussian step and so many batches a pass."""
    figure = _figure(loss, steps, numbers.delta(delta)) if isinstance(loss, Gaussian) and steps else None
    known = "no upper bound on what they cost is known, and it may be many times the Poisson figure"
    return NotSound(
        f"Shuffled batches are not Poisson samples: {figure or known} (Chua et al. 2024).",
        remedy='Use scheme="poisson", or scheme="random_allocation" for each record in one step of a pass.',
    )


def _figure(loss: Gaussian, steps: int, delta: Fraction) -> str | None:
    """The two figures for one pass, where the known one is the greater."""
    noise, count = loss.noise_multiplier, numbers.count(steps, "steps")
    least = shuffled_batches_lower(noise, count, delta)
    poisson = (Gaussian(noise).poisson(Fraction(1, count)) * count).epsilon(delta)
    if not poisson.upper < least < math.inf:
        return None
    return (
        f"with noise_multiplier={float(noise):g}, {count:,} steps a pass and delta={float(delta):g} one pass"
        f" costs epsilon {_floored(least)} or more, where the Poisson figure is {poisson.upper:.4g}"
    )


def _floored(number: float) -> str:
    """Four digits, rounded down."""
    digits = 3 - math.floor(math.log10(number))
    return f"{math.floor(number * 10.0**digits) / 10.0**digits:g}"


def _best(sigma: float, steps: int, delta: float) -> float:
    """A threshold c of about the best bound; any is valid."""
    low, high = -8 * sigma, 2 + 40 * sigma
    for _ in range(2):
        tried = np.linspace(low, high, TRIED)
        at = int(np.argmax(_rough(tried, sigma, steps, delta)))
        low, high = float(tried[max(at - 1, 0)]), float(tried[min(at + 1, TRIED - 1)])
    return float(tried[at])


def _rough(c: Floats, sigma: float, steps: int, delta: float) -> Floats:
    """log((P − δ)/Q) in floats, −∞ where P is too small."""
    from scipy.special import log_ndtr

    others = (steps - 1) * log_ndtr(c / sigma)
    first, second = (-np.expm1(others + log_ndtr((c - mean) / sigma)) for mean in (2.0, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(np.maximum(first - delta, 0.0)) - np.log(second)
    return np.where(np.isfinite(found), found, -np.inf)


def _exceeds(c: arb, sigma: arb, mean: int, steps: int) -> arb:
    """The probability that the largest of the sums exceeds c, one of them being about `mean`."""
    root = sigma * arb(2).sqrt()
    one, other = ((c - shift) / root for shift in (arb(mean), arb(0)))
    logs = (-(one.erfc() / 2)).log1p() + (steps - 1) * (-(other.erfc() / 2)).log1p()
    return -logs.expm1()
