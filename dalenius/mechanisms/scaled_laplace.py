"""What Laplace noise costs whose scale differs between neighbours, at every ε.

Two laws have scales that are equal, or of which the lesser is q times the other. In units of the lesser scale
their centres are τ ≤ 1/c apart. With l = log(1/q) and M = l + qτ, their hockey-stick divergences at x ≥ 0 are

    same scale     1 − e^{(x−τ)/2} for x < τ;
    narrow, wide   P(I) − e^x P′(I) for x < M, I the interval from −(M − x)/(1 − q) to (M − x)/(1 + q), or,
                   where that is beyond τ, to (l − qτ − x)/(1 − q);
    wide, narrow   P(J) − e^x P′(J), J what lies beyond (x + l + τ)/(1 − q), and below −(x + l − τ)/(1 − q),
                   or, where that is positive, below (τ − l − x)/(1 + q): where log p/p′ exceeds x.

Each grows with τ. For where p > t and where e^x p′ > t are intervals about the two centres; what they share
does not grow as the centres part, so neither does ∫min(p, e^x p′). ∎ The greatest of the three, at −x by
δ(−x) = 1 − e^{−x} + e^{−x}δ(x), is joined by chords in e^x, in which every profile is convex: that belongs to
a finite pair, which dominates all of them.

Ratios may be above q by a part of 2^−39, as levels are rounded. For x ≥ τ the last divergence falls as the
ratio grows (docs/mechanisms/smooth_sensitivity.md); elsewhere a law moves by less than that part in total
variation, and M by less than 1 + τ times it, which `SLACK` covers.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from dalenius.arithmetic import arb, workprec
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate
from dalenius.losses.raw import PrivacyLossDistribution
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import ball, upper

PRECISION = 256
SLACK = Fraction(1, 2**38)
EVEN, LATE, FAR = 16, 40, 14
"""Points before and in the tail of the wide law, and how far it goes on beyond `at`, in 1/w."""
MOST = 200
DIGITS, FINEST = 14, 3
"""Decimals beyond those of the least probability that matters, and of the least distance of points."""
Point = tuple[Fraction, Fraction, Fraction]
"""x, e^x and a δ."""


def profile(x: Fraction, scale: Fraction, ratio: Fraction) -> arb:
    """The greatest of the three divergences, with slack."""
    q, at, far, less = ball(ratio), ball(x), 1 / ball(scale), -ball(ratio).log()
    found = ball(0)
    if x < 1 / scale:
        found = found.max(1 - ((at - far) / 2).exp())
    found = found.max(_wide_narrow(at, q, far, less))
    if at < less + q * far:
        found = found.max(_narrow_wide(at, q, far, less))
    return found if x > top(scale, ratio) else found + ball(SLACK) * (1 + at.exp())


def top(scale: Fraction, ratio: Fraction) -> Fraction:
    """Beyond it only the tails of the wide law tell anything."""
    wide = Fraction(upper(-ball(ratio).log() + ball(ratio / scale)))
    return max(wide, 1 / scale) + SLACK * (1 + 1 / scale)


def _narrow_wide(x: arb, q: arb, far: arb, less: arb) -> arb:
    rest = less + q * far - x
    left, right = -rest / (1 - q), rest / (1 + q)
    if right < far:
        wide = (-q * (far - right)).exp() - (-q * (far - left)).exp()
    else:
        right = (less - q * far - x) / (1 - q)
        wide = 2 - (-q * (right - far)).exp() - (-q * (far - left)).exp()
    return 1 - left.exp() / 2 - (-right).exp() / 2 - x.exp() * wide / 2


def _wide_narrow(x: arb, q: arb, far: arb, less: arb) -> arb:
    end = (x + less + far) / (1 - q)
    tail = (-q * end).exp() / 2 - x.exp() * (far - end).exp() / 2
    if x + less >= far:
        left = -(x + less - far) / (1 - q)
        return tail + (q * left).exp() / 2 - x.exp() * (left - far).exp() / 2
    right = (far - less - x) / (1 + q)
    return tail + 1 - (-q * right).exp() / 2 - x.exp() * (right - far).exp() / 2


@lru_cache(maxsize=256)
def dominating(scale: Fraction, ratio: Fraction, at: Fraction, failure: Fraction, relation: Relation) -> Loss:
    """A loss no less than that of any such noise, of which a δ of `failure` is known at `at`.

    Where its points would go beyond MOST, nothing else is claimed.
    """
    if ratio == 1:
        return Laplace(scale, relation=relation)
    if at + FAR * (1 - ratio) / ratio > MOST:
        return Approximate(at, delta=failure, relation=relation)
    with workprec(PRECISION):
        points = _points(scale, ratio, at)
        # A little more than needed, so that no height has millions of digits.
        heights = [
            failure if x == at else _rational(profile(x, scale, ratio) + ball(failure / 10**6))
            for x in points
        ]
        ups = [_middle(ball(x).exp()) for x in points]
        # What holds for the reverse holds at −x: 1 − e^{−x} + e^{−x}·δ(x).
        below = [(-x, 1 / u, 1 - (1 - h) / u) for x, u, h in zip(points, ups, heights, strict=True) if x]
        curve = sorted([*below, *zip(points, ups, heights, strict=True)])
    # What rounding leaves counts as infinite loss.
    losses, masses = _atoms(curve, 10 ** (DIGITS + _zeros(failure)))
    return PrivacyLossDistribution(losses, masses, infinite=1 - sum(masses), relation=relation)


def _points(scale: Fraction, ratio: Fraction, at: Fraction) -> list[Fraction]:
    first = top(scale, ratio)
    tail = (max(at - first, Fraction(0)) + FAR * (1 - ratio) / ratio) / LATE
    parts = 10 ** (FINEST + _zeros(tail))
    even = [Fraction(int(first * k / EVEN * parts), parts) for k in range(EVEN)]
    late = [Fraction(int((first + tail * k) * parts) + 1, parts) for k in range(LATE + 1)]
    return sorted({*even, *late, at})


def _zeros(number: Fraction) -> int:
    """About how many decimals there are before the first that is not 0."""
    return max(0, (number.denominator.bit_length() - number.numerator.bit_length()) * 3 // 10)


def _atoms(curve: list[Point], parts: int) -> tuple[list[Fraction], list[Fraction]]:
    """Outcomes of the lower convex hull of points (x, e^x, δ): at each the slope in e^x changes by its Q."""
    hull = [(Fraction(0), Fraction(0), Fraction(1))]
    for point in curve:
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    slopes = [*(_slope(a, b) for a, b in pairwise(hull)), Fraction(0)]
    masses = [
        Fraction(int(u * (after - before) * parts) - 1, parts)
        for (_, u, _), (before, after) in zip(hull[1:], pairwise(slopes), strict=True)
    ]
    kept = [(x, mass) for (x, _, _), mass in zip(hull[1:], masses, strict=True) if mass > 0]
    return [x for x, _ in kept], [mass for _, mass in kept]


def _slope(first: Point, second: Point) -> Fraction:
    return (second[2] - first[2]) / (second[1] - first[1])


def _middle(value: arb) -> Fraction:
    middle = value.mid().fmpq()
    return Fraction(int(middle.p), int(middle.q))


def _rational(value: arb) -> Fraction:
    """At least the value."""
    return _middle(value.upper())
