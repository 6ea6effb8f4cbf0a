"""Optimal composition of unequal releases, by rounding them onto a common grid.

Kairouz, Oh and Viswanath's optimum for unequal (ε_i, δ_i) is a sum over all subsets, #P-hard to
evaluate (Murtagh and Vadhan 2016): with p_i = e^{ε_i}/(1 + e^{ε_i}) and L the
sum of independent losses that are ε_i with probability p_i and −ε_i otherwise, the least ε solves

    E[(1 − e^{ε−L})₊] = 1 − (1 − δ)/Π(1 − δ_i).

Rounding every ε_i up to a multiple of a step s keeps the premises true, so the answer stays an upper
bound; and it makes L live on a grid, where its law is a product of polynomials.
How loose? If the ε_i grow by a_i ≥ 0 with Σa_i ≤ η, then Π(1 + e^{ε_i+a_i}) ≥ e^{Σa/2} Π(1 + e^{ε_i})
and each term of the subset sum at ε + Σa grows at most by e^{Σa}, so δ(ε + Σa) grows at most by
e^{Σa/2}. Hence the answer is at most the optimum at e^{−η/2}δ, plus η (same paper).

Walking down the grid l_j = l_{j−1} + 2s from the top, with A_j = P(L ≥ l_j), the profile follows
δ(l_{j−1}) = e^{−2s} δ(l_j) + (1 − e^{−2s}) A_j: positive terms only. Between grid points it is linear in e^ε.
All of it runs in balls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from dalenius.arithmetic import arb, arb_poly, workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.guarantee import Guarantee, Status, Step
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.profiles.balls import BITS, ball, lower, upper

MOST_POINTS = 2**15
"""The largest grid: some tenths of a second."""


def optimal_heterogeneous(steps: Iterable[Step], *, delta: Number, slack: Number | None = None) -> Guarantee:
    """The least ε for unequal (ε_i, δ_i), rounded up: at most the optimum at e^{−slack/2}·delta, plus slack.

    Where all ε_i share a grid that fits, nothing is rounded. Without a `slack`, the least that fits.
    """
    listed, total = tuple(steps), numbers.delta(delta)
    grid = _grid(listed, None if slack is None else numbers.positive(slack, "slack"))
    with workprec(BITS + 2 * total.denominator.bit_length()):
        left = _left(listed, total)
        epsilon = math.inf if left < 0 else _solve(listed, grid, left)
    status: Status = "upper bound" if any(step.epsilon % grid for step in listed) else "exact"
    return Guarantee("optimal_heterogeneous", epsilon, total, status, "MV 2016")


def _grid(steps: tuple[Step, ...], slack: Fraction | None) -> Fraction:
    """The step s: a common divisor of the ε_i where it fits, else slack over the number of releases."""
    weight = sum((step.count * step.epsilon for step in steps), Fraction(0))
    k = sum(step.count for step in steps if step.epsilon)
    if not k:
        return Fraction(1)
    common = Fraction(
        math.gcd(*(step.epsilon.numerator for step in steps)),
        math.lcm(*(step.epsilon.denominator for step in steps)),
    )
    if weight / common <= MOST_POINTS:
        return common
    least = k * weight / (MOST_POINTS - k) if k < MOST_POINTS else None
    if least is None or (slack is not None and slack < least):
        raise InvalidArgument(
            f"Composing {k} unequal releases needs a grid of more than {MOST_POINTS} points.",
            remedy="Ask a Loss for its epsilon instead."
            if least is None
            else f"Choose slack {float(least) * 1.001:.3g} or more.",
        )
    step = (least if slack is None else slack) / k
    heaviest = max(steps, key=lambda one: one.count * one.epsilon).epsilon
    return heaviest / math.ceil(heaviest / step)  # a little finer, so that the heaviest is not rounded


def _left(steps: tuple[Step, ...], delta: Fraction) -> float:
    """δ̃ = 1 − (1 − δ)/Π(1 − δ_i), rounded down; negative where the δ_i exceed delta."""
    if not any(step.delta for step in steps):
        return lower(ball(delta))
    kept = sum((step.count * (-ball(step.delta)).log1p() for step in steps), arb(0))
    return lower(-((-ball(delta)).log1p() - kept).expm1())


def _solve(steps: tuple[Step, ...], grid: Fraction, delta: float) -> float:
    """The least ε ≥ 0 with δ(ε) ≤ delta, rounded up."""
    law = _law(steps, grid)
    height = len(law) - 1  # the loss at index j is (2j − height)·grid
    shrink, gap = (-2 * ball(grid)).exp(), -(-2 * ball(grid)).expm1()
    mass, here = arb(0), arb(0)
    for j in range(height, -1, -1):
        if 2 * j <= height:
            return 0.0
        mass += law[j]
        below = shrink * here + gap * mass
        if not below <= delta:
            share = (arb(delta) - here) / (below - here)
            return max(0.0, upper((2 * j - height) * ball(grid) + (-share * gap).log1p()))
        here = below
    return 0.0


def _law(steps: tuple[Step, ...], grid: Fraction) -> list[arb]:
    """The probabilities of the sum of losses, from the lowest to the highest."""
    law = arb_poly([1])
    for step in steps:
        stride = math.ceil(step.epsilon / grid)
        if stride:
            high = 1 / (1 + (-ball(stride * grid)).exp())
            coins = (arb_poly([1 - high, high]) ** step.count).coeffs()
            spread = [arb(0)] * (stride * (len(coins) - 1) + 1)
            spread[::stride] = coins
            law *= arb_poly(spread)
    return law.coeffs()
