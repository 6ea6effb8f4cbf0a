"""How the cost of a query is divided among its parts, and the loss of all of them together.

Theorem. Let part i be Gaussian noise of kᵢ times its L2 sensitivity, chosen after the parts before it. It is
dominated by N(1/kᵢ, 1) against N(0, 1) whatever came before, so all of them are by N(μ, 1) against N(0, 1)
with μ² = Σ 1/kᵢ² (`losses.composition`, `losses.gaussian`). With kᵢ = k·√(Σw/wᵢ), rounded up, μ ≤ 1/k: the
loss is that of one Gaussian of multiplier k. Laplace noise of 1/εᵢ times its L1 sensitivity is εᵢ-private
whatever came before, and the whole Σεᵢ-private.

Selecting keys comes first: Gaussian noise on how many units hold each key, a unit counting in m of them at
most, and the keys whose noisy count reaches a threshold. Where no key is held by the unit alone that is such
a part, of L2 sensitivity √m (under replace √2m). A key that it holds alone is shown, by which all may be
told, with probability d each, and some key is with f = 1 − (1 − d)^m. So the loss is that of the Gaussian
composed with `losses.Approximate` of ε = 0 and δ = f (docs/proofs/tables.md). Calibration is of that whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.losses.composition import compose
from dalenius.losses.gaussian import Gaussian as GaussianLoss
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate, Pure
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.new_keys import chance
from dalenius.mechanisms.noisy_threshold import NoisyThreshold
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity, sqrt_up
from dalenius.privacy.unit import Relation

Norm = Literal["l2", "l1"]
Additive = Gaussian | Laplace

ROOM = {"l2": Fraction(2**50), "l1": Fraction(2**39)}
"""The largest scale of exact noise, and the largest sensitivity, in steps."""
MOST_MULTIPLIER = {"l2": 2**24, "l1": 2**17}
"""Beyond, a query of so small an epsilon would tell nothing."""
SELECTING = Fraction(9, 25)
"""The part of the cost that selecting keys takes: the noise of everything else grows by a quarter."""
KEY_FAILURE = Fraction(1, 1000)
"""The part of delta for keys that a unit holds alone. These parts add up over the queries of an account,
whose filter has a few hundredths of its delta for them: a quarter would fit not once, this often."""
LEAST_FAILURE = Fraction(1, 10**45)
"""Smaller chances of a key's being shown are not told apart."""
MARGIN, FASTER = Fraction(2, 10**8), 4
"""By how much a multiplier is raised beside what selection costs, which is evaluated with an error; each
time that this is found a hair too small it is so many times as much."""
EACH_SEARCH, MOST_SEARCH = Fraction(3, 20), Fraction(7, 20)
"""The part of the cost that a search for bounds takes, and that all of them together may take."""


@dataclass(frozen=True)
class Noise:
    """The noise of one part: `multiplier` times the sensitivity under the relation."""

    norm: Norm
    multiplier: Fraction
    relation: Relation

    def sensitivity(self, bound: Fraction, *, nonnegative: bool) -> Sensitivity:
        """Of a sum to which one unit adds a vector of norm at most `bound`."""
        if self.norm == "l2":
            return Sensitivity.of_sum(l2=bound, nonnegative=nonnegative, relation=self.relation)
        return Sensitivity.of_sum(l1=bound, nonnegative=nonnegative, relation=self.relation)

    def on(self, bound: Fraction, *, nonnegative: bool) -> Additive:
        """The mechanism, on whole numbers."""
        sensitivity = self.sensitivity(bound, nonnegative=nonnegative)
        scale = Fraction(math.ceil(self.multiplier * sensitivity.need(self.norm) * 2**20), 2**20)
        law = Gaussian if self.norm == "l2" else Laplace
        return law(scale=scale, sensitivity=sensitivity, grid=Grid(0), exact=True)

    def mean_error(self, *, nonnegative: bool = True) -> float:
        """The mean absolute error for a bound of 1."""
        scale = float(
            self.multiplier * self.sensitivity(Fraction(1), nonnegative=nonnegative).need(self.norm)
        )
        return scale * math.sqrt(2 / math.pi) if self.norm == "l2" else scale

    def room(self) -> Fraction:
        """The largest bound on one unit for which exact noise can be drawn."""
        return ROOM[self.norm] / (2 * max(self.multiplier, Fraction(1)))


@dataclass(frozen=True)
class Split:
    """The parts of a query's cost; `loss` is that of all of them."""

    loss: Loss
    selection: NoisyThreshold | None
    noises: tuple[Noise, ...]


