"""A Poisson sample cut to a uniformly random subset of `cap` records where it is larger.

The data sets have `population` records at most, the differing one included: a public bound.

Theorem. Let (P, Q) dominate the release for removing a record, and (P_r, Q_r) for replacing one. With q the
sampling rate, B the cap, N the population, let q′ = qB/(B+1), and
    τ = (B+1)/(qN)·P[Bin(N, q) > B]    where q(N−1) ≤ B, else P[Bin(N−1, q) ≥ B].
Then for removing a record the release on a cut sample has
    H ≤ (1−τ)·H_a + τ·max(H_a, H_r),
H_a that of ((1−q)Q + qP, Q) and H_r that of ((1−q′)Q_r + q′P_r, Q_r); for adding one the same holds of
the reverse pairs. So it is dominated by a pair, and composes.

Proof. Draw the m < N other records first, K of them. If K < B nothing is cut, whether the record comes
along or not: a plain Poisson sample, H_a. If K ≥ B, then without the record the batch is a uniformly
random B of the m, whatever K is: the law ν. With it, the record is drawn with q and stays with B/(K+1),
in the place of a random one of such a batch; else the law is ν again. On average over K ≥ B it is there at
a rate q″, P(K ≥ B)·q″ = q·E[B/(K+1); K ≥ B] = B/(m+1)·P[Bin(m+1, q) > B]. Since q″ ≤ q′, this is the mixture
at rate q′ with weight q″/q′, and ν otherwise, of which H_a is no less than the divergence from itself.
Knowing whether K ≥ B only helps an attacker, so H ≤ (1−τ_m)H_a + τ_m·H_r with
τ_m = P(K ≥ B)·q″/q′ = (B+1)/(q(m+1))·P[Bin(m+1, q) > B] ≤ P(K ≥ B), which grows with m. τ_m itself does up to
m = N−1 where q(N−1) ≤ B: it is (B+1) times the mean over j ≤ m of P[Bin(j, q) = B], which grow in j up to
there. Once H_r is raised to the maximum, the bound grows with τ_m.

No δ is added. Chua et al. 2024 ("Scalable DP-SGD") count a cut as a failure, at (1+e^ε) times its
probability for every step; Ganesh 2025 keeps the cut batch as here.

A record that is alone is never cut, so a plain Poisson sample bounds the answer from below. `tight` is False.
Under zero_out a null record would take a place in the batch, which an absent one does not: refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from dalenius.errors import NotSound
from dalenius.losses.attained import attained
from dalenius.losses.carried import Carried
from dalenius.losses.fields import a_loss
from dalenius.losses.group import Group
from dalenius.losses.loss import Loss
from dalenius.losses.mixture import mixed
from dalenius.losses.poisson import Concentrated, single
from dalenius.losses.sampling.moments import chord
from dalenius.losses.sampling.pairs import needed, thin
from dalenius.losses.sampling.tail import at_least
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles.pair import Pair, Worst
from dalenius.profiles.worse import worst


def truncate(loss: Loss, sampling_rate: Number, *, population: int, cap: int) -> Loss:
    """The same on a Poisson sample that is cut to `cap` records."""
    rate = numbers.rate(sampling_rate, "sampling_rate")
    cut = TruncatedPoisson(loss, rate, population, cap)
    return loss.poisson(rate) if cut.population <= cut.cap else cut


@dataclass(frozen=True)
class TruncatedPoisson(Loss, kind="truncated_poisson"):
    """A loss on a Poisson sample of at most `population` records, cut to `cap` where it is larger."""

    loss: Loss
    sampling_rate: Fraction
    population: int
    cap: int
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sampling_rate", numbers.rate(self.sampling_rate, "sampling_rate"))
        object.__setattr__(self, "population", numbers.count(self.population, "population"))
        object.__setattr__(self, "cap", numbers.count(self.cap, "cap"))
        object.__setattr__(self, "relation", a_loss(self.loss, "loss").relation)
        if self.loss.relation != "add_remove":
            raise NotSound(
                f"No theorem bounds a Poisson sample that is cut under the {self.loss.relation} relation.",
                remedy="State the loss for add_remove, where the theorem holds.",
            )
        needed(self.loss)

    @property
    def tight(self) -> bool:
        """No mechanism is known that attains it."""
        return False

    @property
    def cut(self) -> Fraction:
        """τ of the module, rounded up."""
        others, expected = self.population - 1, self.sampling_rate * self.population
        if expected - self.sampling_rate > self.cap:
            return at_least(others, self.sampling_rate, self.cap)
        larger = at_least(self.population, self.sampling_rate, self.cap + 1)
        return min(larger * (self.cap + 1) / expected, Fraction(1))

    def directions(self) -> tuple[Worst, ...]:
        """Removing a record, then adding one."""
        return _directions(self.loss, self.sampling_rate, self.cut, self.cap)

    def attained(self) -> Loss | None:
        """A record that is alone."""
        inner = attained(self.loss)
        return None if inner is None or single(inner) is None else inner.poisson(self.sampling_rate)

    def moment(self, order: float) -> float:
        """From those at a few orders."""
        return chord(self, order)

    def enlarged(self, size: int) -> Loss:
        """The path bound: no data set on the path is larger than the largest."""
        return Group(self, size)

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        """At most that of replacing a record, at least that of a plain Poisson sample."""
        replaced = self.loss.under("replace")
        ends = [part.concentration() for part in (replaced, self.loss) if isinstance(part, Concentrated)]
        known = [end for end in ends if end is not None]
        return (max(end[0] for end in known), known[1][1]) if len(known) == 2 and known[1][1] > 0 else None


@lru_cache(maxsize=256)
def _directions(loss: Loss, rate: Fraction, cut: Fraction, cap: int) -> tuple[Worst, ...]:
    """Plain with 1 − `cut`, else the worse of plain and replaced."""
    pairs, lesser = needed(loss), rate * cap / (cap + 1)
    # A composition may lose its finite form when carried over term by term, and not as a whole.
    replaced = single(loss.under("replace")) or needed(Carried(loss, "replace"))
    remove = _cut(thin(pairs[0], rate), [thin(pair, lesser) for pair in replaced], cut)
    back = [thin(pair.reversed(), lesser).reversed() for pair in replaced]
    add = _cut(thin(pairs[-1].reversed(), rate).reversed(), back, cut)
    return (((remove, 1),), ((add, 1),))


def _cut(plain: Pair, replaced: list[Pair], cut: Fraction) -> Pair:
    return mixed(((1 - cut, plain), (cut, worst(plain, *replaced))))
