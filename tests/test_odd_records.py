"""One odd record changes nothing but the released value: one sweep over every callable that takes records.

Every public callable is in the sweep or among `EXCLUDED`, with the reason. Each call of the sweep is made on
neighbouring data, ordinary and with one odd record in place of an ordinary one or beside the others. Whatever
an analyst sees but the value must be the same: that there is no exception and no warning, the names, lengths
and types of the columns, and the receipt.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

import dalenius as dp
from dalenius import local, mechanisms, streams
from dalenius.learn import tabular
from dalenius.learn.pate import Teachers
from dalenius.learn.sampling import Cyclic, Poisson, RandomAllocation, TruncatedPoisson
from dalenius.losses import Gaussian, GaussianDP
from dalenius.losses.individuals import IndividualFilter
from dalenius.privacy import Grid, Sensitivity
from dalenius.privacy.records import cells, whole_steps
from dalenius.release import Release


class Hostile:
    """An object each of whose methods raises."""

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("a secret of the record")

    __eq__ = __ne__ = __lt__ = __gt__ = __hash__ = __bool__ = __len__ = __iter__ = _raise  # type: ignore[assignment]
    __float__ = __int__ = __index__ = __str__ = __repr__ = __getitem__ = _raise  # type: ignore[assignment]


class HostileInt(int):
    """A whole number that refuses to be one."""

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("a secret of the record")

    __float__ = __int__ = __index__ = __gt__ = __str__ = __repr__ = __format__ = _raise  # type: ignore[assignment]


class HostileText(str):
    """A text that refuses to be written."""

    __slots__ = ()

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("a secret of the record")

    __str__ = __repr__ = __format__ = encode = _raise  # type: ignore[assignment]


ODD: dict[str, Any] = {
    "None": None,
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "True": True,
    "Decimal": Decimal("1.5"),
    "Decimal NaN": Decimal("sNaN"),
    "Decimal infinity": Decimal("-Infinity"),
    "huge Decimal": Decimal("1E+999999999"),
    "Fraction": Fraction(1, 3),
    "huge Fraction": Fraction(10**5000, 7),
    "huge": 10**5000,
    "minus huge": -(10**5000),
    "text": "secret",
    "digits": "1",
    "empty text": "",
    "long text": "x" * 100_000,
    "surrogate": "\ud800",
    "null character": "a\0",
    "bytes": b"\xff",
    "no bytes": b"",
    "bytearray": bytearray(b"a"),
    "complex": 1j,
    "int8": np.int8(-128),
    "uint64": np.uint64(2**64 - 1),
    "float16": np.float16("inf"),
    "float32": np.float32(0.1),
    "longdouble": np.longdouble("1e4000"),
    "numpy NaN": np.float64("nan"),
    "numpy bool": np.bool_(True),
    "numpy text": np.str_("secret"),
    "numpy bytes": np.bytes_(b"secret"),
    "numpy complex": np.complex128(1j),
    "NaT": np.datetime64("NaT"),
    "datetime64": np.datetime64("2020-01-01"),
    "timedelta64": np.timedelta64(3, "s"),
    "timedelta NaT": np.timedelta64("NaT"),
    "void": np.void(b"ab"),
    "date": date(2020, 1, 1),
    "datetime": datetime(2020, 1, 1, tzinfo=UTC),
    "timedelta": timedelta(3),
    "masked": np.ma.masked,
    "pandas NA": pd.NA,
    "pandas NaT": pd.NaT,
    "Timestamp": pd.Timestamp("2020-01-01"),
    "list": [1, 2],
    "nested list": [[1], [2, 3]],
    "tuple": (1, 2),
    "dict": {"a": 1},
    "set": {1},
    "array": np.arange(3),
    "array of nothing": np.array(None, dtype=object),
    "Series": pd.Series([1, 2]),
    "UUID": UUID(int=1),
    "type": int,
    "function": len,
    "object": object(),
    "Ellipsis": ...,
    "hostile": Hostile(),
    "hostile number": HostileInt(3),
    "hostile text": HostileText("secret"),
}
Call = Callable[[Any], Any]


# What an analyst sees but the value.


def appearance(found: Any) -> Any:
    """All of a result that is not the released value."""
    if isinstance(found, Release):
        columns = {name: (len(column), found[name].dtype.kind) for name, column in found.columns.items()}
        receipt = found.receipt
        return columns, found.measures, found.confidence, receipt.bounds, receipt.mechanism, receipt.cost
    if isinstance(found, np.ndarray):
        return found.dtype, found.shape
    return type(found)


def keys_hidden(found: Release) -> Any:
    """The same, where which keys are shown is the released value."""
    return [*found.columns], found.measures, found.receipt.bounds, found.receipt.mechanism


def seen(call: Call, given: Any) -> Any:
    """The appearance of what a call gives, with what it raised or warned of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = call(given)
        except Exception as error:
            return Raised(f"{type(error).__name__}: {error}")
    if said:
        return Raised(str([str(one.message) for one in said]))
    return found if isinstance(found, tuple | str) else appearance(found)


