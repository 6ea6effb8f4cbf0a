"""Membership inference by the loss (Yeom et al. 2018): a model errs less on the records it was trained on.

A model is a function from features, one row a record, to probabilities, one column a class; labels are the
numbers of columns. `loss_threshold` says "in the data" where the loss on a record is small. Mislabelled
records give it power: a model has a low loss on a wrong label only if it has seen it.

`demo` trains 2,000 small models, each with a mislabelled record of its own that is in the data or not by the
toss of a coin, once without privacy and once with ε = 1: every training is one independent trial, so the
bound of the loss applies to the rate that is measured. The data: two clouds in 200 dimensions, centers 6
standard deviations apart, 200 records, scaled to norm 1.

`logistic` is the model of the demo. With `noise` every step of its descent releases the sum of all gradients
by that mechanism: features are whole steps of 2⁻¹⁰ with norm at most 1, and a gradient is p − y times the
features, with p − y rounded toward zero to such a step; so it is whole steps of 2⁻²⁰, its norm is at most 1
by integer arithmetic, and the sum is exact. The loss of a training is `noise.loss * steps`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalenius import losses
from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.attacks.roc import Floats, judge
from dalenius.errors import InvalidArgument
from dalenius.figures import Figure
from dalenius.losses.loss import Loss
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity

Labels = NDArray[np.int64]
Predict = Callable[[Floats], Floats]
"""A model: features to probabilities, one column a class."""
Fit = Callable[[Floats, Labels], Predict]
"""How a model is made."""

RATE, STEPS, PRIVATE_STEPS = 0.5, 100, 20
"""Of the descent: fewer steps where each has its noise."""
FINE = 2.0**10
"""Steps of the grid in 1, for features and for residuals."""
LEAST = 1e-30
"""Probabilities below are taken for it, so that a logarithm is finite."""


class Records(NamedTuple):
    """Features, one row a record, and labels."""

    features: Floats
    labels: Labels


def likelihoods(predict: Predict, records: Records) -> Floats:
    """The probability that the model gives to each record's own label."""
    found, labels = np.asarray(predict(records.features), dtype=np.float64), np.asarray(records.labels)
    if found.ndim != 2 or len(found) != len(labels):
        raise InvalidArgument(
            "A model must give one row of probabilities for each record.",
            remedy="Pass a function such as predict_proba: one column a class.",
        )
    if labels.dtype.kind not in "iu" or not (0 <= labels.min() <= labels.max() < found.shape[1]):
        raise InvalidArgument(
            "Labels must be the numbers of the model's columns, from 0.",
            remedy="Number the classes in the order of the model's columns.",
        )
    return found[np.arange(len(found)), labels]


def log_losses(predict: Predict, records: Records) -> Floats:
    """The cross-entropy loss on each record."""
    return -np.log(np.maximum(likelihoods(predict, records), LEAST))


def mislabelled(records: Records, *, classes: int, seed: int | None = None) -> Records:
    """The same records, each with a wrong label."""
    moved = np.random.default_rng(seed).integers(1, classes, len(records.labels))
    return Records(records.features, (records.labels + moved) % classes)


