"""Floating-point noise: the digits of a sum betray what the noise was added to."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dalenius import losses
from dalenius.audits.zoo.drawing import beside, gaussian, laplace, next_to, one_by_one
from dalenius.audits.zoo.specimen import Specimen
from dalenius.losses.pure import Pure

STEPS = 2**20
"""Steps of the twins' grid between two whole numbers."""
LARGE = 2**52
"""From twice this on not every whole number is a float."""

_GENERATOR = np.random.default_rng()
_float_laplace = one_by_one(lambda size: _GENERATOR.laplace(size=size))
_float_gaussian = one_by_one(lambda size: _GENERATOR.normal(size=size))
_coarse = one_by_one(lambda size: _GENERATOR.integers(1, 17, size))
_sign = one_by_one(lambda size: _GENERATOR.integers(0, 2, size))
_grid_laplace, _grid_gaussian, _whole = laplace(STEPS), gaussian(STEPS), laplace(1)


def _four_bits(value: int) -> int:
    far = math.floor(-math.log(_coarse() / 16.5))
    return value + (far if _sign() else -1 - far)


def _float_sum(records: Sequence[float]) -> int:
    """Of values from LARGE to LARGE + 1, less what is public."""
    total = 0.0
    for record in records:
        total += record
    return int(total) - len(records) * LARGE + _whole()


def _whole_sum(records: Sequence[float]) -> int:
    return sum(int(record) - LARGE for record in records) + _whole()


SPECIMENS = (
    Specimen(
        name="floating-point Laplace",
        wrong="0 + noise has digits that 1 + noise cannot have",
        source="Mironov 2012",
        broken=lambda value: value + _float_laplace(),
        twin=lambda value: (value * STEPS + _grid_laplace()) / STEPS,
        claim=Pure(1),
        neighbors=beside,
        leaks=math.inf,
    ),
    Specimen(
        name="floating-point Gaussian",
        wrong="0 + noise has digits that 1 + noise cannot have",
        source="Mironov 2012; Jin, McMurtry, Rubinstein and Ohrimenko 2022",
        broken=lambda value: value + _float_gaussian(),
        twin=lambda value: (value * STEPS + _grid_gaussian()) / STEPS,
        claim=losses.Gaussian(1),
        neighbors=beside,
        delta=0.05,
        leaks=math.inf,
    ),
    Specimen(
        name="uniform of four bits",
        wrong="noise from the logarithm of a uniform number of few bits ends where its tail should go on",
        source="Mironov 2012",
        broken=_four_bits,
        twin=lambda value: value + _whole(),
        claim=Pure(1),
        neighbors=beside,
        trials=10_000,
        leaks=math.inf,
    ),
    Specimen(
        name="sum of floats",
        wrong="records from 2^52 to 2^52 + 1 are added as floats, whose rounding moves further than a record",
        source="Casacuberta, Shoemate, Vadhan and Wagaman 2022",
        broken=_float_sum,
        twin=_whole_sum,
        claim=Pure(1, relation="replace"),
        inputs=[(2.0**52 + 1, 2.0**52 + 1, 2.0**52 + 1)],
        neighbors=next_to((2.0**52, 2.0**52 + 1, 2.0**52 + 1)),
        leaks=4.0,
    ),
)