class Raised(str):
    """What a call raised, or warned of."""

    __slots__ = ()


def objects(listed: list[Any]) -> Any:
    array = np.empty(len(listed), dtype=object)
    for place, cell in enumerate(listed):
        array[place] = cell
    return array


# Every callable that takes records, as a function of a list of them.

ENDS: dict[str, Any] = {"lower": -1, "upper": 3, "epsilon": 1}
NUMBERS = [0.5, 1, 2.25, 1, 0]
ITEMS = ["a", "b", "a", "z", "b"]
STEPS = [1, 0, 1, 1, 0]


def streamed(mechanism: Any, **start: Any) -> Call:
    def call(given: Any) -> Any:
        session = mechanism.start(**start)
        session.add(given)
        return session.value()

    return call


def with_unit(mechanism: Any) -> Call:
    def call(units: Any) -> Any:
        session = mechanism.start()
        session.add([1] * len(units), unit=units)
        return session.value()

    return call


def saved(path: Path) -> Call:
    """A counter that is written to a file and read from there, with whoever took part."""
    mechanism = streams.ContinualSum.calibrate(horizon=4, epsilon=1, delta=1e-6, most=1)

    def call(units: Any) -> Any:
        counter = mechanism.start()
        file = path / f"{len(list(path.iterdir()))}.json"
        counter.save(file)
        counter.add([1] * len(units), unit=units)
        counter.value()
        counter.close()
        again = streams.load(file)
        found = again.value()
        again.close()
        return found

    return call


def keyed(mechanism: Any) -> Call:
    """Keys of records, counted as a group-by does it; what cannot be a key of a dict is none."""

    def call(given: Any) -> Any:
        counts: dict[Any, int] = {}
        for key in given:
            try:
                counts[key] = counts.get(key, 0) + 1
            except Exception:
                continue
        return keys_hidden(mechanism.release(counts))

    return call


