"""Noise of which nothing is in memory before it is drawn, nor after.

The usual source keeps a key, a block of bits and pools of ready noise: whoever seizes the memory knows some
of the noise to come. Here each bit is asked of the operating system when it is needed, and kept nowhere. What
the interpreter leaves in memory that it has given back is beyond what Python can promise.
"""

from __future__ import annotations

import os
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.noise.bits import Bits, Word
from dalenius.noise.exponential import Laplace
from dalenius.noise.law import Ints
from dalenius.noise.sampler import Sampler


class Fresh(Bits):
    """Bits straight from the operating system."""

    tainted = False

    def fill(self, words: NDArray[Word]) -> None:
        """Overwrite a contiguous array with fresh bits."""
        words.reshape(-1)[:] = np.frombuffer(os.urandom(words.nbytes), words.dtype)


def discrete_laplace(scale: Fraction, size: int) -> Ints:
    """P(k) ∝ e^{−|k|/scale}."""
    values = np.empty(size, np.int64)
    _sampler(scale).fill(values, Fresh())
    return values


@lru_cache(16)
def _sampler(scale: Fraction) -> Sampler:
    return Sampler(Laplace(scale))
