"""An audit finds what is wrong in any entry of a vector, and accuses what is right as rarely as it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from sizes import one_in

from dalenius.audits import Audit, audit
from dalenius.losses import DiscreteLaplace
from dalenius.losses.loss import Loss
from dalenius.mechanisms import (
    Covariance,
    DiscreteGaussian,
    Gaussian,
    Histogram,
    Laplace,
    Marginals,
    Skellam,
    Staircase,
    TruncatedLaplace,
    Variance,
)
from dalenius.mechanisms.mechanism import Mechanism
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.release import Release

ALARM = 1e-7
WHOLE: dict[str, Any] = {"grid": Grid(0), "exact": True}
LETTERS = ["a", "b", "c", "d", "e"]
TABLES: dict[str, Any] = {"columns": {"x": 2, "y": 3}, "marginals": [["x"], ["y"]], "per_unit": 2}


class Opaque(Mechanism):
    """What is known of it is its claim and how to draw; `change` is what is wrong with the draws."""

    def __init__(
        self, inner: Mechanism, change: Callable[[NDArray[Any], Any], NDArray[Any]] = lambda x, _: x
    ) -> None:
        self.inner, self.change = inner, change

    @property
    def loss(self) -> Loss:
        return self.inner.loss

    def release(self, value: Any, **given: Any) -> Release:
        return self.inner.release(value, **given)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        return self.change(self.inner.sample(value, size), value)

    def worst_case(self) -> tuple[Any, Any]:
        return self.inner.worst_case()

    def cases(self) -> Any:
        return self.inner.cases()


class Lawful(Opaque):
    """Its law, by its word, is that of the mechanism."""

    def log_ratio(self, draws: NDArray[Any], pair: tuple[Any, Any]) -> Any:
        return self.inner.log_ratio(draws, pair)


def halved(column: int, truth: Callable[[Any], Any]) -> Callable[[NDArray[Any], Any], NDArray[Any]]:
    """Half the noise in one column."""

    def change(draws: NDArray[Any], value: Any) -> NDArray[Any]:
        center = np.asarray(truth(value), dtype=float)[column]
        draws[:, column] = center + np.trunc((draws[:, column] - center) / 2)
        return draws

    return change


def itself(value: Any) -> Any:
    return value


def attacked(mechanism: Mechanism, trials: int = 100_000) -> Audit:
    return audit(mechanism, trials=trials, confidence=1 - ALARM)


def caught(mechanism: Mechanism, trials: int = 100_000) -> bool:
    """Whether one of five audits finds it: one that must learn where to look may miss."""
    return any(not attacked(mechanism, trials).holds for _ in range(5))


VECTORS: list[Mechanism] = [
    Gaussian(scale=2, sensitivity=Sensitivity(l0=4, linf=1), **WHOLE),
    Gaussian(scale=8, sensitivity=Sensitivity(l0=4, l2=8), **WHOLE),
    Gaussian(scale=8, sensitivity=Sensitivity(l2=8), **WHOLE),
    DiscreteGaussian(scale=2, sensitivity=Sensitivity(l0=4, linf=1)),
    Skellam(scale=2, sensitivity=Sensitivity(l0=4, linf=1)),
    Laplace(scale=2, sensitivity=Sensitivity(l0=4, linf=1), **WHOLE),
    Laplace(scale=2, sensitivity=Sensitivity(l0=4, l1=2), **WHOLE),
    Laplace(scale=3, sensitivity=Sensitivity(l0=4, l1=5, linf=2), **WHOLE),
    Staircase(epsilon=0.5, width=2, sensitivity=Sensitivity(l0=4, linf=4)),
    TruncatedLaplace(scale=4, bound=24, sensitivity=Sensitivity(l0=4, linf=1)),
]
COUNTS: list[Histogram | Marginals] = [
    Histogram(categories=LETTERS, scale=1),
    Histogram(categories=LETTERS, scale=2, relation="replace"),
    Histogram(categories=LETTERS, scale=2, noise="gaussian", l0=2, linf=2, relation="replace"),
    Marginals(scale=4, noise="laplace", **TABLES),
    Marginals(scale=4, noise="laplace", relation="replace", **TABLES),
    Marginals(scale=4, relation="replace", **TABLES),
]


@pytest.mark.parametrize("mechanism", [*VECTORS, *COUNTS], ids=repr)
def test_the_worst_case_of_a_vector_attains_the_claim(mechanism: Mechanism) -> None:
    """False-alarm rate 1e-7; the share is a statement of power."""
    found = attacked(mechanism)
    assert found.holds, str(found)
    assert found.epsilon_lower >= 0.7 * found.claim.upper, str(found)


@pytest.mark.parametrize(("kind", "column"), [(Lawful, 0), (Opaque, 3)])
@pytest.mark.parametrize("mechanism", one_in(2, VECTORS), ids=repr)
def test_half_the_noise_in_an_entry_is_found(mechanism: Mechanism, kind: type[Opaque], column: int) -> None:
    assert caught(kind(mechanism, halved(column, itself)), trials=60_000)


@pytest.mark.parametrize("kind", [Lawful, Opaque])
@pytest.mark.parametrize("mechanism", one_in(2, COUNTS), ids=repr)
def test_half_the_noise_in_the_last_row_of_a_table_is_found(
    mechanism: Histogram | Marginals, kind: type[Opaque]
) -> None:
    assert caught(kind(mechanism, halved(-1, mechanism.counts)), trials=60_000)


@pytest.mark.parametrize("column", range(3))
def test_half_the_noise_in_any_sum_of_a_variance_is_found(column: int) -> None:
    mechanism = Variance(lower=0, upper=4, scale=16, grid=Grid(0))
    wrong = Opaque(mechanism, halved(column, lambda value: mechanism.totals(mechanism.vectors(value))))
    assert attacked(mechanism).holds
    assert caught(wrong)


def test_half_the_noise_in_any_sum_of_a_covariance_is_found() -> None:
    mechanism = Covariance(lower=[0], upper=[1], scale=3, bits=8)

    def quarter(draws: NDArray[Any], value: Any) -> NDArray[Any]:
        center = mechanism.totals(mechanism.vectors(value)).astype(float) * float(mechanism.step)
        draws[:, -1] = center[-1] + (draws[:, -1] - center[-1]) / 2
        return draws

    assert attacked(mechanism).holds
    assert caught(Opaque(mechanism, quarter))


class Once(Histogram):
    """Charged as if a replaced record left one row and entered none."""

    @property
    def loss(self) -> Loss:
        return DiscreteLaplace(self.scale, relation=self.relation)


def test_a_histogram_charged_for_one_row_is_found_under_replace() -> None:
    assert attacked(Once(categories=LETTERS, scale=1)).holds
    found = attacked(Once(categories=LETTERS, scale=1, relation="replace"))
    assert not found.holds
    assert found.epsilon_lower > 1.6


def test_what_is_right_is_accused_no_more_often_than_stated() -> None:
    """Of 30 audits at confidence 0.9, no more than a binomial exceeds with probability 1e-7."""
    mechanism = Opaque(Laplace(scale=1, sensitivity=Sensitivity(l0=3, l1=1), **WHOLE))
    found = [audit(mechanism, trials=500, confidence=0.9) for _ in range(30)]
    wrong = sum(not one.holds for one in found)
    assert binom.sf(wrong - 1, len(found), 0.1) > ALARM


def test_the_score_is_named() -> None:
    number = Laplace(scale=1, sensitivity=1, **WHOLE)
    assert audit(number, trials=5000).score == "tests by the exact likelihood ratio"
    assert audit(Opaque(number), trials=5000).score == "tests by estimated frequencies"
    fine = Gaussian(scale=1, sensitivity=1, grid=Grid(-30))
    learned = {"tests by frequencies, column by column", "threshold tests on a weighted sum"}
    assert audit(Opaque(fine), trials=50_000).score in learned
