from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from contract import ALARM, divergence
from scipy.stats import binom

from dalenius.errors import InvalidArgument
from dalenius.losses import BoundedRange
from dalenius.mechanisms.quantile import Quantile
from dalenius.mechanisms.quantiles import Quantiles
from dalenius.privacy.quantized import Grid
from dalenius.privacy.unit import Relation

QUARTILES = [0.25, 0.5, 0.75]
BOUNDS = {"lower": 0, "upper": 7, "grid": Grid(0), "dither": 0}


@pytest.mark.parametrize(
    ("upper", "lost", "least"), [(20, 1 / 6, 0.85), (99, 1 / 6, 0.89), (99, 1 / 100, 0.95)]
)
def test_worst_cases_approach_the_claim(upper: int, lost: float, least: float) -> None:
    """In both rounds at once: the finer the grid and the rarer the outcome, the nearer."""
    mechanism = Quantiles.calibrate(
        epsilon=2, levels=[0.25, 0.5], lower=0, upper=upper, grid=Grid(0), dither=0
    )
    pair = mechanism.crossing(Fraction(1, 2), Fraction(1), lost)
    p, q = (mechanism.probabilities(value).masses for value in pair)
    assert 2 * least < np.abs(np.log(p / q)).max() <= 2
    assert lost != 1 / 6 or pair == mechanism.worst_case()


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("levels", [[0.5, 0.75], [0.2, 0.5, 0.6]])
def test_no_neighbours_beat_the_loss(levels: list[float], relation: Relation) -> None:
    """Up to three records in a small range, from the exact joint law."""
    mechanism = Quantiles(scale=1, levels=levels, lower=0, upper=2, grid=Grid(0), dither=0, relation=relation)
    claims = {x: mechanism.loss.delta(x).upper for x in (0.0, 0.5, 1.5)}
    for n in range(4):
        for records in itertools.combinations_with_replacement(range(3), n):
            first = mechanism.probabilities(records)
            kept = (
                [records] if relation == "add_remove" else [records[:i] + records[i + 1 :] for i in range(n)]
            )
            for others, value in itertools.product(kept, range(3)):
                second = mechanism.probabilities((*others, value))
                for x, claim in claims.items():
                    assert max(divergence(first, second, x), divergence(second, first, x)) <= claim + 1e-12


