"""Concentrated and Rényi differential privacy: what is known of a release is bounds on its moments.

With K(t) = log E e^{tL} = t·D_{1+t}(P‖Q), in both directions and for every pair of neighbours:

    ZeroConcentrated   D_α ≤ ρα for all α > 1 (Bun and Steinke 2016), except on events of probability δ
                       (same paper). K(t) ≤ t(1+t)ρ. The Gaussian with μ² = 2ρ meets it with
                       equality, and so bounds the answer from below.
    Renyi              D_α ≤ ε at one order α (Mironov 2017). D grows with the order, so K(t) ≤ tε for
                       t ≤ α − 1, and nothing is known above: sums keep a bound at common orders only.
    MeanConcentrated   E L ≤ μ, and L − E L is subgaussian with standard τ (Dwork and Rothblum 2016,
                       Definition 3.3). K(t) ≤ t·min(μ, τ²/2) + t²τ²/2; the minimum because the
                       moment of order −1 is 1, which makes E L ≤ τ²/2. Gaussians with
                       μ² ≤ min(τ², 2·mean) meet it.

Groups of k: k²ρ for ZeroConcentrated (Bun and Steinke 2016), Hölder's inequality for the
others; where events are set aside no group bound is stated. How moments become (ε, δ) is in `renyi`. None
is tight: a bound on moments does not fix δ(ε).
"""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Described, Parameter, amount, ratio
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.rounding import floor


def _order(value: object, name: str) -> Fraction:
    alpha = numbers.exact(value, name)
    if not 1 + Fraction(1, 10**6) <= alpha <= 10**9:
        raise InvalidArgument(f"{name} must be from 1.000001 to 1e9.", remedy=f"Choose {name} in that range.")
    return alpha


class Moments(Described, ABC):
    """A kind known by its moments alone."""

    def directions(self) -> None:
        """No worst pair is known."""

    @property
    def tight(self) -> bool:
        """A bound on moments does not fix the profile."""
        return False


@dataclass(frozen=True, init=False, repr=False)
class ZeroConcentrated(Moments, kind="zero_concentrated"):
    """ρ-zCDP, but for events of probability `delta`, which is kept as `failure`."""

    rho: Parameter[Fraction] = Parameter(amount)
    failure: Parameter[Fraction] = Parameter(numbers.delta, argument="delta")
    relation: Relation = "add_remove"

    def __init__(self, rho: Number, *, delta: Number = 0, relation: Relation = "add_remove") -> None:
        self._keep(rho=rho, failure=delta, relation=relation)

    def moment(self, order: float) -> float:
        """t(1+t)ρ, and infinite where events are set aside: see `spared`."""
        return math.inf if self.failure else _polynomial(order, self.rho, self.rho)

    def spared(self) -> tuple[Fraction, Loss]:
        """The probability set aside, and what holds otherwise."""
        return self.failure, ZeroConcentrated(self.rho, relation=self.relation)

    def enlarged(self, size: int) -> ZeroConcentrated:
        """k²ρ."""
        if self.failure:
            raise NotSound(
                "No group bound is stated for zero-concentrated privacy with delta above 0.",
                remedy="State the loss with delta=0, or by its own mechanism, and group that.",
            )
        return ZeroConcentrated(self.rho * size**2, relation=self.relation)

    def attained(self) -> Loss | None:
        """The Gaussian of that ρ, which gives everything away with probability `delta`."""
        normal = _gaussian(2 * self.rho, self.relation)
        leak = Approximate(0, delta=self.failure, relation=self.relation) if self.failure else None
        return normal + leak if normal and leak else normal or leak

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        """ρ, and what D_α/α is for the Gaussian."""
        return None if self.failure else (self.rho, self.rho)


@dataclass(frozen=True, init=False, repr=False)
class Renyi(Moments, kind="renyi"):
    """Rényi divergence at most `epsilon`, kept as `limit`, at the order `alpha`."""

    alpha: Parameter[Fraction] = Parameter(_order)
    limit: Parameter[Fraction] = Parameter(amount, argument="epsilon")
    relation: Relation = "add_remove"

    def __init__(self, alpha: Number, *, epsilon: Number, relation: Relation = "add_remove") -> None:
        self._keep(alpha=alpha, limit=epsilon, relation=relation)

    def moment(self, order: float) -> float:
        """tε up to α − 1."""
        return _polynomial(order, self.limit, Fraction(0)) if order <= self.alpha - 1 else math.inf

    def orders(self) -> tuple[float, ...]:
        """The order that says most."""
        return (floor(self.alpha - 1),)


@dataclass(frozen=True, repr=False)
class MeanConcentrated(Moments, kind="mean_concentrated"):
    """A privacy loss of mean at most `mean`, subgaussian about it with standard `scale`."""

    mean: Parameter[Fraction] = Parameter(amount)
    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(ratio)
    relation: Relation = "add_remove"

    def moment(self, order: float) -> float:
        """t·min(μ, τ²/2) + t²τ²/2."""
        half = self.scale**2 / 2
        return _polynomial(order, min(self.mean, half), half)

    def attained(self) -> Loss | None:
        """The widest Gaussian that meets both bounds."""
        return _gaussian(min(self.scale**2, 2 * self.mean), self.relation)

    def concentration(self) -> tuple[Fraction, Fraction]:
        """At most τ²/2, and what D_α/α is for the Gaussian that meets both bounds."""
        return (self.scale**2 / 2, min(self.scale**2 / 2, self.mean))


def _polynomial(order: float, first: Fraction, second: Fraction) -> float:
    with workprec(BITS):
        return upper(ball(order) * (ball(first) + ball(order) * ball(second)))


def _gaussian(squared: Fraction, relation: Relation) -> Loss | None:
    """A Gaussian whose μ² is at most `squared`, by a hair: σ = 1/μ is rounded up."""
    from dalenius.losses.gaussian import GaussianDP

    mu = Fraction(math.isqrt(int(squared * 10**36)), 10**18)
    return GaussianDP(mu, relation=relation) if mu > 0 else None
