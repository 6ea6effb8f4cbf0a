"""Four ways to measure a loss so that what was measured adds up under adaptive choice.

Theorem. Let releases be chosen one after the other, each loss a function of the earlier outcomes, and let the
measures of those chosen never add up to more than B. Then all of them together are

    pure       B-differentially private                         (Rogers, Roth, Ullman and Vadhan 2016)
    gaussian   μ-Gaussian differentially private, μ² = B        (Smith and Thakurta 2022; Koskela, Tobaben and
                                                                 Honkela 2023), measured by μ²
    zcdp       B-zero-concentrated differentially private       (Feldman and Zrnic 2021; Whitehouse, Ramdas,
                                                                 Rogers and Wu 2023)
    renyi      within a Rényi divergence of B at one order α    (Feldman and Zrnic 2021; Lécuyer 2021)

and if each release has the measure only but for a chance sᵢ, all of them together do but for Σ sᵢ: its slack.
The proofs are in docs/proofs/filter.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from dalenius.arithmetic import arb, workprec
from dalenius.losses import divergence
from dalenius.losses.composition import Composition
from dalenius.losses.concentrated import Renyi, ZeroConcentrated
from dalenius.losses.gaussian import Gaussian, GaussianDP
from dalenius.losses.gaussian_domination import least_distance, likely_distance
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Concentrated
from dalenius.losses.pure import Pure
from dalenius.losses.renyi import Spared
from dalenius.losses.routes import leaks
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball, lower, upper
from dalenius.profiles.gaussian_pairs import MixturePair, ShiftPair
from dalenius.profiles.pair import Pair

Measured = tuple[Fraction, Fraction]
"""A measure and its slack."""
FAR = 4
"""By how much more than at first sight a loss may take of a limit before its slack is chosen anew."""
FEW = 4
"""Up to so many releases of bounded loss are measured one by one."""


def _share(distance: Fraction, limit: Fraction) -> Fraction:
    """Return the share of the limit that a distance takes, at least a millionth and at most all."""
    return min(Fraction(1), max(distance**2 / limit, Fraction(1, 10**6)))


def round_up(amount: Fraction, digits: int = 8) -> Fraction:
    """The first digits of an amount, rounded up."""
    unit = Fraction(10) ** (math.floor(math.log10(amount)) + 1 - digits)
    return math.ceil(amount / unit) * unit


def round_down(amount: Fraction, digits: int = 8) -> Fraction:
    """The same, rounded down."""
    unit = Fraction(10) ** (math.floor(math.log10(amount)) + 1 - digits)
    return math.floor(amount / unit) * unit


@dataclass(frozen=True)
class Gauge(ABC):
    """One measure. `delta` is what turning it into (ε, δ) costs; `slack` what chances may add up to."""

    name: ClassVar[str]
    delta: Fraction
    slack: Fraction

    @abstractmethod
    def limit(self, epsilon: Fraction) -> Fraction:
        """The largest total that is (epsilon, delta)-differentially private, rounded down."""

    @abstractmethod
    def measure(self, loss: Loss, limit: Fraction) -> Measured | None:
        """The measure of a loss and its slack; None where no number of steps would do."""

    @abstractmethod
    def as_loss(self, amount: Fraction, relation: Relation) -> Loss:
        """The loss with just that measure."""

    @property
    def label(self) -> str:
        """The name it is stored under."""
        return self.name


class PureGauge(Gauge):
    """The largest possible loss; what can be infinite is slack."""

    name = "pure"

    def limit(self, epsilon: Fraction) -> Fraction:
        """ε itself."""
        return epsilon

    def measure(self, loss: Loss, limit: Fraction) -> Measured | None:
        """The largest finite losses and the masses of the infinite ones, added up."""
        return largest_loss(loss)

    def as_loss(self, amount: Fraction, relation: Relation) -> Loss:
        """Pure differential privacy."""
        return Pure(amount, relation=relation)


class GaussianGauge(Gauge):
    """μ²: exact for Gaussians, by the kink for a bounded loss, and by its whole profile for the rest."""

    name = "gaussian"

    def limit(self, epsilon: Fraction) -> Fraction:
        """1/σ² of the Gaussian that is calibrated to it."""
        return Gaussian.calibrate(epsilon=epsilon, delta=self.delta).noise_multiplier ** -2

    def measure(self, loss: Loss, limit: Fraction) -> Measured | None:
        """The lesser of the sum over releases and of what dominates all of them together."""
        added = _gaussian(loss)
        if added is not None and _exact(loss):
            return added
        found = self._dominating(loss, limit)
        both = [one for one in (added, found) if one is not None and one[1] <= self.slack]
        return min(both, default=added)

    def _dominating(self, loss: Loss, limit: Fraction) -> Measured | None:
        """With as large a share of the slack as of the limit, going by a first look."""
        if not self.slack:
            return None
        share = _share(likely_distance(loss, self.slack / 64), limit)
        found = self._with(loss, share)
        if found is not None and (found[0] <= FAR * share * limit or share == 1):
            return found
        # The first look was far off.
        distance = least_distance(loss, self.slack / 64)
        return self._with(loss, Fraction(1) if distance is None else _share(distance, limit)) or found

    def _with(self, loss: Loss, share: Fraction) -> Measured | None:
        """Return what dominates all releases, with this share of the slack."""
        slack = min(self.slack, round_up(self.slack * share, 3))
        distance = least_distance(loss, slack)
        return None if distance is None else (distance**2, slack)

    def as_loss(self, amount: Fraction, relation: Relation) -> Loss:
        """Gaussian differential privacy, μ rounded down."""
        return GaussianDP(_root(amount), relation=relation)


class ConcentratedGauge(Gauge):
    """ρ; a loss that can be infinite is measured by its finite part."""

    name = "zcdp"

    def limit(self, epsilon: Fraction) -> Fraction:
        """The largest ρ that is (ε, δ)-differentially private, to eleven digits."""
        from dalenius.losses.calibration import calibrate

        return 1 / calibrate(lambda s: ZeroConcentrated(1 / s), epsilon=epsilon, delta=self.delta)

    def measure(self, loss: Loss, limit: Fraction) -> Measured | None:
        """Terms that know their ρ, and the others evaluated."""
        return _sum(_times(_concentrated(term), n) for term, n in _terms(loss))

    def as_loss(self, amount: Fraction, relation: Relation) -> Loss:
        """Zero-concentrated differential privacy."""
        return ZeroConcentrated(amount, relation=relation)


@dataclass(frozen=True)
class RenyiGauge(Gauge):
    """The Rényi divergence of one order."""

    name = "renyi"
    order: int

    @property
    def label(self) -> str:
        """With its order."""
        return f"renyi {self.order}"

    def limit(self, epsilon: Fraction) -> Fraction:
        """Canonne, Kamath and Steinke 2020, Proposition 12, solved for the divergence."""
        with workprec(BITS):
            alpha, order = ball(self.order), ball(self.order - 1)
            lost = (-ball(self.delta).log() + order * (-1 / alpha).log1p() - alpha.log()) / order
            return Fraction(max(0.0, lower(ball(epsilon) - lost)))

    def measure(self, loss: Loss, limit: Fraction) -> Measured | None:
        """The divergence, or that of the largest finite loss."""
        found = divergence.upper(loss, Fraction(self.order))
        if math.isfinite(found):
            return Fraction(found), Fraction(0)
        bounded = largest_loss(loss)
        return bounded and (Fraction(Pure(bounded[0]).renyi(self.order).upper), bounded[1])

    def as_loss(self, amount: Fraction, relation: Relation) -> Loss:
        """Rényi differential privacy of that order."""
        return Renyi(self.order, epsilon=amount, relation=relation)


def largest_loss(loss: Loss) -> Measured | None:
    """The largest finite loss, exact where it is known as a rational, and the mass of the infinite ones."""
    directions = loss.directions()
    if directions is None:
        return None
    each = [_sum(_times(_bounded(pair), n) for pair, n in worst) for worst in directions]
    return _larger(each)


def _larger(each: Iterable[Measured | None]) -> Measured | None:
    """What bounds both directions."""
    found = list(each)
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    return max(one[0] for one in known), max(one[1] for one in known)


def _sum(parts: Iterable[Measured | None]) -> Measured | None:
    """Measures and slacks added up; None where any part has none."""
    total = slack = Fraction(0)
    for part in parts:
        if part is None:
            return None
        total, slack = total + part[0], slack + part[1]
    return total, slack


def _times(measured: Measured | None, n: int) -> Measured | None:
    return measured and (measured[0] * n, measured[1] * n)


def _terms(loss: Loss) -> tuple[tuple[Loss, int], ...]:
    return loss.terms if isinstance(loss, Composition) else ((loss, 1),)


def _bounded(pair: Pair) -> Measured | None:
    """The largest finite loss of a pair and the mass of the infinite ones."""
    exact, most = getattr(pair, "largest", None), pair.support[1]
    slack = pair.infinite_exact
    if not math.isfinite(most):
        return None
    return (
        exact if isinstance(exact, Fraction) else Fraction(max(most, 0.0)),
        Fraction(pair.infinite_mass[1]) if slack is None else slack,
    )


def _gaussian(loss: Loss) -> Measured | None:
    """μ² release by release."""
    directions = loss.directions()
    if directions is None:
        return None
    return _larger(_sum(_times(_gaussian_pair(pair), n) for pair, n in worst) for worst in directions)


@lru_cache(maxsize=1024)
def _gaussian_pair(pair: Pair) -> Measured | None:
    """μ² of a pair: its own, that of its largest shift, or that of the largest loss.

    A mixture of pairs is no easier to tell apart than the easiest of them.
    """
    if isinstance(pair, ShiftPair):
        return pair.distance**2, Fraction(0)
    if isinstance(pair, MixturePair):
        return max(shift for shift, _ in pair.atoms) ** 2, Fraction(0)
    bounded = _bounded(pair)
    return bounded and (squared_distance(bounded[0]), bounded[1])


def squared_distance(epsilon: Fraction) -> Fraction:
    """μ² of the Gaussians that are just as easy to tell apart as randomized response at its kink.

    Their trade-off curve is convex and that of ε-differential privacy is a chain of two chords, so the former
    is below once it is so at the kink, where both error rates are 1/(1 + e^ε): Φ(−μ/2) = 1/(1 + e^ε).
    """
    with workprec(BITS):
        odds = 1 / (1 + ball(epsilon).exp())
        # Φ(−μ/2) = ½ erfc(μ/√8), so μ = √8 erfc⁻¹(2/(1 + e^ε)).
        mu = arb(8).sqrt() * (1 - 2 * odds).erfinv() if epsilon < 1 else arb(8).sqrt() * (2 * odds).erfcinv()
        return Fraction(upper(mu * mu))


def _exact(loss: Loss) -> bool:
    """Whether nothing but Gaussians and leaks is in it, or a few releases of bounded loss."""
    pairs = [(pair, n) for worst in loss.directions() or () for pair, n in worst]
    if all(isinstance(pair, ShiftPair) or leaks(pair) for pair, _ in pairs):
        return True
    return sum(n for _, n in pairs) <= FEW and all(math.isfinite(pair.support[1]) for pair, _ in pairs)


def _concentrated(loss: Loss) -> Measured | None:
    """ρ and slack of one term: as it knows it, as it evaluates, or by its largest finite loss."""
    slack = Fraction(0)
    if isinstance(loss, Spared):
        slack, loss = loss.spared()
    known = loss.concentration() if isinstance(loss, Concentrated) else None
    if known is not None:
        return known[0], slack
    found = loss.zcdp().upper
    if math.isfinite(found):
        return Fraction(found), slack
    bounded = largest_loss(loss)
    return bounded and (Fraction(Pure(bounded[0]).zcdp().upper), slack + bounded[1])


def _root(amount: Fraction) -> Fraction:
    """The square root, rounded down."""
    return Fraction(math.isqrt(int(amount * 10**48)), 10**24)
