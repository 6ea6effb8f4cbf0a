"""Caps of the sphere: how likely they are, for a uniform direction and for one on a grid, and the best.

Let ĝ be uniform on the sphere of R^d, d ≥ 2, w any direction, t = ⟨ĝ, w⟩ and B = B(½, (d − 1)/2). The cap of
w is t ≥ c, the directions within θ = arccos c of w, 0 ≤ c < 1. As t has the density (1 − t²)^{(d−3)/2}/B,

    C(θ) = P(t ≥ c) = ½·I(1 − c²; (d − 1)/2, ½),   M = E[t; t ≥ c] = (1 − c²)^{(d−1)/2}/((d − 1)B),

I the regularized incomplete beta function, and the angle has the density f(θ) = sin^{d−2}θ/B.

Theorem. Let u be s·G rounded to integers, G standard Gaussian, s = 2^20, entries cut at 11 standard
deviations, and u ≠ 0. Then the cap of any w has, of u, a probability between

    Q⁻ = C(θ) − κ·(1 − c²)^{(d−2)/2} − 2^−40   and   Q⁺ = C(θ) + κ + 2^−40,   κ = √(πd/8)/2^21.

Proof. Rounding moves s·G by √d/2 at most, and turns it by at most η = arcsin(x), x = √d/(2s‖G‖), or, where x
≥ 1, by anything up to η = π/2, as signs are kept. So u is in the cap where the direction of G is within θ − η
of w, and only where it is within θ + η. That direction is uniform, and independent of ‖G‖ and so of η. As f
rises up to π/2 ≥ θ and is the largest there, C(θ − η) ≥ C(θ) − η·f(θ), also for η > θ as C(θ) ≤ θ·f(θ), and
C(θ + η) ≤ C(θ) + η·f(π/2). Now η ≤ x·π/2, and E 1/‖G‖ = Γ((d − 1)/2)/(√2·Γ(d/2)) = B/√(2π), so that E η·f(θ)
≤ κ·sin^{d−2}θ. An entry is cut with probability 2^−90 at most, d of them with 2^−74; and u = 0 has 2^−42 at
most, so that to draw it anew adds less than 2^−41. ∎

For d = 1 the cap is the half line of w, of probability ½ exactly: u and −u are as likely, and not 0.

The best cap. With odds r times those of the cap, p/(1 − p) = r·C/(1 − C), the mean of t is m = M(r − 1)/(1 +
(r − 1)C), and its derivative by c is (m − c) times what is positive, as that of M is c times that of C. So m
rises while m > c and falls from there on: the best cut is where m = c.
"""

from __future__ import annotations

import math
from fractions import Fraction
from operator import mul

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.arithmetic import arb, workprec
from dalenius.profiles.balls import ball, lower, upper

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FINE = 20
"""Halvings of the grid that is drawn on, and of that of the cuts."""
ONE = 1 << FINE
CUT = 11
"""Standard deviations at which entries are cut."""
SPARE = Fraction(1, 2**40)
LEAST = 2.0**-15
"""No cap is chosen that is less likely: a device draws until it finds a direction in it."""
BATCH = 1 << 14
"""Numbers that are drawn at a time where few people are left."""
UNSURE = 2.0**-32
"""Where two floats are apart by a smaller part, integers decide which is the greater."""


def bounds(dimension: int, cut: Fraction) -> tuple[Fraction, Fraction]:
    """Q⁻ and Q⁺, rounded outward."""
    if dimension == 1:
        return Fraction(1, 2), Fraction(1, 2)
    with workprec(192):
        rest = ball(1 - cut**2)
        cap = rest.beta_lower(arb(dimension - 1) / 2, arb(1) / 2, regularized=True) / 2
        turned = (arb.pi() * dimension / 8).sqrt() / (2 * ONE)
        low, high = lower(cap - turned * (rest ** (dimension - 2)).sqrt()), upper(cap + turned)
    return Fraction(low) - SPARE, Fraction(high) + SPARE


