"""PATE: the losses of noisy votes of teachers that were trained on disjoint parts of the data.

    >>> from dalenius.losses.pate import GNMax
    >>> print((GNMax(scale=40) * 1000).epsilon(delta=1e-5))
    4.983306406

`GNMax` and `LNMax` are what a ledger charges for each answer, `confident_votes` for answers behind a
test of consensus: none looks at the votes. `Votes` and `ConfidentVotes` know a smaller figure that does, and
give it away only `sanitized`, for a charge of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.losses.pate.agreed import ConfidentVotes
    from dalenius.losses.pate.confident import confident_votes
    from dalenius.losses.pate.gnmax import GNMax
    from dalenius.losses.pate.lnmax import LNMax
    from dalenius.losses.pate.sanitizer import Sanitized, Sanitizer
    from dalenius.losses.pate.smooth import SmoothGaussian
    from dalenius.losses.pate.votes import Votes
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ConfidentVotes": "dalenius.losses.pate.agreed",
            "GNMax": "dalenius.losses.pate.gnmax",
            "LNMax": "dalenius.losses.pate.lnmax",
            "Sanitized": "dalenius.losses.pate.sanitizer",
            "Sanitizer": "dalenius.losses.pate.sanitizer",
            "SmoothGaussian": "dalenius.losses.pate.smooth",
            "Votes": "dalenius.losses.pate.votes",
            "confident_votes": "dalenius.losses.pate.confident",
        },
    )

__all__ = [
    "ConfidentVotes",
    "GNMax",
    "LNMax",
    "Sanitized",
    "Sanitizer",
    "SmoothGaussian",
    "Votes",
    "confident_votes",
]
