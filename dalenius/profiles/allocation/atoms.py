"""Random allocation of a step with finitely many outcomes, multiplied out.

Under Qᵗ only the number of times each outcome occurs matters: n₁, n₂, … with the multinomial chance, and the
likelihood ratio is S = Σ nᵢxᵢ/t. P's mass where Q has none stays as it is, as the unit takes part once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from dalenius.arithmetic import arb, fmpz, workprec
from dalenius.profiles.allocation.pair import Allocated
from dalenius.profiles.atoms import NONE, Atom, Atoms, join
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.enclosure import Interval, between, interval, mass
from dalenius.profiles.pair import Pair

MOST_OUTCOMES = 4000
"""How many combinations are multiplied out."""

Outcome = tuple[arb, arb, Fraction | None]
"""The likelihood ratio of an outcome, its mass under Q, and the ratio as a rational where it is one."""


def allocated(pair: Pair, steps: int) -> Pair:
    """(S·Qᵗ, Qᵗ): finite where that is small enough."""
    if isinstance(pair, Atoms) and pair.atoms:
        kinds = len(pair.atoms) + (pair.missing[1] > 0)
        if math.comb(min(steps, MOST_OUTCOMES) + kinds - 1, kinds - 1) <= MOST_OUTCOMES >= steps:
            return _multiplied(pair, steps)
    return Allocated(pair, steps)


def _multiplied(pair: Atoms, steps: int) -> Atoms:
    with workprec(2 * BITS):
        outcomes = [_outcome(atom) for atom in pair.atoms]
        if pair.missing[1] > 0:
            outcomes.append((arb(0), between(pair.missing), Fraction(0)))
        atoms, missing = [], NONE
        for ratio, q, exact in _sums(outcomes, steps, steps):
            if exact == 0:
                missing = mass(q)
            else:
                atoms.append(_atom(ratio / steps, q, None if exact is None else exact / steps))
        return Atoms(join(atoms), pair.infinite, missing)


def _outcome(atom: Atom) -> Outcome:
    exact = Fraction(1) if atom.exact == 0 else atom.ratio
    loss = between(atom.loss) if atom.exact is None else ball(atom.exact)
    return (loss.exp() if exact is None else ball(exact), between(atom.q), exact)


def _atom(ratio: arb, q: arb, exact: Fraction | None) -> Atom:
    masses: tuple[Interval, Interval] = (mass(ratio * q), mass(q))
    return Atom(interval(ratio.log()), *masses) if exact is None else Atom.of_ratio(exact, *masses)


def _sums(outcomes: list[Outcome], left: int, steps: int) -> Iterator[Outcome]:
    """Σ nᵢxᵢ and its chance, for all n that add up to `left` of the steps."""
    (ratio, q, exact), rest = outcomes[0], outcomes[1:]
    for times in range(left + 1) if rest else (left,):
        here, chance = times * ratio, arb(fmpz(math.comb(left, times))) * q**times
        known = None if exact is None else times * exact
        if not rest:
            yield here, chance, known
            continue
        for more, other, also in _sums(rest, left - times, steps):
            both = None if known is None or also is None else known + also
            yield here + more, chance * other, both if times or exact is not None else also
