"""Two-sided geometric noise drawn or truncated wrongly."""

from __future__ import annotations

import math
from collections.abc import Callable

from dalenius import noise
from dalenius.audits.zoo.drawing import beside, clamped, coin, laplace, next_to, one_by_one
from dalenius.audits.zoo.specimen import Specimen
from dalenius.losses.pure import Pure

_whole = laplace(1)
_heads = coin("1/2")
_failures: Callable[[], int] = one_by_one(lambda size: noise.geometric(1 - math.exp(-1), size))


def _weights(count: int) -> float:
    """1 + e⁻¹ + e⁻² + …, so many of them."""
    return sum(math.exp(-k) for k in range(count))


def _off_by_one(value: int) -> int:
    """Of geometric laws one begins at 0 and one at 1."""
    far = 1 + _failures()
    return clamped(value + (far if _heads() else -far), 0, 8)


def _two_zeros(value: int) -> int:
    """Zero with either sign is zero, which is drawn twice as often as it should."""
    far = _failures()
    return value + (far if _heads() else -far)


def _again(value: int) -> int:
    found = value + _whole()
    while not 0 <= found <= 8:
        found = value + _whole()
    return found


SPECIMENS = (
    Specimen(
        name="truncated geometric off by one",
        wrong="the geometric law is begun at 1, so that the true count is never released",
        source="Ghosh, Roughgarden and Sundararajan 2009",
        broken=_off_by_one,
        twin=lambda value: clamped(value + _whole(), 0, 8),
        claim=Pure(1),
        inputs=[4],
        neighbors=beside,
        leaks=math.inf,
    ),
    Specimen(
        name="geometric with two zeros",
        wrong="a sign and a geometric number: zero has both signs, and twice its probability",
        source="Ghosh, Roughgarden and Sundararajan 2009",
        broken=_two_zeros,
        twin=lambda value: value + _whole(),
        claim=Pure(1),
        neighbors=beside,
        trials=4_000,
        leaks=1 + math.log(2),
    ),
    Specimen(
        name="drawn again until in range",
        wrong="what is drawn again makes all other outcomes likelier, by more at the end of the range",
        source="Holohan, Antonatos, Braghin and Mac Aonghusa 2020",
        broken=_again,
        twin=lambda value: clamped(value + _whole(), 0, 8),
        claim=Pure(1),
        inputs=[0],
        neighbors=next_to(1),
        trials=16_000,
        leaks=1 + math.log((math.exp(-1) + _weights(8)) / _weights(9)),
    ),
)
