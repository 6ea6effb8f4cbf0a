"""The contour's integrand in ball arithmetic: what `proof=True` evaluates instead of `contour.lay`.

Every number from the exact parameters to the terms is a ball that contains the truth, so no analysis
of round-off is relied on; the analytic bounds (aliasing, truncation, midpoint rule) are those of
docs/proofs/contour.md either way.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dalenius.arithmetic import acb, arb, workprec
from dalenius.profiles.arm import Arm
from dalenius.profiles.balls import ball, upper
from dalenius.profiles.contour import midpoint
from dalenius.profiles.gaussian_pairs import MixturePair
from dalenius.profiles.jumps import Jumps
from dalenius.profiles.pair import Complexes, Floats
from dalenius.profiles.window import Gap, Window

BITS = 160
"""Working precision beside one bit for each node, as turning a rectangular ball enlarges it.

Counts up to 10¹² cost 40 bits, cancellation between the two products some more.
"""

Laid = tuple[float, float, Complexes, Floats]


def lay_in_balls(
    arms: list[tuple[Arm, int]],
    *,
    pairs: list[MixturePair],
    c: float,
    step: float,
    count: int,
    squared: Fraction,
) -> Laid:
    """The same as `contour.lay`, in balls."""
    with workprec(BITS + count):
        total = [acb(1)] * count
        for (arm, times), pair in zip(arms, pairs, strict=True):
            for k, one in enumerate(_moments(arm, pair, step, count)):
                total[k] *= one**times
        return _terms(total, total[0].real.log(), c, step, squared)


def jumps_in_balls(jumps: Jumps, *, pair: MixturePair, c: float, step: float, count: int) -> Laid:
    """The same as `Jumps.lay`, in balls."""
    with workprec(BITS + count):
        bulk, more = (_moments(arm, pair, step, count) for arm in jumps.arms)
        total = [(a + b) ** jumps.times - a**jumps.times for a, b in zip(bulk, more, strict=True)]
        return _terms(total, bulk[0].real.log() * jumps.times, c, step, Fraction(0))


def _terms(total: list[acb], top: arb, c: float, step: float, squared: Fraction) -> Laid:
    """Over the kernel and over e^top, rounded with what that costs."""
    terms, errors = np.zeros(len(total), dtype=np.complex128), np.zeros(len(total))
    for k, value in enumerate(total):
        z = acb(ball(c), ball(step) * k)
        gained = (ball(squared) * (z * (z + 1) - ball(c) * (ball(c) + 1)) / 2).exp()
        terms[k], errors[k] = _rounded(value * gained / (z * (z + 1)) * (-top).exp())
    scale = top + ball(squared) * ball(c) * (ball(c) + 1) / 2
    middle = float(scale.mid())
    return middle, upper(abs(scale - arb(middle))), terms, errors


def _rounded(value: acb) -> tuple[complex, float]:
    middle = complex(float(value.real.mid()), float(value.imag.mid()))
    error = upper(abs(value - acb(middle.real, middle.imag)))
    return middle, error if error < math.inf else math.inf


def _moments(arm: Arm, pair: MixturePair, step: float, count: int) -> list[acb]:
    """∫ φ χ w^{s ± iky} at k < count: h times the sum over nodes, and the midpoint rule's error."""
    weights, turns = _nodes(arm, pair, step)
    slack = midpoint(arm, step * (count - 1), count)
    sums = []
    for k in range(count):
        radius = arb(0, float(slack[k]))
        total = acb(radius, radius)
        for j, weight in enumerate(weights):
            total += weight
            weights[j] = weight * turns[j]
        sums.append(total)
    return sums


def _nodes(arm: Arm, pair: MixturePair, step: float) -> tuple[list[acb], list[acb]]:
    """The weights h φ χ wˢ, and e^{±i·step·λ}."""
    s, sign = ball(arm.s), pair.sign
    scale = ball(arm.window.nodes.step) / (2 * arb.pi()).sqrt()
    weights, turns = [], []
    for x in map(ball, arm.window.nodes.x.tolist()):
        ratio = sum((ball(p) * (ball(a) * x - ball(a) ** 2 / 2).exp() for a, p in pair.atoms), arb(0))
        log = ratio.log()
        kept = _kept(arm.window, x)
        weights.append(acb(scale * (s * log - x * x / 2).exp() * kept))
        turns.append(acb(0, sign * ball(step) * log).exp())
    return weights, turns


def _kept(window: Window, x: arb) -> arb:
    """χ(x), or χ₂(x) − χ₁(x) for a gap."""
    cutoffs = (window.cutoff, window.lower) if isinstance(window, Gap) else (window.cutoff,)
    values = [((x - ball(cutoff.middle)) / ball(cutoff.width)).erfc() / 2 for cutoff in cutoffs]
    return values[0] - values[1] if len(values) > 1 else values[0]