def loss_threshold(
    predict: Predict,
    members: Records,
    others: Records,
    *,
    loss: Loss | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Attack:
    """Attack a model by its loss on records that were in its data and on records that were not."""
    scores = [-log_losses(predict, records) for records in (members, others)]
    return judge("loss threshold", scores[0], scores[1], loss=loss, confidence=confidence, seed=seed)


def logistic(
    features: Floats,
    labels: Labels,
    *,
    noise: Gaussian | None = None,
    steps: int = STEPS,
    rate: float = RATE,
) -> Predict:
    """Logistic regression of two classes on features scaled to norm 1, by gradient descent."""
    shared = Records(_whole(features), labels)
    nobody = Records(np.zeros((1, features.shape[1])), np.zeros(1, dtype=np.int64))
    weights = _train(shared, nobody, np.zeros(1), noise=noise, steps=steps, rate=rate)[0]

    def predict(rows: Floats) -> Floats:
        chance = _sigmoid(_whole(rows) / FINE @ weights)
        return np.stack([1 - chance, chance], axis=1)

    return predict


def gradient_noise(
    dimensions: int, *, epsilon: Number, delta: Number, steps: int = PRIVATE_STEPS
) -> Gaussian:
    """The noise with which `steps` steps of `logistic` are (epsilon, delta)-private together."""
    found = losses.Gaussian.calibrate(epsilon=epsilon, delta=delta, steps=steps)
    return Gaussian(
        scale=found.noise_multiplier,
        sensitivity=Sensitivity(l0=dimensions, l2=1),
        grid=Grid(-20),
        exact=True,
    )


def demo(
    seed: int | None = None, *, trainings: int = 2_000, confidence: float = CONFIDENCE
) -> tuple[Attack, Attack]:
    """The same attack on models trained without privacy and with ε = 1, δ = 1e-5."""
    chance = np.random.default_rng(seed)
    shared, own = _people(200, chance), mislabelled(_people(trainings, chance), classes=2)
    inside = chance.integers(0, 2, trainings).astype(bool)
    noise = gradient_noise(200, epsilon=1, delta=1e-5)

    def attacked(name: str, weights: Floats, loss: Loss | None) -> Attack:
        margin = (2 * own.labels - 1) * np.einsum("ij,ij->i", weights, own.features) / FINE
        scores = -np.logaddexp(0, -margin)
        return judge(name, scores[inside], scores[~inside], loss=loss, confidence=confidence, seed=seed)

    plain = _train(shared, own, inside, noise=None, steps=STEPS, rate=RATE)
    private = _train(shared, own, inside, noise=noise, steps=PRIVATE_STEPS, rate=RATE)
    open_attack = attacked("membership, trained without privacy", plain, None)
    counted = attacked("membership, trained with epsilon 1", private, noise.loss * PRIVATE_STEPS)
    return open_attack, replace(counted, figure=_both(open_attack, counted))


def _both(first: Attack, second: Attack) -> Figure:
    """The picture of the second with the curve of the first."""
    assert first.figure is not None and second.figure is not None
    more = replace(first.figure.series[0], name="measured, without privacy", style="line")
    title, series = "whose record was a model trained on?", (more, *second.figure.series)
    return replace(second.figure, title=title, series=series)


def _people(count: int, chance: np.random.Generator, *, dimensions: int = 200) -> Records:
    labels = chance.integers(0, 2, count)
    centers = 3 * (2 * labels - 1)[:, np.newaxis] / np.sqrt(dimensions)
    return Records(_whole(chance.normal(size=(count, dimensions)) + centers), labels)


def _train(
    shared: Records,
    own: Records,
    inside: NDArray[np.generic],
    *,
    noise: Gaussian | None,
    steps: int,
    rate: float,
) -> Floats:
    """A row of weights for each `own` record, which is in the data beside the shared ones or not."""
    weights = np.zeros(own.features.shape)
    for _ in range(steps):
        residuals = np.trunc((_sigmoid(weights @ shared.features.T / FINE) - shared.labels) * FINE)
        extra = _sigmoid(np.einsum("ij,ij->i", weights, own.features) / FINE) - own.labels
        # Whole numbers below 2^53: the products and sums are exact in any order.
        total = residuals @ shared.features + (np.trunc(extra * FINE) * inside)[:, np.newaxis] * own.features
        weights = weights - rate * (total / FINE**2 if noise is None else _noisy(total, noise))
    return weights


def _noisy(total: Floats, noise: Gaussian) -> Floats:
    """Each row is the release of a training of its own; together they are drawn faster."""
    return np.asarray(noise.sample(total.astype(np.int64).ravel(), 1)).reshape(total.shape)


def _whole(features: Floats) -> Floats:
    """Each row scaled to norm 1, in whole steps; the squared norm is whole too, so rounding keeps it."""
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    return np.trunc(features / np.where(norms > 0, norms, 1) * FINE)


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))
