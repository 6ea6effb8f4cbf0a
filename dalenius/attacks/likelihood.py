"""Membership inference by likelihood ratios: LiRA (Carlini et al. 2022) and RMIA (Zarifzadeh et al. 2024).

How likely a model finds a record depends on the record as much as on whether it was in the data. Shadow
models show what is usual for this one.

LiRA takes the logit of the likelihood of the own label, log p − log(1 − p), which is nearly normal over
trainings, and fits two normal laws: that of shadow models with the record, and that of those without. The
score is the log-ratio of their densities at the target's logit. Offline, only models without the record are
used, and the score is how many standard deviations the target's logit is above those without. A variance for
each record needs many models (`own_variance`); by default it is the average over records.

RMIA compares the record with a population z that nobody trained on: the score is the share of z for which
(p(x|target)/p(x)) / (p(z|target)/p(z)) ≥ gamma, where p( ) is the mean over shadow models. Offline only
models without the record are used, and p( ) = ½((1 + a)·p_out( ) + 1 − a) stands for all, with a = `offline`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.attacks.membership import LEAST, Predict, Records, likelihoods
from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.attacks.roc import Floats, judge
from dalenius.attacks.shadow import Shadows
from dalenius.losses.loss import Loss

TINY = 1e-12
"""A likelihood is held this far from 0 and 1, so that its logit is finite; a deviation this far above 0."""


def lira_scores(
    target: Predict, shadows: Shadows, *, offline: bool = False, own_variance: bool = False
) -> Floats:
    """LiRA's score of each of the shadow models' records."""
    logit, known = _logit(likelihoods(target, shadows.records)), _logit(shadows.likelihoods())
    center, spread = _normal(known, ~shadows.inside, own_variance)
    if offline:
        return (logit - center) / spread
    inner, width = _normal(known, shadows.inside, own_variance)
    return _log_density(logit, inner, width) - _log_density(logit, center, spread)


def rmia_scores(
    target: Predict,
    shadows: Shadows,
    population: Records,
    *,
    gamma: float = 2.0,
    offline: float | None = None,
) -> Floats:
    """RMIA's score of each of the shadow models' records; no model was trained on the population."""
    known = shadows.likelihoods()
    usual, beside = known.mean(axis=0), shadows.likelihoods(population).mean(axis=0)
    if offline is not None:
        without = np.where(shadows.inside, 0.0, known).sum(axis=0) / (~shadows.inside).sum(axis=0)
        usual, beside = (((1 + offline) * p + 1 - offline) / 2 for p in (without, beside))
    ratio = likelihoods(target, shadows.records) / np.maximum(usual, LEAST)
    ratios = np.sort(likelihoods(target, population) / np.maximum(beside, LEAST))
    return np.asarray(np.searchsorted(ratios, ratio / gamma, side="right") / len(ratios))


def lira(
    target: Predict,
    shadows: Shadows,
    inside: NDArray[np.bool_],
    *,
    offline: bool = False,
    own_variance: bool = False,
    loss: Loss | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Attack:
    """LiRA on a model of which `inside` says which of the shadow models' records it was trained on."""
    scores = lira_scores(target, shadows, offline=offline, own_variance=own_variance)
    name = "likelihood ratio, offline" if offline else "likelihood ratio"
    return judge(name, scores[inside], scores[~inside], loss=loss, confidence=confidence, seed=seed)


def rmia(
    target: Predict,
    shadows: Shadows,
    inside: NDArray[np.bool_],
    population: Records,
    *,
    gamma: float = 2.0,
    offline: float | None = None,
    loss: Loss | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Attack:
    """RMIA on a model of which `inside` says which of the shadow models' records it was trained on."""
    scores = rmia_scores(target, shadows, population, gamma=gamma, offline=offline)
    name = "relative likelihood ratio" if offline is None else "relative likelihood ratio, offline"
    return judge(name, scores[inside], scores[~inside], loss=loss, confidence=confidence, seed=seed)


def _logit(chance: Floats) -> Floats:
    held = np.clip(chance, TINY, 1 - TINY)
    return np.asarray(np.log(held) - np.log1p(-held))


def _normal(logits: Floats, rows: NDArray[np.bool_], own_variance: bool) -> tuple[Floats, Floats]:
    """The mean of each record's logits over some of the models, and a standard deviation.

    The variance is about a mean of few models, of which it must not look smaller where they are fewer.
    """
    chosen, count = np.ma.array(logits, mask=~rows), rows.sum(axis=0)
    center = np.asarray(chosen.mean(axis=0))
    variance = np.asarray(chosen.var(axis=0)) * count / np.maximum(count - 1, 1)
    pooled = variance if own_variance else np.full_like(variance, variance.mean())
    return center, np.sqrt(pooled) + TINY


def _log_density(x: Floats, center: Floats, spread: Floats) -> Floats:
    return np.asarray(-0.5 * ((x - center) / spread) ** 2 - np.log(spread))
