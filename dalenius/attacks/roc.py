"""How well scores tell those who are in the data from those who are not, beside what a loss allows.

    >>> import numpy as np
    >>> chance = np.random.default_rng(7)
    >>> print(judge("a score", chance.normal(2, 1, 4_000), chance.normal(0, 1, 4_000), seed=7))
    a score: right in 84.4% of 4,000 trials (82.8% to 85.8% at confidence 0.99), guessing gives 50%.

A large score says "in". `judge` chooses the threshold on some scores and judges it on others, as many of
people who are in as of people who are not: the success is ½(1 + TPR − FPR), and the advantage of the report
is TPR − FPR, which no attack on a release can have more of than `loss.advantage()`. The number of right
answers is a sum of independent coins of at most two kinds, whose tails, more than one from the mean, are no
heavier than those of equal coins (Hoeffding 1956), so the interval of Clopper and Pearson (1934) covers. `at`
states how many are recognized at a rare false alarm, both rates with exact intervals that hold together.

Independent scores come from trainings of their own, one person in question each. Scores of many people under
one model depend on each other through it: then the interval is about that model, with people drawn at random,
and what a loss bounds is the average over trainings, which one model may exceed by luck.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.errors import InvalidArgument
from dalenius.figures import Figure, Series
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers

Floats = NDArray[np.float64]
FALSE_ALARMS = (0.001, 0.01)
"""The false-positive rates at which a report states the true ones."""
DRAWN = 300
"""Points of a measured curve that a picture shows."""
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True)
class Rate:
    """A share that was measured, and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """One threshold, judged on scores that did not choose it; both intervals hold together."""

    threshold: float
    false_positives: Rate
    true_positives: Rate


def rate(hits: int, trials: int, *, confidence: float = CONFIDENCE) -> Rate:
    """`hits` in `trials` with the exact interval of Clopper and Pearson."""
    from scipy.stats import binomtest

    ends = binomtest(hits, numbers.count(trials, "trials")).proportion_ci(confidence, method="exact")
    return Rate(hits / trials, float(ends.low), float(ends.high))


def curve(members: ArrayLike, others: ArrayLike) -> tuple[Floats, Floats]:
    """False-positive and true-positive rates at every threshold, from the strictest to the laxest."""
    inside, outside = read_scores(members), read_scores(others)
    levels = np.unique(np.concatenate([inside, outside]))[::-1]
    found = [np.append(0.0, _share_from(scores, levels)) for scores in (outside, inside)]
    return found[0], found[1]


def area(members: ArrayLike, others: ArrayLike) -> float:
    """The area under the curve: the chance that a member scores above another, a tie counting half."""
    inside, outside = read_scores(members), np.sort(read_scores(others))
    below, up_to = (np.searchsorted(outside, inside, side=side).sum() for side in _SIDES)
    return float((int(below) + int(up_to)) / (2 * len(inside) * len(outside)))


def measured_area(members: ArrayLike, others: ArrayLike, *, confidence: float = CONFIDENCE) -> Rate:
    """The area under the curve with an interval for scores drawn independently, of any law.

    It is an average over pairs, so no further from its mean than a share of k coins by Chernoff's bound, for
    k the lesser number of scores (Hoeffding 1963, section 5): its mean A has k·KL(area, A) ≤ ln(2/risk).
    """
    found, pairs = area(members, others), min(len(read_scores(one)) for one in (members, others))
    most = math.log(2 / (1 - confidence)) / pairs
    return Rate(found, _farthest(found, 0.0, most), _farthest(found, 1.0, most))


def most_area(loss: Loss) -> float:
    """The most area that a loss of add_remove neighbours allows an attack on one model, on average.

    Which rows are members is drawn at random, and a pair is a member z and another z' of the same model. With
    A the other members, the model comes from A + z; had z' been drawn for z, from A + z', where z scores
    above z' with probability 1 − area on average. Let it score above with p where the model comes from A. For
    f the trade-off curve, which is convex, 1 − area ≥ f(p) and 1 − area ≥ f(1 − p), so area ≤ 1 − f(½). Two
    opposite rows and the Gaussian mechanism attain it. The true over the false positives of one threshold are
    at most 1 − f(p) − f(1 − p) ≤ 1 − 2 f(½).
    """
    return min(1.0, math.nextafter(1 - loss.tradeoff(Fraction(1, 2)).lower, math.inf))


