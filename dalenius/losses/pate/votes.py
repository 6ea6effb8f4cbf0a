"""What teachers voted, and the figure that depends on it.

The ledger charges `Votes.loss`, which is that of GNMax for every query, whatever the votes. The sum over
queries of the figures in `dependent` bounds D_λ of all answers for this data set if the queries were fixed
beforehand. It is kept here, never shown: no text, error, JSON or pickle holds it. Only `sanitized` gives it
away, with noise, and each call of it is another release, to be charged for.

The number of teachers is public and fixed, and every one votes on every query: one without data, or that will
not say, votes for a class that was fixed beforehand.

Smooth sensitivity (Nissim, Raskhodnikova and Smith 2007; for PATE, Papernot et al. 2018). A unit is behind
one teacher, so for neighbours every lead g changes by at most 2, the largest and the second largest count
moving by at most 1 each. With b(g) the figure of one query,
    U_d = Σ over queries of max |b(g′) − b(g″)| over |g′ − g| ≤ 2d, |g″ − g′| ≤ 2
bounds how much the sum changes for neighbours of data sets d steps away, and U_d ≤ U′_{d+1}. Let s₀ < s₁ < …
grow by at most a factor 1/θ and let j(u) be the first level not below u. Then S = s_J with
J = max(0, max_d j(U_d) − d) is at least U_0 ≥ |f − f′|, and J and J′ differ by at most 1: what `smooth` asks.
No other condition on b is needed. All of it is in whole numbers, so nothing is lost to rounding.

`rounded` is for noise that is rounded to whole votes: leads are counted one vote short (`agreed`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses.loss import Loss
from dalenius.losses.pate.dependent import UNITS, Ints, table
from dalenius.losses.pate.gnmax import GNMax
from dalenius.losses.pate.sanitizer import SLACK, Sanitized, Sanitizer
from dalenius.noise import gaussian
from dalenius.noise.sampler import Sampler
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation

FINE = 2**20
"""Levels are whole multiples of this part of a unit; the least is 1/SLACK units."""
MOST_NOISE = 2**49
"""In units."""
MOST_TEACHERS = 20_000


class Votes:
    """Counts of the votes, one row a query, one column a class; they are private."""

    __slots__ = ("__leads", "classes", "one", "queries", "teachers")

    def __init__(
        self,
        counts: ArrayLike,
        *,
        teachers: int,
        scale: Number,
        relation: Relation = "add_remove",
        rounded: bool = False,
    ) -> None:
        self.teachers = numbers.count(teachers, "teachers", most=MOST_TEACHERS)
        self.one = GNMax(numbers.exact(scale, "scale"), relation=relation)
        best = ranked(counts, self.teachers)
        self.queries, self.classes = len(best), int(best.shape[1])
        lead = np.maximum(best[:, -1] - best[:, -2] - int(rounded), 0)
        self.__leads: Ints = np.bincount(lead, minlength=self.teachers + 1).astype(np.int64)

    @property
    def loss(self) -> Loss:
        """What the answers cost, whatever the votes: this is what a ledger charges."""
        return self.one * self.queries

    def sanitized(self, by: Sanitizer) -> Sanitized:
        """The figure with noise. Charge `by.loss` before each call; the queries were fixed beforehand."""
        check_release(by, self.one.relation, self.queries)
        figures = table(self.teachers, self.classes, self.one.scale, by.order)
        smooth = Fraction(_smooth(figures, self.__leads, by.ratio), FINE)
        total = int(self.__leads @ figures) + math.ceil(by.shift * smooth)
        total += drawn(by.scale * smooth)
        unit = by.order / self.one.scale**2 / UNITS
        value = min(max(total, 0), self.queries * UNITS) * unit
        return Sanitized(
            value, order=by.order, confidence=by.confidence, loss=by.loss, tainted=noise.tainted()
        )

    def __repr__(self) -> str:
        shape = f"teachers={self.teachers}, classes={self.classes}, queries={self.queries}"
        return f"Votes({shape}, {self.one!r})"

    def __getstate__(self) -> NoReturn:
        self.__reduce__()

    def __reduce__(self) -> NoReturn:
        kept_private()


def ranked(counts: ArrayLike, teachers: int) -> Ints:
    """Counts that add up to the teachers, the two largest of each row last."""
    rows = np.asarray(counts)
    if rows.ndim != 2 or rows.shape[0] < 1 or rows.shape[1] < 2 or rows.dtype.kind not in "iu":
        raise _malformed()
    if (rows < 0).any() or (rows > teachers).any() or (rows.sum(axis=1) != teachers).any():
        raise _malformed()
    return np.partition(rows.astype(np.int64), -2, axis=1)


def check_release(by: Sanitizer, relation: Relation, queries: int) -> None:
    """Refuse what does not fit votes under a relation, or is more noise than can be drawn."""
    if by.relation != relation:
        raise RelationMismatch(
            "The figure is to be released under another relation than the votes have.",
            remedy=f"Make the Sanitizer with relation={relation!r}.",
        )
    if by.scale * queries * UNITS > MOST_NOISE:
        raise InvalidArgument("scale is too large for so many queries.", remedy="Choose a smaller scale.")


def kept_private() -> NoReturn:
    """Refuse to write votes."""
    raise NotSound(
        "Votes are private and are not written anywhere.", remedy="Keep the loss, which is public."
    )


def drawn(scale: Fraction) -> int:
    """Rounded Gaussian noise. The scale is private: no table of it is kept, to be met again in less time."""
    found = int(Sampler(gaussian.RoundedGaussian(scale)).draw(1)[0])
    gaussian.forget()
    return found


def _smooth(figures: Ints, leads: Ints, ratio: Fraction) -> int:
    """S in fine units."""
    steps = levels(int(leads.sum()) * UNITS, ratio)
    changes = _spread(figures, np.zeros_like(figures))
    most, first, d = int(changes.max()), 0, 0
    while True:
        first = max(first, bisect_left(steps, int(leads @ changes) * FINE) - d)
        if int(changes.min()) == most:
            return steps[first]
        changes, d = _widened(changes), d + 1


def _spread(figures: Ints, most: Ints) -> Ints:
    """The largest difference to a figure at most two leads away."""
    for step in (1, 2):
        apart = np.abs(figures[step:] - figures[:-step])
        most[step:] = np.maximum(most[step:], apart)
        most[:-step] = np.maximum(most[:-step], apart)
    return most


def _widened(values: Ints) -> Ints:
    """The largest at most two leads away."""
    padded = np.pad(values, 2)
    widest = values
    for i in range(5):
        widest = np.maximum(widest, padded[i : i + len(values)])
    return widest


def levels(most: int, ratio: Fraction) -> list[int]:
    """From the least level to one not below `most` units, each at most 1/ratio times the one before."""
    found = [int(FINE / SLACK)]
    while found[-1] < most * FINE:
        found.append(int(found[-1] / ratio))
    return found


def _malformed() -> InvalidArgument:
    return InvalidArgument(
        "counts must be whole numbers, a row for each query and a column for each of two classes or more, "
        "every row adding up to teachers.",
        remedy="Pass the counts before any noise was added.",
    )
