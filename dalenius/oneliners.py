"""One private number from a value or a column: a call, and a `Release` with its error bar.

    >>> import numpy as np
    >>> found = mean(np.arange(100), lower=0, upper=100, epsilon=1)
    >>> found.receipt.cost, found.receipt.charged
    ('epsilon 1', 'uncharged')

`laplace` and `gaussian` take a value that the caller computed, the others a column with one record for each
unit: an array, a series or a list. Values are clipped to [lower, upper], which are public and never taken
from the data; what holds no number (NaN, None) contributes nothing to a sum, a mean or a median, as if the
record were absent. `count` counts every record, whatever it holds. A unit with several records has `ids` and
`per_unit`. With delta=0 noise is Laplace; else the law with the shorter bar.

Numbers are rounded onto a fine grid, which follows from the other arguments alone: neither from values nor
from their type, as a single null turns a column of integers into one of floats. Whole numbers that shall stay
whole are asked for by grid=Grid(0), from `dalenius.privacy`.

The result is uncharged: add up the losses of all releases about the same units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from dalenius.errors import InvalidArgument, NotSound
from dalenius.mechanisms import contributions
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.bounded_mean import BoundedMean
from dalenius.mechanisms.bounded_sum import BoundedSum
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.histogram import Histogram
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.laplace_ratio import check_epsilon
from dalenius.mechanisms.quantile import Quantile
from dalenius.mechanisms.tally import MOST_BOUND, Noise, check_bounds, per_unit_count
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import Cell, Release

Kind = TypeVar("Kind")

_BOUNDS = "the least and the most a value may be, from public knowledge"
_MEANING = {
    "epsilon": "how much the release may reveal, such as epsilon=1",
    "delta": "the probability of a failure, such as delta=1e-6",
    "sensitivity": "how far one unit can move the value, such as sensitivity=1 for a count",
    "lower": _BOUNDS,
    "upper": _BOUNDS,
    "categories": "the list of all categories, from public knowledge",
}


def laplace(
    value: Any,
    *,
    sensitivity: Sensitivity | Number | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    grid: Grid | None = None,
    unit: Unit | None = None,
) -> Release:
    """A number, or a vector with a `Sensitivity`, under Laplace noise."""
    stated, limit = _given("laplace", sensitivity=sensitivity, epsilon=epsilon)
    bound = _sensitivity(value, stated, unit)
    made = Laplace.calibrate(epsilon=numbers.epsilon(limit), delta=delta, sensitivity=bound, grid=grid)
    return made.release(value, unit=unit)


def gaussian(
    value: Any,
    *,
    sensitivity: Sensitivity | Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    grid: Grid | None = None,
    unit: Unit | None = None,
) -> Release:
    """A number, or a vector with a `Sensitivity`, under Gaussian noise."""
    stated, limit, failure = _given("gaussian", sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    bound = _sensitivity(value, stated, unit)
    made = Gaussian.calibrate(epsilon=numbers.epsilon(limit), delta=failure, sensitivity=bound, grid=grid)
    return made.release(value, unit=unit)


def count(
    records: Any,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    per_unit: int = 1,
    ids: Any = None,
    unit: Unit | None = None,
) -> Release:
    """How many records there are, those that hold nothing (NaN, None) among them."""
    (given,) = _given("count", epsilon=epsilon)
    if _relation(unit) != "add_remove":
        raise NotSound(
            "Only under add_remove is the number of records private.",
            remedy="Publish len(records) as it is, or pass a unit with relation='add_remove'.",
        )
    limit, most = numbers.epsilon(given), per_unit_count(per_unit, "per_unit")
    check_epsilon(limit, most)
    laws: dict[Noise, Callable[..., Additive]] = {
        "laplace": Laplace.calibrate,
        "gaussian": Gaussian.calibrate,
    }

    def made(noise: Noise) -> Additive:
        return laws[noise](epsilon=limit, delta=delta, sensitivity=most, grid=Grid(0), exact=True)

    mechanism = _shortest(made, delta, lambda law: law)
    size = contributions.size(records, "records")
    if ids is not None:
        contributions.same_length(ids, size)
        size = int(contributions.kept(ids, most).sum())
    return replace(mechanism.release(size, name="n", unit=unit), counts=("n",))


def sum(
    values: Any,
    *,
    lower: Number | None = None,
    upper: Number | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    per_unit: int = 1,
    ids: Any = None,
    grid: Grid | None = None,
    unit: Unit | None = None,
) -> Release:
    """The sum of a column."""
    low, high, limit = _given("sum", lower=lower, upper=upper, epsilon=epsilon)
    return _ranged(BoundedSum, values, low, high, limit, delta, per_unit, ids, grid, unit)


def mean(
    values: Any,
    *,
    lower: Number | None = None,
    upper: Number | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    per_unit: int = 1,
    ids: Any = None,
    grid: Grid | None = None,
    unit: Unit | None = None,
) -> Release:
    """The mean of a column."""
    low, high, limit = _given("mean", lower=lower, upper=upper, epsilon=epsilon)
    return _ranged(BoundedMean, values, low, high, limit, delta, per_unit, ids, grid, unit)


def median(
    values: Any,
    *,
    lower: Number | None = None,
    upper: Number | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    unit: Unit | None = None,
) -> Release:
    """The median of a column, one record of each unit. Its error depends on the data, so it has no bar."""
    low, high, limit = _given("median", lower=lower, upper=upper, epsilon=epsilon)
    relation = _relation(unit)
    check_bounds(numbers.exact(low, "lower"), numbers.exact(high, "upper"))
    mechanism = Quantile.calibrate(epsilon=limit, delta=delta, lower=low, upper=high, relation=relation)
    column = contributions.column(values)
    if relation == "add_remove":
        column = column[~contributions.missing(column)]
    return mechanism.release(column, name="median", unit=unit)


def histogram(
    values: Any,
    *,
    categories: Iterable[Cell] | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    per_unit: int = 1,
    ids: Any = None,
    unit: Unit | None = None,
) -> Release:
    """How many records fall in each category; those outside the list are left out.

    A unit with several records has `ids`, and counts once in each of at most `per_unit` categories.
    """
    listed, given = _given("histogram", categories=categories, epsilon=epsilon)
    contributions.size(values, "values")
    limit, most = numbers.epsilon(given), per_unit_count(per_unit, "per_unit")
    check_epsilon(limit, most * (2 if _relation(unit) == "replace" else 1))
    if most > 1 and ids is None:
        raise InvalidArgument(
            "Several records of a unit may fall in one category.",
            remedy="Pass ids, which says whose each record is, or per_unit=1.",
        )

    def made(noise: Noise) -> Histogram:
        return Histogram.calibrate(
            epsilon=limit, delta=delta, categories=listed, noise=noise, l0=most, relation=_relation(unit)
        )

    release = _shortest(made, delta, lambda found: found.additive).release(values, ids=ids, unit=unit)
    return replace(release, counts=release.measures)


def _given(function: str, **arguments: object) -> list[Any]:
    """The arguments; what is missing is named, with what it means."""
    missing = [name for name, value in arguments.items() if value is None]
    if missing:
        meant = dict.fromkeys(_MEANING[name] for name in missing)
        raise InvalidArgument(
            f"{function} needs {' and '.join(missing)}: {'; '.join(meant)}.",
            remedy=f"Pass {', '.join(f'{name}=…' for name in missing)}.",
        )
    return [*arguments.values()]


def _relation(unit: Unit | None) -> Relation:
    if unit is not None and not isinstance(unit, Unit):
        raise InvalidArgument("unit must be a Unit.", remedy="Pass unit=Unit('person'), or leave it out.")
    return "add_remove" if unit is None else unit.relation


def _ranged(
    kind: type[BoundedSum] | type[BoundedMean],
    values: Any,
    lower: Number,
    upper: Number,
    epsilon: Number,
    delta: Number,
    per_unit: int,
    ids: Any,
    grid: Grid | None,
    unit: Unit | None,
) -> Release:
    def made(noise: Noise) -> BoundedSum | BoundedMean:
        return kind.calibrate(
            epsilon=epsilon,
            delta=delta,
            lower=lower,
            upper=upper,
            per_unit=per_unit,
            noise=noise,
            relation=_relation(unit),
            grid=grid,
        )

    return _shortest(made, delta, lambda found: found.additive).release(values, ids=ids, unit=unit)


def _shortest(made: Callable[[Noise], Kind], delta: Number, noise: Callable[[Kind], Additive]) -> Kind:
    """The mechanism with the noise that reaches less far."""
    laws: tuple[Noise, ...] = ("laplace",) if numbers.delta(delta) == 0 else ("laplace", "gaussian")
    return min(map(made, laws), key=lambda mechanism: noise(mechanism).error())


def _sensitivity(value: Any, stated: Sensitivity | Number, unit: Unit | None) -> Sensitivity:
    relation, single = _relation(unit), _single(value)
    if isinstance(stated, Sensitivity):
        return stated if unit is None else stated.under(relation)
    if not single:
        raise InvalidArgument(
            "A vector needs a sensitivity that says in how many entries one unit makes a difference.",
            remedy="Pass Sensitivity(l0=…, linf=…), or Sensitivity(l0=…, l1=…).",
        )
    bound = numbers.positive(stated, "sensitivity")
    if not 1 <= bound * MOST_BOUND <= MOST_BOUND**2:
        raise InvalidArgument(
            "sensitivity must be from 1e-100 to 1e100.",
            remedy="Choose sensitivity in that range, or another unit of measurement.",
        )
    return Sensitivity.of_number(bound, relation=relation)


def _single(value: Any) -> bool:
    """Whether it is one number, and not a vector; rows of different lengths are neither."""
    try:
        return np.ndim(value) == 0
    except ValueError:
        raise InvalidArgument(
            "value must be a number or a vector of numbers.", remedy="Pass a number, or an array."
        ) from None
