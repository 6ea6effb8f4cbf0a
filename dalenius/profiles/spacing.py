"""Laws of the loss on a lattice, for pairs whose losses are known to lie on one.

Rational losses have a greatest common divisor of their differences; so have the logarithms of the
powers of one rational ratio. The masses are floats with a common bound on their relative error; one
that is below the least normal number is dropped, and what is dropped is counted as infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dalenius.profiles.enclosure import Interval as Floating
from dalenius.profiles.lattice import Interval, Lattice
from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import TINY, U, up

MOST_POINTS = 2**20
"""How long a lattice may be."""
MOST_POWER = 64
"""Up to which power a ratio is looked for."""
Indices = tuple[int, ...]


def on_lattice(
    step: Interval, offset: Interval, start: int, masses: Floats, units: float, beyond: float = 0.0
) -> Lattice:
    """The law with these masses, each within `units` roundings of the truth but for underflow."""
    dropped = (masses > 0) & (masses < 2 * TINY)
    lost = beyond + float(np.count_nonzero(dropped)) * 4 * TINY
    kept = np.where(dropped, 0.0, masses)
    infinite = (0.0, up(lost) if lost else 0.0)
    return Lattice(step, offset, start, kept, error=2 * U * (units + 4), infinite=infinite)


def common_step(losses: Sequence[Fraction]) -> tuple[Fraction, Indices] | None:
    """The greatest step that reaches all from the first, and how many steps each takes."""
    below = math.lcm(*(loss.denominator for loss in losses))
    gaps = [int((loss - losses[0]) * below) for loss in losses]
    most = math.gcd(*gaps) or 1
    if gaps[-1] // most >= MOST_POINTS:
        return None
    return (Fraction(most, below), tuple(gap // most for gap in gaps))


def common_root(ratios: Sequence[Fraction]) -> tuple[Fraction, Indices] | None:
    """The ratio above 1 of which all are powers, if it is one of them or of their inverses."""
    root = min((max(ratio, 1 / ratio) for ratio in ratios if ratio != 1), default=None)
    if root is None:
        return None
    powers = {root**k: k for k in range(-MOST_POWER, MOST_POWER + 1)}
    found = tuple(powers.get(ratio) for ratio in ratios)
    known = tuple(power for power in found if power is not None)
    return (root, known) if len(known) == len(found) else None


def spaced(
    step: Interval, offset: Interval, indices: Indices, masses: Sequence[Floating], infinite: Floating
) -> Lattice:
    """The law with these enclosed masses at these indices."""
    values = np.zeros(indices[-1] - indices[0] + 1)
    loose = 0.0
    for index, (lo, hi) in zip(indices, masses, strict=True):
        values[index - indices[0]] = hi
        loose = max(loose, (hi - lo) / lo if lo > 2 * TINY else 0.0)
    law = on_lattice(step, offset, indices[0], values, loose / U + 4)
    both = (infinite[0], up(infinite[1] + law.infinite[1]) if infinite[1] + law.infinite[1] else 0.0)
    return Lattice(law.step, law.offset, law.start, law.masses, error=law.error, infinite=both)
