"""How a figure that depends on the votes is made public: noise in proportion to its smooth sensitivity.

What is released at order λ is the figure f plus k·S plus Gaussian noise of `scale`·S, with S the smooth
sensitivity (`votes`). The shift k = z·scale makes it an upper bound on f with the stated `confidence`
Φ(z), whatever S is, which stays secret. It moves by k|S − S′| ≤ k(1/θ − 1)·min(S, S′) for neighbours, with θ
the `ratio`, and its rounding to whole units by less than 2⁻¹⁰S, so `reach` in `smooth` is 1 + k(1/θ − 1) +
2⁻¹⁰.

The loss is a function of these public parameters alone, so it is charged before the votes are looked at.
Every release is charged for by itself. The confidence is that of one: the least ε of several releases, or at
several orders, is an upper bound less often.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.concentrated import Renyi
from dalenius.losses.fields import written
from dalenius.losses.pate.smooth import SmoothGaussian
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation, read_relation
from dalenius.profiles.balls import BITS, ball, upper

SLACK = Fraction(1, 2**10)
"""What rounding the shift may add to the reach."""
LEAST_ORDER, MOST_ORDER = Fraction(101, 100), 10**6
LEAST_RATIO, MOST_RATIO = Fraction(1, 2), Fraction(9999, 10000)
MOST_CONFIDENCE = 1 - Fraction(1, 10**30)


@dataclass(frozen=True, init=False)
class Sanitizer:
    """Public parameters of a release of the figure at `order`."""

    order: Fraction
    scale: Fraction
    ratio: Fraction
    confidence: Fraction
    relation: Relation

    def __init__(
        self,
        *,
        order: Number,
        scale: Number,
        ratio: Number,
        confidence: Number = 0.95,
        relation: Relation = "add_remove",
    ) -> None:
        share = numbers.exact(ratio, "ratio")
        if not LEAST_RATIO <= share <= MOST_RATIO:
            raise InvalidArgument("ratio must be from 0.5 to 0.9999.", remedy="Choose ratio such as 0.98.")
        kept = {
            "order": _order(order),
            "scale": numbers.positive(scale, "scale"),
            "ratio": share,
            "confidence": _confidence(confidence),
            "relation": read_relation(relation),
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)
        _ = self.loss

    @property
    def shift(self) -> Fraction:
        """k: smooth sensitivities added, so that the noise exceeds them rarely."""
        if 2 * self.confidence <= 1:
            return Fraction(0)
        with workprec(BITS):
            z = arb(2).sqrt() * (2 * ball(self.confidence) - 1).erfinv()
            return Fraction(upper(z)) * self.scale

    @property
    def loss(self) -> SmoothGaussian:
        """What the release costs, to be charged beside the answers."""
        reach = 1 + self.shift * (1 / self.ratio - 1) + SLACK
        return SmoothGaussian(self.scale, ratio=self.ratio, reach=reach, relation=self.relation)


def _order(value: Number) -> Fraction:
    order = numbers.exact(value, "order")
    if not LEAST_ORDER <= order <= MOST_ORDER:
        raise InvalidArgument("order must be from 1.01 to 1e6.", remedy="Choose order such as 20.")
    return order


def _confidence(value: Number) -> Fraction:
    share = numbers.confidence(value)
    if share > MOST_CONFIDENCE:
        raise InvalidArgument("confidence must be at most 1 - 1e-30.", remedy="Choose such as 0.99.")
    return share


@dataclass(frozen=True)
class Sanitized:
    """A released figure: with `confidence`, D_λ of all answers for this data set is at most `value`."""

    value: Fraction
    _: KW_ONLY
    order: Fraction
    confidence: Fraction
    loss: SmoothGaussian
    tainted: bool = field(default=False)

    def epsilon(self, delta: Number) -> float:
        """The figure as ε at `delta`, of the answers and of this release together, at this order."""
        answers = Renyi(self.order, epsilon=self.value, relation=self.loss.relation)
        return (answers + self.loss).epsilon(delta).upper

    def __str__(self) -> str:
        percent = written(100 * self.confidence)
        return (
            f"Rényi divergence of order {written(self.order)} at most {float(self.value):.6g} ({percent} %)"
        )
