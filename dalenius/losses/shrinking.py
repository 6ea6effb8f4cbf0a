"""`shrunk`: the same kind of loss with more noise, or with less: the family that a loss is one of."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dalenius.errors import InvalidArgument
from dalenius.losses.composition import Composition, compose
from dalenius.losses.concentrated import Renyi, ZeroConcentrated
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.gauges import round_down, round_up
from dalenius.losses.gaussian import Gaussian, GaussianDP
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Poisson
from dalenius.losses.pure import Pure

MOST = 10**6
"""A release is not given more than so many times its noise."""


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
