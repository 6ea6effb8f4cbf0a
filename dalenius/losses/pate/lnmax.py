"""LNMax: the class with the most votes, after Laplace noise of scale b = 1/γ on each count.

What neighbours are, and under which relations, is as in `gnmax`: one vote moves, so two counts change by 1.

Theorem (Papernot et al. 2017: LNMax is 2γ-differentially private). The winner is post-processing of the
noisy counts. Those of two classes have the worst pair of a Laplace release with ε₀ = γ each, the others say
nothing: the product of two such pairs dominates. It lies below the pair of one Laplace release with 2γ
(`laplace`), and so below 2γ-differential privacy, whose log-moments are at most 2γ²l(l+1) (Papernot et al.
2017, by Bun and Steinke 2016). An upper bound, as the winner tells less than the counts. From below it is
bounded by two classes one vote apart, where the other one wins with probability (2 + γ)e^{−γ}/4. A group of
k moves k votes: what is gained sums to k over the classes that gain, so does what is lost, and neither is
easier to see than k votes on one count (`laplace`, on vectors), so γ grows k-fold.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache

from dalenius.arithmetic import workprec
from dalenius.losses.fields import Described, Parameter, ratio
from dalenius.losses.laplace import LaplacePair
from dalenius.losses.loss import Loss
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.pair import Worst


@dataclass(frozen=True, repr=False)
class LNMax(Described, kind="lnmax"):
    """The winner of votes with Laplace noise of `scale`, counted in votes, on every class."""

    scale: Parameter[Fraction] = Parameter(ratio)
    _: KW_ONLY
    relation: Relation = "add_remove"

    def directions(self) -> tuple[Worst, ...]:
        """Two counts that change by 1; the pair is its own reverse."""
        return (((LaplacePair(1 / self.scale), 2),),)

    @property
    def tight(self) -> bool:
        """The winner tells less than the noisy counts."""
        return False

    def attained(self) -> Loss | None:
        """Two classes one vote apart."""
        lies = _less_likely(self.scale)
        return RandomizedResponse(2 * lies, relation=self.relation) if 2 * lies < 1 else None

    def concentration(self) -> tuple[Fraction, Fraction]:
        """γ²: ε²/2 for each of two counts; and D_α/α tends to 0, the loss being bounded."""
        return (1 / self.scale**2, Fraction(0))

    def enlarged(self, size: int) -> LNMax:
        """A group of k moves k votes at most."""
        return LNMax(self.scale / size, relation=self.relation)


@lru_cache(maxsize=1024)
def _less_likely(scale: Fraction) -> Fraction:
    """P(the difference of two Laplace variables is above one vote), rounded up."""
    with workprec(BITS):
        gamma = 1 / ball(scale)
        return Fraction(min(upper((2 + gamma) * (-gamma).exp() / 4), 0.5))
