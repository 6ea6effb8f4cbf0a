"""The samplers of laws on the integers: a parameter and a size give an int64 vector.

Each law is exact for every rational parameter. A table is made once for a parameter and kept. A value
beyond ±(2⁶³ − 1) saturates there; parameters are limited so that its probability is below e^−8191.

    >>> from dalenius import noise
    >>> noise.rounded_gaussian("10/3", 5).dtype
    dtype('int64')
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dalenius.noise.counts import Binomial, Skellam
from dalenius.noise.exponential import Geometric, Laplace
from dalenius.noise.gaussian import DiscreteGaussian, RoundedGaussian
from dalenius.noise.law import Ints, Law
from dalenius.noise.reading import MOST_SCALE, Number, hashable, positive, probability_of, whole
from dalenius.noise.sampler import Sampler

KEPT = 256
"""Tables in memory, about 0.15 MB each."""
MOST_VARIANCE = 2**64
MOST_TRIALS = 2**60


def discrete_laplace(scale: Number, size: int) -> Ints:
    """P(k) ∝ e^{−|k|/scale}."""
    return _scaled(Laplace, hashable(scale, "scale")).draw(whole(size, "size"))


def rounded_gaussian(scale: Number, size: int) -> Ints:
    """P(k) = Φ((k + ½)/scale) − Φ((k − ½)/scale): the continuous Gaussian, rounded."""
    return _scaled(RoundedGaussian, hashable(scale, "scale")).draw(whole(size, "size"))


def discrete_gaussian(scale: Number, size: int) -> Ints:
    """P(k) ∝ e^{−k²/2scale²}."""
    return _scaled(DiscreteGaussian, hashable(scale, "scale")).draw(whole(size, "size"))


def skellam(variance: Number, size: int) -> Ints:
    """P(k) = e^{−variance} I_|k|(variance): the difference of two Poisson counts."""
    return _skellam(hashable(variance, "variance")).draw(whole(size, "size"))


def geometric(probability: Number, size: int) -> Ints:
    """P(k) = (1 − probability)^k · probability: the failures before the first success."""
    sampler = _geometric(hashable(probability, "probability"))
    return _constant(0, size) if sampler is None else sampler.draw(whole(size, "size"))


def binomial(trials: int, probability: Number, size: int) -> Ints:
    """The successes in independent trials."""
    trials = whole(trials, "trials", most=MOST_TRIALS)
    sampler = _binomial(trials, hashable(probability, "probability"))
    return _constant(sampler, size) if isinstance(sampler, int) else sampler.draw(whole(size, "size"))


def _constant(value: int, size: int) -> Ints:
    return np.full(whole(size, "size"), value, np.int64)


# Tables are kept by the argument as it was given and by its type: 0.1 is not Fraction(0.1).


@lru_cache(KEPT, typed=True)
def _scaled(law: Callable[[Fraction], Law], scale: Number) -> Sampler:
    return Sampler(law(positive(scale, "scale", most=MOST_SCALE)))


@lru_cache(KEPT, typed=True)
def _skellam(variance: Number) -> Sampler:
    return Sampler(Skellam(positive(variance, "variance", most=MOST_VARIANCE)))


@lru_cache(KEPT, typed=True)
def _geometric(probability: Number) -> Sampler | None:
    chance = probability_of(probability, "probability", least=Fraction(1, MOST_SCALE))
    return None if chance == 1 else Sampler(Geometric(chance))


@lru_cache(KEPT, typed=True)
def _binomial(trials: int, probability: Number) -> Sampler | int:
    chance = probability_of(probability, "probability")
    certain = trials == 0 or chance in (0, 1)
    return int(trials * chance) if certain else Sampler(Binomial(trials, chance))
