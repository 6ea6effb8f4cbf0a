"""The pairs of a loss that is subsampled: one for each direction."""

from __future__ import annotations

from fractions import Fraction

from dalenius.errors import NotSound
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import sampled, single
from dalenius.profiles.pair import Pair


def needed(loss: Loss) -> tuple[Pair, ...]:
    """One pair for each direction; refused where there is none."""
    pairs = single(loss)
    if pairs is None:
        raise NotSound(
            "This loss is not known as one pair of distributions, which theorems on samples need.",
            remedy="Subsample each release by itself, on a fresh sample, and add the results up.",
        )
    return pairs


def thin(pair: Pair, rate: Fraction) -> Pair:
    """((1−q)Q + qP, Q)."""
    return pair if rate == 1 else sampled(pair, rate)
