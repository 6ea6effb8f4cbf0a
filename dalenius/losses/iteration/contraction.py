"""How cheaply two runs of a contraction can be led together: the sum of squares behind `iteration`.

Distances are in units of the noise of one step. The runs start `z` apart; from then on the first `width`
steps of each `cycle` add s to their distance, q times before a last time, which `after` more steps follow;
every step first multiplies the distance by c. What is taken off at step k is aₖ, at most what is there, and
nothing is left at the end. Let Vₖ = Σ_{i≤k} c^{−2i}, Sₖ = z + Σ_{i≤k} c^{−i}sᵢ, Bₖ = Σ_{i≤k} c^{−i}aᵢ. Then
Bₖ ≤ Sₖ, with = at the end, and Σaₖ² = Σ(ΔB)²/ΔV is least where B is the greatest convex function of V below
S with B = 0 at V = 0: one straight piece where that is possible, else two that meet before the last
additions. Two always serve: S is concave within a cycle, as are its values at the starts of cycles. Either is
a valid choice of aₖ, so the result holds whichever is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dalenius.arithmetic import arb
from dalenius.profiles.balls import ball


def geometric(base: Fraction, power: int, count: int) -> arb:
    """1 + b + … + b^{count−1}, b = base^power, for base in [0, 1]."""
    if base == 1:
        return ball(Fraction(count))
    each = ball(base) ** power
    return (1 - each**count) / (1 - each)


@dataclass(frozen=True)
class Course:
    """Runs that contract by `factor` c at each step."""

    factor: Fraction
    cycle: int
    after: int
    width: int = 1

    def squared(self, before: int, start: Fraction, shift: Fraction) -> arb:
        """Σaₖ² for q = `before`, z = `start` and s = `shift`."""
        c, steps, rest = ball(self.factor), before * self.cycle, self.after + self.width
        once = ball(shift) * geometric(self.factor, 1, self.width)
        earlier = c ** (self.cycle - self.width) * geometric(self.factor, self.cycle, before)
        left, last = c**steps * ball(start) + once * earlier, c**self.after * once
        early, late = geometric(self.factor, 2, steps), geometric(self.factor, 2, rest)
        # One piece must not take off more than is there before the last additions.
        if before == 0 or left * late > c**rest * last * early:
            total = c**rest * left + last
            return total**2 / (late + c ** (2 * rest) * early)
        return left**2 / early + last**2 / late

    def least(self, most: int, far: Fraction | None, shift: Fraction) -> arb:
        """Σaₖ² with q = `most` from a start at one point, or with a later start, `far` apart."""
        first = self.squared(most, Fraction(0), shift)
        if far is None:
            return first
        later = self.squared(self.best(most, far, shift), far, shift)
        return later if later < first else first

    def best(self, most: int, start: Fraction, shift: Fraction) -> int:
        """The q up to `most` of least sum, as far as looking at powers of two and between them finds it."""

        def cost(before: int) -> float:
            return float(self.squared(before, start, shift))

        powers: list[int] = [0, *(2**k for k in range(most.bit_length())), most]
        near = min(powers, key=cost)
        low, high = near // 2, min(2 * near, most)
        while high - low > 2:
            third = (high - low) // 3
            a, b = low + third, high - third
            low, high = (low, b) if cost(a) <= cost(b) else (a, high)
        found: list[int] = [near, *range(low, high + 1)]
        return min(found, key=cost)


def root(squared: arb, digits: int, *, up: bool) -> Fraction:
    """The square root, rounded at one part in 2^digits."""
    value = squared.sqrt()
    end = value.upper() if up else value.lower()
    mantissa, exponent = (int(part) for part in end.man_exp())
    if not mantissa:
        return Fraction(0)
    spare = max(abs(mantissa).bit_length() - digits, 0)
    kept = -(-mantissa >> spare) if up else mantissa >> spare
    return Fraction(kept) * Fraction(2) ** (exponent + spare)