SUMS: dict[str, Any] = {
    "ContinualSum": streams.ContinualSum.calibrate(horizon=8, epsilon=1, delta=1e-6),
    "TreeSum": streams.TreeSum.calibrate(horizon=8, epsilon=1),
    "EndlessSum": streams.EndlessSum.calibrate(epsilon=1, delta=1e-6),
    "WindowSum": streams.WindowSum.calibrate(window=2, epsilon=1),
    "DecayedSum": streams.DecayedSum.calibrate(horizon=8, decay=0.5, epsilon=1, delta=1e-6),
    "PanPrivateCount": streams.PanPrivateCount.calibrate(horizon=8, epsilon=1),
}
COUNTED = streams.ContinualSum.calibrate(horizon=64, epsilon=1, delta=1e-6, categories=3)
BOUNDED = streams.ContinualSum.calibrate(horizon=64, epsilon=1, delta=1e-6, most=1)
NUMERIC: dict[str, Call] = {
    "dalenius.sum": lambda x: dp.sum(x, **ENDS),
    "dalenius.mean": lambda x: dp.mean(x, **ENDS),
    "dalenius.median": lambda x: dp.median(x, **ENDS),
    "dalenius.count": lambda x: dp.count(x, epsilon=1),
    "mechanisms.BoundedSum": lambda x: mechanisms.BoundedSum.calibrate(**ENDS, per_unit=2).release(x),
    "mechanisms.BoundedMean": lambda x: mechanisms.BoundedMean.calibrate(**ENDS).release(x),
    "mechanisms.Variance": lambda x: mechanisms.Variance.calibrate(**ENDS).release(x),
    "mechanisms.Quantile": lambda x: mechanisms.Quantile.calibrate(**ENDS).release(x),
    "mechanisms.Quantiles": lambda x: mechanisms.Quantiles.calibrate(**ENDS, levels=[0.25, 0.5]).release(x),
    "mechanisms.Quantiles, far from zero": lambda x: mechanisms.Quantiles(
        scale=1, levels=[0.5], lower=2**60, upper=2**60 + 1024, grid=Grid(0)
    ).release(x),
    "mechanisms.SampleAndAggregate": lambda x: mechanisms.SampleAndAggregate.calibrate(
        **ENDS, blocks=4
    ).release(x),
    "streams.StreamQuantiles": streamed(
        streams.StreamQuantiles.calibrate(horizon=4, delta=1e-6, bins=4, **ENDS)
    ),
}
"""Records are numbers."""
LABELLED: dict[str, Call] = {
    "dalenius.histogram": lambda x: dp.histogram(x, categories=["a", "b"], epsilon=1),
    "mechanisms.Histogram": lambda x: mechanisms.Histogram(categories=["a", 1], scale=1, other=True).release(
        x
    ),
    "mechanisms.PartitionSelection": keyed(mechanisms.PartitionSelection(epsilon=1, delta=1e-6)),
    "mechanisms.NoisyThreshold": keyed(mechanisms.NoisyThreshold.calibrate(epsilon=1, delta=1e-6)),
    "streams.HeavyHitters": lambda x: keys_hidden(
        streamed(streams.HeavyHitters(epsilon=1, delta=1e-6, counters=4))(x)
    ),
    "streams.DistinctCount": streamed(streams.DistinctCount(epsilon=1, buckets=64, levels=8)),
}
"""Records are texts or anything."""
CODED: dict[str, Call] = {
    **{f"streams.{name}": streamed(mechanism) for name, mechanism in SUMS.items()},
    "streams.Counter": lambda x: streamed(COUNTED)(x),
    "streams.PanPrivateDensity": streamed(
        streams.PanPrivateDensity(items=4, state_epsilon=1, answer_epsilon=1)
    ),
}
"""Records are whole numbers."""
FIVE = Sensitivity(l0=5, linf=1)
VECTORS: dict[str, Any] = {
    "Laplace": mechanisms.Laplace(scale=1, sensitivity=FIVE, exact=True, grid=Grid(0)),
    "Laplace, floats": mechanisms.Laplace(scale=1, sensitivity=FIVE, exact=False),
    "Gaussian": mechanisms.Gaussian(scale=3, sensitivity=FIVE, exact=True, grid=Grid(0)),
    "DiscreteGaussian": mechanisms.DiscreteGaussian(scale=3, sensitivity=FIVE),
    "Skellam": mechanisms.Skellam(scale=3, sensitivity=FIVE),
    "Exponential": mechanisms.Exponential(scale=1, sensitivity=1),
    "PermuteAndFlip": mechanisms.PermuteAndFlip(scale=1, sensitivity=1),
    "ReportNoisyMax": mechanisms.ReportNoisyMax(scale=1, sensitivity=1),
    "TopK": mechanisms.TopK(scale=1, sensitivity=1, count=2),
    "SparseVector": mechanisms.SparseVector(scale=1, threshold_scale=1, sensitivity=1, count=9),
}
"""Values are vectors of aggregates, one number for each query."""
EACH: dict[str, Call] = {
    **{f"mechanisms.{name}": made.release for name, made in VECTORS.items()},
    "streams.Counter, extend": lambda x: (COUNTED.start().extend(x),),
    "streams.Counter, series": lambda x: COUNTED.start().series(x),
    "mechanisms.RandomizedResponse": lambda x: mechanisms.RandomizedResponse(
        randomize=0.5, categories=3
    ).release(x),
    "losses.individuals.IndividualFilter": lambda x: IndividualFilter(GaussianDP(1), people=len(x)).active(
        x, Gaussian(4)
    ),
    "learn.sampling.Poisson": lambda x: sampled(Poisson, x),
    "learn.sampling.TruncatedPoisson": lambda x: sampled(TruncatedPoisson, x, cap=3),
    "learn.sampling.RandomAllocation": lambda x: sampled(RandomAllocation, x),
    "learn.sampling.Cyclic": lambda x: sampled(Cyclic, x, bands=2),
}
"""The number of records is public: one that is odd stands in the place of another."""
UNITS: dict[str, Call] = {
    "dalenius.count, ids": lambda ids: dp.count(STEPS, epsilon=1, ids=ids),
    "dalenius.sum, ids": lambda ids: dp.sum(STEPS, **ENDS, ids=ids),
    "dalenius.mean, ids": lambda ids: dp.mean(STEPS, **ENDS, ids=ids),
    "dalenius.histogram, ids": lambda ids: dp.histogram(ITEMS, categories=["a"], epsilon=1, ids=ids),
    "mechanisms.Covariance, ids": lambda ids: covariance([[1, 2]] * 5, ids=ids),
    "mechanisms.Evaluation, ids": lambda ids: evaluation((ITEMS, ITEMS), ids=ids),
    "mechanisms.Marginals, ids": lambda ids: marginals([[0, 1]] * 5, ids=ids),
    "streams.Counter, unit": with_unit(BOUNDED),
    "learn.evaluate, units": lambda ids: scores(ITEMS, units=ids, rows_per_unit=1),
    "learn.Ensemble, units": lambda ids: ensemble([0, 1] * 2 + [0], units=ids),
    "learn.pate.Teachers, units": lambda ids: teachers([0, 1] * 2 + [0], units=ids),
    "learn.tabular.KMeans, units": lambda ids: fitted("KMeans", units=ids),
}
"""Records are ids."""


