"""Reports that people randomize themselves."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dalenius.audits.zoo.drawing import below, by_input, coin, next_to
from dalenius.audits.zoo.specimen import Specimen
from dalenius.losses.pure import Pure
from dalenius.mechanisms.randomized_response import RandomizedResponse

CATEGORIES = 5
KEEP = 0.731058
"""e/(1 + e), rounded down."""
FLIP = 0.268942
"""1/(1 + e), rounded up."""
FLIP_HALF = 0.377541
"""1/(1 + e^½), rounded up."""

_keep, _flip, _flip_half = coin(KEEP), coin(FLIP), coin(FLIP_HALF)
_other = below(CATEGORIES - 1)
_response = RandomizedResponse.calibrate(epsilon=1, categories=CATEGORIES)


def _wrongly_normed(category: int) -> int:
    """The truth as often as with two categories."""
    return category if _keep() else (category + 1 + _other()) % CATEGORIES


def _encoded(report: Callable[[bool], bool]) -> Callable[[int], list[bool]]:
    """A bit for each category, one of them set, and each reported by itself."""
    return lambda category: [report(place == category) for place in range(CATEGORIES)]


_both_bits = _encoded(lambda bit: bit ^ _flip_half())

SPECIMENS = (
    Specimen(
        name="k-ary response with the norm of two",
        wrong="the truth is told with probability e^epsilon/(e^epsilon + 1), and k is five",
        source="Kairouz, Bonawitz and Ramage 2016",
        broken=_wrongly_normed,
        twin=by_input(lambda value, size: np.ravel(_response.sample([value], size))),
        claim=Pure(1, relation="replace"),
        neighbors=next_to(1, 2),
        leaks=1 + math.log(CATEGORIES - 1),
    ),
    Specimen(
        name="RAPPOR that never clears a bit",
        wrong="zeros are reported as ones at random, and ones always as they are",
        source="Erlingsson, Pihur and Korolova 2014",
        broken=_encoded(lambda bit: bit or _flip_half()),
        twin=_both_bits,
        claim=Pure(1, relation="replace"),
        neighbors=next_to(1, 2),
        leaks=math.inf,
    ),
    Specimen(
        name="bits that pay for one of two",
        wrong="between two categories two bits differ, and each is flipped as if it were the only one",
        source="Wang, Blocki, Li and Jha 2017",
        broken=_encoded(lambda bit: bit ^ _flip()),
        twin=_both_bits,
        claim=Pure(1, relation="replace"),
        neighbors=next_to(1, 2),
        leaks=2.0,
    ),
)