def test_dithered_records_cost_no_more() -> None:
    """One bit of dither, summed over all ways it can fall: the mixture of the undithered laws."""
    fine = Quantiles(scale=1, levels=[0.3, 0.6], lower=0, upper=5, grid=Grid(0), dither=0)
    claims = {x: fine.loss.delta(x).upper for x in (0.0, 0.5, 1.5)}

    def mixture(records: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        law: dict[tuple[int, ...], float] = {}
        for bits in itertools.product((0, 1), repeat=len(records)):
            part = fine.probabilities([2 * r + b for r, b in zip(records, bits, strict=True)])
            for outcome, mass in zip(part.outcomes, part.masses, strict=True):
                place = tuple(int(k) // 2 for k in outcome)
                law[place] = law.get(place, 0.0) + mass / 2 ** len(records)
        return law

    for records in [(), (1,), (1, 1), (0, 2), (1, 1, 1)]:
        for value in range(3):
            p, q = mixture(records), mixture((*records, value))
            for x, claim in claims.items():
                for a, b in ((p, q), (q, p)):
                    told = sum(max(0.0, m - math.exp(x) * b.get(o, 0.0)) for o, m in a.items())
                    assert told <= claim + 1e-12
    coarse = Quantiles(scale=1, levels=[0.3, 0.6], lower=0, upper=2, grid=Grid(0), dither=1)
    law, draws = mixture((1, 1, 2)), coarse.sample([1, 1, 2], 3_000)
    for outcome, mass in law.items():
        hits = int(np.count_nonzero((draws == outcome).all(axis=1)))
        # Over all outcomes a false alarm has probability at most 1e-6.
        assert min(binom.sf(hits - 1, 3_000, mass), binom.cdf(hits, 3_000, mass)) > 1e-6 / 18


def test_rounds_grow_with_the_logarithm() -> None:
    for count, rounds in [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)]:
        levels = [Fraction(i, count + 1) for i in range(1, count + 1)]
        mechanism = Quantiles(scale=2, levels=levels, lower=0, upper=1)
        assert mechanism.loss == BoundedRange(0.5) * rounds
        assert Quantiles.calibrate(epsilon=1, levels=levels, lower=0, upper=1).scale == rounds
    twice = Quantiles(scale=2, levels=QUARTILES, relation="replace", lower=0, upper=1)
    assert twice.loss == BoundedRange(1, relation="replace") * 2


def test_one_level_is_the_quantile() -> None:
    several = Quantiles.calibrate(epsilon=1, levels=[0.3], **BOUNDS)
    one = Quantile.calibrate(epsilon=1, level=0.3, lower=0, upper=7, grid=Grid(0))
    assert several.loss == one.loss
    records = [1, 1, 4, 6]
    assert several.probabilities(records).masses == pytest.approx(one.probabilities(records).masses)


def test_points_never_cross() -> None:
    mechanism = Quantiles(scale=5, levels=[0.1, 0.3, 0.5, 0.6, 0.9], lower=-1, upper=1)
    for records in ([], [0.0] * 5, np.linspace(-1, 1, 50)):
        found = mechanism.release(records)
        assert found["quantile"].tolist() == sorted(found["quantile"].tolist())
        assert found["level"].tolist() == [0.1, 0.3, 0.5, 0.6, 0.9]


def test_ties_are_shared_out_by_dither() -> None:
    """With nine tenths of the records on one value, all quartiles are that value."""
    records = np.array([0.0] * 9_000 + [800.0] * 1_000)
    mechanism = Quantiles.calibrate(epsilon=1, levels=QUARTILES, lower=0, upper=1023, grid=Grid(0))
    assert mechanism.release(records).value.tolist() == [0, 0, 0]


def test_rank_errors_stay_within_their_bound() -> None:
    mechanism = Quantiles(scale=4, levels=[0.1, 0.4, 0.5, 0.8], lower=0, upper=255, grid=Grid(0))
    records = np.arange(2_000) % 256
    misses = 0
    for row in mechanism.sample(records, 200):
        below, above = (records[:, None] < row).sum(axis=0), (records[:, None] > row).sum(axis=0)
        wanted = 2_000 * np.array([0.1, 0.4, 0.5, 0.8])
        off = np.maximum(0, np.maximum(below - wanted, above - (2_000 - wanted)))
        misses += int(off.max() > mechanism.rank_error(0.1))
    # A false alarm has probability at most 1e-7.
    assert binom.sf(misses - 1, 200, 0.1) > ALARM


@pytest.mark.parametrize(
    "records", [np.array([]), np.array([math.nan, math.inf, -math.inf, 1e300]), [10**400, math.nan], [3] * 99]
)
def test_values_never_raise(records: Any) -> None:
    found = Quantiles(scale=1, levels=QUARTILES, lower=-1, upper=1).release(records)
    assert len(found) == 3
    assert np.abs(found.value).max() <= 1


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("scale", 0),
        ("scale", math.nan),
        ("levels", []),
        ("levels", [0.5, 0.5]),
        ("levels", [0.7, 0.2]),
        ("levels", [0.5, 1]),
        ("levels", 0.5),
        ("levels", [Fraction(1, 999_983), Fraction(1, 2)]),
        ("dither", -1),
        ("dither", 33),
        ("lower", math.inf),
        ("upper", -1),
    ],
)
def test_bad_parameters_are_refused_by_name(name: str, bad: Any) -> None:
    expected = "lower" if name == "upper" else name
    with pytest.raises(InvalidArgument, match=f"^{expected} must"):
        Quantiles(**({"scale": 1, "levels": QUARTILES} | BOUNDS | {name: bad}))


def test_too_fine_a_grid_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="too fine"):
        Quantiles(scale=1, levels=QUARTILES, lower=0, upper=1, grid=Grid(-50), dither=16)
    assert Quantiles(scale=1, levels=QUARTILES, lower=0, upper=1).probabilities([0.5]) is None
