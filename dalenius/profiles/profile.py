"""The protocol every evaluation route answers to: a certified privacy profile δ(ε) of one direction."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import numpy as np

from dalenius.profiles.pair import Floats


class Profile(Hashable, Protocol):
    """Encloses the privacy profile of a composition in one direction."""

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε) at any finite ε (negative too)."""
        ...

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose inf{ε ≥ 0 : δ(ε) ≤ d} for every d from `delta` to the next float."""
        ...


def sample(profile: Profile, epsilon: Floats) -> tuple[Floats, Floats]:
    """Enclose δ at every ε of an increasing array."""
    many = getattr(profile, "deltas", None)
    if many is not None:
        low, high = many(epsilon)
        return low, high
    ends = np.array([profile.delta(float(e)) for e in epsilon])
    return ends[:, 0], ends[:, 1]


def sketch(profile: Profile, epsilon: Floats) -> tuple[Floats, Floats]:
    """Enclose δ at every ε of an increasing array, less sharply where that is faster: for curves."""
    rough = getattr(profile, "sketch", None)
    if rough is None:
        return sample(profile, epsilon)
    low, high = rough(epsilon)
    return low, high
