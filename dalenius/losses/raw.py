"""Losses given by their distributions: a pair, a privacy-loss distribution, or a trade-off curve.

Each is a finite pair (P, Q), P with the unit and Q without it, and holds in both directions: (P, Q) for
removing a unit and (Q, P) for adding one. The description is the pair, so the evaluation is tight.

Under replace neither data set comes first: of two neighbours one has P and the other Q, and which one may
differ from release to release. One release is evaluated by the worse of both orders, as above; several
are composed of the least pair that dominates both (`either_way`), which bounds every choice of orders from
above, also one that depends on earlier outcomes.

    DiscretePair              the masses of P and of Q on the same outcomes.
    PrivacyLossDistribution   the law of L = log dP/dQ under P. Q has the masses p·e^{−l}, which must not add
                              up to more than 1; the rest of Q is where P has nothing.
    TradeoffCurve             the convex curve through the given points (false-positive rate of a test for the
                              unit, its least false-negative rate), from fpr 0 to fpr 1 or to fnr 0. A
                              segment is an outcome: its width is the mass under Q and its drop that under P
                              (Dong, Roth and Su 2022); 1 − fnr at fpr 0 is infinite loss.
                              A curve that holds both ways is covered too: the reverse has the mirrored one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Described, Numbers, Parameter
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation
from dalenius.profiles.atoms import Atom, Atoms, join, rational
from dalenius.profiles.balls import BITS, ball, lower, upper
from dalenius.profiles.enclosure import around, interval
from dalenius.profiles.pair import Worst
from dalenius.profiles.worse import envelope

Masses = tuple[tuple[Fraction, Fraction], ...]
"""Of each outcome, under P and under Q."""


def both_ways(pair: Atoms) -> tuple[Worst, ...]:
    """The pair for removing a unit, its reverse for adding one; one of them where they are the same."""
    return tuple(dict.fromkeys((((pair, 1),), ((pair.reversed(), 1),))))


@dataclass(frozen=True, repr=False)
class DiscretePair(Described, kind="discrete_pair"):
    """Two finite distributions on the same outcomes: `p` with the unit, `q` without it."""

    p: Numbers = Numbers(numbers.probability)
    q: Numbers = Numbers(numbers.probability)
    _: KW_ONLY
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        _same_length(self.p, self.q, "p", "q")
        _total(self.p, "p")
        _total(self.q, "q")

    def directions(self) -> tuple[Worst, ...]:
        """Removing, then adding."""
        return both_ways(rational(zip(self.p, self.q, strict=True)))

    def either_way(self) -> Worst:
        """Return the least pair that dominates both directions."""
        return _either_way(tuple(zip(self.p, self.q, strict=True)))


@dataclass(frozen=True, repr=False)
class PrivacyLossDistribution(Described, kind="privacy_loss_distribution"):
    """The law of the privacy loss: `losses` with their `probabilities`, and `infinite` for the rest."""

    losses: Numbers = Numbers(numbers.exact)
    probabilities: Numbers = Numbers(numbers.probability)
    _: KW_ONLY
    infinite: Parameter[Fraction] = Parameter(numbers.probability, Fraction(0))
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        _same_length(self.losses, self.probabilities, "losses", "probabilities")
        _total((*self.probabilities, self.infinite), "probabilities and infinite")
        if any(abs(loss) > 10**6 for loss in self.losses):
            raise InvalidArgument("losses must be from -1e6 to 1e6.", remedy="Count the others as infinite.")
        if _uncovered(self.losses, self.probabilities)[1] < 0:
            raise InvalidArgument(
                "losses and probabilities make the masses p·exp(-loss) add up to more than 1.",
                remedy="Round the losses up, or give those that are too low as 0.",
            )

    def directions(self) -> tuple[Worst, ...]:
        """Removing, then adding."""
        return both_ways(_from_losses(self.losses, self.probabilities, self.infinite))


@dataclass(frozen=True, repr=False)
class TradeoffCurve(Described, kind="tradeoff_curve"):
    """The convex piecewise-linear trade-off curve through the points (`fpr`, `fnr`)."""

    fpr: Numbers = Numbers(numbers.probability)
    fnr: Numbers = Numbers(numbers.probability)
    _: KW_ONLY
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        _same_length(self.fpr, self.fnr, "fpr", "fnr")
        _curve(self.fpr, self.fnr)

    def directions(self) -> tuple[Worst, ...]:
        """Removing, then adding."""
        return both_ways(rational(self._masses))

    def either_way(self) -> Worst:
        """Return the least pair that dominates both directions."""
        return _either_way(self._masses)

    @property
    def _masses(self) -> Masses:
        """The segments of the curve as outcomes."""
        points = list(zip(self.fpr, self.fnr, strict=True))
        rows = [(fnr - later, next_ - fpr) for (fpr, fnr), (next_, later) in pairwise(points)]
        return (*rows, (1 - self.fnr[0], Fraction(0)), (Fraction(0), 1 - self.fpr[-1]))


@lru_cache(maxsize=1024)
def _either_way(masses: Masses) -> Worst:
    return ((envelope(masses, tuple((q, p) for p, q in masses)), 1),)


@lru_cache(maxsize=1024)
def _from_losses(losses: tuple[Fraction, ...], masses: tuple[Fraction, ...], infinite: Fraction) -> Atoms:
    atoms = []
    with workprec(BITS):
        for loss, mass in zip(losses, masses, strict=True):
            if mass > 0:
                atoms.append(Atom.of_loss(loss, around(mass), interval(ball(mass) * (-ball(loss)).exp())))
    low, high = _uncovered(losses, masses)
    return Atoms(join(atoms), around(infinite), (max(low, 0.0), max(high, 0.0)))


def _uncovered(losses: Sequence[Fraction], masses: Sequence[Fraction]) -> tuple[float, float]:
    """Enclose 1 − Σ p e^{−l}."""
    with workprec(2 * BITS):
        total = sum((ball(m) * (-ball(x)).exp() for x, m in zip(losses, masses, strict=True)), ball(0.0))
        rest = 1 - total
        return (lower(rest), upper(rest))


def _same_length(a: tuple[Fraction, ...], b: tuple[Fraction, ...], first: str, second: str) -> None:
    if len(a) != len(b) or not a:
        raise InvalidArgument(
            f"{first} and {second} must be as long as each other, and not empty.",
            remedy=f"Pass one of {second} for each of {first}.",
        )


def _total(values: tuple[Fraction, ...], name: str) -> None:
    if sum(values) != 1:
        raise InvalidArgument(
            f"{name} must add up to exactly 1, not {float(sum(values)):.17g}.",
            remedy="Pass Fractions, or floats whose printed decimals add up to 1.",
        )


def _curve(fpr: tuple[Fraction, ...], fnr: tuple[Fraction, ...]) -> None:
    steps = [(b - a, d - c) for (a, c), (b, d) in pairwise(zip(fpr, fnr, strict=True))]
    rising = all(x > 0 and y <= 0 for x, y in steps)
    convex = all(y1 * x2 <= y2 * x1 for (x1, y1), (x2, y2) in pairwise(steps))
    below = all(a + b <= 1 for a, b in zip(fpr, fnr, strict=True))
    if not (fpr[0] == 0 and fnr[-1] == 0 and rising and convex and below):
        raise InvalidArgument(
            "fpr and fnr must be a convex curve that falls from fpr 0 to fnr 0, at or below fnr = 1 − fpr.",
            remedy="Give increasing fpr from 0 and decreasing fnr to 0, with slopes that flatten.",
        )
