"""Attacks by forged reports: the worst shift is the one that is stated, and intervals hold despite them."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import (
    BitFlips,
    DuchiResponse,
    FrequencyOracle,
    HadamardResponse,
    HybridResponse,
    KaryResponse,
    LocalHashing,
    PrivUnit,
    ProjectiveResponse,
    Randomizer,
    Reports,
    SubsetSelection,
    UnaryEncoding,
)
from dalenius.local.frequency import SetResponse

PEOPLE, ITEM = 2000, 1
LINEAR: list[FrequencyOracle] = [
    KaryResponse.calibrate(domain=1000, epsilon=1),
    UnaryEncoding.optimized(domain=50, epsilon=1),
    UnaryEncoding.symmetric(domain=50, epsilon=1),
    LocalHashing.calibrate(domain=50, epsilon=1),
    HadamardResponse(domain=50, ratio=3, blocks=1),
    HadamardResponse(domain=50, ratio=8, blocks=4),
    SubsetSelection.calibrate(domain=50, epsilon=1),
    ProjectiveResponse.calibrate(domain=50, epsilon=1),
]
FLIPS = BitFlips.calibrate(domain=50, epsilon=1, chosen=5)


def named(oracle: Randomizer) -> str:
    return f"{type(oracle).__name__}-{oracle.bits}"


def weights(oracle: FrequencyOracle, rows: np.ndarray) -> np.ndarray:
    """How much each report speaks for the item: 1 where it supports it, −1 in the rest of a block."""
    if isinstance(oracle, HadamardResponse):
        here = rows[:, 0] // oracle.block == ITEM % oracle.blocks
        return np.where(here, np.where(oracle.within(rows, ITEM), 1, -1), 0)
    if isinstance(oracle, UnaryEncoding):
        return rows[:, ITEM].astype(int)
    assert isinstance(oracle, SetResponse)
    return oracle.within(rows, ITEM).astype(int)


def forged(oracle: FrequencyOracle, rows: np.ndarray, many: int) -> np.ndarray:
    """Replace the reports that speak most against the item by the one that speaks most for it."""
    ways = oracle.encode([ITEM] * 300).rows if oracle.domain < 1000 else np.array([[ITEM]])
    best, order = ways[np.argmax(weights(oracle, ways))], np.argsort(weights(oracle, rows))
    attacked = rows.copy()
    attacked[order[:many]] = best
    return attacked


def share(oracle: FrequencyOracle, rows: np.ndarray, **given: float) -> tuple[float, float, float]:
    release = oracle.estimator().add(Reports(oracle.format, rows)).estimate(**given)
    middle, low, high = (float(release[name][ITEM]) for name in ("share", "share_low", "share_high"))
    return middle, low, high


@pytest.mark.parametrize("oracle", LINEAR, ids=named)
def test_the_worst_attack_moves_a_share_as_far_as_is_stated(oracle: FrequencyOracle) -> None:
    """To the last digit, as it may choose whom it replaces; and no attack in the other direction more."""
    rows = oracle.encode(np.zeros(PEOPLE, int)).rows
    before, bound = share(oracle, rows)[0], oracle.forged_shift(0.01)
    shift = share(oracle, forged(oracle, rows, PEOPLE // 100))[0] - before
    assert 0.999999 * bound <= shift <= 1.000001 * bound
    speaks, least = weights(oracle, rows), rows.copy()
    least[np.argsort(-speaks)[: PEOPLE // 100]] = rows[np.argmin(speaks)]
    assert before - share(oracle, least)[0] <= 1.000001 * bound


def test_the_worst_attack_on_drawn_buckets_is_within_what_is_stated() -> None:
    """All who forge have drawn the item's bucket: at least 0.8 of the bound, which is a mean, and 1.2."""
    rows = FLIPS.encode(np.zeros(PEOPLE, int)).rows
    attacked = rows.copy()
    attacked[: PEOPLE // 100] = 2 * np.arange(FLIPS.chosen)
    attacked[: PEOPLE // 100, ITEM] += 1
    shift, bound = share(FLIPS, attacked)[0] - share(FLIPS, rows)[0], FLIPS.forged_shift(0.01)
    assert 0.5 * bound <= shift <= 1.2 * bound


@pytest.mark.parametrize("oracle", [*LINEAR, FLIPS], ids=named)
def test_intervals_hold_the_honest_share_despite_the_worst_attack(oracle: FrequencyOracle) -> None:
    """A fifth of honest people have the item. One attack in 20 may succeed by chance; of 12 not 8.

    Each fails with probability 0.05 at most, 8 of 12 or more with less than 2e-8.
    """
    people = np.where(np.arange(PEOPLE) % 5 == 0, ITEM, 0)
    held = 0
    for _ in range(12):
        rows = oracle.encode(people).rows
        if oracle is FLIPS:
            attacked = rows.copy()
            attacked[: PEOPLE // 100] = 2 * np.arange(FLIPS.chosen)
            attacked[: PEOPLE // 100, ITEM] += 1
            truth = np.mean(people[PEOPLE // 100 :] == ITEM)
        else:
            order = np.argsort(weights(oracle, rows))[: PEOPLE // 100]
            attacked, truth = forged(oracle, rows, PEOPLE // 100), np.mean(np.delete(people, order) == ITEM)
        _, low, high = share(oracle, attacked, forged=0.01)
        held += low <= truth <= high
    assert held > 4


def test_one_percent_of_forged_reports_makes_no_certain_interval() -> None:
    """Of 1,000 items by k-ary response, whose estimate is far above 1: open, and said on the receipt."""
    oracle = KaryResponse.calibrate(domain=1000, epsilon=1)
    rows = oracle.encode(np.zeros(20_000, int)).rows.copy()
    rows[:200] = ITEM
    collected = oracle.estimator().add(Reports(oracle.format, rows))
    release = collected.estimate()
    assert release["share"][ITEM] > 4
    assert (release["share_low"][ITEM], release["share_high"][ITEM]) == (0, 1)
    assert any("noise does not explain 1 of the estimates" in note for note in release.receipt.bounds)
    known = collected.estimate(forged=0.01)
    assert known["share_low"][ITEM] == 0 and not any("noise does" in note for note in known.receipt.bounds)
    assert any("at most a fraction of 0.01 is forged" in note for note in known.receipt.bounds)


@pytest.mark.parametrize("oracle", [*LINEAR, FLIPS], ids=named)
def test_no_interval_is_shorter_than_noise(oracle: FrequencyOracle) -> None:
    """Of items that nobody has, whose estimates are often below zero, intervals end above zero."""
    release = oracle.estimator().add(oracle.encode(np.zeros(PEOPLE, int))).estimate()
    width = np.array(release["share_high"]) - np.array(release["share_low"])
    assert width.min() > 0.5 * oracle.variance(users=PEOPLE) ** 0.5
    assert not any("noise does not" in note for note in release.receipt.bounds)


def test_an_interval_with_forged_reports_holds_every_one_without() -> None:
    """By enumeration of who forged what: the interval with m forged is the union over all of them."""
    from dalenius.local.intervals import mean_chance
    from dalenius.local.intervals import share as ends

    n, p, q, most = 30, 0.8, 0.2, 4
    for count in range(n + 1):
        low, high, open_ = ends(np.array([count]), n, p, q, 0.05, forged=most)
        if open_[0]:
            continue
        for many in range(most + 1):
            for supporting in range(many + 1):
                if 0 <= count - supporting <= n - many:
                    one = mean_chance(np.array([count - supporting]), n - many, 0.05)
                    inside = [np.clip((end[0] - q) / (p - q), 0, 1) for end in one]
                    moved = ends(np.array([count - supporting]), n - many, p, q, 0.05)
                    assert low[0] <= max(inside[0], moved[0][0]) + 1e-9
                    assert high[0] >= min(inside[1], moved[1][0]) - 1e-9


def test_a_mean_holds_despite_forged_bits() -> None:
    """All honest numbers are 0, and so is the honest mean; false alarm below 1e-9 with 5 widths of room."""
    hours = DuchiResponse.calibrate(lower=0, upper=1, epsilon=1)
    rows = hours.encode(np.zeros(10_000)).rows.copy()
    rows[:500] = 1
    collected = hours.estimator().add(Reports(hours.format, rows))
    assert collected.estimate()["mean_low"][0] > 0.01
    assert collected.estimate(forged=0.2)["mean_low"][0] == 0


@pytest.mark.parametrize(
    "one", [HybridResponse.calibrate(lower=0, upper=1, epsilon=1), PrivUnit.calibrate(dimension=3, epsilon=4)]
)
def test_where_no_bound_is_known_forged_reports_are_refused(one: Randomizer) -> None:
    values = np.zeros((50, 3)) if isinstance(one, PrivUnit) else np.zeros(50)
    collected = one.estimator().add(one.encode(values))
    with pytest.raises(NotSound, match="not bounded"):
        collected.estimate(forged=0.1)


def test_oracles_are_chosen_by_what_forged_reports_can_do() -> None:
    tiny = FrequencyOracle.best(4, 1)
    assert isinstance(tiny, KaryResponse) and tiny.forged_shift(1) < 4
    best = FrequencyOracle.best(8, 1, most_shift=4.4)
    assert best.forged_shift(1) <= 4.4 < KaryResponse.calibrate(domain=8, epsilon=1).forged_shift(1)
    with pytest.raises(InvalidArgument, match="forged reports can move") as refused:
        FrequencyOracle.best(1000, 1, most_shift=2)
    assert "most_shift=4.09" in str(refused.value.remedy)
    assert FrequencyOracle.best(1000, 1, most_shift=4.09).forged_shift(1) <= 4.09
