from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from contract import ALARM, chi_square, divergence
from scipy.stats import binom

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import BoundedRange
from dalenius.mechanisms import ranks
from dalenius.mechanisms.quantile import Quantile
from dalenius.mechanisms.ranks import Segments
from dalenius.noise.source import active
from dalenius.privacy.quantized import Grid
from dalenius.privacy.unit import Relation

BOUNDS = {"lower": 0, "upper": 5, "grid": Grid(0)}


def law_by_definition(mechanism: Quantile, records: tuple[int, ...]) -> np.ndarray:
    level, n = mechanism.level, len(records)
    weights = []
    for y in range(6):
        below, above = sum(r < y for r in records), sum(r > y for r in records)
        off = max(Fraction(0), below - level * n, above - (1 - level) * n)
        weights.append(math.exp(-off / mechanism.scale))
    return np.array(weights) / sum(weights)


@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
def test_the_law_is_that_of_the_definition(level: Fraction) -> None:
    mechanism = Quantile(scale=2, level=level, **BOUNDS)
    for records in itertools.combinations_with_replacement(range(6), 4):
        assert mechanism.probabilities(records).masses == pytest.approx(law_by_definition(mechanism, records))
    assert mechanism.probabilities([]).masses == pytest.approx([1 / 6] * 6)


def neighbours(relation: Relation) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for n in range(5):
        for records in itertools.combinations_with_replacement(range(4), n):
            for value in range(4):
                if relation == "add_remove":
                    yield records, (*records, value)
                else:
                    yield from ((records, (*records[:i], *records[i + 1 :], value)) for i in range(n))


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(1, 3), Fraction(4, 5)])
def test_no_neighbours_beat_the_loss(relation: Relation, level: Fraction) -> None:
    """Neither the profile nor the range, which is attained."""
    mechanism = Quantile(scale=1, level=level, lower=0, upper=3, grid=Grid(0), relation=relation)
    claims = {x: mechanism.loss.delta(x).upper for x in (0.0, 0.4, 0.9)}
    widest = 0.0
    for before, after in neighbours(relation):
        first, second = mechanism.probabilities(before), mechanism.probabilities(after)
        losses = np.log(first.masses / second.masses)
        widest = max(widest, losses.max() - losses.min())
        for x, claim in claims.items():
            assert max(divergence(first, second, x), divergence(second, first, x)) <= claim + 1e-12
    assert widest <= float(mechanism.loss.limit) + 1e-12
    if level != Fraction(4, 5):
        assert widest == pytest.approx(float(mechanism.loss.limit))


def test_scales_of_the_theorem() -> None:
    assert Quantile(scale=1, **BOUNDS).loss == BoundedRange(1)
    assert Quantile(scale=1, level=0.9, **BOUNDS).loss == BoundedRange(1.8)
    assert Quantile(scale=1, level=0.9, relation="replace", **BOUNDS).loss == BoundedRange(
        2, relation="replace"
    )
    assert Quantile.calibrate(epsilon=0.5, **BOUNDS).scale == 2
    assert Quantile.calibrate(epsilon=1, delta=0.01, **BOUNDS).loss.epsilon(0.01).upper <= 1


