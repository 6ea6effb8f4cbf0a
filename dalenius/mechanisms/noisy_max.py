"""Report noisy max: the candidate whose utility is greatest after discrete Laplace noise, ties at random.

Theorem (for counts and continuous noise: Dwork and Roth 2014, Section 3.3). With noise P(k) ∝ e^{−|k|g/scale}
on steps of g, let the utilities of a set A gain k whole steps on the others', G(k) be the probability that
the choice is in A, and a = e^{−g/scale}. Ties included, G(k + 1) ≤ min(G(k)/a, 1 − a(1 − G(k))). That is the
step along the discrete Laplace distribution function, so the choice costs no more than one number with the
same noise and the sensitivity `span` (see `choice`: 2Δ, or Δ where monotone): `losses.DiscreteLaplace`, hence
pure ε = span/scale. The ε is approached as candidates tie with one more: the greatest of n noises is negative
with probability below 2^{−n}, and above 0 the noise of one more falls off by e^{−g/scale} at every step. The
profile at δ > 0 is a bound. Proof in docs/mechanisms/noisy_max.md.

Permute-and-flip at the same ε is nearer to the best: noisy max is for where noise is added to each utility
apart, and for comparison with other libraries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.loss import Loss
from dalenius.mechanisms.candidates import one_of_each
from dalenius.mechanisms.choice import OneChoice
from dalenius.mechanisms.mechanism import Law, risk
from dalenius.mechanisms.step_noise import LEFT_OUT
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import MOST, Steps
from dalenius.privacy.unit import Relation
from dalenius.release import CONFIDENCE

MOST_CELLS = 2**22
"""Up to so many cells a matrix of noise, or of the law, is written out."""
TIES = 8
"""Candidates of the worst case besides one: ε is missed by less than a hundredth."""


@dataclass(frozen=True)
class ReportNoisyMax(OneChoice, kind="report_noisy_max"):
    """The greatest utility after discrete Laplace noise of `scale`, each of `sensitivity`."""

    @staticmethod
    def price(limit: Fraction, steps: int, relation: Relation = "add_remove") -> Loss:
        """That of one number with the same noise, a span away."""
        return DiscreteLaplace(steps / limit, sensitivity=steps, relation=relation)

    def draw(self, steps: Steps, size: int) -> Steps:
        """Noise on every utility; many draws share a matrix."""
        per_step, rows = 1 / self.rate, MOST_CELLS // steps.size
        if size < steps.size or rows < 1:
            return noise.noisy_max(steps, per_step, size)
        held = np.clip(steps, -MOST // 2, MOST // 2)
        parts = []
        for start in range(0, size, rows):
            count = min(rows, size - start)
            drawn = noise.discrete_laplace(per_step, count * steps.size).reshape(count, -1)
            noisy = held + np.clip(drawn, -MOST // 2, MOST // 2)
            parts.append(one_of_each(noisy == noisy.max(axis=1, keepdims=True)))
        return np.concatenate(parts)

    def worst_case(self) -> tuple[Any, Any]:
        """One candidate as good as several others, and a span below them."""
        return self._apart(*[0] * TIES, 0)

    def probabilities(self, value: Any) -> Law | None:
        """Over the greatest value m: P(i) = Σ_m P(uᵢ+Zᵢ = m) ∫₀¹ Π_{j≠i} (P(uⱼ+Zⱼ < m) + s·P(uⱼ+Zⱼ = m)) ds.

        The integral over s breaks ties; None where the sum is too long.
        """
        steps, rate = self.steps(value), float(self.rate)
        # Below the best utility by so much no maximum lies, and above it by so much it has no mass.
        reach = math.ceil((math.log(steps.size / LEFT_OUT) + 1) / rate)
        nodes, weights = np.polynomial.legendre.leggauss(steps.size // 2 + 1)
        if (2 * reach + 1) * steps.size * nodes.size > MOST_CELLS:
            return None
        noise_values = np.arange(-reach, reach + 1)[:, np.newaxis] + (int(steps.max()) - steps)
        at = math.tanh(rate / 2) * np.exp(-rate * np.abs(noise_values))
        under = _under(noise_values, rate)
        law = np.zeros(steps.size)
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            factors = under + node * at
            law += weight * (at / factors * np.exp(np.log(factors).sum(axis=1, keepdims=True))).sum(axis=0)
        return Law(tuple(range(steps.size)), law, LEFT_OUT)

    def shortfall(self, count: int, alpha: Number = 1 - CONFIDENCE) -> float:
        """How far below the best utility the choice among `count` is with probability at most `alpha`.

        One of the others must gain that much by the difference of two noises: summed over all of them.
        """
        others, chance = numbers.count(count, "count") - 1, float(risk(alpha))
        low, high = 0, 1
        while others * self._gain(high) > chance:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if others * self._gain(middle) > chance else (low, middle)
        return float(high * self.step) if others else 0.0

    def _gain(self, steps: int) -> float:
        """P(Z − Z' ≥ k) for k ≥ 0, rounded up: Σ P(Z − Z' = k), which is c²a^k (k + (1+a²)/(1−a²))."""
        rate = float(self.rate)
        rest, a = -math.expm1(-rate), math.exp(-rate)
        head = (steps + 1 / math.tanh(rate)) / rest + a / rest**2
        return math.tanh(rate / 2) ** 2 * math.exp(-rate * steps) * head * (1 + 1e-9 * (1 + rate * steps))


def _under(values: Steps, rate: float) -> NDArray[np.float64]:
    """P(Z < k) of the discrete Laplace law."""
    tails = np.exp(-rate * np.abs(np.where(values > 0, values, values - 1))) / (1 + math.exp(-rate))
    return np.where(values > 0, 1 - tails, tails)
