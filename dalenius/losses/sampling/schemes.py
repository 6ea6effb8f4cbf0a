"""Sampling schemes by name, for code that takes the name as a setting.

    >>> from dalenius.losses import Gaussian
    >>> step = sampled(Gaussian(4), "poisson", sampling_rate=0.01)
    >>> step == Gaussian(4).poisson(0.01)
    True

    poisson               sampling_rate                    one step, each record by itself
    truncated_poisson     sampling_rate, population, cap   one step, cut where the sample is too large
    without_replacement   batch, population                one step, under replace
    random_allocation     steps                            all `steps`, each record in one of them

Shuffling a data set into batches is refused (`shuffled`): it is none of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import a_loss
from dalenius.losses.loss import Loss
from dalenius.losses.sampling import shuffled
from dalenius.losses.sampling.truncated_poisson import truncate
from dalenius.losses.sampling.without_replacement import draw

SHUFFLES = ("shuffle", "shuffled", "shuffled_batches", "shuffling", "batch_shuffle", "epoch_shuffle")
"""Names for batches of a shuffled data set."""


def sampled(loss: Loss, scheme: str, **parameters: Any) -> Loss:
    """The loss on a sample drawn by the scheme of that name."""
    a_loss(loss, "loss")
    name = scheme.strip().lower().replace("-", "_").replace(" ", "_") if isinstance(scheme, str) else ""
    if name in SHUFFLES:
        _complete(name, parameters, (), ("steps", "delta"))
        raise shuffled.refusal(loss, **parameters)
    if name not in SCHEMES:
        raise InvalidArgument(
            f"scheme must be one of {', '.join(SCHEMES)}.", remedy="Pass scheme as one of these names."
        )
    build, names = SCHEMES[name]
    _complete(name, parameters, names)
    return build(loss, **parameters)


def _complete(
    scheme: str, given: dict[str, Any], needed: tuple[str, ...], allowed: tuple[str, ...] = ()
) -> None:
    """Refuses what is missing, and what the scheme does not know."""
    missing = [name for name in needed if name not in given]
    surplus = [name for name in given if name not in needed + allowed]
    if missing or surplus:
        wrong = " and ".join(missing or surplus)
        raise InvalidArgument(
            f"The scheme {scheme} {'needs' if missing else 'does not know'} {wrong}.",
            remedy=f"Pass {', '.join(needed or allowed)}.",
        )


def _poisson(loss: Loss, sampling_rate: Any) -> Loss:
    return loss.poisson(sampling_rate)


def _allocated(loss: Loss, steps: int) -> Loss:
    from dalenius.losses.allocation.random_allocation import allocate

    return allocate(loss, steps)


SCHEMES: dict[str, tuple[Callable[..., Loss], tuple[str, ...]]] = {
    "poisson": (_poisson, ("sampling_rate",)),
    "truncated_poisson": (truncate, ("sampling_rate", "population", "cap")),
    "without_replacement": (draw, ("batch", "population")),
    "random_allocation": (_allocated, ("steps",)),
}
"""What builds each scheme, and the parameters it needs."""