def test_choices_by_balls_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An envelope that is said to be off by a third rejects often, and every acceptance asks for balls."""
    exact = ranks.exponentials
    monkeypatch.setattr(ranks, "exponentials", lambda x: (exact(x)[0], exact(x)[0] / 3))
    monkeypatch.setattr(Segments, "_accepted", by_balls(Segments._accepted))
    mechanism = Quantile(scale=2, level=0.3, **BOUNDS)
    records = [1, 1, 4, 5]
    # A false alarm has probability at most 1e-7.
    assert chi_square(mechanism.sample(records, 20_000), mechanism.probabilities(records)) > ALARM


def by_balls(accepted: Any) -> Any:
    return lambda self, index, least, *rest: accepted(self, index, 0 * least - 1, *rest)


def test_wide_segments_are_chosen_by_their_length() -> None:
    """A gap of almost 2^60 points against a single one, at a distance that makes the odds about even."""
    segments = Segments(
        np.array([0, 1, 2**60]), np.array([1, 2**60 - 1, 1]), np.array([0, 60, 59]), Fraction(6931, 10_000)
    )
    chosen = segments._choose(40_000, active())
    weights = np.array([1.0, (2**60 - 1) * math.exp(-60 * 0.6931), math.exp(-59 * 0.6931)])
    share = weights[0] / weights.sum()
    # A false alarm has probability at most 1e-7.
    assert abs(np.count_nonzero(chosen == 0) - 40_000 * share) < 5.5 * math.sqrt(40_000 * share * (1 - share))
    points = segments.draw(100)
    assert points.dtype == np.int64
    assert points.min() >= 0
    assert points.max() <= 2**60


def test_the_median_of_ties_is_their_value() -> None:
    mechanism = Quantile(scale=1, lower=0, upper=1000, grid=Grid(0))
    assert mechanism.release(np.array([7] * 900 + [500] * 100)).value == 7
    assert mechanism.release(np.arange(10, 900), name="age").columns.keys() == {"age"}


def test_rank_errors_stay_within_their_bound() -> None:
    """All records on one point, which is the worst case, by the exact law and by draws."""
    mechanism = Quantile(scale=3, lower=0, upper=63, grid=Grid(0))
    bound = mechanism.rank_error(0.05)
    law = mechanism.probabilities(np.full(math.ceil(2 * bound), 20))
    assert 0.04 < 1 - law.masses[20] <= 0.05
    records = np.arange(400) // 7
    draws = mechanism.sample(records, 5_000)
    below, above = (records[:, None] < draws).sum(axis=0), (records[:, None] > draws).sum(axis=0)
    off = np.maximum(0, np.maximum(below, above) - 200)
    # A false alarm has probability at most 1e-7.
    assert binom.sf(np.count_nonzero(off >= bound) - 1, 5_000, 0.05) > ALARM


@pytest.mark.parametrize(
    "records",
    [
        np.array([]),
        [],
        np.array([math.nan, math.inf, -math.inf, 1e300]),
        [10**400, -(10**400), math.nan],
        np.array([2**62, -(2**62)]),
        [3] * 1000,
    ],
)
def test_values_never_raise(records: Any) -> None:
    found = Quantile(scale=1, lower=-1, upper=1).release(records)
    assert -1 <= found.value <= 1
    assert found.receipt.bounds[0] == "values clipped to [-1, 1]"
    assert found.receipt.numerics.startswith("exact noise on whole grid steps, each record")


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *itertools.product(["scale"], [0, -1, math.nan, math.inf]),
        *itertools.product(["level"], [0, 1, -0.5, math.nan, Fraction(1, 2_000_000)]),
        *itertools.product(["lower", "upper"], [math.nan, math.inf, "0"]),
        ("lower", 5),
        ("grid", 1),
        ("relation", "other"),
    ],
)
def test_bad_parameters_are_refused_by_name(name: str, bad: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name} must be"):
        Quantile(**({"scale": 1} | BOUNDS | {name: bad}))


def test_other_refusals() -> None:
    with pytest.raises(InvalidArgument, match="2 to 2\\^61 grid points"):
        Quantile(scale=1, lower=0, upper=1, grid=Grid(1))
    with pytest.raises(InvalidArgument, match="2 to 2\\^61 grid points"):
        Quantile(scale=1, lower=0, upper=1, grid=Grid(-70))
    with pytest.raises(NotSound):
        Quantile(scale=1, relation="zero_out", **BOUNDS)
    with pytest.raises(InvalidArgument):
        Quantile(scale=1, **BOUNDS).release(3.0)
    assert Quantile(scale=1, lower=0, upper=1, grid=Grid(-40)).probabilities([0.5]) is None
    with noise.seeded(b"a test"):
        assert Quantile(scale=1, **BOUNDS).release([1, 2]).receipt.tainted


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("level", [0.05, 0.4, 0.5, 0.7, 0.99])
def test_worst_cases_attain_the_share_they_aim_at(level: float, relation: Relation) -> None:
    mechanism = Quantile.calibrate(epsilon=1, level=level, lower=0, upper=1, relation=relation)
    p, q = (mechanism.probabilities(value).masses for value in mechanism.worst_case())
    assert np.abs(np.log(p / q)).max() == pytest.approx(1 - 1 / 32, abs=2e-3)
    for epsilon in (Fraction(1, 1000), 50, 5000):
        wide = Quantile.calibrate(
            epsilon=epsilon, level=level, lower=0, upper=2, grid=Grid(0), relation=relation
        )
        assert len(wide.worst_case()) == 2