def draw(cut: Fraction, inside: Flags, whole: Ints, *, at_once: int) -> Floats:
    """For each w a u in its cap, or outside, by the law of u given that.

    P(u) = P(−u), and of the two one at most is in the cap: u is drawn until either is, and that one is taken.
    Both sides are drawn, until there is one of each, so that the time it takes tells nothing of `inside`.
    Where few are left several are drawn, and the first that fits is taken.
    """
    found, lacking = np.zeros((2, *whole.shape)), np.ones((2, len(whole)), np.bool_)
    todo, aim = np.arange(len(whole)), whole.astype(np.float64)
    while todo.size:
        many = max(min(at_once, BATCH // (todo.size * aim.shape[1])), 1)
        fine = gaussians(todo.size * many, aim.shape[1]).reshape(todo.size, many, -1)
        sloped, along, size = steep(cut, fine, aim[todo])
        for side, fits in enumerate((~(sloped & (along > 0)) & (size > 0), sloped & (along != 0))):
            new, first = lacking[side, todo] & fits.any(axis=1), fits.argmax(axis=1)[:, None]
            back = (side == 1) & (np.take_along_axis(along, first, 1) < 0)
            taken = np.take_along_axis(fine, first[..., None], 1)[:, 0] * np.where(back, -1.0, 1.0)
            found[side, todo[new]] = taken[new]
            lacking[side, todo[new]] = False
        todo = todo[lacking[:, todo].any(axis=0)]
    return np.asarray(np.where(inside[:, None], found[1], found[0]))


def gaussians(many: int, dimension: int) -> Floats:
    """Vectors u, whole numbers as floats, among which may be 0."""
    fine = noise.rounded_gaussian(ONE, many * dimension).astype(np.float64)
    return np.clip(fine, -CUT * ONE, CUT * ONE, out=fine).reshape(many, dimension)


def steep(cut: Fraction, fine: Floats, aim: Floats) -> tuple[Flags, Floats, Floats]:
    """Whether b²⟨u, w⟩² ≥ a²‖u‖²‖w‖² with c = a/b, exactly; ⟨u, w⟩, exactly; and ‖u‖². Several u for each w.

    |⟨u, w⟩|, and any part of its sum, is at most ‖u‖‖w‖ ≤ 11√d·2^20 · 2^20(1 + 2^−10) < 2^52 for d ≤ 2^16, so
    floats hold it exactly, added in any order. So they do c² and ‖w‖² < 2^41. Squares of entries are below
    2^47, and ‖u‖², up to 2^63, is off by a part of d·2^−53 at most; with three more roundings the two sides
    are off by a part of less than 2^−36. Where they are not apart by 2^−32, Python's integers decide.
    """
    along = np.einsum("ijk,ik->ij", fine, aim)
    size = np.einsum("ijk,ijk->ij", fine, fine)
    square, bar = along**2, size * (np.einsum("ij,ij->i", aim, aim) * float(cut) ** 2)[:, None]
    found = square >= bar
    for i, j in np.argwhere(np.abs(square - bar) <= UNSURE * bar).tolist():
        found[i, j] = _steep(cut, fine[i, j], aim[i])
    return found, along, size


def _steep(cut: Fraction, fine: Floats, aim: Floats) -> bool:
    """In Python's integers."""
    u, w = (list(map(int, each.tolist())) for each in (fine, aim))
    along, mine, its = (sum(map(mul, *both)) for both in ((u, w), (u, u), (w, w)))
    return bool((cut.denominator * along) ** 2 >= cut.numerator**2 * mine * its)


def share(dimension: int, cut: float) -> float:
    """C, as a float."""
    from scipy.special import betaincc

    return 0.5 if dimension == 1 else 0.5 * float(betaincc(0.5, (dimension - 1) / 2, cut**2))


def pull(dimension: int, cut: float) -> float:
    """M, as a float."""
    from scipy.special import betaln

    if dimension == 1:
        return 0.5
    half = (dimension - 1) / 2
    return math.exp(half * math.log1p(-(cut**2)) - float(betaln(0.5, half))) / (2 * half)


def best(dimension: int, ratio: float) -> Fraction:
    """The best cut on the grid of those that are likely enough, rounded down; 0 where all are one."""

    def rises(step: int) -> bool:
        cut = step / ONE
        cap = share(dimension, cut)
        mean = pull(dimension, cut) * (ratio - 1) / (1 + (ratio - 1) * cap)
        return mean >= cut and cap >= LEAST

    low, high = 0, ONE if dimension > 1 else 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return Fraction(low, ONE)
