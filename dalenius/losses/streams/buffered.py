"""Buffered linear Toeplitz encoders: noise for a stream with d numbers of memory.

C is Toeplitz with c_0 = 1 and c_k = Σ_j ω_j θ_j^{k−1}, 0 ≤ θ_j < 1, ω_j ≥ 0 (Dvijotham et al. 2024; several
participations: McMahan, Xu and Zhang 2024). Multiplying by C or by C⁻¹ keeps d running sums, and a good
choice of a few parameters comes within a few percent of the square root's error.

Σω_j ≤ 1 is required: the sequence then falls, and the theorem of `toeplitz` is exact. The generating function
is c(x) = 1 + x vᵀ(I − xΘ)⁻¹v with v_j = √ω_j, so by the Woodbury identity
    1/c(x) = 1 − x vᵀ(I − xM)⁻¹v,   M = Θ − vvᵀ symmetric,
and with the eigenvalues m_j of M and the squares w_j of v's coordinates in their basis, the decoder has
    b_k = 1 − Σ_j w_j (1 − m_j^k)/(1 − m_j).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Numbers
from dalenius.losses.streams.certified import Enclosed, powers
from dalenius.losses.streams.factorization import read_length
from dalenius.losses.streams.participation import Participation
from dalenius.losses.streams.toeplitz import Toeplitz
from dalenius.privacy import numbers
from dalenius.profiles.enclosure import around, spread
from dalenius.profiles.pair import Floats


def _decay(value: object, name: str) -> Fraction:
    number = numbers.non_negative(value, name)
    if number > 1 - Fraction(1, 10**12):
        raise InvalidArgument(f"{name} must be from 0 to 1 − 1e-12.", remedy=f"Choose {name} in that range.")
    return number


@dataclass(frozen=True)
class BufferedToeplitz(Toeplitz):
    """c_k = Σ `scales`[j]·`decays`[j]^(k−1), one buffer for each j."""

    length: int
    decays: Numbers = Numbers(_decay)
    scales: Numbers = Numbers(numbers.non_negative)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", read_length(self.length))
        if not self.decays or len(self.decays) != len(self.scales):
            raise InvalidArgument(
                "decays and scales must be equally many, at least one.", remedy="Give each decay its scale."
            )
        if sum(self.scales) > 1:
            raise InvalidArgument(
                "scales must add up to at most 1, so that the coefficients fall.",
                remedy="Choose smaller scales.",
            )

    @staticmethod
    def optimized(
        length: int, buffers: int = 4, participation: Participation | None = None
    ) -> BufferedToeplitz:
        """The parameters with the least largest error, found numerically."""
        from dalenius.losses.streams.optimizers import best_buffers

        steps = read_length(length)
        decays, scales = best_buffers(steps, buffers, participation)
        return BufferedToeplitz(steps, decays, scales)

    def coefficients(self) -> Enclosed:
        """Sums of geometric sequences."""
        low, high = np.zeros(self.length), np.zeros(self.length)
        low[0] = high[0] = 1.0
        for decay, scale in zip(self.decays, self.scales, strict=True):
            (least, most), (small, large) = powers(decay, self.length), around(scale)
            low[1:] += small * least[:-1]
            high[1:] += large * most[:-1]
        units = len(self.scales) + 2
        return spread(low, units)[0], spread(high, units)[1]

    def decoder_coefficients(self) -> Floats:
        """By the eigenvalues of the inverse."""
        values, weights = inverse(
            np.array([float(decay) for decay in self.decays]), np.array([float(s) for s in self.scales])
        )
        k = np.arange(self.length, dtype=np.float64)
        column = np.ones(self.length)
        for value, weight in zip(values, weights, strict=True):
            column -= weight * (1 - value**k) / (1 - value)
        return column


def inverse(decays: Floats, scales: Floats) -> tuple[Floats, Floats]:
    """The m_j and w_j of C⁻¹."""
    v = np.sqrt(scales)
    values, basis = np.linalg.eigh(np.diag(decays) - np.outer(v, v))
    return values, (basis.T @ v) ** 2
