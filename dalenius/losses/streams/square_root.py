"""The square root of the prefix sums: C = B = A^{1/2}, Toeplitz with c_k = C(2k, k)/4^k.

Since (1 − x)^{−1/2} = Σ c_k x^k, CC = A (Fichtenberger, Henzinger and Upadhyay 2023; Henzinger, Upadhyay and
Upadhyay 2023). The largest error factor is Landau's constant Σ_{k<n} c_k², which lies between 1 + ln(n)/π and
1.0663 + ln(n)/π (Brutman 1982); no factorization is below about ln(n)/π.

Banded (Kalinin and Lampert 2024). The first b numbers alone make an encoder whose columns do not overlap at a
separation of b; its decoder AC⁻¹ is found by recurrence, stably: the zeros of a polynomial with positive,
falling coefficients lie outside the unit circle (Eneström–Kakeya).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.losses.fields import whole
from dalenius.losses.streams.certified import Enclosed, central_binomials
from dalenius.losses.streams.factorization import read_length
from dalenius.losses.streams.toeplitz import Toeplitz, prefix_sums_of_inverse
from dalenius.profiles.pair import Floats


@dataclass(frozen=True)
class SquareRoot(Toeplitz):
    """A^{1/2} on both sides."""

    length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", read_length(self.length))

    def coefficients(self) -> Enclosed:
        """C(2k, k)/4^k."""
        return central_binomials(self.length)

    def decoder_coefficients(self) -> Floats:
        """The same."""
        low, high = self.coefficients()
        return (low + high) / 2


@dataclass(frozen=True)
class BandedSquareRoot(Toeplitz):
    """The first `bands` diagonals of A^{1/2}, and the decoder that goes with them."""

    length: int
    bands: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", read_length(self.length))
        object.__setattr__(self, "bands", min(whole(self.bands, "bands"), self.length))

    def coefficients(self) -> Enclosed:
        """C(2k, k)/4^k for k below the bands."""
        return central_binomials(self.bands)

    def decoder_coefficients(self) -> Floats:
        """By the recurrence of the inverse."""
        low, high = self.coefficients()
        return prefix_sums_of_inverse(np.asarray((low + high) / 2), self.length)
