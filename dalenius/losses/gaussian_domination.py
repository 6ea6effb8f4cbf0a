"""The least μ such that a loss, but for a chance s, is no easier to attack than N(μ, 1) against N(0, 1).

That is: δ(ε) ≤ s + (1 − s) δ_μ(ε) at every ε, in both directions, the profile of Gaussians that give
everything away with probability s. In x = e^ε both profiles are convex. Between two knots that of the loss
lies below its chord, and δ_μ above its tangents at the knots, whose slope is −Φ(−μ/2 − ε/μ). The chord is
below the higher of two tangents everywhere between the knots if it is at the knots and where the tangents
meet, since the difference is concave. Beyond the last knot δ ≤ s.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dalenius.losses.loose import Loose
from dalenius.losses.loss import Loss
from dalenius.losses.routes import profiles
from dalenius.profiles.cutoff import half_erfc
from dalenius.profiles.gaussian_pairs import ShiftPair
from dalenius.profiles.pair import Floats
from dalenius.profiles.profile import Profile, sample, sketch
from dalenius.profiles.rounding import floor

KNOTS = 97
"""At how many ε the two profiles are compared."""
MARGIN = 1e-11
"""More than all rounding here, relative: a few operations on numbers with fourteen digits."""
DIGITS = 5
"""The answer is a decimal with so many digits, rounded up."""
MOST_DISTANCE = 30.0
"""Gaussians further apart than this are as good as told apart."""
MOST_EPSILON = 300.0
"""A loss that reaches further is left to other measures."""


@lru_cache(maxsize=256)
def least_distance(loss: Loss, slack: Fraction) -> Fraction | None:
    """μ, to a few digits from above; None where a chance of `slack` does not cover what is infinite."""
    if loss.directions() is None or not slack > 0:
        return None
    both = profiles(loss)
    top = _far(loss, slack / 2)
    if not top < MOST_EPSILON:
        return None
    at = np.linspace(0.0, max(top, 1e-9), KNOTS)
    chance = floor(slack)
    most = np.maximum.reduce([_most(profile, at, chance / 4) for profile in both])
    if not most[-1] <= chance:
        return None
    if not dominates(MOST_DISTANCE, at, most, chance):
        return None
    low, high = _bracket(at, most, chance)
    while high - low > 10.0**-DIGITS * high:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if dominates(middle, at, most, chance) else (middle, high)
    return Fraction(high)


@lru_cache(maxsize=256)
def likely_distance(loss: Loss, slack: Fraction) -> Fraction:
    """Return about that μ: that of Gaussians with the same ε at a δ of `slack`; 30 where there is none."""
    top = _far(loss, slack) if loss.directions() is not None and slack > 0 else math.inf
    if not top < MOST_EPSILON:
        return Fraction(MOST_DISTANCE)
    low, high = 1e-6, MOST_DISTANCE
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        above = ShiftPair(Fraction(middle)).hockey(np.array([top]))[1][0] > slack
        low, high = (low, middle) if above else (middle, high)
    return Fraction(high)


def _far(loss: Loss, slack: Fraction) -> float:
    """Return an ε from which on δ is at most `slack`."""
    profile = profiles(loss)[0]
    return profile.reach(floor(slack)) if isinstance(profile, Loose) else loss.epsilon(slack).upper


def _most(profile: Profile, knots: Floats, negligible: float) -> Floats:
    """At least δ at the knots, looked at until it is negligible: it only falls."""
    if isinstance(profile, Loose):
        inside, read = knots <= profile.reach(negligible), sketch
    else:
        inside, read = knots <= profile.epsilon(negligible)[1], sample
    values = np.full_like(knots, negligible)
    values[inside] = read(profile, knots[inside])[1]
    return np.minimum.accumulate(values)


def _bracket(knots: Floats, most: Floats, chance: float) -> tuple[float, float]:
    """A μ that is too small, or as good as nothing, and one that is not."""
    high = 1e-6
    while not dominates(high, knots, most, chance):
        high *= 2
    return high / 2, high


def dominates(mu: float, knots: Floats, most: Floats, chance: float) -> bool:
    """Whether the chain of chords through `most` lies below the profile of leaking Gaussians."""
    least = ShiftPair(Fraction(mu)).hockey(knots)[0]
    profile = (chance + (1 - chance) * least) * (1 - MARGIN)
    if np.any(most > profile):
        return False
    slope = (1 - chance) * half_erfc((mu / 2 + knots / mu) * math.sqrt(0.5))
    flat, steep = slope[1:] * (1 - MARGIN), slope[:-1] * (1 + MARGIN)
    gap = np.exp(knots[:-1]) * np.expm1(np.diff(knots))
    # From the left a fall of `steep`, from the right a rise of `flat`: they meet `along` the cell.
    with np.errstate(divide="ignore", invalid="ignore"):
        along = (profile[:-1] - profile[1:] - flat * gap) / ((steep - flat) * gap)
    along = np.clip(np.nan_to_num(along, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    from_left = profile[:-1] - steep * gap * along
    from_right = profile[1:] + flat * gap * (1 - along)
    chord = most[:-1] + (most[1:] - most[:-1]) * along
    return bool(np.all(chord <= np.maximum(from_left, from_right) * (1 - MARGIN)))