def covariance(rows: Any, **more: Any) -> Release:
    return mechanisms.Covariance(lower=[0, 0], upper=[3, 3], scale=8).release(rows, **more)


def evaluation(pair: Any, **more: Any) -> Release:
    return mechanisms.Evaluation(classes=["a", "b"], scale=1, answer="confusion").release(pair, **more)


def marginals(rows: Any, **more: Any) -> Release:
    return mechanisms.Marginals(columns={"c": 2, "d": 3}, marginals=[["c", "d"]], scale=1).release(
        rows, **more
    )


def sampled(kind: Any, units: Any, **more: Any) -> Any:
    made = kind(5, batch_size=1, steps=2, public_size=5, units=units, rows_per_unit=1, **more)
    return (made.batch_size, made.steps, made.size)


def scores(labels: Any, **more: Any) -> Any:
    found = dp.learn.evaluate(
        lambda x: ["a"] * len(x), (np.zeros((5, 1)), labels), classes=["a", "b"], epsilon=1, **more
    )
    return type(found), str(found.receipt.bounds) if hasattr(found, "receipt") else ""


class Constant:
    """A model that has learned the commoner one of two labels."""

    def fit(self, x: Any, y: Any) -> Constant:
        self.label = int(2 * sum(type(label) is int and label == 1 for label in y) > len(y))
        return self

    def predict(self, x: Any) -> Any:
        return np.full(len(x), self.label)


def ensemble(labels: Any, **more: Any) -> Any:
    made = dp.learn.Ensemble.train(
        lambda x, y: Constant().fit(x, y), (np.zeros((5, 1)), labels), models=3, **more
    )
    return dp.learn.serve(made, classes=2, epsilon=4).start().ask(np.zeros(1))


def teachers(labels: Any, **more: Any) -> Any:
    made = Teachers(Constant(), (np.zeros((5, 1)), labels), count=3, classes=2, **more)
    made.train()
    return repr(made)


