"""How often a mechanism is run, at random, and what its loss becomes when the best run is released."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import NotSound
from dalenius.losses.concentrated import Renyi
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.selection.repeated import Repeated

DIGITS = 12
"""Decimals that a stated figure is rounded up to."""


class Runs(Repeated):
    """The law of a number of runs, as a value: how to draw it, and what the best of them costs."""

    @property
    @abstractmethod
    def none(self) -> float:
        """P(K = 0)."""

    @abstractmethod
    def draw(self, size: int) -> NDArray[np.int64]:
        """Independent numbers of runs."""

    @abstractmethod
    def greatest(self, masses: NDArray[np.float64]) -> NDArray[np.float64]:
        """The law of the greatest of K draws from increasing outcomes of these masses, where K > 0."""


def price(base: Loss, runs: Runs, delta: Fraction, alpha: Fraction | None) -> Loss:
    """The loss of releasing the best run: pure where delta is 0, at one δ, or Rényi of one order."""
    if alpha is not None:
        return Renyi(alpha, epsilon=_divergence(base, runs, alpha), relation=base.relation)
    total = grown(base, runs, delta)
    if delta == 0:
        return Pure(total, relation=base.relation)
    return Approximate(total, delta=delta, relation=base.relation)


@lru_cache(maxsize=256)
def grown(base: Loss, runs: Runs, delta: Fraction) -> Fraction:
    """The ε of the best run at δ."""
    share = delta / Fraction(runs.mean)
    once = base.epsilon(share).upper if share < 1 else 0.0
    if once == math.inf:
        raise NotSound(
            "The base has no such guarantee at this delta.",
            remedy="Use a base that has one, or state delta above 0, or a Rényi order alpha.",
        )
    return _up(Fraction(once) + runs.shift(base))


@lru_cache(maxsize=256)
def _divergence(base: Loss, runs: Runs, alpha: Fraction) -> Fraction:
    if base.renyi(alpha).upper == math.inf:
        raise NotSound(
            "The base has no Rényi guarantee of this order.",
            remedy="Choose a smaller alpha, or a base such as Gaussian or Laplace.",
        )
    return _up(Fraction(runs.renyi(base, alpha)))


def _up(number: Fraction) -> Fraction:
    return Fraction(math.ceil(number * 10**DIGITS), 10**DIGITS)
