"""Continual release with correlated noise: what a whole stream of prefix sums costs, and how far off it is.

    >>> from dalenius.losses.streams import SquareRoot, min_separation
    >>> stream = SquareRoot(length=1024)
    >>> print(f"{stream.errors().largest:.6f} {stream.errors().root_mean_square:.6f}")
    3.272554 3.109790
    >>> loss = stream.loss(noise_multiplier=10, participation=min_separation(128, most=4))
    >>> print(f"{loss.epsilon(delta=1e-6).upper:.4f}")
    2.1854

A factorization A = BC of the prefix sums releases B(Cx + z), z Gaussian: the privacy of all n outputs is
that of one Gaussian release of Cx (`factorization`), so only the sensitivity of C under what one unit may
do (`participation`) matters. Each name is loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.losses.streams.banded import Banded
    from dalenius.losses.streams.binary_tree import BinaryTree
    from dalenius.losses.streams.buffered import BufferedToeplitz
    from dalenius.losses.streams.correlated import CorrelatedGaussian
    from dalenius.losses.streams.factorization import Errors, Factorization
    from dalenius.losses.streams.inverse import BandedInverse
    from dalenius.losses.streams.participation import Participation, cyclic, min_separation, once
    from dalenius.losses.streams.square_root import BandedSquareRoot, SquareRoot
    from dalenius.losses.streams.toeplitz import BandedToeplitz, Toeplitz
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Banded": "dalenius.losses.streams.banded",
            "BandedInverse": "dalenius.losses.streams.inverse",
            "BandedSquareRoot": "dalenius.losses.streams.square_root",
            "BandedToeplitz": "dalenius.losses.streams.toeplitz",
            "BinaryTree": "dalenius.losses.streams.binary_tree",
            "BufferedToeplitz": "dalenius.losses.streams.buffered",
            "CorrelatedGaussian": "dalenius.losses.streams.correlated",
            "Errors": "dalenius.losses.streams.factorization",
            "Factorization": "dalenius.losses.streams.factorization",
            "Participation": "dalenius.losses.streams.participation",
            "SquareRoot": "dalenius.losses.streams.square_root",
            "Toeplitz": "dalenius.losses.streams.toeplitz",
            "cyclic": "dalenius.losses.streams.participation",
            "min_separation": "dalenius.losses.streams.participation",
            "once": "dalenius.losses.streams.participation",
        },
    )

__all__ = [
    "Banded",
    "BandedInverse",
    "BandedSquareRoot",
    "BandedToeplitz",
    "BinaryTree",
    "BufferedToeplitz",
    "CorrelatedGaussian",
    "Errors",
    "Factorization",
    "Participation",
    "SquareRoot",
    "Toeplitz",
    "cyclic",
    "min_separation",
    "once",
]