MODELS: dict[str, Callable[[], Any]] = {
    "LogisticRegression": lambda: tabular.LogisticRegression(
        classes=[0, 1], epsilon=1, delta=1e-6, method="objective", bounds=(-1, 1)
    ),
    "LinearRegression": lambda: tabular.LinearRegression(target_bounds=(0, 2), epsilon=1, bounds=(-1, 1)),
    "GaussianNB": lambda: tabular.GaussianNB(classes=[0, 1], epsilon=1, bounds=(-1, 1)),
    "CategoricalNB": lambda: tabular.CategoricalNB(classes=[0, 1], epsilon=1, categories=[2, 2]),
    "KMeans": lambda: tabular.KMeans(2, epsilon=1, bounds=(-1, 1)),
    "PCA": lambda: tabular.PCA(1, epsilon=1, bounds=(-1, 1)),
    "BoostedTrees": lambda: tabular.BoostedTrees(classes=[0, 1], trees=2, depth=2, epsilon=1, bounds=(-1, 1)),
}


def fitted(name: str, cell: Any = 0.5, label: Any = 1, **more: Any) -> Any:
    """What a model shows once it is fitted on five rows, of which one has this cell and this label."""
    rows, labels = np.zeros((5, 2), dtype=object), objects([0, 1, 1, 0, label])
    rows[4, 1] = None
    rows[4, 1:] = objects([cell])
    given = (rows,) if name in ("KMeans", "PCA") else (rows, labels)
    model = MODELS[name]().fit(*given, **more)
    learned = {key: value for key, value in vars(model).items() if key.endswith("_")}
    return (name, *((key, type(value), np.shape(value)) for key, value in sorted(learned.items())))


RANDOMIZERS: dict[str, tuple[Any, Any]] = {
    "KaryResponse": (local.KaryResponse.calibrate(domain=5, epsilon=1), 1),
    "UnaryEncoding": (local.UnaryEncoding.optimized(domain=4, epsilon=1), 1),
    "LocalHashing": (local.LocalHashing.calibrate(domain=7, epsilon=1), 1),
    "HadamardResponse": (local.HadamardResponse.calibrate(domain=6, epsilon=1), 1),
    "SubsetSelection": (local.SubsetSelection.calibrate(domain=6, epsilon=0.5), 1),
    "ProjectiveResponse": (local.ProjectiveResponse(domain=13, ratio=3, order=3), 1),
    "BitFlips": (local.BitFlips.calibrate(domain=10, epsilon=1, chosen=2), 1),
    "HaarRanges": (local.HaarRanges.calibrate(domain=8, epsilon=1), 1),
    "TreeRanges": (local.TreeRanges.calibrate(domain=16, epsilon=1), 1),
    "DuchiResponse": (local.DuchiResponse.calibrate(lower=0, upper=2, epsilon=1), 1.5),
    "PiecewiseResponse": (local.PiecewiseResponse.calibrate(lower=0, upper=2, epsilon=1), 1.5),
    "HybridResponse": (local.HybridResponse.calibrate(lower=0, upper=2, epsilon=1), 1.5),
    "SquareWave": (local.SquareWave.calibrate(lower=0, upper=2, epsilon=1), 1.5),
    "CountMeanSketch": (local.CountMeanSketch.calibrate(rows=16, columns=64, epsilon=1), "a"),
    "HadamardSketch": (local.HadamardSketch.calibrate(rows=16, columns=64, epsilon=1), "a"),
    "Rappor": (local.Rappor(width=64, hashes=2, cohorts=8, replaced=0.5, low=0.25, high=0.75), "a"),
    "PrefixExtending": (local.PrefixExtending.calibrate(length=4, epsilon=1), "abcd"),
    "FragmentPuzzle": (local.FragmentPuzzle.calibrate(length=4, epsilon=1), "abcd"),
    "PrivUnit": (local.PrivUnit.calibrate(dimension=3, epsilon=1), [0.6, 0.8, 0.0]),
}


