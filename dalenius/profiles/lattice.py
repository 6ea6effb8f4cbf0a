"""A privacy-loss law on a lattice {offset + k·step}, with what is certified about it.

Write h_M(x) = Σ_k m_k (1 − x e^{−l_k})₊ for the profile of a measure M with mass m_k at loss l_k; it is
linear in M, and profiles of products are convolutions, so h_M ≤ h_{M'} at all x > 0 survives
composition with anything (masses need not sum to one). A `Lattice` with masses U says of its pair (P, Q)

    (1)  h_{P,Q} ≤ (1 + error)·h_U + infinite[1]                     everywhere,
    (2)  h_U ≤ (1 + error + looseness)·h_V + h_excess + above        everywhere,
    (3)  P(L = ∞) ≥ infinite[0],

where V is the law of the finite part of L (`spread` = 0), or of L with each value split between the two
lattice points around it so that E[e^{−L}] is kept (`spread` = step²/4). For a law that lives on the
lattice, U is V up to relative errors of the masses, and the last three are empty or zero.
docs/proofs/lattice.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np

from dalenius.profiles.pair import Floats

Interval = tuple[Fraction, Fraction]
"""A lower and an upper bound on one real number; equal where it is rational and known."""


def point(number: Fraction | int) -> Interval:
    """The interval of one rational number."""
    return (Fraction(number), Fraction(number))


@dataclass(frozen=True, eq=False)
class Lattice:
    """A law on offset + (start + i)·step, i = 0, 1, …; the module says what its fields certify.

    Laws are convolved only where their steps are the same real number, which is to say that the
    intervals `step` are equal. Mass of P left out of `masses`, on either side, is part of `infinite[1]`.
    """

    step: Interval
    offset: Interval
    start: int
    masses: Floats
    error: float = 0.0
    infinite: tuple[float, float] = (0.0, 0.0)
    looseness: float = 0.0
    excess: Floats = field(default_factory=lambda: np.zeros(0))
    above: float = 0.0
    spread: float = 0.0

    @property
    def end(self) -> int:
        """The index of the last mass."""
        return self.start + len(self.masses) - 1

    def loss(self, index: int) -> Interval:
        """Encloses the loss at one index."""
        return shift(self.offset, self.step, index)

    @property
    def estimates(self) -> Floats:
        """The losses as floats, for choosing parameters; nothing certified depends on them."""
        indices = np.arange(self.start, self.end + 1, dtype=np.float64)
        return float(self.offset[0]) + float(self.step[0]) * indices


@runtime_checkable
class OnLattice(Protocol):
    """A pair whose finite losses lie on a lattice."""

    def lattice(self) -> Lattice | None:
        """The law of the loss, exactly on its lattice; None where that would be too large."""
        ...


def shift(offset: Interval, step: Interval, index: int) -> Interval:
    """Encloses offset + index·step."""
    first, second = index * step[0], index * step[1]
    return (offset[0] + min(first, second), offset[1] + max(first, second))


def total_offset(terms: Sequence[tuple[Lattice, int]]) -> Interval:
    """Encloses the sum of all offsets, each as often as it occurs."""
    return (
        sum((n * law.offset[0] for law, n in terms), Fraction(0)),
        sum((n * law.offset[1] for law, n in terms), Fraction(0)),
    )
