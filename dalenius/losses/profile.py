"""The protocol every evaluation route answers to: a certified privacy profile δ(ε) of one direction."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol


class Profile(Hashable, Protocol):
    """Encloses the privacy profile of a composition in one direction."""

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε) at any finite ε (negative too)."""
        ...

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose inf{ε ≥ 0 : δ(ε) ≤ d} for every d from `delta` to the next float."""
        ...
