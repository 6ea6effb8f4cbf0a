"""Permute-and-flip: in random order candidates flip coins of e^{(u − max u)/scale}; the first success wins.

It is the greatest of u + E, with E independent exponentials of mean `scale` (Ding, Kifer, Saghaian, Steinke,
Wang, Xiao and Zhang 2021).

Theorem (pure ε: McKenna and Sheldon 2020). Let the utilities of a set A gain t on the others', and let G(t)
be the probability that the choice is in A. Then G' ≤ min(G, 1 − G)/scale, so from 0 to `span` (see `choice`:
2Δ, or Δ where monotone) G moves no further than along the Laplace distribution function: the choice costs no
more than Laplace noise with ε = span/scale, `losses.Laplace`. Two candidates attain every point of that
profile. Proof in docs/mechanisms/permute_and_flip.md.

At the same ε it is never further from the best than the exponential mechanism, and up to twice as near in
expectation (McKenna and Sheldon 2020). But its range is not bounded by ε: two equal candidates that part by
a span have losses ε and −log(2 − e^{−ε}). Under composition the exponential mechanism is the cheaper one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius import noise
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.mechanisms.candidates import one_of_each
from dalenius.mechanisms.choice import OneChoice
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy.quantized import Steps
from dalenius.privacy.unit import Relation


@dataclass(frozen=True)
class PermuteAndFlip(OneChoice, kind="permute_and_flip"):
    """The first success of coins e^{(u − max u)/scale} in random order, each utility of `sensitivity`."""

    @staticmethod
    def price(limit: Fraction, steps: int, relation: Relation = "add_remove") -> Loss:
        """That of Laplace noise."""
        return Laplace(1 / limit, relation=relation)

    def draw(self, steps: Steps, size: int) -> Steps:
        """A uniform choice among those whose coins succeed: many draws flip candidate by candidate."""
        if size < steps.size:
            return noise.permute_and_flip(steps, self.rate, size)
        below = [int(steps.max()) - k for k in steps.tolist()]
        return one_of_each(np.column_stack([noise.bernoulli_exp(self.rate * d, size) for d in below]))

    def worst_case(self) -> tuple[Any, Any]:
        """Two equal candidates, and a span between them: the worse one's chance falls by e^ε."""
        return self._apart(0, 0)

    def probabilities(self, value: Any) -> Law:
        """P(i) = xᵢ ∫₀¹ Π_{j≠i} (1 − xⱼ + xⱼs) ds with the coins x: a polynomial, so by quadrature."""
        steps = self.steps(value)
        coins = np.exp(-(steps.max() - steps) * float(self.rate))
        nodes, weights = np.polynomial.legendre.leggauss(steps.size // 2 + 1)
        s = (nodes[:, np.newaxis] + 1) / 2
        factors = 1 - coins + coins * s
        shares = np.exp(np.log(factors).sum(axis=1, keepdims=True)) / factors
        return Law(tuple(range(steps.size)), coins * (weights / 2 @ shares))
