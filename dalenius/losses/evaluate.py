"""The questions of a loss, answered by the profiles of its directions: the worse one counts."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dalenius.losses.bound import Bound
from dalenius.losses.loss import Loss
from dalenius.losses.routes import profiles
from dalenius.profiles.discrete import Capped, infinite_mass, largest_sum
from dalenius.profiles.mixture_profile import MixtureProfile
from dalenius.profiles.profile import Profile
from dalenius.profiles.rounding import ceiling, floor


def least_epsilon(
    loss: Loss, delta: Fraction, *, proof: bool = False, population: int | None = None
) -> Bound:
    """The least ε with (ε, delta)-privacy."""
    if population is not None:
        from dalenius.losses.meaning import check_delta

        check_delta(delta, population)
    return Bound(*_epsilon(loss, delta, proof), tight=loss.tight)


def least_delta(loss: Loss, epsilon: Fraction, *, proof: bool = False) -> Bound:
    """The least δ with (epsilon, δ)-privacy."""
    return Bound(*_delta(loss, epsilon, proof), tight=loss.tight)


FAR = 1e150
"""From here on δ is not followed: its value there bounds what comes after."""


@lru_cache(maxsize=4096)
def _epsilon(loss: Loss, delta: Fraction, proof: bool) -> tuple[float, float]:
    strict, low, high = floor(delta), 0.0, 0.0
    for profile in profiles(loss, proof):
        if 0 < low < math.inf and settled(profile, low, strict):
            continue
        ends = profile.epsilon(strict)
        low, high = max(low, ends[0]), max(high, ends[1])
    if high == math.inf and loss.tight and (directions := loss.directions()) is not None:
        high = min(high, max(largest_sum(worst, delta) for worst in directions))
    return min(low, high), high


@lru_cache(maxsize=4096)
def _delta(loss: Loss, epsilon: Fraction, proof: bool) -> tuple[float, float]:
    below, above = min(floor(epsilon), FAR), ceiling(epsilon)
    low = high = 0.0
    for profile in profiles(loss, proof):
        if isinstance(profile, Capped) and epsilon >= profile.top():
            # At its own ε, which may lie between two floats, a pure loss has δ = 0.
            ends = infinite_mass(profile.terms)
            low, high = max(low, ends[0]), max(high, ends[1])
            continue
        ends = profile.delta(below)
        low = max(low, ends[0] if below == above else profile.delta(above)[0] if above <= FAR else 0.0)
        high = max(high, ends[1])
    return min(low, high), high


def settled(profile: Profile, epsilon: float, delta: float) -> bool:
    """Whether this direction cannot raise the answer above ε."""
    if isinstance(profile, MixtureProfile):
        return profile.private(epsilon, delta)
    return profile.delta(epsilon)[1] <= delta
