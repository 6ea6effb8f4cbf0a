"""Dalenius: differential privacy in which every number that claims privacy has its theorem.

    >>> import dalenius as dp
    >>> from dalenius.losses import Gaussian
    >>> loss = Gaussian(noise_multiplier=4).poisson(0.01) * 10_000
    >>> isinstance(loss, dp.Loss)
    True

The names here are the few a newcomer needs; kinds of loss live in `dalenius.losses`, errors in
`dalenius.errors`. Each name is loaded when first used, so that importing the package costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.figures import Figure
    from dalenius.losses.bound import Bound
    from dalenius.losses.loss import Loss
    from dalenius.privacy.unit import Unit
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Bound": "dalenius.losses.bound",
            "Figure": "dalenius.figures",
            "Loss": "dalenius.losses.loss",
            "Unit": "dalenius.privacy.unit",
        },
    )

__version__ = "0.1.0"

__all__ = ["Bound", "Figure", "Loss", "Unit"]
