"""Weights of units, and the bins of `shapes` and `magnitudes`, in SQL over the shapes of units.

Exact as in `kernel_weights`: a real number makes a first guess, and whole numbers decide. A weight w is
allowed where w²·S ≤ T = ⌊(WEIGHT·limit)²⌋ (w·S ≤ ⌊WEIGHT·limit⌋ for "l1"); of the guess and its neighbours
the greatest that is allowed is taken, and 0 where none is.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dalenius.tables.engines.bounding.words import Words
from dalenius.tables.engines.engine import MAGNITUDES, SIZES, SPREADS, WEIGHT
from dalenius.tables.engines.kernel_weights import Norm

ROWS, SQUARES = 1 << 30, 1 << 60
"""A unit with as many rows in a group, or whose squares add up to more, has no weight."""
_NARROW = 1 << 60
"""Below this T, no product of the conditions leaves 64 bits."""
_ALWAYS = 1 << 100
"""A T that allows all weights: squares are 2^60 at most."""
_HALF = MAGNITUDES // 2
_OCTAVES = 128


def size_of(norm: Norm, *, presence: bool) -> str:
    """The column that a weight follows from: the square of the norm, or the norm for "l1"."""
    return "groups" if presence else "squares" if norm == "l2" else "held"


def guess(words: Words, limit: Fraction, norm: Norm, *, presence: bool) -> str:
    """A weight that is wrong by 1 at the most."""
    real = words.dialect.as_real(size_of(norm, presence=presence), "integer")
    length = f"SQRT({real})" if norm == "l2" else real
    top = words.dialect.number(float(min(WEIGHT * limit, Fraction(2) ** 900)))
    most = words.dialect.number(float(WEIGHT))
    return words.whole(f"FLOOR(LEAST({top} / {length}, {most}))")


def weight(words: Words, guessed: str, limit: Fraction, norm: Norm, *, presence: bool) -> str:
    """The weight itself."""
    size, power = size_of(norm, presence=presence), 2 if norm == "l2" else 1
    most = min(_ALWAYS, math.floor((WEIGHT * limit) ** power))
    bound = str(most) if most < _NARROW else words.wide(f"'{most}'")

    def allowed(one: str) -> str:
        first = one if most < _NARROW else words.wide(one)
        return f"{first} * {one} * {size} <= {bound}" if power == 2 else f"{first} * {size} <= {bound}"

    tried = [f"({guessed} + 1)", guessed, f"({guessed} - 1)"]
    found = " ".join(f"WHEN {one} BETWEEN 0 AND {WEIGHT} AND {allowed(one)} THEN {one}" for one in tried)
    return (
        f"CASE WHEN squares IS NULL THEN 0 {found} ELSE 0 END" if not presence else f"CASE {found} ELSE 0 END"
    )


def bins(words: Words, norm: Norm, *, presence: bool) -> tuple[str, str]:
    """The two numbers of a unit's bin in `shapes`."""
    if presence:
        size = words.octaves("groups" if norm == "l2" else "groups * groups")
        spread = words.octaves("groups") if norm == "l2" else "0"
        return _held(size, SIZES), _held(spread, SPREADS)
    large, few = "squares IS NULL", f"held <= {1 << 31}"
    if norm == "l1":
        size = f"CASE WHEN {few} THEN {words.octaves('held * held')} ELSE {SIZES - 1} END"
        return f"CASE WHEN {large} THEN {SIZES - 1} ELSE {_held(size, SIZES)} END", "0"
    narrow = words.quotient("(held * held + squares - 1)", "squares")
    held, squares = words.wide("held"), words.wide("squares")
    wide = words.whole(words.quotient(f"({held} * held + squares - 1)", squares))
    spread = f"CASE WHEN {few} THEN {words.octaves(narrow)} ELSE {words.octaves(wide)} END"
    return (
        f"CASE WHEN {large} THEN {SIZES - 1} ELSE {_held(words.octaves('squares'), SIZES)} END",
        f"CASE WHEN {large} THEN 0 ELSE {_held(spread, SPREADS)} END",
    )


def magnitude(words: Words, value: str) -> str:
    """The bin of a value in `magnitudes`."""
    size = f"ABS({value})"
    far, near = (words.dialect.number(2.0**power) for power in (_OCTAVES - 1, 1 - _OCTAVES))
    octave = (
        f"CASE WHEN {size} >= {far} THEN {_HALF} WHEN {size} < {near} THEN 1 "
        f"ELSE {words.exponent(value)} + {_OCTAVES + 1} END"
    )
    zero = words.dialect.number(0.0)
    return (
        f"CASE WHEN {value} = {zero} THEN {_HALF} WHEN {value} > {zero} THEN {_HALF} + {octave} "
        f"ELSE {_HALF} - {octave} END"
    )


def _held(bin_: str, count: int) -> str:
    return f"LEAST({bin_}, {count - 1})"
