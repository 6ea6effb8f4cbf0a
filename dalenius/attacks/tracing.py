"""Tracing: whether a person is among those whose averages were published, such as allele frequencies.

With y the person's alleles (0 or 1 at each place), M the frequencies published of the study and P those of
people at large:

    homer             Σ |y − P| − |y − M|                          (Homer et al. 2008)
    likelihood_ratio  Σ y log(M/P) + (1 − y) log((1 − M)/(1 − P))   (Sankararaman et al. 2009)
    inner_product     Σ (y − P)(M − P)                              (Dwork et al. 2015)

All are larger for members of the study. Their power grows with the number of places over that of members. The
last bears noise well; for the second, noisy frequencies are brought into (0, 1).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.attacks.result import Attack
from dalenius.attacks.roc import judge
from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss

Floats = NDArray[np.float64]
Statistic = Literal["homer", "likelihood_ratio", "inner_product"]
EDGE = 1e-3
"""Frequencies are kept this far from 0 and 1."""


def homer(alleles: ArrayLike, study: ArrayLike, reference: ArrayLike) -> Floats:
    """How much closer each person is to the study than to people at large; one person a row."""
    y, own, usual = _checked(alleles, study, reference)
    return np.asarray((np.abs(y - usual) - np.abs(y - own)).sum(axis=-1))


def likelihood_ratio(alleles: ArrayLike, study: ArrayLike, reference: ArrayLike) -> Floats:
    """How much likelier each person is as one of the study than as one at large, as a logarithm."""
    y, own, usual = _checked(alleles, study, reference)
    own, usual = (np.clip(freq, EDGE, 1 - EDGE) for freq in (own, usual))
    return np.asarray((y * np.log(own / usual) + (1 - y) * np.log((1 - own) / (1 - usual))).sum(axis=-1))


def inner_product(alleles: ArrayLike, study: ArrayLike, reference: ArrayLike) -> Floats:
    """How far each person differs from people at large in the direction in which the study does."""
    y, own, usual = _checked(alleles, study, reference)
    return np.asarray(((y - usual) * (own - usual)).sum(axis=-1))


STATISTICS = {"homer": homer, "likelihood_ratio": likelihood_ratio, "inner_product": inner_product}


def trace(
    members: ArrayLike,
    others: ArrayLike,
    *,
    study: ArrayLike,
    reference: ArrayLike,
    statistic: Statistic = "likelihood_ratio",
    loss: Loss | None = None,
    seed: int | None = None,
) -> Attack:
    """Score members of a study and others by its published frequencies, and report how they are told apart.

    Scores of one study share its frequencies and are no independent trials: the interval is of this study.
    `seed` fixes which of them choose the threshold, and which are judged by it.
    """
    if statistic not in STATISTICS:
        raise InvalidArgument(f"statistic must be one of {', '.join(STATISTICS)}.", remedy="Choose homer.")
    score = STATISTICS[statistic]
    inside, outside = (score(people, study, reference) for people in (members, others))
    return judge(f"tracing by {statistic.replace('_', ' ')}", inside, outside, loss=loss, seed=seed)


def _checked(alleles: ArrayLike, study: ArrayLike, reference: ArrayLike) -> tuple[Floats, Floats, Floats]:
    y, own, usual = (np.asarray(part, float) for part in (alleles, study, reference))
    if not y.shape[-1:] == own.shape[-1:] == usual.shape[-1:]:
        raise InvalidArgument("The places differ in number.", remedy="Pass the same places everywhere.")
    return y, own, usual
