"""Which route answers for a loss: the sharpest one for what it describes.

    closed forms     Gaussians alone; a single release
    binomial sums    one two-point pair, any number of times
    contour          Gaussian mixtures (subsampled Gaussians), with or without Gaussians
    lattice          pairs whose losses lie on one lattice
    grid             any other pairs: connect the dots, then a tilted convolution
    moments          losses of which only Rényi moments are known

Each profile encloses δ(ε) in one direction of the relation; the worse direction counts.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dalenius.losses.closed import GaussianProfile, SingleProfile
from dalenius.losses.gaussian_pairs import MixturePair, ShiftPair
from dalenius.losses.loss import Loss, Worst
from dalenius.losses.pair import Pair
from dalenius.losses.profile import Profile
from dalenius.losses.rounding import U, ceiling, floor, up


@lru_cache(maxsize=512)
def profiles(loss: Loss, proof: bool = False) -> tuple[Profile, ...]:
    """One profile for each direction; with `proof`, evaluated in ball arithmetic."""
    directions = loss.directions()
    if directions is None or not loss.tight:
        from dalenius.losses.loose import Loose

        return (Loose.of(loss, lambda worst: route(worst, proof)),)
    return tuple(route(worst, proof) for worst in directions)


def top_loss(loss: Loss) -> tuple[float, float]:
    """The largest possible loss in either direction, enclosed: the ε of δ = 0."""
    directions = loss.directions()
    if directions is None:
        return 0.0, math.inf
    ends = [_top(worst) for worst in directions]
    return max(low for low, _ in ends), max(high for _, high in ends)


def _top(worst: Worst) -> tuple[float, float]:
    """Exact where every pair knows its largest loss as a rational, else rounded up, with nothing below."""
    if any(pair.infinite_mass[0] > 0 for pair, _ in worst):
        return math.inf, math.inf
    known = [(getattr(pair, "largest", None), n) for pair, n in worst]
    largest = [each * n for each, n in known if isinstance(each, Fraction)]
    if len(largest) == len(worst):
        total = sum(largest, Fraction(0))
        return floor(max(total, Fraction(0))), ceiling(max(total, Fraction(0)))
    high = math.fsum(n * pair.support[1] for pair, n in worst)
    high = up(high * (1 + 4 * U)) if math.isfinite(high) else math.inf
    return (math.inf if high == math.inf and not any(p.infinite_mass[1] for p, _ in worst) else 0.0), max(
        high, 0.0
    )


def route(worst: Worst, proof: bool = False) -> Profile:
    """The profile of one direction."""
    squared, others = _split(worst)
    if not others:
        return GaussianProfile(squared)
    if squared == 0 and len(others) == 1:
        ((pair, count),) = others
        if count == 1:
            return SingleProfile(pair)
        found = _discrete(pair, count)
        if found is not None:
            return found
    return _contour(worst, others, squared, proof) or _sums(worst)


def _split(worst: Worst) -> tuple[Fraction, Worst]:
    """The Gaussians together, as one μ², and the other pairs."""
    squared = sum((n * pair.distance**2 for pair, n in worst if isinstance(pair, ShiftPair)), Fraction(0))
    return squared, tuple((pair, n) for pair, n in worst if not isinstance(pair, ShiftPair))


def _discrete(pair: Pair, count: int) -> Profile | None:
    from dalenius.losses.binomial import two_point

    return two_point(pair, count)


def _contour(worst: Worst, others: Worst, squared: Fraction, proof: bool) -> Profile | None:
    from dalenius.losses.mixture_profile import MixtureProfile
    from dalenius.losses.nodes import Part

    parts, signs = [], set()
    for pair, n in others:
        if not isinstance(pair, MixturePair) or pair.atoms[0][0] != 0:
            return None
        parts.append(Part(pair.part.weights, pair.part.shifts, n))
        signs.add(pair.sign)
    if len(signs) != 1:
        return None
    return MixtureProfile(tuple(parts), signs.pop(), float(squared), worst, proof)


def _sums(worst: Worst) -> Profile:
    from dalenius.losses.grid import Grid

    return Grid(worst)
