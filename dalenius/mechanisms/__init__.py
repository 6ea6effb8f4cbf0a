"""Mechanisms: randomized maps from private values to releases, one file each.

    >>> from dalenius.mechanisms import Laplace
    >>> mechanism = Laplace.calibrate(epsilon=1, sensitivity=1)
    >>> mechanism.scale, mechanism.loss.epsilon(delta=0).upper
    (Fraction(1, 1), 1.0)

`mechanism` has what all of them share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.mechanisms.gaussian import Gaussian
    from dalenius.mechanisms.laplace import Laplace
    from dalenius.mechanisms.mechanism import Mechanism
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Gaussian": "dalenius.mechanisms.gaussian",
            "Laplace": "dalenius.mechanisms.laplace",
            "Mechanism": "dalenius.mechanisms.mechanism",
        },
    )

__all__ = ["Gaussian", "Laplace", "Mechanism"]
