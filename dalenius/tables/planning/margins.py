"""Margins of ROLLUP, CUBE and GROUPING SETS: sums of the noisy totals of the finest groups.

**Theorem.** Only the finest groups are measured, at one charge; margins are sums of what is released of them,
so they are post-processing, and they add up.

A margin of k groups has the sum of their totals, and of their noise, which is independent. With Gaussian
noise of scale σ rounded to whole steps, the sum of k is within k/2 of a Gaussian of scale √k·σ. The law of
scale √k·σ + k − 1, rounded once, reaches at least as far at every risk of at most 0.6: z(√k·σ + k − 1) + ½ ≥
z√k·σ + k/2 for z ≥ ½. With Laplace noise of scale b, E exp(sΣ) ≤ (1 − b²s²)^−k ≤ 1/(1 − kb²s²), so Chernoff's
bound of Laplace noise of scale √k·b holds for the sum; the scale is made larger, so that its law reaches as
far as that bound at the risk of a whole bar, and so at every smaller one.

What bounds took from a margin is at most what `removed` says of sums over k groups. Averages, variances
and quantiles of a margin are those of its totals, by the formulas of `estimates`. Where
groups were selected privately, a margin is that of the groups that are shown: others have rows, too. A count
is then at least that, and its bar is open above; the bars of all else are open on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.gaussian import Gaussian
from dalenius.tables.planning.bars import Bars, Noisy, chernoff
from dalenius.tables.planning.budgeting import Additive
from dalenius.tables.planning.estimates import Totals
from dalenius.tables.question import Aggregate, Question
from dalenius.tables.rows import Key

COUNTS = ("count", "count_of")


@dataclass(frozen=True)
class Blocks:
    """Totals of groups and of margins, with their places in the answer."""

    blocks: tuple[tuple[Totals, tuple[int, ...], int], ...]
    """Totals, their places, and how many groups each of them adds up; 0 where it is a group itself."""
    size: int
    selected: bool = False
    """Whether groups were selected privately."""

    def bars(self, aggregate: Aggregate, alpha: Fraction) -> Bars:
        """An aggregate in every group and margin."""
        found = np.zeros((3, self.size))
        for totals, places, groups in self.blocks:
            bars = totals.bars(aggregate, alpha)
            if groups and self.selected:
                bars = _opened(aggregate, bars)
            found[:, list(places)] = bars.value, bars.low, bars.high
        return Bars(*found)

    def clipped(self, aggregate: Aggregate, alpha: Fraction) -> NDArray[np.bool_]:
        """See `Totals`."""
        found = np.zeros(self.size, np.bool_)
        for totals, places, _ in self.blocks:
            found[list(places)] = totals.clipped(aggregate, alpha)
        return found

    def unknown(self, aggregate: Aggregate) -> bool:
        """See `Totals`."""
        return self.blocks[0][0].unknown(aggregate)


def with_margins(
    question: Question, keys: Sequence[Key], totals: Totals, alpha: Fraction
) -> tuple[Sequence[Key], Totals | Blocks]:
    """The groups and margins that are asked for, with their totals.

    A key that a margin adds up over is NULL there. After the keys come as many numbers: 1 where it is so.
    """
    if not question.sets or not keys:
        return keys, totals
    shown: list[Key] = []
    several: dict[int, list[tuple[int, list[int]]]] = {}
    for kept in question.sets:
        finest = len(kept) == len(question.key_names)
        flags = tuple(int(i not in kept) for i in range(len(question.key_names)))
        members: dict[Key, list[int]] = {}
        for place, key in enumerate(keys):
            part = tuple(each if i in kept else None for i, each in enumerate(key))
            members.setdefault(part, []).append(place)
        for part, places in members.items():
            several.setdefault(0 if finest else len(places), []).append((len(shown), places))
            shown.append((*part, *flags))
    blocks = tuple(
        (
            _summed(totals, [places for _, places in margins], groups, alpha),
            tuple(at for at, _ in margins),
            groups,
        )
        for groups, margins in several.items()
    )
    return shown, Blocks(blocks, len(shown), selected=question.keys is None)


def _summed(totals: Totals, members: Sequence[Sequence[int]], groups: int, alpha: Fraction) -> Totals:
    """Totals of sums of groups; of the groups themselves, where none are added up."""
    noisy = {place: _together(each, members, groups, alpha) for place, each in totals.noisy.items()}
    gaussian = any(isinstance(each.law, Gaussian) for each in totals.noisy.values())
    spread = math.sqrt(groups) if groups and gaussian else 1.0
    return replace(totals, noisy=noisy, found=replace(totals.found, spread=spread))


def _together(noisy: Noisy, members: Sequence[Sequence[int]], groups: int, alpha: Fraction) -> Noisy:
    summed = np.stack([noisy.totals[list(places)].sum(axis=0) for places in members])
    return Noisy(summed, law_of_sum(noisy.law, max(groups, 1), alpha))


def law_of_sum(law: Additive, times: int, alpha: Fraction) -> Additive:
    """A law that reaches at least as far as the sum of so many independent draws, at any risk up to alpha."""
    if times == 1:
        return law
    root = Fraction(math.isqrt(times << 40) + 1, 1 << 20)
    if isinstance(law, Gaussian):
        return replace(law, scale=root * law.scale + times - 1)
    wide = replace(law, scale=root * law.scale)
    bound = chernoff([float(wide.scale)], float(alpha) / 2)
    factor = bound / max(float(wide.reach(alpha)), 1.0)
    return replace(law, scale=wide.scale * Fraction(math.ceil(max(factor, 1.0) * 2**20), 2**20) + 1)


def _opened(aggregate: Aggregate, bars: Bars) -> Bars:
    low = bars.low if aggregate.kind in COUNTS else np.full_like(bars.low, -np.inf)
    return Bars(bars.value, low, np.full_like(bars.high, np.inf))
