"""Shadow models (Shokri et al. 2017): models of known data teach what a member looks like.

`train_shadows` trains pairs of models, each on one half of the attacker's records, at random: every record is
in the data of exactly half of them. `shadow_scores` learns from all their answers, for each label by itself,
a logistic regression of "was in the data" on the sorted log-probabilities and the one of the record's own
label, and applies it to the answers of the model under attack. The same shadow models serve `likelihood`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.attacks.membership import LEAST, Fit, Predict, Records, likelihoods
from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.attacks.roc import Floats, judge
from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss

PENALTY = 1e-3
"""Of the squared weights of the attack's regression, for each record."""


@dataclass(frozen=True, eq=False)
class Shadows:
    """Shadow models; `inside` has a row for each model and a column for each of the `records`."""

    records: Records
    models: tuple[Predict, ...]
    inside: NDArray[np.bool_]

    def likelihoods(self, records: Records | None = None) -> Floats:
        """What each model gives to the own label of each of the records, by default of `self.records`."""
        asked = self.records if records is None else records
        return np.stack([likelihoods(model, asked) for model in self.models])


def train_shadows(fit: Fit, records: Records, *, count: int = 16, seed: int | None = None) -> Shadows:
    """Train `count` models, an even number, on random halves of the records."""
    if count < 2 or count % 2:
        raise InvalidArgument("count must be even, 2 or more.", remedy="Train 16 models, or 64.")
    chance, size = np.random.default_rng(seed), len(records.labels)
    inside = np.zeros((count, size), dtype=bool)
    for pair in range(0, count, 2):
        inside[pair, chance.permutation(size)[: size // 2]] = True
        inside[pair + 1] = ~inside[pair]
    models = tuple(fit(records.features[rows], records.labels[rows]) for rows in inside)
    return Shadows(records, models, inside)


def shadow_scores(target: Predict, shadows: Shadows, records: Records) -> Floats:
    """The log-odds, learned from the shadow models, that each of the records was in the target's data."""
    known = shadows.records
    seen = np.concatenate([_signals(model, known) for model in shadows.models])
    labels, inside = np.tile(known.labels, len(shadows.models)), shadows.inside.ravel()
    asked, found = _signals(target, records), np.zeros(len(records.labels))
    for label in np.unique(records.labels):
        here, there = labels == label, records.labels == label
        if here.any():
            found[there] = _regression(seen[here], inside[here])(asked[there])
    return found


def shadow_attack(
    target: Predict,
    shadows: Shadows,
    members: Records,
    others: Records,
    *,
    loss: Loss | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Attack:
    """Attack a model by what shadow models taught, on records that were in its data and that were not."""
    scores = [shadow_scores(target, shadows, records) for records in (members, others)]
    return judge("shadow models", scores[0], scores[1], loss=loss, confidence=confidence, seed=seed)


def _signals(model: Predict, records: Records) -> Floats:
    """The log-probabilities from the largest, and that of the own label."""
    answers = np.log(np.maximum(np.asarray(model(records.features), dtype=np.float64), LEAST))
    own = answers[np.arange(len(answers)), records.labels]
    return np.column_stack([np.sort(answers, axis=1)[:, ::-1], own])


def _regression(signals: Floats, inside: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
    """The log-odds of `inside` as a linear function of signals."""
    from scipy.optimize import minimize

    center, spread = signals.mean(axis=0), signals.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    x = np.column_stack([(signals - center) / spread, np.ones(len(signals))])
    sign = np.where(inside, 1.0, -1.0)

    def cost(weights: Floats) -> tuple[float, Floats]:
        margin = sign * (x @ weights)
        pull = -(sign * 0.5 * (1 - np.tanh(margin / 2))) @ x / len(x)
        value = float(np.logaddexp(0, -margin).mean() + PENALTY * weights @ weights)
        return value, pull + 2 * PENALTY * weights

    best = minimize(cost, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x
    return lambda asked: np.asarray((asked - center) / spread @ best[:-1] + best[-1])
