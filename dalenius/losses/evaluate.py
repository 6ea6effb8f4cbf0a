"""The questions of a loss, answered by the profiles of its directions: the worse one counts.

The route that a loss is given (`routes`) is the sharpest for most questions, and fails for some: δ far out on
a contour, losses too large or too many for a lattice. What is known of δ and ε in any way bounds the answer,
so that where the first answer is not narrow, others are asked, and the least upper bound counts:

    no sampling   a release on a Poisson sample is the release on all, with some outputs replaced by fresh
                  ones without the unit: post-processing, so that it costs no more
    set apart     bounded losses add their largest to ε, and samples that are next to never drawn their chance
                  to δ (`apart`)
    sums          the ε of all releases, or of equal parts, at equal shares of δ add up (Dwork and Lei 2009)
    moments       Rényi divergences hold of every loss (`renyi`)
    inversion     an ε with δ(ε) ≤ δ is an answer for δ, and a δ whose ε is no more than this one is one for ε
    smaller δ, ε  what holds at a smaller δ holds at this one, and likewise for ε
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dalenius.losses.apart import set_apart
from dalenius.losses.bound import Bound
from dalenius.losses.composition import Composition, compose
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Poisson
from dalenius.losses.renyi import RenyiProfile
from dalenius.losses.routes import MOST_SHIFT, profiles
from dalenius.profiles.discrete import Capped, infinite_mass, largest_sum
from dalenius.profiles.gaussian_pairs import MixturePair
from dalenius.profiles.mixture_profile import MixtureProfile
from dalenius.profiles.profile import Profile
from dalenius.profiles.rounding import U, ceiling, down, floor, up

FAR = 1e150
"""From here on δ is not followed: its value there bounds what comes after."""
NARROW = 0.01
"""How far apart the two sides of a tight answer may be, as a share; beyond it other routes are asked."""
LEAST_EPSILON, LEAST_DELTA = 1e-9, 1e-290
"""Below these it does not matter how far apart they are."""
HALVINGS = 8
"""How often the enclosure of an ε is halved at most."""
INVERSIONS, LEAST_ASKED, GAINED = 12, 1e-18, 0.004
"""For how many δ an ε is asked for, to answer for an ε, the least of them, and how close it is found."""
FAILED, AHEAD, LEAST_AHEAD = 0.02, 0.3, 0.01
"""From how far above an ε, as a share, smaller δ are tried; in what steps, and how far."""
MOST_BLOCKS = 16
"""Up to how many equal parts of a composition are added up."""
SMALLER = 1e-3, 1e-6
"""Smaller δ that are tried, as multiples of the one that is asked for."""
LESS = 0.9, 0.5
"""Smaller ε that are tried, likewise."""
NO_MATTER = 1e-30
"""A δ below this is not looked at in other ways."""


def least_epsilon(
    loss: Loss, delta: Fraction, *, proof: bool = False, population: int | None = None
) -> Bound:
    """The least ε with (ε, delta)-privacy."""
    if population is not None:
        from dalenius.losses.meaning import check_delta

        check_delta(delta, population)
    low, high = _epsilon(loss, delta, proof)
    return Bound(low, high, tight=loss.tight and not _is_wide(low, high, LEAST_EPSILON))


def least_delta(loss: Loss, epsilon: Fraction, *, proof: bool = False) -> Bound:
    """The least δ with (epsilon, δ)-privacy."""
    low, high = _delta(loss, epsilon, proof)
    return Bound(low, high, tight=loss.tight and not _is_wide(low, high, LEAST_DELTA))


def _is_wide(low: float, high: float, least: float) -> bool:
    """Return whether the two sides of an answer are farther apart than in a tight one, and not negligible."""
    return high > least and not high <= low * (1 + NARROW)


@lru_cache(maxsize=4096)
def _epsilon(loss: Loss, delta: Fraction, proof: bool) -> tuple[float, float]:
    low, high = _routed_epsilon(loss, delta, proof)
    strict = floor(delta)
    if not strict > 0 or not _is_wide(low, high, LEAST_EPSILON):
        return min(low, high), high
    if _asks(loss, low, high, LEAST_EPSILON) and (whole := unsampled(loss)) is not None:
        high = min(high, _epsilon(whole, delta, proof)[1])
    for part in set_apart(loss, high, strict):
        if (left := down(strict - part.delta)) > 0 and (not loss.tight or _is_wide(low, high, LEAST_EPSILON)):
            high = min(high, up(_epsilon(part.rest, Fraction(left), proof)[1] + part.epsilon))
    if isinstance(loss, Composition) and (not loss.tight or _is_wide(low, high, LEAST_EPSILON)):
        high = min(high, _added(loss, strict, proof))
        times = math.gcd(*(n for _, n in loss.terms))
        if len(loss.terms) > 1 and 1 < times <= MOST_BLOCKS:
            block = Composition(tuple((term, n // times) for term, n in loss.terms))
            equal = Fraction(floor(Fraction(strict) / times))
            high = min(high, times * _epsilon(block, equal, proof)[1] * (1 + 2 * U))
    if _asks(loss, low, high, LEAST_EPSILON) and not is_far(loss):
        high = min(high, RenyiProfile.of(loss).epsilon(strict)[1])
    if _asks(loss, low, high, LEAST_EPSILON) and 0 < high < math.inf:
        low, high = _halved(loss, strict, proof, low, high)
    for share in SMALLER:
        if _asks(loss, low, high, LEAST_EPSILON) and strict * share > 0:
            high = min(high, _routed_epsilon(loss, Fraction(strict * share), proof)[1])
    return min(low, high), high


@lru_cache(maxsize=4096)
def _delta(loss: Loss, epsilon: Fraction, proof: bool) -> tuple[float, float]:
    low, high = _routed_delta(loss, epsilon, proof)
    if high > NO_MATTER and _is_wide(low, high, LEAST_DELTA):
        below = min(floor(epsilon), FAR)
        if _asks(loss, low, high, LEAST_DELTA) and (whole := unsampled(loss)) is not None:
            high = min(high, _delta(whole, epsilon, proof)[1])
        for part in set_apart(loss, below, high):
            if (left := down(below - part.epsilon)) >= 0 and (
                not loss.tight or _is_wide(low, high, LEAST_DELTA)
            ):
                high = min(high, up(_delta(part.rest, Fraction(left), proof)[1] + part.delta))
        if _asks(loss, low, high, LEAST_DELTA) and not is_far(loss):
            high = min(high, RenyiProfile.of(loss).delta(below)[1])
        for share in LESS:
            if _asks(loss, low, high, LEAST_DELTA) and high > NO_MATTER and below * share > 0:
                high = min(high, _routed_delta(loss, Fraction(below * share), proof)[1])
        if epsilon > 0 and (not loss.tight or _is_wide(low, high, LEAST_DELTA)):
            high = _inverted(loss, epsilon, proof, max(low, LEAST_ASKED), high)
    return min(low, high), high


def _inverted(loss: Loss, epsilon: Fraction, proof: bool, low: float, high: float) -> float:
    """Return the least δ whose ε is no more than this one by a route of its own, or `high` if it is less.

    Other routes answer for δ as they do for ε.
    """
    most = floor(epsilon)
    routes: list[Callable[[float], float]] = [
        lambda delta: _routed_epsilon(loss, Fraction(delta), proof)[1] - most
    ]
    if isinstance(loss, Composition):
        routes.append(lambda delta: _added(loss, delta, proof) - most)
    for excess in routes:
        high = _lowered(excess, low, high, loss.tight, FAILED * most)
    return high


def _lowered(excess: Callable[[float], float], low: float, high: float, fails: bool, far: float) -> float:
    """Return the least δ from `low` to `high` with excess(δ) ≤ 0, or `high` where it is next to that.

    The excess is taken for a line in log δ between the ends known so far.

    Args:
        excess: By how much the ε of a δ is above the one that is asked for.
        low: A δ below the answer.
        high: A δ that is known to be enough.
        fails: Whether smaller δ are tried where the first is not enough.
        far: From which excess on they are tried anyhow, as the ε of that δ may not be known well.
    """
    known, beyond, over, stride = high * (1 - GAINED), low, math.inf, 2.0
    if not beyond < known:
        return high
    under = excess(known)
    if under > (0.0 if fails else far):
        beyond, tried = max(low, known * LEAST_AHEAD), known
        while under > 0 and (tried := tried * AHEAD) > beyond:
            under = excess(tried)
        known, beyond = tried, low
    if not under <= 0:
        return high
    for round_ in range(INVERSIONS):
        if not known > beyond * (1 + 2 * GAINED):
            break
        if beyond > low:
            share = min(max(over / (over - under), 0.1), 0.9) if over < math.inf and round_ % 2 else 0.5
            middle = beyond * (known / beyond) ** share
        else:
            middle = max(known / stride, math.sqrt(known) * math.sqrt(beyond))
            stride = min(stride**2, FAR)
        if (value := excess(middle)) <= 0:
            known, under = middle, value
        else:
            beyond, over = middle, value
    return known


def _added(loss: Composition, delta: float, proof: bool) -> float:
    """Return the sum of the ε of all releases, each at an equal share of δ."""
    share = Fraction(delta) / sum(n for _, n in loss.terms)
    each = (n * _epsilon(term, share, proof)[1] for term, n in loss.terms)
    return math.fsum(each) * (1 + 4 * U)


def _halved(loss: Loss, delta: float, proof: bool, low: float, high: float) -> tuple[float, float]:
    """Narrow an enclosure of ε by asking for δ between its ends."""
    for _ in range(HALVINGS):
        if not _is_wide(low, high, LEAST_EPSILON):
            break
        middle = math.sqrt(low * high) if low > 0 else high / 2
        ends = _routed_delta(loss, Fraction(middle), proof)
        if ends[1] <= delta:
            high = middle
        elif ends[0] > math.nextafter(delta, 1.0):
            low = middle
        else:
            break
    return low, high


def _asks(loss: Loss, low: float, high: float, least: float) -> bool:
    """Return whether another route may say more: moments are part of those of losses that are not tight.

    Of these, an ε that is infinite or a δ of 1 says nothing; `least` tells which of both is asked for.
    """
    nothing = 1.0 if least == LEAST_DELTA else math.inf
    return _is_wide(low, high, least) if loss.tight else high >= nothing


def is_far(loss: Loss) -> bool:
    """Return whether samples move so far that their moments take long, and say little."""
    pairs = [pair for worst in loss.directions() or () for pair, _ in worst]
    return any(isinstance(pair, MixturePair) and pair.atoms[-1][0] > MOST_SHIFT for pair in pairs)


def unsampled(loss: Loss) -> Loss | None:
    """Return a loss without its Poisson samples, which costs no less; None where there are none."""
    terms = loss.terms if isinstance(loss, Composition) else ((loss, 1),)
    if not any(isinstance(term, Poisson) for term, _ in terms):
        return None
    return compose((term.loss if isinstance(term, Poisson) else term) * n for term, n in terms)


@lru_cache(maxsize=4096)
def _routed_epsilon(loss: Loss, delta: Fraction, proof: bool) -> tuple[float, float]:
    """Enclose ε by the route of the loss alone."""
    strict, low, high = floor(delta), 0.0, 0.0
    for profile in profiles(loss, proof):
        if 0 < low < math.inf and settled(profile, low, strict):
            continue
        ends = profile.epsilon(strict)
        # What holds without any δ is no lower bound at a δ that is too small for a float.
        least = profile.epsilon(LEAST_DELTA)[0] if strict == 0 < delta else ends[0]
        low, high = max(low, least), max(high, ends[1])
    if high == math.inf and loss.tight and (directions := loss.directions()) is not None:
        high = min(high, max(largest_sum(worst, delta) for worst in directions))
    return min(low, high), high


def _routed_delta(loss: Loss, epsilon: Fraction, proof: bool) -> tuple[float, float]:
    """Enclose δ by the route of the loss alone."""
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
