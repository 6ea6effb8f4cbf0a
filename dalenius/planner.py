"""How many people does this error need: from the law of the noise, before any data are seen.

    >>> people_needed(error=0.05, epsilon=1)                       # a count within 5 %, 19 times in 20
    60
    >>> people_needed(error=0.01, epsilon=1, lower=0, upper=1)     # a share within one percentage point
    377

A count is off by the noise alone, at most r with the stated confidence, whatever the count: a relative
error e needs r/e people. A mean of values within a width w comes from two noisy sums (`bounded_mean`),
neither off by more than r people's worth with the stated confidence (Bonferroni), so it is off by at most
w·r/(n − 2r): an absolute error e needs n = w·r/e + 2r people.

Where the n people are drawn at random, without replacement, from a larger population whose mean is meant, the
sample is off by at most w√((1 − (n−1)/population)·log(2/α)/2n) with probability 1 − α (Hoeffding 1963;
Serfling 1974). Half the risk goes to it, and both errors are added.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.bounded_mean import BoundedMean
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.tally import Noise
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid
from dalenius.release import CONFIDENCE

MOST_PEOPLE = 10**15


def people_needed(
    *,
    error: Number,
    epsilon: Number,
    delta: Number = 0,
    lower: Number | None = None,
    upper: Number | None = None,
    noise: Noise = "laplace",
    confidence: Number = CONFIDENCE,
    population: float | None = None,
) -> int:
    """The least number of people for a relative error of a count, or an absolute error of a mean.

    With `lower` and `upper` a mean is meant, else a count. `population` (math.inf for a very large one) adds
    the error of drawing the people from it at random.
    """
    limit = numbers.positive(error, "error")
    alpha = 1 - numbers.confidence(confidence)
    budget = numbers.epsilon(epsilon)
    if (lower is None) != (upper is None):
        raise InvalidArgument("A mean needs lower and upper.", remedy="Pass both, or neither for a count.")
    if population is not None and not (isinstance(population, int | float | Fraction) and population >= 1):
        raise InvalidArgument(
            "population must be a number, 1 or more.",
            remedy="Pass how many people it has, such as population=50_000, or math.inf.",
        )
    if lower is None or upper is None:
        if noise != "laplace":
            raise InvalidArgument("A count has Laplace noise.", remedy="Leave noise out, or state bounds.")
        return _count(limit, alpha, budget, delta, population)
    mechanism = BoundedMean.calibrate(epsilon=budget, delta=delta, lower=lower, upper=upper, noise=noise)
    width = mechanism.upper - mechanism.lower
    part = alpha if population is None else alpha / 2
    reach = Fraction(mechanism.additive.reach(part / 2)) * mechanism.step / width
    if population is None:
        return max(1, math.ceil(width * reach / limit + 2 * reach))
    return _sampled(limit, part, width, reach, population)


def _count(limit: Fraction, alpha: Fraction, epsilon: Number, delta: Number, population: float | None) -> int:
    if population is not None:
        raise InvalidArgument(
            "A sample estimates a share, not a count.",
            remedy="Pass lower=0 and upper=1 for the share of people who have something.",
        )
    mechanism = Laplace.calibrate(epsilon=epsilon, delta=delta, sensitivity=1, grid=Grid(0), exact=True)
    return max(1, math.ceil(mechanism.reach(alpha) / limit))


def _sampled(limit: Fraction, alpha: Fraction, width: Fraction, reach: Fraction, population: float) -> int:
    """The least number for both errors: the sum of them falls as the number grows."""
    size = float(population) if population <= MOST_PEOPLE else math.inf

    def off(people: int) -> float:
        noisy = float(width * reach / (people - 2 * reach)) if people > 2 * reach else math.inf
        left = max(0.0, 1 - (people - 1) / size)
        return noisy + float(width) * math.sqrt(left * math.log(2 / float(alpha)) / (2 * people))

    low, high = 0, int(min(size, MOST_PEOPLE))
    if off(high) > limit:
        raise InvalidArgument(
            f"The whole population would leave an error of {off(high):.3g}.",
            remedy="Allow a larger error or epsilon.",
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if off(middle) <= limit else (middle, high)
    return high
