"""The largest release that still fits: of the same kind as the one refused where that can be made smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

from dalenius.errors import InvalidArgument
from dalenius.ledger.spelling import spelled
from dalenius.losses.composition import Composition, compose
from dalenius.losses.concentrated import Renyi, ZeroConcentrated
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.fields import arguments, written
from dalenius.losses.gauges import largest_loss, round_down, round_up
from dalenius.losses.gaussian import Gaussian, GaussianDP
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Poisson
from dalenius.losses.pure import Pure

HALVINGS, FEW = 24, 7
"""How closely the largest that fits is found: to seven digits, or two where each look costs much."""
MOST = 10**6
"""A release is not given more than so many times its noise."""


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


def shrunk(loss: Loss, factor: Fraction) -> Loss | None:
    """The same kind with so many times the noise, its parameter a short decimal rounded to the safe side.

    None for a kind with no such parameter, and past the range of it.
    """
    try:
        return _shrunk(loss, factor)
    except InvalidArgument:
        return None


def _shrunk(loss: Loss, factor: Fraction) -> Loss | None:
    if isinstance(loss, Pure):
        return Pure(round_down(loss.limit / factor), relation=loss.relation) if loss.limit else None
    if isinstance(loss, Gaussian):
        return replace(loss, noise_multiplier=round_up(loss.noise_multiplier * factor))
    if isinstance(loss, Laplace | DiscreteLaplace):
        return replace(loss, scale=round_up(loss.scale * factor))
    if isinstance(loss, GaussianDP):
        return GaussianDP(round_down(loss.mu / factor), relation=loss.relation)
    if isinstance(loss, ZeroConcentrated) and loss.rho * MOST**2 > factor:
        return ZeroConcentrated(round_down(loss.rho / factor), delta=loss.failure, relation=loss.relation)
    if isinstance(loss, Poisson):
        inner = shrunk(loss.loss, factor)
        return None if inner is None else inner.poisson(loss.sampling_rate)
    if isinstance(loss, Composition):
        parts = [(shrunk(term, factor), times) for term, times in loss.terms]
        known = [part * times for part, times in parts if part is not None]
        return compose(known) if len(known) == len(parts) else None
    if isinstance(loss, Renyi) and loss.limit:
        return Renyi(loss.alpha, epsilon=round_down(loss.limit / factor), relation=loss.relation)
    return None


def _parameter(loss: Loss) -> str:
    """Its first parameter as one would pass it, or the whole expression where there are several parts."""
    if isinstance(loss, Poisson | Composition):
        return spelled(loss)
    name, value = arguments(loss)[0]
    return f"{name}={written(value)}"
