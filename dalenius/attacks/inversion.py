"""Model inversion (Fredrikson et al. 2015): features that a model finds typical of a class.

From the center of the range of the features, `invert` climbs to where the model gives the class the
probability `enough`: along the gradient, taken from differences, or along the best single feature where that
fails, as on trees, whose gradient is zero. The model is only asked.

`inversion_attack` measures how near the result is to the mean of the class. A trial compares it with one
record drawn at random: success is a result nearer to the mean than the record is, and a result that is itself
a random record succeeds half the time. The details have the distances, in standard deviations of the
features: of the result, of a typical record, and of the center where the climb started, which takes no model.
The mean of a class is a fact about everyone in it; differential privacy neither promises to hide it nor does.
What it hides is a class of one.
"""

from __future__ import annotations

import numpy as np

from dalenius.attacks.membership import Predict, Records
from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.attacks.roc import Floats
from dalenius.privacy import numbers

ENOUGH = 0.95
"""The probability at which a climb ends."""
REACHES = (1 / 8, 1 / 4, 1 / 2, *(2.0**-k for k in range(4, 13)))
"""Steps tried in turn, as parts of the range: longer ones where the model is flat, then shorter ones."""


def invert(
    predict: Predict,
    label: int,
    *,
    low: Floats,
    high: Floats,
    enough: float = ENOUGH,
    steps: int = 500,
) -> Floats:
    """Features within `low` and `high` for which the label has probability `enough`, or nearly."""
    point = (low + high) / 2
    best = float(predict(point[np.newaxis])[0, label])
    for _ in range(numbers.count(steps, "steps")):
        higher = None if best >= enough else _higher(predict, label, point, best, low, high)
        if higher is None:
            break
        point, best = higher
    return point


def inversion_attack(
    predict: Predict,
    records: Records,
    *,
    low: Floats | None = None,
    high: Floats | None = None,
    enough: float = ENOUGH,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Attack:
    """Invert a model for every label and compare with records: half give the means, half are the trials.

    `low` and `high` bound the features; without them, the records do.
    """
    features = np.asarray(records.features, dtype=np.float64)
    low = features.min(axis=0) if low is None else low
    high = features.max(axis=0) if high is None else high
    spread = np.where(features.std(axis=0) > 0, features.std(axis=0), 1.0)
    chance, labels = np.random.default_rng(seed), np.unique(records.labels)
    order = chance.permutation(len(features))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    asked, hits, distances = chance.integers(0, len(labels), len(second)), 0, []
    for number, label in enumerate(labels.tolist()):
        mean = features[first][records.labels[first] == label].mean(axis=0)
        result = invert(predict, label, low=low, high=high, enough=enough)
        off, center = (_far(x, mean, spread) for x in (result[np.newaxis], (low + high)[np.newaxis] / 2))
        drawn = _far(features[second], mean, spread)
        hits += int(np.count_nonzero(off[0] < drawn[asked == number]))
        distances.append((off[0], center[0], np.median(drawn)))
    found = np.mean(distances, axis=0).tolist()
    return Attack.counted(
        "model inversion",
        hits,
        len(second),
        baseline=0.5,
        confidence=confidence,
        details=dict(zip(("distance", "distance_of_center", "distance_of_record"), found, strict=True)),
    )


def _higher(
    predict: Predict, label: int, point: Floats, best: float, low: Floats, high: Floats
) -> tuple[Floats, float] | None:
    """A point with a higher probability than `best`, and that probability; None where no step finds one."""
    for reach in REACHES:
        tried = np.clip(_candidates(predict, label, point, (high - low) * reach), low, high)
        chances = predict(tried)[:, label]
        first = int(np.argmax(chances))
        if chances[first] > best:
            return tried[first], float(chances[first])
    return None


def _candidates(predict: Predict, label: int, point: Floats, reach: Floats) -> Floats:
    """One step along the gradient, and one either way along each feature."""
    moves = np.diag(reach)
    around = np.concatenate([point + moves, point - moves])
    chances = np.log(np.maximum(predict(around)[:, label], 1e-300))
    slope = (chances[: len(point)] - chances[len(point) :]) * reach
    size = float(np.linalg.norm(slope / np.where(reach > 0, reach, 1)))
    return np.concatenate([[point + slope / size], around]) if size > 0 else around


def _far(points: Floats, mean: Floats, spread: Floats) -> Floats:
    return np.asarray(np.linalg.norm((points - mean) / spread, axis=1))
