"""log ∫ φ χ wˢ, accurate also where it is close to zero: round-off in it is multiplied by the count.

Since ∫ φ (1 + s(w − 1)) over the line is 1,  ∫ φ χ wˢ = 1 + ∫ φ (χ wˢ − 1 − s(w − 1)), and the integrand is
formed from expm1 and log1p, so that it keeps its digits where w is close to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dalenius.profiles.arm import Arm
from dalenius.profiles.cutoff import Cutoff
from dalenius.profiles.enclosure import Interval
from dalenius.profiles.nodes import FUNCTION, Nodes, Part, normal_tail
from dalenius.profiles.rounding import TINY, U, exp_bound
from dalenius.profiles.window import Window

FAR = 600.0
"""Logarithms of moments from here on are bounded by convexity."""
MOST_CELLS = 1 << 17
"""The most cells of a grid; shifts so far apart that they need more hardly overlap."""
CLOSE = 1e-7
"""Error of a logarithm, as a share of it, up to which no other bound is asked for."""


def log_moment(arm: Arm) -> tuple[float, float]:
    """log ∫ φ χ wˢ over the grid, and a bound on its error: the better of two summations."""
    if not 0 < arm.mass < math.inf:
        return 0.0, math.inf
    size = abs(math.log(arm.mass))
    around = _around_one(arm) if size < 0.5 else (0.0, math.inf)
    slip = arm.mass_error + 1.01 * arm.midpoint_zero / arm.mass
    direct = (math.log(arm.mass), 1.02 * slip + FUNCTION * (1 + size)) if slip < 0.01 else (0.0, math.inf)
    return direct if direct[1] < around[1] else around


def log_most(arm: Arm) -> float:
    """At least log ∫ φ χ wˢ."""
    most = arm.mass + arm.midpoint_zero
    return math.log(most) + 2 * arm.mass_error if most > 0 else math.log(TINY)


def _around_one(arm: Arm) -> tuple[float, float]:
    """The same from the difference to 1."""
    window, s = arm.window, arm.s
    nodes, inside, outside = window.nodes, np.exp(window.log_inside), np.exp(window.log_outside)
    (v, v_error), (log, log_error) = nodes.excess, nodes.log
    density = np.exp(nodes.log_density)
    if abs(s) * float(np.abs(log).max()) > 600:
        return 0.0, math.inf
    grown = np.expm1(s * log)
    terms = density * (inside * (grown - s * v) - outside * (1 + s * v))
    error = (grown + 1) * inside * (1.01 * abs(s) * log_error + FUNCTION + 4 * U * np.abs(s * log))
    error += np.abs(grown) * FUNCTION + abs(s) * (v_error + 4 * U * np.abs(v))
    error += outside * (1 + abs(s) * (1 + np.abs(v))) * (4 * FUNCTION + 24 * U * np.abs(window.log_outside))
    error += inside * np.abs(grown - s * v) * (4 * FUNCTION + 24 * U * np.abs(window.log_inside))
    relative = U * (2 * nodes.x * nodes.x + 24) + FUNCTION + nodes.step_error
    slip = 1.01 * float(density @ error + np.abs(terms) @ relative) + _beyond(window, s)
    slip += arm.midpoint_zero
    value = math.fsum(terms)
    if 1 + value <= 2 * slip:
        return -math.inf, math.inf
    return math.log1p(value), 1.01 * slip / (1 + value - slip) + FUNCTION * abs(math.log1p(value))


def _beyond(window: Window, s: float) -> float:
    """At least ∫ φ (1 + |s| (1 + w)) outside the grid, with the midpoint rule's error on it inside."""
    left, right, size = float(window.nodes.edges[0]), float(window.nodes.edges[-1]), abs(s)
    part = window.nodes.part
    total = (1 + 2 * size) * normal_tail(-left) + (1 + size) * normal_tail(right)
    total += size * sum(p * normal_tail(right - a) for p, a in zip(part.weights, part.shifts, strict=True))
    turn = 2 * math.pi / window.nodes.step
    grown = window.line(0.0)[0]
    ends = sum(
        math.exp(-x * x / 2) * (1 + size * (2 + math.exp(float(g))))
        for x, g in ((left, grown[0]), (right, grown[-1]))
    )
    strip = math.exp(-min(700.0, turn * turn / 2)) * (1 + 2 * size)
    return 1.01 * total + 2.02 * strip + 2.02 * ends / turn


def log_lowered(window: Window, t: float) -> float:
    """At least log ∫ φ w^{−t} over the whole line for t > 0; `window` must not cut anything off."""
    value, error = log_moment(Arm(window, -t))
    part = window.nodes.part
    least = -math.log(part.weights[part.shifts.index(0.0)])
    left = normal_tail(-float(window.nodes.edges[0])) * exp_bound(t * least * (1 + 8 * U))
    lifted = exp_bound(t * max(0.0, -float(window.line(0.0)[0][-1])))
    right = normal_tail(float(window.nodes.edges[-1])) * lifted
    value = max(0.0, value)
    return value + error + (left + right) * math.exp(-value) if error < 1 else math.inf


@np.errstate(all="ignore")
def line_moment(part: Part, s: float, closed: Callable[[], Interval]) -> Interval:
    """Enclose log ∫ φ wˢ over the whole line, s > 1 or s < 0; `closed` does too, and serves past e^600.

    Beyond x, λ grows with slope at most a, the largest shift, so for s > 1 the tail is at most
    w(x)ˢφ(x)/(x − sa). The answer holds for every exponent within one rounding of s.
    """
    top = max(part.shifts)
    if (s > 0 and _largest_term(part, s) > FAR) or 0.0 not in part.shifts:
        return closed()
    last = 14.0 + max(0.0, s * top)
    step = 2.0 ** math.floor(math.log2(math.pi / 30 * min(math.pi / 2 / top, 4.0 if s > 0 else 1.0)))
    if (last + 14.0) / step > MOST_CELLS:
        return closed()
    nodes = Nodes(part, step, math.floor(-14.0 / step), math.ceil(last / step))
    window = Window(nodes, Cutoff(float(nodes.edges[-1]) + 64.0, 1.0))
    value, error = log_moment(Arm(window, s))
    right, log = float(nodes.edges[-1]), float(window.line(0.0)[0][-1])
    if s > 0:
        spill = normal_tail(-float(nodes.edges[0])) * math.exp(-max(0.0, value))
        spill += 1.001 * exp_bound(s * log - right * right / 2 - max(0.0, value)) / (right - s * top)
    else:
        least = -math.log(part.weights[part.shifts.index(0.0)])
        tails = (normal_tail(-float(nodes.edges[0])), least), (normal_tail(right), -log)
        spill = sum(tail * exp_bound(-s * max(0.0, size) * (1 + 8 * U)) for tail, size in tails)
        spill *= math.exp(-max(0.0, value))
    error += 2 * U * abs(s) * float(np.abs(window.line(0.0)[0]).max())
    if error + spill < CLOSE * value:
        return max(value - error, 0.0), value + error + spill
    least, most = closed()
    if not error + spill < math.inf:
        return least, most
    return max(least, value - error, 0.0), min(most, value + error + spill)


def _largest_term(part: Part, s: float) -> float:
    """About the logarithm of the largest term of the bound by convexity: Σ pᵢ exp(s(s − 1)aᵢ²/2)."""
    terms = zip(part.weights, part.shifts, strict=True)
    return max(math.log(p) + s * (s - 1) * a * a / 2 for p, a in terms if p > 0)