def encoded(randomizer: Any) -> Call:
    def call(values: Any) -> Any:
        rows = randomizer.encode(values).rows
        return rows.dtype, rows.shape

    return call


# The sweep.


def neighbours(call: Call, records: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    """What is seen of neighbouring lists, and of neighbouring arrays of objects."""
    for kind, made in (("list", list), ("objects", objects))[: 1 if call in [*SLOW, *LISTS] else 2]:
        ordinary, nobody = (seen(call, made(listed)) for listed in (records, records[:-1]))
        for name, odd in ODD.items():
            last = seen(call, made([*records[:-1], odd]))
            yield f"{name} last, {kind}", ordinary, last
            if call not in PUBLIC_SIZE:
                yield f"{name} beside the others, {kind}", nobody, last
            if call not in SLOW:
                yield f"{name} first, {kind}", ordinary, seen(call, made([odd, *records[1:]]))


ROWS: dict[str, Call] = {
    "mechanisms.Covariance": covariance,
    "mechanisms.Covariance, a cell": lambda x: covariance([[cell, 1] for cell in x]),
    "mechanisms.Marginals": marginals,
    "mechanisms.Marginals, a cell": lambda x: marginals([[0, cell] for cell in x]),
    "mechanisms.Evaluation, a label": lambda x: evaluation((x, ["a"] * len(x))),
    "mechanisms.Evaluation, a prediction": lambda x: evaluation((["a"] * len(x), x)),
    "learn.evaluate": lambda x: scores(x if isinstance(x, list) else x.tolist()),
    "learn.Ensemble": lambda x: ensemble(list(x)),
    "learn.pate.Teachers": lambda x: teachers(list(x)),
    "learn.tabular.GaussianNB, a label": lambda x: fitted("GaussianNB", label=x[-1]),
    **{f"learn.tabular.{name}": lambda x, name=name: fitted(name, cell=x[-1]) for name in MODELS},
}
"""Records have several cells, or stand beside others."""
RECORDS = {
    "mechanisms.Covariance": [[1, 2]] * 5,
    "mechanisms.Marginals": [[0, 1]] * 5,
    "learn.evaluate": ITEMS,
}
LISTS = [covariance, marginals]
"""An array of rows has two dimensions, and no row that is odd."""
SLOW = [*(call for name, call in (ROWS | UNITS).items() if "learn." in name)]
"""Models are fitted for each record: of a list, and with the odd one at its end."""
PUBLIC_SIZE = [*EACH.values(), *UNITS.values(), *(call for name, call in ROWS.items() if "learn" in name)]
SWEPT: list[tuple[str, Call, list[Any]]] = [
    *((name, call, NUMBERS) for name, call in NUMERIC.items()),
    *((name, call, ITEMS) for name, call in LABELLED.items()),
    *((name, call, STEPS) for name, call in CODED.items()),
    *((name, call, STEPS) for name, call in EACH.items()),
    *((name, call, ["ann", 7, "bob", 8, 9]) for name, call in UNITS.items()),
    *((name, call, RECORDS.get(name, STEPS)) for name, call in ROWS.items()),
    *((f"local.{name}", encoded(made), [value] * 5) for name, (made, value) in RANDOMIZERS.items()),
]
PUBLIC_SIZE += [call for name, call, _ in SWEPT if name.startswith("local.")]


@pytest.mark.parametrize(("name", "call", "records"), SWEPT, ids=[name for name, _, _ in SWEPT])
def test_an_odd_record_changes_nothing_but_the_value(name: str, call: Call, records: list[Any]) -> None:
    told = [
        (where, ordinary, other)
        for where, ordinary, other in neighbours(call, records)
        if other != ordinary or isinstance(ordinary, Raised)
    ]
    assert not told, f"{len(told)} tell, such as {told[:3]}"


def test_units_of_any_kind_are_kept_in_a_file(tmp_path: Path) -> None:
    call = saved(tmp_path)
    ordinary = seen(call, ["ann", 7])
    told = {name: found for name, odd in ODD.items() if (found := seen(call, ["ann", odd])) != ordinary}
    assert not isinstance(ordinary, Raised) and not told


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_a_device_reports_whatever_its_value_is(name: str) -> None:
    randomizer, value = RANDOMIZERS[name]

    def call(one: Any) -> Any:
        rows = local.Client(randomizer).report(one).rows
        return rows.dtype, rows.shape

    ordinary = seen(call, value)
    told = {which: found for which, odd in ODD.items() if (found := seen(call, odd)) != ordinary}
    assert not isinstance(ordinary, Raised) and not told


# Arrays that hide some of their cells.

NINE: dict[str, Any] = {"lower": 2, "upper": 9}
MASKED: dict[str, Callable[[Any], Any]] = {
    "BoundedSum": lambda x: mechanisms.BoundedSum(**NINE, scale=1).rows(x).tolist(),
    "Quantile": lambda x: mechanisms.Quantile(**NINE, scale=1).records(x).tolist(),
    "SmoothMedian": lambda x: mechanisms.SmoothMedian.calibrate(**NINE, epsilon=1, delta=1e-6)._median(x)[0],
    "Thresholdout": lambda x: mechanisms.Thresholdout.calibrate(
        epsilon=1, records=3, threshold=0.1, overfits=1
    ).sums((x / 9, x / 9)),
    "Marginals": lambda x: (
        mechanisms.Marginals(columns={"c": 9}, marginals=[["c"]], scale=1).counts(x.reshape(-1, 1)).tolist()
    ),
    "RandomizedResponse": lambda x: (
        mechanisms.RandomizedResponse(randomize=0.5, categories=9)._codes(x).tolist()
    ),
    "Histogram": lambda x: mechanisms.Histogram(categories=[4, 5, 8], scale=1).counts(x).tolist(),
    "Counter": lambda x: whole_steps(x).tolist(),
    "HeavyHitters": lambda x: cells(x, "iu", "", ""),
    "IndividualFilter": lambda x: (
        IndividualFilter(GaussianDP(1), people=3).active(x / 9, Gaussian(4)).tolist()
    ),
}


@pytest.mark.parametrize("name", MASKED)
def test_what_a_masked_array_hides_has_no_say(name: str) -> None:
    read = MASKED[name]
    hidden = [read(np.ma.array([4, 5, cell], mask=[False, False, True])) for cell in (0, 8, 10**6)]
    assert hidden[0] == hidden[1] == hidden[2]


# What is public, and in the sweep or not.

MODULES = (
    "dalenius",
    "dalenius.mechanisms",
    "dalenius.streams",
    "dalenius.local",
    "dalenius.learn",
    "dalenius.learn.sampling",
    "dalenius.learn.tabular",
    "dalenius.learn.pate",
    "dalenius.losses.individuals",
)
ARRAYS = "reads arrays by their declared type only: see MASKED"
NO_RECORDS = "takes no records"
TENSORS = "reads tensors, whose cells are numbers of a declared type"
EXCLUDED = {
    "takes an aggregate, whose type is a fact of the query; entries of vectors are swept": {
        "dalenius.gaussian",
        "dalenius.laplace",
        "mechanisms.PrivateSelection",
        "mechanisms.ProposeTestRelease",
        "mechanisms.Staircase",
        "mechanisms.TruncatedLaplace",
        "streams.RateAlarm",
    },
    ARRAYS: {"mechanisms.SmoothMedian", "mechanisms.Thresholdout"},
    TENSORS: {
        *("learn.Private", "learn.Scattering", "learn.fit", "learn.mean_of", "learn.normalized"),
        *("learn.scattering", "learn.pate.Network"),
    },
    "holds tables in an engine, whose expressions are total": {"dalenius.table", "dalenius.agg"},
    "reads public data": {
        *("dalenius.audit", "dalenius.audit_training", "local.plan", "local.simulate", "learn.tune"),
        *("learn.pate.Student", "losses.individuals.PersonalSampling"),
    },
    "reads what was released, reported or voted": {
        *("learn.pate.ConfidentGNMax", "learn.pate.GNMax", "learn.pate.Labelling", "learn.pate.Sanitizer"),
        *("local.Batch", "local.Estimator", "local.Reports", "local.Shuffler", "local.consistent"),
        *("local.decode", "local.distribution", "local.on_simplex", "local.range_shares"),
    },
    "is of replace, under which the number of units is public": {"learn.sampling.WithoutReplacement"},
    "is what others are made of": {
        *("local.FrequencyOracle", "local.Randomizer", "learn.sampling.Sampling", "mechanisms.Mechanism"),
        "mechanisms.Session",
    },
    NO_RECORDS: {
        *("dalenius.Audit", "dalenius.Bound", "dalenius.Bounds", "dalenius.Budget", "dalenius.Figure"),
        *("dalenius.Ledger", "dalenius.Loss", "dalenius.Release", "dalenius.Unit", "dalenius.people_needed"),
        *("local.Choice", "local.Costs", "local.Plan", "local.what_reports_cost"),
        *("learn.Absolute", "learn.Adam", "learn.Automatic", "learn.Average", "learn.Flat", "learn.Pad"),
        *("learn.PerLayer", "learn.PrivateOptimizer", "learn.Quantile", "learn.Tuned", "learn.read_receipt"),
        *("learn.register_function", "learn.replaced", "learn.serve", "learn.tuning_loss"),
        "learn.sampling.read",
    },
}


def public() -> set[str]:
    """Every public name of the modules that take records."""
    names = set()
    for module in MODULES:
        short = module.removeprefix("dalenius.")
        names |= {f"{short}.{name}" for name in importlib.import_module(module).__all__}
    return names


def test_every_public_callable_is_in_the_sweep_or_excluded_with_a_reason() -> None:
    swept = {name.split(",")[0] for name, _, _ in SWEPT} | {"streams.load", "local.Client"}
    excluded = [name for names in EXCLUDED.values() for name in names]
    assert len(excluded) == len(set(excluded))
    assert not swept & set(excluded)
    assert public() - swept - set(excluded) == set(), (
        "put these into the sweep, or exclude them with a reason"
    )
    assert swept | set(excluded) <= public(), "these are not public any more"


# Training, whose rows are tensors.


@pytest.mark.parametrize("label", [41, -5, -100])
def test_a_label_that_is_no_class_does_not_end_a_fit(label: int) -> None:
    import torch

    x = torch.linspace(-1, 1, 40).reshape(-1, 1)
    y = (x[:, 0] > 0).long()
    y[7] = label

    def fit(target: Any) -> Any:
        model = torch.nn.Linear(1, 2)
        run = dp.learn.fit(
            model, (x, target), epsilon=3, delta=1e-5, public_size=40, batch_size=40, epochs=2, progress=False
        )
        return run.steps, run.receipt.cost

    assert seen(fit, y) == seen(fit, (x[:, 0] > 0).long())


@pytest.mark.parametrize("token", [77, 4141, -1])
def test_a_token_out_of_range_does_not_end_a_fit(token: int) -> None:
    import torch

    tokens, target = torch.zeros(40, 2).long(), torch.zeros(40).long()
    odd = tokens.clone()
    odd[7, 1] = token

    def fit(inputs: Any) -> Any:
        model = torch.nn.Sequential(torch.nn.Embedding(10, 2), torch.nn.Flatten(), torch.nn.Linear(4, 2))
        run = dp.learn.fit(
            model, (inputs, target), epsilon=3, delta=1e-5, public_size=40, batch_size=40, progress=False
        )
        return run.steps, run.receipt.cost

    assert seen(fit, odd) == seen(fit, tokens)


def test_quantiles_far_from_zero_stay_within_their_bounds() -> None:
    """The dithered steps of such bounds have more than 64 bits."""
    low = 2**61
    made = mechanisms.Quantiles(scale=1, levels=[0.25, 0.75], lower=low, upper=low + 1024, grid=Grid(0))
    for values in ([], [low] * 9, [low + 1024] * 9, [0], [10**5000]):
        assert all(low <= point <= low + 1024 for point in made.release(values)["quantile"].tolist())