def split(
    *,
    epsilon: Fraction,
    delta: Fraction,
    relation: Relation,
    weights: tuple[Fraction, ...],
    keys: int | None,
    selecting: Fraction = SELECTING,
) -> Split:
    """(epsilon, delta) divided by weights; `keys` is how many a unit may have, where keys are selected.

    `selecting` is the part of the cost that selecting keys takes.
    """
    if keys is None and not weights:
        return Split(Pure(0, relation=relation), None, ())
    if delta == 0:
        pure = _pure(epsilon)
        return Split(Pure(pure, relation=relation), None, _laplace(pure, relation, weights))
    if keys is None:
        multiplier = _calibrated(epsilon, delta, Fraction(0))
        return Split(_loss(multiplier, Fraction(0), relation), None, _gaussian(multiplier, relation, weights))
    failure = delta * KEY_FAILURE
    if failure < LEAST_FAILURE:
        raise InvalidArgument(
            "delta is too small for selecting groups: no threshold is known to keep it.",
            remedy=Message(
                "List the groups (", Argument("keys", "keys=…"), "), or allow a delta of at least 1e-40."
            ),
        )
    multiplier = _calibrated(epsilon, delta, failure)
    whole = sum(weights)
    # Where nothing is measured, selecting takes all of it.
    share = selecting if whole else Fraction(1)
    rest = tuple((1 - share) * weight / whole for weight in weights)
    first, *others = _gaussian(multiplier, relation, (share, *rest))
    return Split(_loss(multiplier, failure, relation), _selection(first, keys, failure), tuple(others))


def _selection(noise: Noise, keys: int, failure: Fraction) -> NoisyThreshold:
    """The least threshold that keeps what units hold alone."""
    scale = noise.on(sqrt_up(Fraction(keys)), nonnegative=True).scale
    low, high = 1, 2
    while chance(scale, high, "gaussian", keys) > failure:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if chance(scale, middle, "gaussian", keys) > failure else (low, middle)
    return NoisyThreshold(scale=scale, threshold=high, keys=keys, noise="gaussian")


def search_share(searches: Sequence[Fraction]) -> Fraction:
    """Return the part of the cost for searches of these weights, the same for any number of groups.

    What noise hides of a histogram is in the interval of every group, about as many times as its own noise
    is: the sum of both, A/√(1 − s) + B/√s for a share s, is least near a half and flat about it, and what is
    released has the noise of the first alone.
    """
    return min(sum(searches, Fraction(0)) * EACH_SEARCH, MOST_SEARCH)


def weights_of(searches: Sequence[Fraction], measures: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return the shares of searches and of measures, by their weights."""
    share, looked, whole = search_share(searches), sum(searches), sum(measures)
    found = [share * each / looked for each in searches]
    return (*found, *((1 - share) * each / whole for each in measures))


def _gaussian(total: Fraction, relation: Relation, weights: tuple[Fraction, ...]) -> tuple[Noise, ...]:
    whole = sum(weights)
    return tuple(_noise("l2", _short(sqrt_up(total**2 * whole / weight)), relation) for weight in weights)


def _laplace(epsilon: Fraction, relation: Relation, weights: tuple[Fraction, ...]) -> tuple[Noise, ...]:
    whole = sum(weights)
    return tuple(_noise("l1", whole / (epsilon * weight), relation) for weight in weights)


def _short(number: Fraction) -> Fraction:
    """A decimal of few digits, not below."""
    return Fraction(math.ceil(number * 10**9), 10**9)


def too_small() -> InvalidArgument:
    """What is said of an epsilon that tells nothing."""
    return InvalidArgument(
        "epsilon is too small for a query of so many parts: nothing would be left but noise.",
        remedy="Allow a larger epsilon, or ask for fewer aggregates.",
    )


def _noise(norm: Norm, multiplier: Fraction, relation: Relation) -> Noise:
    if multiplier > MOST_MULTIPLIER[norm]:
        raise too_small()
    return Noise(norm, multiplier, relation)


@lru_cache(maxsize=256)
def _calibrated(epsilon: Fraction, delta: Fraction, failure: Fraction) -> Fraction:
    """The multiplier of all noise together, where `failure` of delta is for keys held alone."""
    found = GaussianLoss.calibrate(epsilon=epsilon, delta=delta - failure).noise_multiplier
    margin = MARGIN if failure else Fraction(0)
    while True:
        raised = _short(found * (1 + margin)) if margin else found
        if _loss(raised, failure, "add_remove").epsilon(delta).upper <= epsilon:
            return raised
        margin = max(FASTER * margin, MARGIN)


def _pure(epsilon: Fraction) -> Fraction:
    """An epsilon whose upper end, a float, reads as no more than the one that was asked for does."""
    if Pure(epsilon).epsilon(0).upper <= float(epsilon):
        return epsilon
    places = Fraction(10) ** (15 - math.floor(math.log10(epsilon)))
    return math.floor(epsilon * (1 - Fraction(1, 2**52)) * places) / places


@lru_cache(maxsize=256)
def _loss(multiplier: Fraction, failure: Fraction, relation: Relation) -> Loss:
    """That of noise, and of keys held alone; sensitivities are those of the relation already."""
    noise = GaussianLoss(multiplier * (2 if relation == "replace" else 1), relation=relation)
    return compose([noise, Approximate(0, delta=failure, relation=relation)]) if failure else noise
