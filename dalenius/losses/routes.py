"""Which route answers for a loss: the sharpest one for what it describes.

    closed form   Gaussians alone
    leaking       any of these, but for a chance that everything is given away
    contour       Gaussian mixtures (subsampled Gaussians), with Gaussians and closed transforms
    discrete      all other pairs: see `discrete`
    loose         losses that no mechanism is known to attain, or of which only moments are known

Each profile encloses δ(ε) in one direction of the relation; the worse direction counts.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dalenius.arithmetic import arb, workprec
from dalenius.losses.loose import Loose
from dalenius.losses.loss import Loss
from dalenius.profiles.atoms import Atoms
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.closed import GaussianProfile
from dalenius.profiles.discrete import discrete_profile
from dalenius.profiles.enclosure import interval
from dalenius.profiles.gaussian_pairs import MixturePair, ShiftPair
from dalenius.profiles.leaking import LeakingProfile
from dalenius.profiles.mixture_profile import MixtureProfile
from dalenius.profiles.nodes import Part
from dalenius.profiles.pair import Pair, Transformed, Worst
from dalenius.profiles.profile import Profile

MOST_SHIFT = 16
"""Up to which shift, in standard deviations, the contour route is asked."""
LEAST_CHANCE = Fraction(1, 10**60)
"""And how likely any shift must be."""
LEAST_SEEN = Fraction(1, 10**8)
"""And how many shifts are to be expected in all: contours for fewer take much memory."""
MOST_DIGITS = 2**14
"""Up to so many binary digits the chance that releases leak is kept exactly; powers of rationals are long."""
MANY = 4
"""From so many different closed transforms on it is asked of them alone."""


@lru_cache(maxsize=512)
def profiles(loss: Loss, proof: bool = False) -> tuple[Profile, ...]:
    """One profile for each direction; with `proof`, evaluated in ball arithmetic."""
    directions = loss.directions()
    if directions is None or not loss.tight:
        return (Loose.of(loss, lambda worst: route(worst, proof)),)
    return tuple(route(worst, proof) for worst in directions)


def route(worst: Worst, proof: bool = False) -> Profile:
    """The profile of one direction."""
    rest = tuple((pair, n) for pair, n in worst if not leaks(pair))
    if rest and len(rest) < len(worst):
        together = _together([(leak(pair), n) for pair, n in worst if leaks(pair)])
        return LeakingProfile(route(rest, proof), together)
    squared, others = _split(worst)
    if not others:
        return GaussianProfile(squared)
    single = not squared and sum(n for _, n in others) == 1
    found = None if single else _contour(worst, others, squared, proof)
    return found or discrete_profile(worst)


def leaks(pair: Pair) -> bool:
    """Whether a pair tells nothing, or else everything, by a chance that is known as a rational below 1."""
    if not isinstance(pair, Atoms) or pair.exact is None or not pair.atoms:
        return False
    return pair.exact[0] == pair.exact[1] < 1 and all(atom.exact == 0 for atom in pair.atoms)


def leak(pair: Pair) -> Fraction:
    """That chance."""
    assert isinstance(pair, Atoms)
    assert pair.exact is not None
    return pair.exact[0]


def _together(leaks: list[tuple[Fraction, int]]) -> tuple[Fraction, Fraction]:
    """Enclose the chance that any release leaks, 1 − Π(1 − fᵢ): exactly where it is a short number."""
    if sum(n * chance.denominator.bit_length() for chance, n in leaks) <= MOST_DIGITS:
        exact = 1 - math.prod(((1 - chance) ** n for chance, n in leaks), start=Fraction(1))
        return exact, exact
    with workprec(BITS):
        low, high = interval(-sum((n * (-ball(chance)).log1p() for chance, n in leaks), arb(0)).expm1())
    return Fraction(max(low, 0.0)), Fraction(min(high, 1.0))


def _split(worst: Worst) -> tuple[Fraction, Worst]:
    """The Gaussians together, as one μ², and the other pairs."""
    squared = sum((n * pair.distance**2 for pair, n in worst if isinstance(pair, ShiftPair)), Fraction(0))
    return squared, tuple((pair, n) for pair, n in worst if not isinstance(pair, ShiftPair))


def _common(pair: MixturePair) -> bool:
    """Whether a mixture is within what contours are laid for."""
    (first, still), (largest, _) = pair.atoms[0], pair.atoms[-1]
    return first == 0 and largest <= MOST_SHIFT and 1 - still >= LEAST_CHANCE


def _contour(worst: Worst, others: Worst, squared: Fraction, proof: bool) -> Profile | None:
    """By contour integral, for mixtures and pairs with a closed transform; something must make it decay."""
    parts, signs, closed, seen = [], set(), [], Fraction(0)
    for pair, n in others:
        if isinstance(pair, MixturePair) and _common(pair):
            parts.append(Part(pair.part.weights, pair.part.shifts, n))
            signs.add(pair.sign)
            seen += n * (1 - pair.atoms[0][1])
        elif isinstance(pair, Transformed) and not proof:
            closed.append((pair, n))
        else:
            return None
    if len(signs) > 1 or (not parts and not squared and len(closed) < MANY) or (parts and seen < LEAST_SEEN):
        return None
    return MixtureProfile(tuple(parts), max(signs, default=1), float(squared), worst, tuple(closed), proof)
