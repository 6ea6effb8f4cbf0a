"""The contour's integrand in ball arithmetic: what `proof=True` evaluates instead of `contour.lay`.

Every number from the exact parameters to the terms is a ball that contains the truth, so no analysis
of round-off is relied on; the analytic bounds (aliasing, truncation, midpoint rule) are those of
docs/proofs/contour.md either way.
"""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
from flint import acb, arb

from dalenius.losses.arm import Arm, Complexes
from dalenius.losses.balls import ball, upper
from dalenius.losses.contour import midpoint
from dalenius.losses.gaussian_pairs import MixturePair
from dalenius.losses.pair import Floats

BITS = 160
"""Working precision: counts up to 10¹² cost 40 bits, cancellation between the two products some more."""

Laid = tuple[float, float, Complexes, Floats]


def lay_in_balls(
    arms: list[tuple[Arm, int]],
    below: tuple[Arm, int] | None,
    *,
    pairs: list[MixturePair],
    c: float,
    step: float,
    count: int,
    squared: Fraction,
) -> Laid:
    """The same as `contour.lay`, in balls."""
    with flint.ctx.workprec(BITS):
        whole = _product(arms, pairs, step, count)
        less = _product([below], pairs, step, count) if below is not None else None
        top = whole[0].real.log()
        terms, errors = np.zeros(count, dtype=np.complex128), np.zeros(count)
        for k in range(count):
            z = acb(ball(c), ball(step) * k)
            value = whole[k] if less is None else whole[k] - less[k]
            value *= (ball(squared) * (z * (z + 1) - ball(c) * (ball(c) + 1)) / 2).exp()
            terms[k], errors[k] = _rounded(value / (z * (z + 1)) * (-top).exp())
        scale = top + ball(squared) * ball(c) * (ball(c) + 1) / 2
        middle = float(scale.mid())
        return middle, upper(abs(scale - arb(middle))), terms, errors


def _rounded(value: acb) -> tuple[complex, float]:
    middle = complex(float(value.real.mid()), float(value.imag.mid()))
    error = upper(abs(value - acb(middle.real, middle.imag)))
    return middle, error if error < math.inf else math.inf


def _product(arms: list[tuple[Arm, int]], pairs: list[MixturePair], step: float, count: int) -> list[acb]:
    total = [acb(1)] * count
    for (arm, times), pair in zip(arms, pairs, strict=True):
        sums = _moments(arm, pair, step, count)
        slack = midpoint(arm, step * (count - 1), count)
        for k, one in enumerate(sums):
            radius = arb(0, float(slack[k]))
            total[k] *= (one + acb(radius, radius)) ** times
    return total


def _moments(arm: Arm, pair: MixturePair, step: float, count: int) -> list[acb]:
    """h Σ φ χ w^{s ± iky} at k < count."""
    weights, turns = _nodes(arm, pair, step)
    sums = []
    for _ in range(count):
        total = acb(0)
        for j, weight in enumerate(weights):
            total += weight
            weights[j] = weight * turns[j]
        sums.append(total)
    return sums


def _nodes(arm: Arm, pair: MixturePair, step: float) -> tuple[list[acb], list[acb]]:
    """The weights h φ χ wˢ, and e^{±i·step·λ}."""
    cutoff, s, sign = arm.window.cutoff, ball(arm.s), pair.sign
    scale = ball(arm.window.nodes.step) / (2 * arb.pi()).sqrt()
    weights, turns = [], []
    for x in map(ball, arm.window.nodes.x.tolist()):
        ratio = sum((ball(p) * (ball(a) * x - ball(a) ** 2 / 2).exp() for a, p in pair.atoms), arb(0))
        log = ratio.log()
        kept = ((x - ball(cutoff.middle)) / ball(cutoff.width)).erfc() / 2
        weights.append(acb(scale * (s * log - x * x / 2).exp() * kept))
        turns.append(acb(0, sign * ball(step) * log).exp())
    return weights, turns
