"""Randomized response: the true category, or with probability `randomize` a uniformly random one.

Theorem (Warner 1965; Kairouz, Bonawitz and Ramage 2016 for k categories). A report is the true category with
probability p = 1 − r + r/k and each other one with s = r/k, so it is log(p/s)-private, and no more; the loss
is `losses.RandomizedResponse`, attained by any two categories. The least r for ε is k/(e^ε + k − 1).

Each entry of an array is one person's report, so their number is public. Neighbours differ in one person's
category, or, under zero_out, in whether that person's is null, which counts as category 0.

Error. A report has no distance to the truth, but many have. Of n reports let c say j. The share f of people
in j is estimated without bias by (c/n − s)/(p − s), of variance (f·p(1−p) + (1−f)·s(1−s))/(n(p − s)²). If m
people are in j then c is Bin(m, p) + Bin(n − m, s), which grows with m; so those m for which neither tail at
c is below alpha/2 are an interval that holds the truth with probability at least 1 − alpha (Clopper and
Pearson 1934, for this law).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import randomized_response as losses
from dalenius.losses.fields import Parameter
from dalenius.mechanisms.mechanism import Law, Mechanism, risk
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.records import shown, whole
from dalenius.privacy.unit import Relation, Unit, read_relation
from dalenius.profiles.balls import ball, upper
from dalenius.release import CONFIDENCE, Release

MOST_CATEGORIES = 2**31
SPREAD = 40.0
"""Standard deviations beyond which a binomial law is left out of a tail: it adds less than e^−40 there."""
Floats = NDArray[np.float64]


def _categories(value: object, name: str) -> int:
    return numbers.count(value, name, least=2, most=MOST_CATEGORIES)


@dataclass(frozen=True)
class Shares:
    """The estimated share of people in each category, and an interval for each by itself."""

    share: Floats
    low: Floats
    high: Floats
    confidence: Fraction


@dataclass(frozen=True)
class RandomizedResponse(Mechanism, kind="randomized_response"):
    """With probability `randomize` the report is a uniformly random one of `categories`."""

    _: KW_ONLY
    randomize: Parameter[Fraction] = Parameter(numbers.probability)
    categories: Parameter[int] = Parameter(_categories, 2)
    relation: Relation = "replace"

    def __post_init__(self) -> None:
        if read_relation(self.relation) == "add_remove":
            raise NotSound(
                "Every person's report is a row: who takes part is not hidden, so add_remove does not hold.",
                remedy='Use relation="replace", or "zero_out" with a null answer for who does not take part.',
            )

    @property
    def loss(self) -> losses.RandomizedResponse:
        """Of one person's report."""
        return losses.RandomizedResponse(self.randomize, categories=self.categories, relation=self.relation)

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """A report of each person's category, 0 to categories − 1; anything else counts as 0."""
        return self._released({"report": self._reports(self._codes(value)).tolist()}, ("report",), unit)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Reports of one public category."""
        return self._reports(np.repeat(self._codes(value), size))

    def worst_case(self) -> tuple[int, int]:
        """Any two categories."""
        return 0, 1

    def probabilities(self, value: Any) -> Law:
        """p for the category itself, s for each other."""
        true, other = self._chances
        code = int(self._codes(value)[0])
        masses = [true if k == code else other for k in range(self.categories)]
        return Law(tuple(range(self.categories)), np.array(masses, dtype=np.float64))

    def estimate(self, reports: Any, *, alpha: Number = 1 - CONFIDENCE) -> Shares:
        """The share of each category among those who reported: post-processing, which is free."""
        if self.randomize == 1:
            raise InvalidArgument("randomize is 1: reports say nothing.", remedy="Choose randomize below 1.")
        codes, tail = self._codes(reports), float(risk(alpha)) / 2
        if codes.size == 0:
            raise InvalidArgument("There are no reports.", remedy="Pass at least one report.")
        true, other = map(float, self._chances)
        counts = np.bincount(codes, minlength=self.categories)
        ends = {int(c): _interval(int(c), codes.size, true, other, tail) for c in np.unique(counts)}
        low, high = np.array([ends[c] for c in counts.tolist()]).T / codes.size
        return Shares((counts / codes.size - other) / (true - other), low, high, 1 - risk(alpha))

    @staticmethod
    def calibrate(
        *, epsilon: Number, categories: int = 2, relation: Relation = "replace"
    ) -> RandomizedResponse:
        """The least randomization, to a part in 2^52, with which a report is epsilon-private."""
        limit, many = numbers.positive(epsilon, "epsilon"), _categories(categories, "categories")
        with workprec(192):
            least = Fraction(upper(many / (ball(limit).exp() + (many - 1))))
        found, margin = least, least / 2**52
        while found < 1 and losses.RandomizedResponse(found, categories=many).epsilon(0).upper > limit:
            found, margin = found + margin, 2 * margin
        return RandomizedResponse(randomize=min(found, Fraction(1)), categories=many, relation=relation)

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        """Of the true category, and of each other one."""
        other = self.randomize / self.categories
        return 1 - self.randomize + other, other

    def _reports(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        lies = np.asarray(noise.uniform(self.categories, codes.size), dtype=np.int64)
        return np.where(noise.bernoulli(self.randomize, codes.size), lies, codes)

    def _codes(self, value: Any) -> NDArray[np.int64]:
        """Category numbers. An array's type is a fact of the schema; what is in it is private."""
        entries = value if isinstance(value, list | tuple) else np.ravel(shown(value))
        if isinstance(entries, np.ndarray) and entries.dtype.kind not in "biufO":
            raise InvalidArgument(
                "Categories must be whole numbers, by their type.", remedy="Number the categories from 0."
            )
        codes = entries.tolist() if isinstance(entries, np.ndarray) else entries
        return np.array([_code(code, self.categories) for code in codes], dtype=np.int64)


def _code(value: object, categories: int) -> int:
    """A category, where it is a whole number of one; else 0, whatever it is."""
    found = whole(value)
    return found if found is not None and 0 <= found < categories else 0


def _interval(count: int, n: int, true: float, other: float, tail: float) -> tuple[int, int]:
    """The least and greatest m for which neither tail of Bin(m, true) + Bin(n − m, other) is below `tail`."""
    low = _first(n, lambda m: _at_most(n - count, n, m, 1 - true, 1 - other) >= tail)
    high = n - _first(n, lambda m: _at_most(count, n, n - m, true, other) >= tail)
    return min(low, high), max(low, high)


def _first(n: int, test: Callable[[int], bool]) -> int:
    """The least m from 0 to n that passes, where all greater ones do; n where none does."""
    low, high = -1, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if test(middle) else (middle, high)
    return high


def _at_most(count: int, n: int, m: int, true: float, other: float) -> float:
    """P(Bin(m, true) + Bin(n − m, other) ≤ count)."""
    from scipy.stats import binom

    mean, reach = m * true, SPREAD * math.sqrt(m * true * (1 - true)) + SPREAD
    k = np.arange(max(0, math.floor(mean - reach)), min(m, math.ceil(mean + reach)) + 1)
    return float(np.dot(binom.pmf(k, m, true), binom.cdf(count - k, n - m, other)))
