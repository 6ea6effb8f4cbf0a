"""Sums and means: bounds applied in the wrong place, machine integers, and what an error tells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dalenius.audits.zoo.drawing import clamped, laplace, next_to, noisy
from dalenius.audits.zoo.specimen import Specimen
from dalenius.losses.pure import Pure

_whole, _double, _hundred = laplace(1), laplace(2), laplace(100)

Records = Sequence[int]
HUNDREDS = (100, 100, 0, 0) * 3


def _small(value: int) -> int:
    """A sum that saturates in eight bits."""
    return clamped(value, -128, 127)


def _saturating(records: Records) -> int:
    """Two records at a time are added in eight bits, and the sums of two in more."""
    parts = [_small(sum(records[k : k + 2])) for k in range(0, len(records), 2)]
    return sum(parts) + _hundred()


def _wrapping(records: Records) -> int:
    return (sum(records) + 128) % 256 - 128 + _whole()


def _from_the_mean(records: Records) -> int:
    """Fails where there are none."""
    return round(sum(records) / len(records) * len(records)) + _whole()


def _total(draw: Callable[[], int]) -> Callable[[Records], int]:
    return lambda records: sum(clamped(record, 0, 1) for record in records) + draw()


SPECIMENS = (
    Specimen(
        name="mean that reveals how many there are",
        wrong="a noisy sum is divided by the true number of records, of which it is then a multiple",
        source="Dwork and Roth 2014",
        broken=lambda records: (sum(records) + _whole()) / len(records),
        twin=lambda records: noisy((sum(records), len(records)), _double),
        claim=Pure(1),
        inputs=[(1, 0, 1, 0)],
        leaks=math.inf,
    ),
    Specimen(
        name="clipped after summing",
        wrong="the sum is clipped to a bound, and the noise is as if every record were",
        source="Dwork and Roth 2014",
        broken=lambda records: clamped(sum(records), 0, 10) + _whole(),
        twin=_total(_whole),
        claim=Pure(1),
        inputs=[(0, 1, 5)],
        leaks=5.0,
    ),
    Specimen(
        name="integer sum that saturates while adding",
        wrong="a record of nothing shifts which others are added together and saturate",
        source="Casacuberta, Shoemate, Vadhan and Wagaman 2022",
        broken=_saturating,
        twin=lambda records: sum(clamped(record, -100, 100) for record in records) + _hundred(),
        claim=Pure(1),
        inputs=[(0, *HUNDREDS)],
        neighbors=next_to(HUNDREDS, (0, *HUNDREDS[1:])),
        leaks=2.46,
    ),
    Specimen(
        name="integer sum that wraps around",
        wrong="127 + 1 is -128 in eight bits",
        source="Casacuberta, Shoemate, Vadhan and Wagaman 2022",
        broken=_wrapping,
        twin=_total(_whole),
        claim=Pure(1),
        inputs=[(1,) * 128],
        neighbors=next_to((1,) * 127),
        leaks=255.0,
    ),
    Specimen(
        name="error on one neighbour only",
        wrong="where there are no records it fails, and the failure is seen",
        source="Dwork and Roth 2014",
        broken=_from_the_mean,
        twin=_total(_whole),
        claim=Pure(1),
        inputs=[(1,), (1, 0)],
        leaks=math.inf,
    ),
)
