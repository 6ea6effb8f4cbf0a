"""One private number from a value or a column: a call, and a `Release` with its error bar.

    >>> import numpy as np
    >>> found = mean(np.arange(100), lower=0, upper=100, epsilon=1)
    >>> found.receipt.cost, found.receipt.charged
    ('epsilon 1', 'uncharged')

`laplace` and `gaussian` take a value that the caller computed, the others a column with one record for each
unit: an array, a series or a list. Values are clipped to [lower, upper], which are public and never taken
from the data; what holds no number (NaN, None) contributes nothing, as if the record were absent. A unit with
several records has `ids` and `per_unit`. With delta=0 noise is Laplace; else the law with the shorter bar.

The result is uncharged: add up the losses of all releases about the same units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from dalenius.errors import InvalidArgument, NotSound
from dalenius.mechanisms import contributions
from dalenius.mechanisms.additive import Additive, read_sensitivity
from dalenius.mechanisms.bounded_mean import BoundedMean
from dalenius.mechanisms.bounded_sum import BoundedSum
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.histogram import Histogram
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.quantile import Quantile
from dalenius.mechanisms.ranged import Ranged
from dalenius.mechanisms.tally import Noise, per_unit_count
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import Cell, Release

Kind = TypeVar("Kind", bound=Ranged)

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
    unit: Unit | None = None,
) -> Release:
    """A number, or a vector with a `Sensitivity`, under Laplace noise."""
    stated, limit = _given("laplace", sensitivity=sensitivity, epsilon=epsilon)
    bound = _sensitivity(value, stated, unit)
    grid = _whole_grid(_integers(value), bound)
    return Laplace.calibrate(epsilon=limit, delta=delta, sensitivity=bound, grid=grid).release(
        value, unit=unit
    )


def gaussian(
    value: Any,
    *,
    sensitivity: Sensitivity | Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    unit: Unit | None = None,
) -> Release:
    """A number, or a vector with a `Sensitivity`, under Gaussian noise."""
    stated, limit, failure = _given("gaussian", sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    bound = _sensitivity(value, stated, unit)
    grid = _whole_grid(_integers(value), bound)
    mechanism = Gaussian.calibrate(epsilon=limit, delta=failure, sensitivity=bound, grid=grid)
    return mechanism.release(value, unit=unit)


def count(
    records: Any,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    per_unit: int = 1,
    ids: Any = None,
    unit: Unit | None = None,
) -> Release:
    """How many records there are."""
    (limit,) = _given("count", epsilon=epsilon)
    if _relation(unit) != "add_remove":
        raise NotSound(
            "Only under add_remove is the number of records private.",
            remedy="Publish len(records) as it is, or pass a unit with relation='add_remove'.",
        )
    most = per_unit_count(per_unit, "per_unit")
    laws: dict[Noise, Callable[..., Additive]] = {
        "laplace": Laplace.calibrate,
        "gaussian": Gaussian.calibrate,
    }

    def law(noise: Noise) -> Additive:
        return laws[noise](epsilon=limit, delta=delta, sensitivity=most, grid=Grid(0), exact=True)

    mechanism = min((law(noise) for noise in _noises(delta)), key=lambda made: made.error())
    size = len(records) if ids is None else int(contributions.kept(ids, most).sum())
    return mechanism.release(size, name="n", unit=unit)


def sum(
    values: Any,
    *,
    lower: Number | None = None,
    upper: Number | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    per_unit: int = 1,
    ids: Any = None,
    unit: Unit | None = None,
) -> Release:
    """The sum of a column."""
    given = _given("sum", lower=lower, upper=upper, epsilon=epsilon)
    column = contributions.column(values)
    mechanism = _least(BoundedSum, column, *given, delta=delta, per_unit=per_unit, unit=unit)
    return mechanism.release(column, ids=ids, unit=unit)


def mean(
    values: Any,
    *,
    lower: Number | None = None,
    upper: Number | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    per_unit: int = 1,
    ids: Any = None,
    unit: Unit | None = None,
) -> Release:
    """The mean of a column."""
    given = _given("mean", lower=lower, upper=upper, epsilon=epsilon)
    column = contributions.column(values)
    mechanism = _least(BoundedMean, column, *given, delta=delta, per_unit=per_unit, unit=unit)
    return mechanism.release(column, ids=ids, unit=unit)


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
    column = contributions.column(values)
    if relation == "add_remove":
        column = column[~contributions.missing(column)]
    mechanism = Quantile.calibrate(epsilon=limit, delta=delta, lower=low, upper=high, relation=relation)
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
    listed, limit = _given("histogram", categories=categories, epsilon=epsilon)
    most = per_unit_count(per_unit, "per_unit")
    if most > 1 and ids is None:
        raise InvalidArgument(
            "Several records of a unit may fall in one category.",
            remedy="Pass ids, which says whose each record is, or per_unit=1.",
        )

    def made(noise: Noise) -> Histogram:
        return Histogram.calibrate(
            epsilon=limit, delta=delta, categories=listed, noise=noise, l0=most, relation=_relation(unit)
        )

    mechanism = min((made(noise) for noise in _noises(delta)), key=lambda found: found.additive.error())
    return mechanism.release(values, ids=ids, unit=unit)


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
    return "add_remove" if unit is None else unit.relation


def _noises(delta: Number) -> tuple[Noise, ...]:
    return ("laplace",) if numbers.delta(delta) == 0 else ("laplace", "gaussian")


def _least(
    kind: type[Kind],
    column: Any,
    lower: Number,
    upper: Number,
    epsilon: Number,
    *,
    delta: Number,
    per_unit: int,
    unit: Unit | None,
) -> Kind:
    """The mechanism with the noise that reaches less far; whole numbers stay whole."""
    ends = [numbers.exact(lower, "lower"), numbers.exact(upper, "upper")]
    whole = column.dtype.kind in "biu" and all(end.denominator == 1 for end in ends)

    def made(noise: Noise) -> Kind:
        return kind.calibrate(
            epsilon=epsilon,
            delta=delta,
            lower=lower,
            upper=upper,
            per_unit=per_unit,
            noise=noise,
            relation=_relation(unit),
            grid=Grid(0) if whole else None,
        )

    return min((made(noise) for noise in _noises(delta)), key=lambda found: found.additive.error())


def _sensitivity(value: Any, stated: Sensitivity | Number, unit: Unit | None) -> Sensitivity:
    if np.ndim(value) and not isinstance(stated, Sensitivity):
        raise InvalidArgument(
            "A vector needs a sensitivity that says in how many entries one unit makes a difference.",
            remedy="Pass Sensitivity(l0=…, linf=…), or Sensitivity(l0=…, l1=…).",
        )
    if not isinstance(stated, Sensitivity):
        return Sensitivity(l0=1, linf=read_sensitivity(stated).linf, relation=_relation(unit))
    return stated if unit is None else stated.under(unit.relation)


def _integers(value: Any) -> bool:
    """Whether the value is of an integer type, which is a fact of the schema."""
    return isinstance(value, int) or getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u")


def _whole_grid(whole: bool, bound: Sensitivity) -> Grid | None:
    """Whole numbers of whole sensitivity stay whole, which costs nothing for one number."""
    exact = bound.linf is not None and Fraction(bound.linf).denominator == 1
    return Grid(0) if whole and exact and bound.l0 == 1 else None
