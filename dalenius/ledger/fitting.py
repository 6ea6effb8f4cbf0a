"""The largest release that still fits: of the same kind as the one refused where that can be made smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

from dalenius.losses.concentrated import Renyi, ZeroConcentrated
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.fields import arguments, written
from dalenius.losses.gauges import largest_loss, round_down, round_up
from dalenius.losses.gaussian import Gaussian, GaussianDP
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure

HALVINGS = 24
"""How closely the largest that fits is found: to seven digits."""
LEAST = Fraction(1, 10**6)
"""A release is not made smaller than this share of the one refused."""


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
    return other, f"Choose a release that costs at most {expression(other)}."


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
    if shrunk(loss, Fraction(1)) is None or (least := shrunk(loss, 1 / LEAST)) is None or not fits(least):
        return None
    low, high = Fraction(1), 1 / LEAST
    for _ in range(HALVINGS + 20):
        middle = (low + high) / 2 if high < 2 * low else Fraction(int(1000 * float(low * high) ** 0.5), 1000)
        smaller = shrunk(loss, middle)
        low, high = (low, middle) if smaller is not None and fits(smaller) else (middle, high)
        if high - low < high / 2**HALVINGS:
            break
    return shrunk(loss, high)


def shrunk(loss: Loss, factor: Fraction) -> Loss | None:
    """The same kind with so many times the noise, its parameter a short decimal rounded to the safe side."""
    if isinstance(loss, Pure):
        return Pure(round_down(loss.limit / factor), relation=loss.relation) if loss.limit else None
    if isinstance(loss, Gaussian):
        return replace(loss, noise_multiplier=round_up(loss.noise_multiplier * factor))
    if isinstance(loss, Laplace | DiscreteLaplace):
        return replace(loss, scale=round_up(loss.scale * factor))
    if isinstance(loss, GaussianDP):
        return GaussianDP(round_down(loss.mu / factor), relation=loss.relation)
    if isinstance(loss, ZeroConcentrated) and loss.rho:
        return ZeroConcentrated(round_down(loss.rho / factor), delta=loss.failure, relation=loss.relation)
    if isinstance(loss, Renyi) and loss.limit:
        return Renyi(loss.alpha, epsilon=round_down(loss.limit / factor), relation=loss.relation)
    return None


def _parameter(loss: Loss) -> str:
    """Its first parameter as one would pass it."""
    name, value = arguments(loss)[0]
    return f"{name}={written(value)}"


def expression(loss: Loss) -> str:
    """As `dalenius ledger charge` reads it."""
    words = ", ".join(
        f"{name}={written(value) if isinstance(value, Fraction) else value}"
        for name, value in arguments(loss)
        if name != "relation"
    )
    return f"{loss.kind}({words})"
