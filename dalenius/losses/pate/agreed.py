"""What teachers voted where answers stand behind a test of consensus, and the figure that depends on it.

One query asks whether n₁ + noise reaches T, n₁ being the largest count, and only then for the winner. Noise
is Gaussian of σ₁ and σ₂, rounded to whole votes, T is whole: the chance of an answer is
p(n₁) = Φ((n₁ − T + ½)/σ₁). What is seen is nothing or a class, and as the noises are independent,
    Σ P^λ P′^{1−λ} = (1−p)^λ (1−p′)^{1−λ} + p^λ p′^{1−λ} · Σ w^λ w′^{1−λ}
with w the law of the winner. For neighbours n₁ changes by at most 1, and D_λ of w and w′ is at most b, the
figure in `dependent`, both ways: D_λ of the query is at most the greatest of these sums, over three places of
n₁′ and both ways, and never above λ/2σ₁² + b, as tests and answers compose.

If queries were fixed beforehand, the sum over all of them bounds D_λ of the whole: whatever was answered
before, each further query adds its own figure at most, and where the asking stops it adds nothing. This is a
bound where the mean of Papernot et al. 2018, p·b for a query that is answered with chance p, is none.

Rounding is monotone: a class comes level with the winner only if its noisy count was less than a vote below.
So leads are counted one vote short, and q in `dependent` bounds the chance of rounded noise too.

Smooth sensitivity as in `votes`, over the two largest counts, each of which moves by at most 1.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius import noise
from dalenius.losses.loss import Loss
from dalenius.losses.pate.confident import confident_votes
from dalenius.losses.pate.dependent import UNITS, Ints, table
from dalenius.losses.pate.sanitizer import Sanitized, Sanitizer
from dalenius.losses.pate.votes import FINE, check_release, drawn, kept_private, levels, ranked
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation

MOST_TEACHERS = 1000
"""Figures are listed for all pairs of counts."""
SLACK = 1e-12
"""More than what floats may be off, as a share of the largest exponent."""


class ConfidentVotes:
    """Counts of the votes, one row a query, one column a class; they are private."""

    __slots__ = ("__pairs", "answers", "classes", "queries", "relation", "scale", "teachers", "test")

    def __init__(
        self,
        counts: ArrayLike,
        *,
        teachers: int,
        threshold: int,
        test_scale: Number,
        scale: Number,
        answers: int,
        relation: Relation = "add_remove",
    ) -> None:
        self.teachers = numbers.count(teachers, "teachers", most=MOST_TEACHERS)
        rows = ranked(counts, self.teachers)
        self.queries, self.classes = len(rows), int(rows.shape[1])
        self.answers = min(numbers.count(answers, "answers"), self.queries)
        self.test = (numbers.count(threshold, "threshold"), numbers.exact(test_scale, "test_scale"))
        self.scale, self.relation = numbers.exact(scale, "scale"), relation
        _ = self.loss
        width = self.teachers + 1
        pairs = np.bincount(rows[:, -1] * width + rows[:, -2], minlength=width**2)
        self.__pairs: Ints = pairs.astype(np.int64).reshape(width, width)

    @property
    def loss(self) -> Loss:
        """What tests and answers cost, whatever the votes: this is what a ledger charges."""
        given = {"queries": self.queries, "answers": self.answers}
        return confident_votes(**given, test_scale=self.test[1], scale=self.scale, relation=self.relation)

    def sanitized(self, by: Sanitizer) -> Sanitized:
        """The figure with noise. Charge `by.loss` before each call; the queries were fixed beforehand."""
        check_release(by, self.relation, self.queries)
        figures = figures_of(self.teachers, self.classes, *self.test, self.scale, by.order)
        smooth = Fraction(_smooth(figures, self.__pairs, by.ratio), FINE)
        total = int((self.__pairs * figures).sum()) + math.ceil(by.shift * smooth)
        total += drawn(by.scale * smooth)
        test, answer = _most(self.test[1], self.scale, by.order)
        value = max(total, 0) * (test + answer) / UNITS
        value = min(value, self.queries * test + self.answers * answer)
        return Sanitized(
            value, order=by.order, confidence=by.confidence, loss=by.loss, tainted=noise.tainted()
        )

    def __repr__(self) -> str:
        shape = f"teachers={self.teachers}, classes={self.classes}, queries={self.queries}"
        return f"ConfidentVotes({shape})"

    def __getstate__(self) -> NoReturn:
        kept_private()

    def __reduce__(self) -> NoReturn:
        kept_private()


@lru_cache(maxsize=16)
def figures_of(
    teachers: int, classes: int, threshold: int, test_scale: Fraction, scale: Fraction, order: Fraction
) -> Ints:
    """The figure of one query, in parts of λ/2σ₁² + λ/σ₂², by its largest and second largest count."""
    from scipy.special import log_ndtr

    test, answer = (float(most) for most in _most(test_scale, scale, order))
    count, power = np.arange(teachers + 1), float(order)
    lead = np.maximum(count[:, None] - count - 1, 0)
    winner = table(teachers, classes, scale, order)[lead] * (answer / UNITS)
    place = (count - threshold + 0.5) / float(test_scale)
    yes, no = log_ndtr(place), log_ndtr(-place)
    found = np.zeros_like(winner)
    for one, other in _near(teachers):
        silent, given = (power * law[one] + (1 - power) * law[other] for law in (no, yes))
        size = np.abs([law[side] for law in (no, yes) for side in (one, other)]).max(axis=0)
        exact = np.logaddexp(silent[:, None], given[:, None] + (power - 1) * winner)
        wide = (exact + SLACK * (1 + power * size[:, None])) / (power - 1)
        found = np.maximum(found, wide)
    found = np.minimum(np.where(np.isnan(found), math.inf, found), test + winner)
    share = np.ceil(found * ((1 + SLACK) * UNITS / (test + answer)))
    values: Ints = np.minimum(share, UNITS).astype(np.int64)
    values[~_able(teachers)] = 0
    values.flags.writeable = False
    return values


def _most(test_scale: Fraction, scale: Fraction, order: Fraction) -> tuple[Fraction, Fraction]:
    """λ/2σ₁² and λ/σ₂²: what a test and an answer are at most."""
    return order / (2 * test_scale**2), order / scale**2


def _near(teachers: int) -> list[tuple[Ints, Ints]]:
    """The largest count of a data set and of its neighbour, both ways, for every count."""
    count = np.arange(teachers + 1)
    moved = [np.clip(count + step, 0, teachers) for step in (-1, 0, 1)]
    return [pair for other in moved for pair in ((count, other), (other, count))]


def _able(teachers: int) -> NDArray[np.bool_]:
    """Which pairs can be the two largest counts."""
    count = np.arange(teachers + 1)
    return (count[:, None] >= count) & (count[:, None] + count <= teachers)


def _smooth(figures: Ints, pairs: Ints, ratio: Fraction) -> int:
    """S in fine units; how long it takes is public."""
    steps = levels(int(pairs.sum()) * UNITS, ratio)
    changes = _spread(figures)
    most, first = int(changes.max()), 0
    for d in range(len(steps)):
        first = max(first, bisect_left(steps, int((pairs * changes).sum()) * FINE) - d)
        if int(changes.min()) == most:
            break
        changes = _widened(changes)
    return steps[first]


def _spread(figures: Ints) -> Ints:
    """The largest difference to a figure that is one step away: both counts by at most 1."""
    able, most = _able(len(figures) - 1), np.zeros_like(figures)
    end = len(figures)
    for down, across in ((0, 1), (1, 0), (1, 1), (1, -1)):
        left = slice(0, end - down), slice(max(0, -across), end - max(0, across))
        right = slice(down, end), slice(max(0, across), end - max(0, -across))
        apart = np.where(able[left] & able[right], np.abs(figures[left] - figures[right]), 0)
        for side in (left, right):
            most[side] = np.maximum(most[side], apart)
    return most


def _widened(values: Ints) -> Ints:
    """The largest one step away."""
    for axis in (0, 1):
        turned = np.moveaxis(values, axis, 0)
        wide = turned.copy()
        wide[1:] = np.maximum(wide[1:], turned[:-1])
        wide[:-1] = np.maximum(wide[:-1], turned[1:])
        values = np.moveaxis(wide, 0, axis)
    return values
