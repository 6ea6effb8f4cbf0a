"""The range of a value as the engine counts it: steps of a grid, so fine that cutting to them hardly shows.

Each value is cut towards zero by up to a step, all to the same side, so what N rows lose grows as N while the
noise does not. With noise of k times what one row adds at most, B bits of it and N rows that is N/(k·2^B) of
the noise: at 30 bits a thousandth for a million rows. More bits cost time where there are many groups. Bars
allow for it where the number of rows is measured too (see `estimates`); a sum by itself has six bits more.

A sum alone is counted from zero. Where the number of values is measured too, it is counted from the centre
of the range, which halves what one value can add: an average needs no more, and a sum is the steps and the
centre times the number, with less noise than before.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dalenius.privacy.quantized import Grid
from dalenius.tables.engines.engine import WEIGHT, Measure
from dalenius.tables.planning.budgeting import Noise
from dalenius.tables.planning.measures import Need, ends
from dalenius.tables.question import Interval
from dalenius.tables.rows import Range

BITS, BITS_ALONE = 30, 36
"""Of the most that a value adds, where their number is measured too, and where it is not."""
BITS_AND_GROUPS = 44
"""Of both together, at most: engines add in 64 bits, and empty the sums of all groups the more often."""
LEAST_BITS = 4
FINEST = 50
"""Bits of a float that steps may show."""
LEVELS, LEAST_LEVELS = {"l2": 10, "l1": 7}, 4
"""Of a tree: 1,024 leaves, 128 or 16. With Laplace noise a level costs more."""
LOUD = 20
"""Noise, over the sensitivity, from which on a tree has two levels less: finer leaves would be noise."""
MOST_NODES = 2**22
"""Counts of a tree over all groups."""


def bits_of(groups: int, *, alone: bool) -> int:
    """How many bits of a value are added up in so many groups, where there is room for them."""
    fits = BITS_AND_GROUPS - groups.bit_length()
    return BITS_ALONE if alone and fits > BITS else min(BITS, fits)


def stepped(interval: Interval, room: Fraction, *, centred: bool, bits: int = BITS) -> Range:
    """The range on a grid; `room` is the most that a row may add, in steps."""
    furthest = max(abs(interval.lower), abs(interval.upper))
    far = (interval.upper - interval.lower) / 2 if centred else furthest
    # Ends moved outward, and the centre moved onto the grid, add two. The step of a grid is more than a half.
    steps = max(1 << LEAST_BITS, min(1 << bits, math.floor(room) - 2))
    found = on_grid(interval, 2 * far / steps)
    least, most = ends(found)
    return replace(found, offset=(least + most) // 2 if centred else 0)


def on_grid(interval: Interval, step: Fraction) -> Range:
    """Ends moved outward onto a grid of about this step, but no finer than floating-point numbers are."""
    furthest = max(abs(interval.lower), abs(interval.upper)) or Fraction(1)
    grid = Grid.within(max(step, furthest / 2**FINEST))
    lower, upper = math.floor(interval.lower / grid.step), math.ceil(interval.upper / grid.step)
    return Range(lower * grid.step, upper * grid.step, grid)


def measure(
    need: Need, interval: Interval | None, *, room: Fraction, centred: bool, levels: int, bits: int
) -> Measure:
    """The measure with its range, as an engine makes it; `room` is the most a unit may add in all."""
    if need.kind not in ("sum", "squares", "tree"):
        return Measure(need.kind, need.column)
    assert interval is not None, "a value that is added up has a range"
    if need.kind == "tree":
        found = on_grid(interval, (interval.upper - interval.lower) / 2**BITS)
        return Measure("tree", need.column, found, levels=levels)
    found = stepped(interval, room / WEIGHT, centred=centred, bits=bits)
    if need.kind == "sum":
        return Measure("sum", need.column, found)
    far = max(abs(end - found.offset) for end in ends(found))
    return Measure("squares", need.column, found, shift=far.bit_length())


def levels_of(groups: int, noise: Noise) -> int:
    """How deep a tree is: no deeper than there is memory for in all groups, or use by its noise."""
    fits = (MOST_NODES // max(groups, 1)).bit_length() - 2
    return max(LEAST_LEVELS, min(LEVELS[noise.norm] - 2 * (noise.multiplier > LOUD), fits))
