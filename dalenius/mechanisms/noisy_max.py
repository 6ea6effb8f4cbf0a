"""Report noisy max: the candidate whose utility is greatest after discrete Laplace noise, ties at random.

Theorem (for counts and continuous noise: Dwork and Roth 2014, Section 3.3). With noise P(k) ∝ e^{−|k|g/scale}
on steps of g, let the utilities of a set A gain k whole steps on the others', G(k) be the probability that
the choice is in A, and a = e^{−g/scale}. Ties included, G(k + 1) ≤ min(G(k)/a, 1 − a(1 − G(k))). That is the
step along the discrete Laplace distribution function, so the choice costs no more than one number with the
same noise and the sensitivity `span` (see `choice`: 2Δ, or Δ where monotone): `losses.DiscreteLaplace`, hence
pure ε = span/scale. The ε is approached by a candidate far below another; the profile at δ > 0 is a bound.
Proof in docs/mechanisms/noisy_max.md.

Permute-and-flip at the same ε is nearer to the best: noisy max is for where noise is added to each utility
apart, and for comparison with other libraries.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import LEFT_OUT, Bounded, read_sensitivity
from dalenius.mechanisms.candidates import one_of_each
from dalenius.mechanisms.choice import Choice, least_scale
from dalenius.mechanisms.mechanism import Law, risk
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import MOST, Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.release import CONFIDENCE

MOST_CELLS = 2**22
"""Up to so many cells a matrix of noise, or of the law, is written out."""


@dataclass(frozen=True)
class ReportNoisyMax(Choice, kind="report_noisy_max"):
    """The greatest utility after discrete Laplace noise of `scale`, each of `sensitivity`."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    sensitivity: Bounded = Bounded()
    monotone: bool = False
    grid: Grid | None = None

    @property
    def loss(self) -> Loss:
        """That of one number with the same noise, a span away."""
        per_step = self.scale / self.step
        return DiscreteLaplace(
            per_step, sensitivity=int(self.limit * per_step), relation=self.sensitivity.relation
        )

    def draw(self, steps: Steps, size: int) -> Steps:
        """Noise on every utility; many draws share a matrix."""
        per_step, rows = self.scale / self.step, MOST_CELLS // steps.size
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
        """One candidate far below another, and nearer."""
        return self._apart(0, round(3 * self.scale / self.step))

    def probabilities(self, value: Any) -> Law | None:
        """Over the greatest value m: P(i) = Σ_m P(uᵢ+Zᵢ = m) ∫₀¹ Π_{j≠i} (P(uⱼ+Zⱼ < m) + s·P(uⱼ+Zⱼ = m)) ds.

        The integral over s breaks ties; None where the sum is too long.
        """
        steps, rate = self.steps(value), float(self.step / self.scale)
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
        rate = float(self.step / self.scale)
        rest, a = -math.expm1(-rate), math.exp(-rate)
        head = (steps + 1 / math.tanh(rate)) / rest + a / rest**2
        return math.tanh(rate / 2) ** 2 * math.exp(-rate * steps) * head * (1 + 1e-9 * (1 + rate * steps))

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        sensitivity: Sensitivity | Number,
        monotone: bool = False,
        grid: Grid | None = None,
    ) -> ReportNoisyMax:
        """The least scale with which one choice is known to be (epsilon, delta)-differentially private."""
        bound = read_sensitivity(sensitivity)
        span = ReportNoisyMax(scale=1, sensitivity=bound, monotone=monotone, grid=grid)
        steps = int(span.limit / span.step)
        scale = least_scale(
            lambda limit: DiscreteLaplace(steps / limit, sensitivity=steps),
            epsilon=epsilon,
            delta=delta,
            sensitivity=bound,
            monotone=monotone,
            grid=grid,
        )
        return ReportNoisyMax(scale=scale, sensitivity=bound, monotone=monotone, grid=grid)


def _under(values: Steps, rate: float) -> NDArray[np.float64]:
    """P(Z < k) of the discrete Laplace law."""
    tails = np.exp(-rate * np.abs(np.where(values > 0, values, values - 1))) / (1 + math.exp(-rate))
    return np.where(values > 0, 1 - tails, tails)
