"""The largest release that still fits: of the same kind as the one refused where that can be made smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from dalenius.ledger.spelling import spelled
from dalenius.losses.composition import Composition
from dalenius.losses.fields import arguments, written
from dalenius.losses.gauges import largest_loss
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Poisson
from dalenius.losses.pure import Pure
from dalenius.losses.shrinking import MOST, shrunk

HALVINGS, FEW = 24, 7
"""How closely the largest that fits is found: to seven digits, or two where each look costs much."""


def fitting(
    asked: Loss, room: Iterable[Loss], delta: Fraction, fits: Callable[[Loss], bool]
) -> tuple[Loss | None, str]:
    """The largest loss that fits, and in words what to do."""
    rooms = list(room)
    bounded = _as_pure(asked)
    if bounded is not None:
        rooms, asked = [one for one in rooms if isinstance(one, Pure)] or [bounded], bounded
    own = largest([one for one in rooms if type(one) is type(asked)] or [asked], delta, fits)
    if own is not None:
        return own, f"Try {_parameter(own)}."
    other = largest(rooms, delta, fits)
    if other is None:
        return None, "Release no more about these units: nothing is left."
    return other, f"Choose a release that costs at most {spelled(other)}."


def _as_pure(loss: Loss) -> Loss | None:
    """A bounded loss by its ε alone, which is what one calibrates such a release by."""
    bounded = largest_loss(loss)
    return Pure(bounded[0], relation=loss.relation) if bounded is not None and not bounded[1] else None


def largest(losses: Iterable[Loss], delta: Fraction, fits: Callable[[Loss], bool]) -> Loss | None:
    """Of these losses, each made smaller where it must be, the one with the largest ε."""
    found = [other for one in losses if (other := one if fits(one) else _largest(one, fits)) is not None]
    return max(found, key=lambda loss: loss.epsilon(delta).upper, default=None)


def _largest(loss: Loss, fits: Callable[[Loss], bool]) -> Loss | None:
    """The same kind made as much smaller as it must be; None where it cannot, or hardly any is left."""

    def small(factor: Fraction) -> bool:
        smaller = shrunk(loss, factor)
        return smaller is not None and fits(smaller)

    high = Fraction(1)
    while not small(high):
        high *= 2
        if high > MOST or shrunk(loss, high) is None:
            return None
    low = high / 2
    for _ in range(FEW if isinstance(loss, Poisson | Composition) else HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if small(middle) else (middle, high)
    return shrunk(loss, high)


def _parameter(loss: Loss) -> str:
    """Its first parameter as one would pass it, or the whole expression where there are several parts."""
    if isinstance(loss, Poisson | Composition):
        return spelled(loss)
    name, value = arguments(loss)[0]
    return f"{name}={written(value)}"
