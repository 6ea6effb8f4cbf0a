"""The profile of a loss whose worst pairs no mechanism is known to attain.

From above every route is valid, so the lesser bound counts: pairs where there are such, and moments. From
below the pairs say nothing; a mechanism that meets the description does (`attained`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dalenius.losses.attained import attained
from dalenius.losses.loss import Loss
from dalenius.losses.renyi import RenyiProfile
from dalenius.profiles.pair import Floats, Worst
from dalenius.profiles.profile import Profile, sample

Side = tuple[Profile, ...]
"""One profile for each direction."""


@dataclass(frozen=True)
class Loose:
    """Upper bounds by several routes, and a lower bound by a mechanism that meets the description."""

    above: tuple[Side, ...]
    below: Side

    @staticmethod
    def of(loss: Loss, route: Callable[[Worst], Profile]) -> Loose:
        """The profile of a loss, `route` making that of pairs in one direction."""
        pairs, witness = loss.directions(), attained(loss)
        from_pairs = () if pairs is None else (tuple(map(route, pairs)),)
        met = None if witness is None else witness.directions()
        return Loose((*from_pairs, (RenyiProfile.of(loss),)), tuple(map(route, met or ())))

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        high = min(max(profile.delta(epsilon)[1] for profile in side) for side in self.above)
        return max((profile.delta(epsilon)[0] for profile in self.below), default=0.0), high

    def deltas(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε of an increasing array."""
        high = [np.maximum.reduce([sample(p, epsilon)[1] for p in side]) for side in self.above]
        low = [sample(profile, epsilon)[0] for profile in self.below]
        return np.maximum.reduce([np.zeros_like(epsilon), *low]), np.minimum.reduce(high)

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε for `delta`."""
        high = min(max(profile.epsilon(delta)[1] for profile in side) for side in self.above)
        return max((profile.epsilon(delta)[0] for profile in self.below), default=0.0), high
