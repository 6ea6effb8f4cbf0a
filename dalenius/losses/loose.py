"""The profile of a loss whose worst pairs no mechanism is known to attain.

From above every route is valid, so the lesser bound counts: pairs where there are such, and moments. From
below the pairs say nothing; a mechanism that meets the description does (`attained`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dalenius.losses.attained import attained
from dalenius.losses.loss import Loss
from dalenius.losses.renyi import RenyiProfile
from dalenius.profiles.pair import Floats, Worst
from dalenius.profiles.profile import Profile, sample, sketch

Side = tuple[Profile, ...]
"""One profile for each direction."""
Read = Callable[[Profile, Floats], tuple[Floats, Floats]]
"""Encloses a profile at every ε of an array."""


@dataclass(frozen=True)
class Loose:
    """Upper bounds by several routes, and a lower bound by a mechanism that meets the description."""

    pairs: Side
    moments: RenyiProfile
    below: Side

    @staticmethod
    def of(loss: Loss, route: Callable[[Worst], Profile]) -> Loose:
        """The profile of a loss, `route` making that of pairs in one direction."""
        pairs, witness = loss.directions(), attained(loss)
        met = None if witness is None else witness.directions()
        return Loose(tuple(map(route, pairs or ())), RenyiProfile.of(loss), tuple(map(route, met or ())))

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        known = max((profile.delta(epsilon)[1] for profile in self.pairs), default=1.0)
        high = self.moments.least_delta(epsilon, known)
        return max((profile.delta(epsilon)[0] for profile in self.below), default=0.0), high

    def deltas(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε of an increasing array."""
        known = self._known(epsilon, sample)
        rows = zip(epsilon.tolist(), known.tolist(), strict=True)
        # From below a rough answer will do, as nothing but its width depends on it.
        return self._least(epsilon, sketch), np.array([self.moments.least_delta(*row) for row in rows])

    def sketch(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε of an increasing array, for curves."""
        known = np.minimum(self._known(epsilon, sketch), self.moments.sketch(epsilon)[1])
        return self._least(epsilon, sketch), known

    def _known(self, epsilon: Floats, read: Read) -> Floats:
        """Return what the pairs say from above."""
        above = [read(profile, epsilon)[1] for profile in self.pairs]
        return np.asarray(np.maximum.reduce(above)) if above else np.ones_like(epsilon)

    def _least(self, epsilon: Floats, read: Read) -> Floats:
        """Return what holds from below."""
        low = [read(profile, epsilon)[0] for profile in self.below]
        return np.asarray(np.maximum.reduce([np.zeros_like(epsilon), *low]))

    def reach(self, delta: float) -> float:
        """Return an ε with δ(ε) ≤ `delta`: by moments alone, where they say so."""
        far = self.moments.reach(delta)
        return far if far < math.inf else self.epsilon(delta)[1]

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε for `delta`."""
        known = max((profile.epsilon(delta)[1] for profile in self.pairs), default=math.inf)
        high = self.moments.least_epsilon(delta, known)
        return max((profile.epsilon(delta)[0] for profile in self.below), default=0.0), high
