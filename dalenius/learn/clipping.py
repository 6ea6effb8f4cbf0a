"""How each example's gradient is made short: no example adds more than `clip` to a sum, in its norm.

    Flat        g·min(1, C/‖g‖)                        over all parameters (Abadi et al. 2016)
    PerLayer    the same for each layer by itself, to C/√L for L layers: the squares add up to C²
    Automatic   g·C/(‖g‖ + γ)                          no gradient counts more than another (Bu et al. 2023)
    Absolute    g·min(1, C/‖g‖₁)                       in the L1 norm, for Laplace noise

Whatever the rule, an infinite norm or one that is no number gives the factor zero, and the example adds
nothing. So does a norm so large that the factor, in single precision, has few digits left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar

import torch
from torch import Tensor

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.library_code import is_library_class
from dalenius.losses.fields import Parameter
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

WIDEST = Fraction(2**40)
LEAST = 2.0**-100
"""Factors below are zero."""
Norms = Mapping[Tensor, Tensor]
"""For each parameter, the squared L2 norm, or the L1 norm, of every example's gradient."""


def bound(value: object, name: str) -> Fraction:
    """A bound on norms, far from where floats end."""
    found = numbers.positive(value, name)
    if not WIDEST**-1 <= found <= WIDEST:
        raise InvalidArgument(
            f"{name} must be between 2^-40 and 2^40.",
            remedy=f"Scale losses so that {name}=1 is a fair bound.",
        )
    return found


@dataclass(frozen=True)
class Clipping(ABC):
    """A bound on what one example adds, in the norm of its kind."""

    clip: Parameter[Fraction] = Parameter(bound)
    norm: ClassVar[str] = "l2"
    apart: ClassVar[bool] = False
    """Whether norms of single parameters matter, and not only their sum."""

    @abstractmethod
    def factors(self, norms: Norms, bound: float, names: Mapping[Tensor, str]) -> dict[Tensor, Tensor]:
        """For each parameter the factor of every example, for a `bound` that stands for `clip`."""

    @property
    @abstractmethod
    def how(self) -> str:
        """In words, for a receipt."""


def read_clipping(clip: Number | Clipping) -> Clipping:
    """Return how gradients are clipped; a number is a flat bound.

    Raises:
        NotSound: The clipping is a class of the user's, which could clip by less than it says.
    """
    if isinstance(clip, Clipping) and not is_library_class(type(clip)):
        raise NotSound(
            f"{type(clip).__name__} is a way of clipping of your own: that it bounds gradients is not known.",
            remedy="Pass a number, or one of dp.learn.Flat, PerLayer, Automatic, Quantile and Absolute.",
        )
    return clip if isinstance(clip, Clipping) else Flat(clip)


def layer_of(name: str) -> str:
    """The module of a parameter."""
    return name.rpartition(".")[0]


def shortened(norm: Tensor, bound: float) -> Tensor:
    """min(1, bound/norm), and zero where the norm is no number or too large to divide by exactly."""
    factor = (bound / norm).clamp_(max=1)
    return torch.where(torch.isfinite(norm) & (factor > LEAST), factor, 0)


def _all(norms: Norms) -> Tensor:
    return torch.stack([one.double() for one in norms.values()]).sum(0)


@dataclass(frozen=True)
class Flat(Clipping):
    """One bound on the whole gradient."""

    def factors(self, norms: Norms, bound: float, names: Mapping[Tensor, str]) -> dict[Tensor, Tensor]:
        """The same for all parameters."""
        return dict.fromkeys(norms, shortened(_all(norms).sqrt_(), bound))

    @property
    def how(self) -> str:
        """The bound."""
        return f"each example's gradient is clipped to L2 norm {float(self.clip):g}"


@dataclass(frozen=True)
class PerLayer(Clipping):
    """The same bound for each layer: the parameters of one module."""

    apart: ClassVar[bool] = True

    def factors(self, norms: Norms, bound: float, names: Mapping[Tensor, str]) -> dict[Tensor, Tensor]:
        """By the name before the last dot; a layer that was not used has its share of the bound as well."""
        layers = {layer_of(names[one]) for one in names}
        each = bound / len(layers) ** 0.5
        totals: dict[str, Tensor] = {}
        for parameter, squared in norms.items():
            layer = layer_of(names[parameter])
            totals[layer] = totals.get(layer, 0) + squared.double()
        bad = ~torch.isfinite(_all(norms))
        found = {layer: shortened(total.sqrt(), each).masked_fill(bad, 0) for layer, total in totals.items()}
        return {one: found[layer_of(names[one])] for one in norms}

    @property
    def how(self) -> str:
        """The bound of all."""
        return f"each example's gradient is clipped layer by layer, to L2 norm {float(self.clip):g} in all"


@dataclass(frozen=True)
class Automatic(Clipping):
    """Every gradient is made about as long as the bound; `stability` keeps small ones small."""

    _: KW_ONLY
    stability: Parameter[Fraction] = Parameter(bound, default=Fraction(1, 100))

    def factors(self, norms: Norms, bound: float, names: Mapping[Tensor, str]) -> dict[Tensor, Tensor]:
        """The same for all parameters."""
        norm = _all(norms).sqrt_()
        factor = bound / (norm + float(self.stability))
        factor = torch.where(torch.isfinite(norm) & (factor > LEAST), factor, 0)
        return dict.fromkeys(norms, factor)

    @property
    def how(self) -> str:
        """The bound and the stability."""
        length = f"‖g‖ + {float(self.stability):g}"
        return f"each example's gradient g is divided by {length} and multiplied by {float(self.clip):g}"


@dataclass(frozen=True)
class Absolute(Clipping):
    """One bound on the sum of absolute values, with Laplace noise: the pure alternative."""

    norm: ClassVar[str] = "l1"

    def factors(self, norms: Norms, bound: float, names: Mapping[Tensor, str]) -> dict[Tensor, Tensor]:
        """The same for all parameters."""
        return dict.fromkeys(norms, shortened(_all(norms), bound))

    @property
    def how(self) -> str:
        """The bound."""
        return f"each example's gradient is clipped to L1 norm {float(self.clip):g}"