def at(
    members: ArrayLike,
    others: ArrayLike,
    *,
    false_positives: float,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Point:
    """How many are recognized at about this rate of false alarms: half of `others` choose the threshold."""
    share = float(numbers.probability(false_positives, "false_positives"))
    outside, chance = read_scores(others), np.random.default_rng(seed)
    first, second = _split(outside, len(outside) // 2, chance)
    inside, falling = read_scores(members), np.sort(first)[::-1]
    allowed = math.floor(share * len(first))
    level = math.nextafter(falling[allowed], math.inf) if allowed < len(falling) else -math.inf
    each = (1 + confidence) / 2  # either interval may fail with half the risk
    alarms, found = (
        rate(int(np.count_nonzero(s >= level)), len(s), confidence=each) for s in (second, inside)
    )
    return Point(level, alarms, found)


def judge(
    name: str,
    members: ArrayLike,
    others: ArrayLike,
    *,
    loss: Loss | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Attack:
    """The report of an attack whose score is large for members; with the `loss` it has to keep to."""
    inside, outside = read_scores(members), read_scores(others)
    chance, judged = np.random.default_rng(seed), min(len(inside), len(outside)) // 2
    (asked, chose), (asked_too, chose_too) = (_split(s, judged, chance) for s in (inside, outside))
    level = _best(chose, chose_too)
    hits = int(np.count_nonzero(asked >= level) + np.count_nonzero(asked_too < level))
    points = [at(inside, outside, false_positives=f, confidence=confidence, seed=seed) for f in FALSE_ALARMS]
    return Attack.counted(
        name,
        hits,
        2 * judged,
        baseline=0.5,
        confidence=confidence,
        bound=None if loss is None else loss.advantage().upper,
        figure=figure(name, inside, outside, loss=loss, points=points, confidence=confidence),
        details=_details(points),
    )


def figure(
    name: str,
    members: ArrayLike,
    others: ArrayLike,
    *,
    loss: Loss | None = None,
    points: list[Point] | None = None,
    confidence: float = CONFIDENCE,
) -> Figure:
    """True against false positives on log axes, beside the most that a loss allows, and guessing."""
    alarms, found = curve(members, others)
    seen = np.flatnonzero((alarms > 0) & (found > 0))
    kept = seen[np.unique(np.geomspace(1, len(seen), DRAWN).astype(int)) - 1]
    x, y = alarms[kept], found[kept]
    rates = np.geomspace(min(x.min(), 1e-3), 1.0, 25).tolist()
    series = [Series("measured", x.tolist(), y.tolist(), "steps")]
    sure = [p for p in points or () if p.true_positives.low > 0]
    if sure:
        ends = [p.false_positives.high for p in sure], [p.true_positives.low for p in sure]
        series.append(Series(f"surely reached ({confidence:g})", *ends, style="points"))
    if loss is not None:
        most = [1 - loss.tradeoff(r).lower for r in rates]
        series.append(Series("the most that the loss allows", rates, most, "dashed"))
    series.append(Series("guessing", rates, rates, "dotted"))
    return Figure(name, "false-positive rate", "true-positive rate", series, x_scale="log", y_scale="log")


def noted(found: Attack, **more: float) -> Attack:
    """The report with more details."""
    known = {**found.details, **{name: float(value) for name, value in more.items()}}
    return replace(found, details=MappingProxyType(known))


def read_scores(scores: ArrayLike) -> Floats:
    """Scores as an array; they must be finite numbers, at least two."""
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 1 or len(found) < 2 or not np.isfinite(found).all():
        raise InvalidArgument(
            "Scores must be a list of at least two finite numbers.",
            remedy="Pass one finite score for each record, of members and of others.",
        )
    return found


def _farthest(found: float, end: float, most: float) -> float:
    """How far toward an end a mean may be."""
    near, far = found, end
    for _ in range(60):
        middle = (near + far) / 2
        near, far = (middle, far) if _apart(found, middle) <= most else (near, middle)
    return far


def _apart(found: float, mean: float) -> float:
    """The divergence of a coin from another."""
    parts = ((found, mean), (1 - found, 1 - mean))
    return sum(a * math.log(a / b) if b > 0 else math.inf for a, b in parts if a > 0)


def _share_from(scores: Floats, levels: Floats) -> Floats:
    below = np.searchsorted(np.sort(scores), levels, side="left")
    return np.asarray(1 - below / len(scores))


def _split(scores: Floats, count: int, chance: np.random.Generator) -> tuple[Floats, Floats]:
    mixed = chance.permutation(scores)
    return mixed[:count], mixed[count:]


def _best(members: Floats, others: Floats) -> float:
    """The threshold, between two scores, with the most true over false positives."""
    levels = np.unique(np.concatenate([members, others]))
    between = np.concatenate([[-math.inf], (levels[:-1] + levels[1:]) / 2, [math.inf]])
    gain = _share_from(members, between) - _share_from(others, between)
    return float(between[int(np.argmax(gain))])


def _details(points: list[Point]) -> dict[str, float]:
    found: dict[str, float] = {}
    for share, point in zip(FALSE_ALARMS, points, strict=True):
        found |= {
            f"true_positives_at_{share:g}": point.true_positives.value,
            f"true_positives_at_{share:g}_low": point.true_positives.low,
            f"false_positives_at_{share:g}_high": point.false_positives.high,
        }
    return found
