"""Releases that are set aside from the others, at a price in ε and δ.

Two theorems, for a composition of some releases with the others, which are (ε, δ)-private in all directions:

    bounded   releases whose losses add up to at most b make all of them (ε + b, δ)-private (basic
              composition).
    rare      releases on Poisson samples, any of which has the unit with probability f = 1 − Π(1 − qᵢ), make
              all of them (ε − log(1 − f), f + δ)-private. With (P, Q) the pair of the others, N the law of
              these without the unit, and M = (1 − f)N + f·M₁ that with it: for removing the unit, by joint
              convexity, H(M×P‖N×Q)(ε) ≤ (1 − f)·H(P‖Q)(ε) + f; for adding it, as M×Q ≥ (1 − f)·N×Q,
              H(N×P‖M×Q)(ε) ≤ H(P‖Q)(ε + log(1 − f)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dalenius.arithmetic import arb, workprec
from dalenius.losses.composition import Composition, compose
from dalenius.losses.divergence import largest
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Poisson
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.rounding import U

SMALL = 0.01
"""Up to which share of ε losses are set aside as bounded."""
RARE = 1e-3
"""Up to which share of δ the chance of a sample is set aside."""


@dataclass(frozen=True)
class Apart:
    """The other releases, and what those that were set aside cost beside them."""

    rest: Loss
    epsilon: float
    delta: float


def set_apart(loss: Loss, epsilon: float, delta: float) -> Iterator[Apart]:
    """Yield losses of fewer releases that answer for this one, where little is lost.

    Args:
        loss: All releases.
        epsilon: About the ε of the question or answer; infinite where nothing is known.
        delta: About its δ.
    """
    if not isinstance(loss, Composition):
        return
    bounded = {term: largest(term) for term, _ in loss.terms}
    if epsilon < math.inf:
        bounded = {term: top for term, top in bounded.items() if top <= SMALL * epsilon}
    cost = math.fsum(n * bounded[term] for term, n in loss.terms if bounded.get(term, math.inf) < math.inf)
    few = tuple((term, n) for term, n in loss.terms if not bounded.get(term, math.inf) < math.inf)
    if 0 < len(few) < len(loss.terms) and (cost <= SMALL * epsilon):
        yield Apart(compose(term * n for term, n in few), cost * (1 + 4 * U), 0.0)
    often = tuple((term, n) for term, n in loss.terms if not _is_rare(term, n, delta))
    if 0 < len(often) < len(loss.terms):
        yield _rare(often, tuple(row for row in loss.terms if row not in often))


def _is_rare(term: Loss, n: int, delta: float) -> bool:
    """Return whether a Poisson sample is drawn with next to no chance."""
    return isinstance(term, Poisson) and n * term.sampling_rate <= Fraction(RARE * delta)


def _rare(often: tuple[tuple[Loss, int], ...], seldom: tuple[tuple[Loss, int], ...]) -> Apart:
    with workprec(BITS):
        log = sum((n * (-ball(t.sampling_rate)).log1p() for t, n in seldom if isinstance(t, Poisson)), arb(0))
        return Apart(compose(term * n for term, n in often), upper(-log), upper(-log.expm1()))
