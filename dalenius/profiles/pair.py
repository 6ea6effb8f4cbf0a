"""What an evaluator knows of one release in one direction: its worst-case pair (P, Q).

The privacy loss is L = log dP/dQ under P. Every question about a composition is a question
about the law of a sum of such losses (Zhu, Dong and Wang 2022: dominating pairs compose).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Indices = NDArray[np.intp]


class Pair(ABC):
    """A dominating pair of one release in one direction. Frozen, hashable, compared by value."""

    @abstractmethod
    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose H(ε) = E_P[(1 − e^{ε−L})₊] = sup_E P(E) − e^ε Q(E), at any real ε, elementwise."""

    @abstractmethod
    def log_moment(self, order: float) -> tuple[float, float]:
        """Enclose log E_P[e^{order·L}] for order > 0: order = α − 1 gives (α−1)·D_α(P‖Q)."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Rounded outward: bounds of the finite values of L (infinite where unbounded)."""

    @abstractmethod
    def reversed(self) -> Pair:
        """The pair (Q, P)."""

    @property
    def infinite_mass(self) -> tuple[float, float]:
        """Enclose P(L = ∞), the mass that Q does not cover."""
        return (0.0, 0.0)

    @property
    def infinite_exact(self) -> Fraction | None:
        """The same as a rational, where that is known."""
        return Fraction(0) if self.infinite_mass == (0.0, 0.0) else None


@runtime_checkable
class Transformed(Protocol):
    """A pair whose transform M(z) = E[e^{zL}; L < ∞] under P has a closed form."""

    @property
    def support(self) -> tuple[float, float]:
        """Bounds of the finite values of L."""
        ...

    @property
    def infinite_mass(self) -> tuple[float, float]:
        """Enclose P(L = ∞)."""
        ...

    def transform(self, z: Complexes) -> tuple[Complexes, Floats]:
        """M(z) for Re z > 0, and a bound on the error of each."""
        ...

    def log_beyond(self, c: float, y: Floats) -> Floats:
        """At least log |M(c + iy′)| for all |y′| ≥ y, for each y."""
        ...


Worst = tuple[tuple[Pair, int], ...]
"""The worst case of several releases in one direction: pairs and how often each occurs."""
