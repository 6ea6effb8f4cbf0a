"""Encoders whose inverse has bands: the noise of a step is a weighted sum of its own draw and a few before.

C⁻¹ = D is lower-triangular Toeplitz with the b numbers 1, −a_1, …, −a_{b−1}, a_j ≥ 0 and Σa_j ≤ 1. Then
c_0 = 1 and c_t = Σ_j a_j c_{t−j}: C has no bands, but all of it is from 0 to 1. So for a cyclic participation
the sensitivity is that of the first cycle, exactly (`toeplitz`).

Square root (Kalinin, McKenna, Upadhyay and Lampert 2025): the first b numbers of (1 − x)^{1/2}, which are
a_j = C(2j, j)/(4^j(2j − 1)). The decoder B = AD has their sums, C(2k, k)/4^k up to the b-th, which is
repeated from there on. For one number of bands, errors are smaller than with a banded C.

Rounding. c_t is a sum of b − 1 products, none negative: its relative error is that of the worst before it and
b + 1 roundings more, so (b + 1)·t at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import whole
from dalenius.losses.streams.certified import Enclosed
from dalenius.losses.streams.entries import read_entries
from dalenius.losses.streams.factorization import read_length
from dalenius.losses.streams.toeplitz import Toeplitz
from dalenius.profiles.enclosure import spread
from dalenius.profiles.pair import Floats

BITS = 14
"""Numbers of a rounded inverse are multiples of 2⁻¹⁴."""


@dataclass(frozen=True, init=False)
class BandedInverse(Toeplitz):
    """The encoder whose inverse has the `entries` 1, −a_1, −a_2, …, taken as the binary numbers they are."""

    length: int
    entries: tuple[float, ...]

    def __init__(self, length: int, entries: Iterable[float]) -> None:
        object.__setattr__(self, "length", read_length(length))
        object.__setattr__(self, "entries", read_entries(entries, "entries")[: self.length])
        first, *others = self.entries
        if first != 1 or any(one > 0 for one in others) or math.fsum(others) < -1:
            raise InvalidArgument(
                "The inverse begins with 1, and what follows is not positive and at least −1 in all.",
                remedy="Use BandedInverse.square_root.",
            )

    @staticmethod
    def square_root(length: int, bands: int, *, bits: int = BITS) -> BandedInverse:
        """The bands of (1 − x)^{1/2}, each rounded toward zero to a multiple of 2^−bits."""
        entries, numbers = [1.0], whole(bands, "bands")
        for j in range(1, numbers):
            entries.append(-math.floor(math.comb(2 * j, j) * 2**bits / (4**j * (2 * j - 1))) / 2**bits)
        return BandedInverse(length, entries)

    @property
    def falling(self) -> bool:
        """Whether C is known to fall: where the enclosure of no number reaches below that of the next."""
        low, high = self.coefficients()
        return bool(np.all(low[:-1] >= high[1:]))

    def coefficients(self) -> Enclosed:
        """By the recurrence."""
        from scipy.signal import lfilter

        impulse = np.zeros(self.length)
        impulse[0] = 1.0
        column = lfilter([1.0], np.array(self.entries), impulse)
        return spread(column, (len(self.entries) + 1) * np.arange(self.length, dtype=np.float64))

    def decoder_coefficients(self) -> Floats:
        """Sums of the entries."""
        column = np.zeros(self.length)
        column[: len(self.entries)] = self.entries
        sums: Floats = np.cumsum(column)
        return sums
