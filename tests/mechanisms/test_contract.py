"""Every mechanism passes `check_mechanism`; what an instance is spared, and why, stands beside it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from contract import Seen, check_audit, check_error, check_law, check_loss, check_mechanism
from numpy.typing import NDArray

import dalenius.mechanisms as package
from dalenius.losses import DiscreteLaplace
from dalenius.mechanisms import (
    BoundedMean,
    BoundedSum,
    Covariance,
    DiscreteGaussian,
    Evaluation,
    Exponential,
    Gaussian,
    Histogram,
    Laplace,
    Marginals,
    Mechanism,
    NoisyThreshold,
    PartitionSelection,
    PermuteAndFlip,
    PrivateSelection,
    ProposeTestRelease,
    Quantile,
    Quantiles,
    RandomizedResponse,
    ReportNoisyMax,
    SampleAndAggregate,
    Skellam,
    SmoothMedian,
    SparseVector,
    Staircase,
    Thresholdout,
    TopK,
    TruncatedLaplace,
    Variance,
)
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity

Floats = NDArray[np.float64]
WHOLE: dict[str, Any] = {"grid": Grid(0), "exact": True}

# Reasons: why the worst case does not attain the claim, and why there are no error bars.
PURE = {
    "attained": (),
    "loose": "the claim is pure, attained in the limit of many noes",
    # Three noes and a yes are rare.
    "trials": 3_000_000,
}
RANGE = {"attained": (), "loose": "the claim is that of the worst law of this range, a choice is one of them"}
AHEAD = {"attained": (), "loose": "only its ε is attained, the profile at δ > 0 is a bound"}
FLIPS = {"loose": "every point of the profile has a worst pair, this is that of its end"}
PRICED = {"attained": (), "loose": "the price is attained by the base of the proof, not by Laplace noise"}
FEWER = {"trials": 500_000}
"""Rows of several numbers take long to tell apart; these instances have room."""
CHOICE = "a choice has no distance to the truth"
RANK = "how far off a point is depends on the data; rank_error bounds its rank"
SHOWN = "whether a key is shown is no number"
SELECTED = "the best score is too high, by how much depends on the data"
REPORT = "one report has none; estimate has those of many"


def laplace(scale: float, reach: int) -> Floats:
    """P(noise = k) for k from −reach to reach, discrete Laplace."""
    return np.tanh(0.5 / scale) * np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)


def sums(
    mechanism: Mechanism, scales: list[float], totals: Callable[[Any], list[int]], step: float = 1
) -> Seen:
    """Independent discrete Laplace noise on several sums, each seen from one below both truths to one above.

    Beyond them the likelihood ratio stays as it is, so nothing that tells the truths apart is hidden.
    """
    ends = [(min(pair) - 1, max(pair) + 1) for pair in zip(*map(totals, mechanism.worst_case()), strict=True)]

    def read(draws: NDArray[Any]) -> NDArray[Any]:
        steps = np.rint(np.asarray(draws) / step).astype(int)
        places = tuple(np.clip(steps[:, i], *end) - end[0] for i, end in enumerate(ends))
        return np.ravel_multi_index(places, [high - low + 1 for low, high in ends])

    def law(value: Any) -> Law:
        masses = np.ones(1)
        for total, scale, end in zip(totals(value), scales, ends, strict=True):
            reach = math.ceil(45 * scale)
            places = np.clip(total + np.arange(-reach, reach + 1), *end) - end[0]
            masses = np.outer(masses, np.bincount(places, weights=laplace(scale, reach))).ravel()
        return Law(tuple(range(len(masses))), masses, 1e-15)

    return Seen(mechanism, read, law)


def coded(mechanism: Mechanism, most: int) -> Seen:
    """Rows of whole numbers up to `most`, each seen as one number: faster to tell apart."""

    def read(draws: NDArray[Any]) -> NDArray[Any]:
        rows = np.asarray(draws, dtype=np.int64)
        return rows @ (most + 1) ** np.arange(rows.shape[1])

    def law(value: Any) -> Law:
        rows = mechanism.probabilities(value)
        assert rows is not None
        return Law(tuple(read(np.array(rows.outcomes)).tolist()), rows.masses, rows.rest)

    return Seen(mechanism, read, law)


def overfit(mechanism: Thresholdout) -> Seen:
    """At which query an overfit was caught, and whether its noisy sum is above both or neither of the truths.

    The likelihood ratio depends on no more. Without an overfit all answers are the training mean.
    """
    records, steps = mechanism.records, np.arange(-400, 401)
    noise = float(mechanism.scale) * records
    low = min(int(sum(holdout)) for stream in mechanism.worst_case() for _, holdout in stream)

    def read(draws: NDArray[Any]) -> NDArray[Any]:
        answers, caught = draws[:, ::2], draws[:, 1::2] == 1
        at = np.argmax(caught, axis=1)
        above = np.rint(answers[np.arange(len(draws)), at] * records) > low
        return np.where(caught.any(axis=1), 2 * at + 2 + above, 0)

    def law(value: Any) -> Law:
        bars = math.ceil(mechanism.threshold * records) + steps
        left, tail = laplace(2 * noise, 400), np.cumsum(laplace(4 * noise, 1000)[::-1])[::-1]
        masses = []
        for _, holdout in value:
            total = int(sum(holdout))
            yes = tail[bars - total + 1000]
            above = float(laplace(noise, 400)[total + steps > low].sum())
            masses += [float(left @ yes) * (1 - above), float(left @ yes) * above]
            left = left * (1 - yes)
        return Law((0, *range(2, len(masses) + 2)), np.array([float(left.sum()), *masses]), 1e-15)

    return Seen(mechanism, read, law)


def crossing(epsilon: float, whole: int) -> float:
    """The δ at which the two terms of π cross at a whole number, where the profile is attained."""
    return 1 / (1 + (math.exp(epsilon) + 1) * math.expm1(whole * epsilon) / math.expm1(epsilon))


def right(value: Any) -> float:
    """The share of right predictions."""
    return judged(value)[0] / len(value[0])


def judged(value: Any) -> list[int]:
    """How many predictions are right, and how many wrong."""
    found = [a == b for a, b in zip(*value, strict=True)]
    return [found.count(True), found.count(False)]


def confused(value: Any) -> list[int]:
    """Records by label, then by prediction."""
    return [[*zip(*value, strict=True)].count(pair) for pair in product((0, 1), repeat=2)]


def counted(value: list[str]) -> list[int]:
    return [value.count(name) for name in "ab"]


def held(counts: dict[str, int]) -> list[int]:
    return [*counts.values()]


def first(pair: tuple[Any, int]) -> Any:
    return pair[0]


def on_holdout(stream: list[tuple[Floats, Floats]]) -> list[float]:
    return [float(holdout.mean()) for _, holdout in stream]


def tabled(value: Any) -> list[int]:
    """By a column of two codes, and by one of a single code."""
    return [int((value[:, 0] == code).sum()) for code in (0, 1)] + [len(value)]


def squares(value: Any) -> list[int]:
    """Of whole numbers from 0 to 2: t², 2t(2 − t), (2 − t)²."""
    return [int(sum(part)) for part in (value**2, 2 * value * (2 - value), (2 - value) ** 2)]


def products(value: Any) -> list[int]:
    """Of 1 and y in halves from −1 to 1: 1, y, y² in quarters."""
    y = np.clip(value[:, 0] * 2 - 1, -1, 1)
    return [round(4 * float(part)) for part in (len(y), y.sum(), (y**2).sum())]


SWAPPED = Evaluation(classes=(0, 1), scale=2, relation="replace")
CONFUSED = Evaluation(classes=(0, 1), scale=1, answer="confusion")
TALLY = Histogram(categories=["a", "b"], scale=2, l0=2)
MOVED = Histogram(categories=["a", "b"], scale=3, linf=2, relation="replace")
UNEVEN = Laplace(scale=2, sensitivity=Sensitivity(l0=3, l1=3, linf=2), **WHOLE)
TABLES = Marginals(
    columns={"x": 2, "y": 1}, marginals=[["x"], ["y"]], weights=[1, 2], scale=3, noise="laplace"
)
CROSSED = Marginals(
    columns={"x": 2}, marginals=[["x"]], scale=4, noise="laplace", per_unit=3, relation="replace"
)
SPREAD = Variance(lower=0, upper=2, scale=4, grid=Grid(0))
MATRIX = Covariance(lower=[0], upper=[1], scale=1, noise="laplace", bits=1)
HOLDOUT = Thresholdout.calibrate(epsilon=3, records=10, threshold=0.2, grid=Grid(0))
SMOOTH = Gaussian(
    scale=4, sensitivity=Sensitivity(l0=1, linf=4, relation="replace"), grid=Grid(-3), exact=True
)
BASE = Laplace(scale=1, sensitivity=2, **WHOLE)
HALVES = Quantiles.calibrate(epsilon=3, levels=[0.25, 0.5], lower=0, upper=20, grid=Grid(0), dither=0)
BOTH = TopK(count=2, scale=1, sensitivity=1, grid=Grid(0))

MECHANISMS: list[tuple[Mechanism, dict[str, Any]]] = [
    (
        BoundedMean.calibrate(epsilon=1, lower=2, upper=4, relation="replace", grid=Grid(-1)),
        {"truth": np.mean},
    ),
    (BoundedMean(lower=0, upper=1, scale=1, grid=Grid(0)), FEWER | {"truth": np.mean}),
    (
        BoundedMean(lower=0, upper=1, scale=1, noise="gaussian", relation="replace", grid=Grid(-4)),
        {"truth": np.mean},
    ),
    (BoundedSum(lower=-2, upper=3, scale=6, per_unit=2, grid=Grid(0)), {"truth": np.sum}),
    (BoundedSum.calibrate(epsilon=1, lower=2, upper=4, relation="replace", grid=Grid(-1)), {"truth": np.sum}),
    (BoundedSum(lower=0, upper=1, scale=1, noise="gaussian", grid=Grid(-4)), {"truth": np.sum}),
    (
        MATRIX,
        {
            "truth": lambda table: np.clip(table, 0, 1).var(),
            "seen": sums(MATRIX, [4.0] * 3, products, step=1 / 4),
        },
    ),
    (DiscreteGaussian(scale=1, sensitivity=1), {}),
    (DiscreteGaussian(scale=4, sensitivity=3), {}),
    (Evaluation(classes=("no", "01"), scale=1), FEWER | {"truth": right}),
    (SWAPPED, {"truth": right, "seen": sums(SWAPPED, [2.0] * 2, judged)}),
    (Evaluation(classes=(0, 1), scale=8, per_unit=8, noise="gaussian"), FEWER | {"truth": right}),
    (CONFUSED, {"truth": confused, "seen": sums(CONFUSED, [1.0] * 4, confused)}),
    (Exponential(scale=2, sensitivity=1, grid=Grid(0)), RANGE | {"share": 0.96, "barless": CHOICE}),
    (
        Exponential.calibrate(epsilon=1, sensitivity=Fraction(1, 3), monotone=True, grid=Grid(-3)),
        RANGE | {"share": 0.96, "barless": CHOICE},
    ),
    (Exponential.calibrate(epsilon=2, delta=0.01, sensitivity=5), RANGE | {"share": 0.96, "barless": CHOICE}),
    (Gaussian(scale=1, sensitivity=1, grid=Grid(-5)), {}),
    (Gaussian(scale=4, sensitivity=3, grid=Grid(-3)), {}),
    (Gaussian.calibrate(epsilon=3, delta=1e-3, sensitivity=1, grid=Grid(-5)), {}),
    (Histogram(categories=["a"], scale=4, linf=3), {"truth": len}),
    (TALLY, {"truth": counted, "seen": sums(TALLY, [2.0] * 2, counted)}),
    (MOVED, {"truth": counted, "seen": sums(MOVED, [3.0] * 2, counted)}),
    (Laplace(scale=1, sensitivity=1, **WHOLE), {}),
    (Laplace(scale=2, sensitivity=1, grid=Grid(-4)), {}),
    (Laplace.calibrate(epsilon=0.5, sensitivity=3, **WHOLE), {}),
    (Laplace.calibrate(epsilon=1, delta=0.01, sensitivity=1, grid=Grid(-3)), {}),
    (UNEVEN, {"seen": sums(UNEVEN, [2.0] * 3, list)}),
    (
        Marginals(columns={"one": 1}, marginals=[["one"]], scale=4, per_unit=3, noise="laplace"),
        {"truth": len},
    ),
    (
        CROSSED,
        {
            "truth": lambda table: np.bincount(table[:, 0], minlength=2),
            "seen": sums(CROSSED, [4.0] * 2, lambda table: np.bincount(table[:, 0], minlength=2).tolist()),
        },
    ),
    (TABLES, {"truth": tabled, "seen": sums(TABLES, [3.0, 3.0, 1.5], tabled)}),
    # New keys, which this worst case is not about, cost no more than its δ.
    (NoisyThreshold.calibrate(epsilon=1, delta=1e-9), {"truth": held}),
    (
        NoisyThreshold(scale=1, threshold=9, noise="gaussian"),
        {
            "truth": held,
            "attained": (),
            "share": 0.97,
            "loose": "rounding to whole numbers lowers the Gaussian profile, which is not claimed back",
        },
    ),
    (PartitionSelection(epsilon=1, delta=crossing(1, 3)), {"barless": SHOWN}),
    (
        PartitionSelection(epsilon=0.5, delta=crossing(0.5, 4)),
        {
            "attained": (0.0, 0.1, 0.5),
            "loose": "beyond its own ε new keys cost the most, which are another pair",
            "barless": SHOWN,
        },
    ),
    (
        PartitionSelection(epsilon=1, delta=crossing(1, 3), keys=2),
        {
            "attained": (),
            "share": 0.98,
            **FEWER,
            "loose": "two yes-or-no decisions attain less than two claims composed",
            "barless": SHOWN,
        },
    ),
    (
        PermuteAndFlip(scale=2, sensitivity=1, grid=Grid(0)),
        FLIPS | {"attained": (0.99,), "barless": CHOICE},
    ),
    (
        PermuteAndFlip.calibrate(epsilon=0.5, sensitivity=0.3, monotone=True),
        FLIPS | {"attained": (0.495,), "barless": CHOICE},
    ),
    (PrivateSelection(base=BASE, stop=0.25), PRICED | FEWER | {"share": 0.76, "barless": SELECTED}),
    (PrivateSelection(base=BASE, stop=0.1, shape=0), PRICED | FEWER | {"share": 0.76, "barless": SELECTED}),
    (PrivateSelection(base=BASE, mean=Fraction(3, 2)), PRICED | FEWER | {"share": 0.9, "barless": SELECTED}),
    (ProposeTestRelease.calibrate(epsilon=2, delta=1e-3, sensitivity=1, **WHOLE), {"truth": first}),
    (
        ProposeTestRelease(
            mechanism=Gaussian(scale=2, sensitivity=1, grid=Grid(-3)), test_scale=1, threshold=4
        ),
        {
            "truth": first,
            "attained": (0.1,),
            "share": 0.98,
            "loose": "attained at every ε where the release is as a randomized response, not Gaussian",
        },
    ),
    (
        Quantile.calibrate(epsilon=1, lower=0, upper=15, grid=Grid(0)),
        RANGE | {"share": 0.91, "barless": RANK},
    ),
    (
        Quantile.calibrate(epsilon=2, level=0.6, lower=0, upper=100, relation="replace"),
        RANGE | {"share": 0.96, "barless": RANK},
    ),
    # Both rounds must be in doubt at once, which is rare.
    (HALVES, RANGE | {"share": 0.85, "barless": RANK, "seen": coded(HALVES, 20), "trials": 3_000_000}),
    (
        Quantile.calibrate(epsilon=2, level=0.4, lower=-1, upper=1, grid=Grid(-4)),
        RANGE | {"share": 0.93, "barless": RANK},
    ),
    (RandomizedResponse(randomize=Fraction(1, 2)), {"barless": REPORT}),
    (RandomizedResponse.calibrate(epsilon=1, categories=5), {"barless": REPORT}),
    (RandomizedResponse.calibrate(epsilon=3), {"barless": REPORT}),
    (ReportNoisyMax(scale=1, sensitivity=1, grid=Grid(0)), AHEAD | {"barless": CHOICE}),
    (
        ReportNoisyMax.calibrate(epsilon=2, sensitivity=0.5, monotone=True, grid=Grid(-3)),
        AHEAD | {"barless": CHOICE},
    ),
    (
        SampleAndAggregate.calibrate(epsilon=1, blocks=3, lower=0, upper=2, relation="replace", grid=Grid(0)),
        {"truth": lambda units: (2 + units.sum()) / 3},
    ),
    (
        SampleAndAggregate.calibrate(epsilon=1, blocks=3, lower=0, upper=2, default=0, grid=Grid(-1)),
        {"truth": lambda units: units.sum() / 3},
    ),
    (
        SampleAndAggregate(mechanism=SMOOTH, blocks=2, lower=0, upper=4, default=1),
        {"truth": lambda units: (1 + units.sum()) / 2},
    ),
    (Skellam(scale=1, sensitivity=1), {}),
    (Skellam.calibrate(epsilon=2, delta=1e-3, sensitivity=3), {}),
    (
        SmoothMedian.calibrate(epsilon=3, delta=0.01, lower=0, upper=4096, grid=Grid(0)),
        {
            "attained": (1.5, 3.0),
            "loose": "at a small ε equal scales tell more, and between its points the claim is a chord",
            "barless": "its noise depends on the data",
        },
    ),
    (SparseVector.calibrate(epsilon=2, sensitivity=1, **WHOLE), PURE | {"share": 0.92, "barless": CHOICE}),
    (
        SparseVector.calibrate(epsilon=3, sensitivity=4, monotone=True, **WHOLE),
        PURE | {"share": 0.92, "barless": CHOICE},
    ),
    (
        SparseVector(scale=2, threshold_scale=1, sensitivity=1, threshold=Fraction(5, 3), grid=Grid(-2)),
        PURE | {"share": 0.79, "barless": CHOICE},
    ),
    (Staircase(epsilon=1, width=2, sensitivity=5), {}),
    (Staircase.calibrate(epsilon=2, sensitivity=4, least="variance"), {}),
    (HOLDOUT, PURE | {"truth": on_holdout, "seen": overfit(HOLDOUT), "share": 0.88}),
    (BOTH, RANGE | {"share": 0.92, "barless": CHOICE, "seen": coded(BOTH, 2)}),
    (TruncatedLaplace(scale=1, bound=4, sensitivity=1), {}),
    (TruncatedLaplace(scale=3, bound=8, sensitivity=3), {}),
    (TruncatedLaplace.calibrate(epsilon=1, delta=0.01, sensitivity=2), {}),
    (SPREAD, {"truth": np.var, "seen": sums(SPREAD, [4.0] * 3, squares)}),
]


@pytest.mark.parametrize(
    ("mechanism", "terms"), MECHANISMS, ids=[type(mechanism).__name__ for mechanism, _ in MECHANISMS]
)
def test_contract(mechanism: Mechanism, terms: dict[str, Any]) -> None:
    """The audit of quantiles at several levels takes millions of draws: see the slow suite."""
    check_mechanism(mechanism, **terms, audited=mechanism is not HALVES)


@pytest.mark.slow
def test_the_audit_of_quantiles_at_several_levels() -> None:
    (terms,) = (terms for mechanism, terms in MECHANISMS if mechanism is HALVES)
    check_audit(terms["seen"], share=terms["share"], trials=terms["trials"])


class Quiet(Laplace):
    """Less noise than it says."""

    def draw(self, size: int) -> Any:
        return super().draw(size) // 2


class Loud(Laplace):
    """More noise than it says."""

    def draw(self, size: int) -> Any:
        return super().draw(size) * 2


class Cheap(Laplace):
    """A claim of half of what it costs."""

    @property
    def loss(self) -> Any:
        return DiscreteLaplace(2 * self.scale)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Quiet, check_law),
        (Quiet, check_audit),
        (Loud, check_law),
        (Loud, check_error),
        (Cheap, check_loss),
        (Cheap, check_audit),
    ],
)
def test_what_breaks_its_promise_does_not_pass(
    kind: type[Laplace], check: Callable[[Mechanism], None]
) -> None:
    check(Laplace(scale=1, sensitivity=1, **WHOLE))
    with pytest.raises(AssertionError):
        check(kind(scale=1, sensitivity=1, **WHOLE))


def test_every_mechanism_is_held_to_it() -> None:
    exported = set(package.__all__) - {"Mechanism", "Session"}
    assert {type(mechanism).__name__ for mechanism, _ in MECHANISMS} == exported
