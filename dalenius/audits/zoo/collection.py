"""`zoo`: all specimens."""

from __future__ import annotations

from functools import cache

from dalenius.audits.zoo import (
    counting,
    floats,
    geometric,
    local,
    noise,
    randomness,
    selection,
    sparse_vector,
    sums,
    training,
)
from dalenius.audits.zoo.specimen import Specimen

_ROOMS = (noise, geometric, floats, counting, sums, selection, sparse_vector, local, training, randomness)


@cache
def zoo() -> tuple[Specimen, ...]:
    """All specimens, by what they have in common."""
    return tuple(specimen for room in _ROOMS for specimen in room.SPECIMENS)
