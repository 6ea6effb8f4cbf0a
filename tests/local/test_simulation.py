"""Surveys drawn as counts: of strings and numbers, by the laws of their reports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from measures import NUMBERS, WAVES, named
from scipy.stats import binom, norm

from dalenius.errors import InvalidArgument
from dalenius.local import (
    CountMeanSketch,
    DuchiResponse,
    HaarRanges,
    HadamardSketch,
    HybridResponse,
    KaryResponse,
    PiecewiseResponse,
    PrefixExtending,
    PrivUnit,
    Randomizer,
    Rappor,
    SquareWave,
    distribution,
    simulate,
)
from dalenius.local.crowds import dyadic, uniform_counts
from dalenius.local.reals import FINE, NumberRandomizer, placed
from dalenius.local.windows import Window

ALARM = 1e-6
BILLION = 10**9
WORDS = {"home": BILLION // 2, "help": BILLION // 4, "shop": BILLION // 4, "absent": 0}
WRAPPED = dict.fromkeys("abcd", 2**62) | {"e": 5}
"""The sum of which is 5 in 64 bits."""
RAPPOR = Rappor(width=32, hashes=2, cohorts=16, replaced=0.5, low=0.25, high=0.75)


def test_chances_of_halves_are_exact() -> None:
    """By the binomial law of 20,000 draws at once for each chance, at 1e-6 for all."""
    parts = np.array([0, 1, 5, 8, 11, 15, 16])
    found = dyadic(np.full(7, 20_000), parts, 4)
    low, high = binom.ppf([ALARM / 14, 1 - ALARM / 14], 20_000, parts[:, None] / 16).T
    assert ((low <= found) & (found <= high)).all() and found[0] == 0 and found[-1] == 20_000


def test_uniform_counts_are_uniform() -> None:
    """Each cell is binomial, at 1e-6 for all, and they add up."""
    totals = np.array([0, 7, 100_000])
    found = uniform_counts(totals, 5)
    assert (found.sum(axis=1) == totals).all()
    low, high = binom.ppf([ALARM / 10, 1 - ALARM / 10], 100_000, 0.2)
    assert (low <= found[2]).all() and (found[2] <= high).all()


def covariances(laws: np.ndarray, people: np.ndarray) -> np.ndarray:
    """Of a tally, by the law of each person's report."""
    return np.diag(people @ laws) - np.einsum("v,vi,vj->ij", people, laws, laws)


def checked(tallies: np.ndarray, laws: np.ndarray, people: np.ndarray) -> None:
    """Means and all covariances of tallies, at six standard errors or more."""
    many, mean, exact = len(tallies), people @ laws, covariances(laws, people)
    deviations = np.sqrt(np.diag(exact))
    assert (np.abs(tallies.mean(axis=0) - mean) <= 6 * deviations / math.sqrt(many) + 1e-9).all()
    slack = 9 * np.outer(deviations, deviations) / math.sqrt(many)
    assert (np.abs(np.cov(tallies.T) - exact) <= slack + 1e-9).all()


def test_windows_have_the_law_of_reports() -> None:
    window, people = Window(4, 3, 5), np.array([100, 0, 50, 7, 200])
    laws = np.array([window.masses(place) for place in range(5)])
    checked(np.array([window.crowd(people) for _ in range(2000)]), laws, people)


@pytest.mark.parametrize("one", NUMBERS, ids=named)
def test_numbers_have_the_law_of_reports(one: NumberRandomizer) -> None:
    """Also of numbers between places."""
    values = float(one.lower) + np.array([0, 0.123, 0.5, 0.77, 1]) * float(one.upper - one.lower)
    people, units = np.array([60, 30, 0, 100, 10]), one.read(values)
    laws = np.array([one.probabilities(value).masses for value in values])
    checked(np.array([one.crowd(units, people) for _ in range(400)]), laws, people)


def test_places_are_those_of_rounding() -> None:
    units = np.array([0, 1 << FINE, (1 << FINE) * 3 // 8])
    found = placed(units, np.array([5, 6, 10_000]), 4)
    assert found.sum() == 10_011 and found[0] == 5 and found[4] == 6 and found[3] == 0
    assert abs(found[2] - 5000) < norm.isf(ALARM / 2) * 50


@pytest.mark.parametrize("kind", [DuchiResponse, PiecewiseResponse, HybridResponse])
def test_a_billion_numbers(kind: type[Any]) -> None:
    """On default grids; false alarm 1e-6, and the variance is about that of the formula."""
    one = kind.calibrate(lower=0, upper=24, epsilon=1)
    hours = {hour / 2: BILLION // 50 + hour for hour in range(49)}
    truth = sum(hour * many for hour, many in hours.items()) / sum(hours.values())
    found = simulate(one, hours)
    assert abs(found["mean"][0] - truth) < norm.isf(ALARM / 2) * math.sqrt(found["variance"][0])
    assert found["variance"][0] == pytest.approx(one.variance(users=sum(hours.values())), rel=0.5)
    assert "by the joint law" in found.receipt.postprocessing[0]
    assert found.receipt.bounds[-1] == f"{sum(hours.values())} people"


def test_a_wave_can_be_read() -> None:
    wave = SquareWave.calibrate(lower=0, upper=1, epsilon=2, bins=32)
    found = distribution(simulate(wave, {0.2: 10**8, 0.7: 3 * 10**8}), smooth=False)
    assert found["share"].argsort()[-2:].tolist() == [6, 22]
    people = np.array([100, 300])
    laws = np.array([WAVES[0].probabilities(value).masses for value in (0.2, 0.7)])
    draws = [WAVES[0].of_crowd([0.2, 0.7], people)[0].columns["count"] for _ in range(400)]
    checked(np.array(draws), laws, people)


@pytest.mark.parametrize(
    ("randomizer", "joint"),
    [
        (RAPPOR, True),
        (CountMeanSketch.calibrate(rows=1024, columns=256, epsilon=2), False),
        (HadamardSketch.calibrate(rows=1024, columns=256, epsilon=2), False),
    ],
)
def test_a_billion_strings(randomizer: Randomizer, joint: bool) -> None:
    """Shares within six standard deviations, hashes included; the receipt says how they hang together."""
    found = simulate(randomizer, WORDS)
    assert list(found.columns["item"]) == list(WORDS)
    truth = np.array(list(WORDS.values())) / BILLION
    assert (np.abs(found["share"] - truth) < 6 * np.sqrt(found["variance"])).all()
    assert found["found"][:3].all()
    assert ("by the joint law" in found.receipt.postprocessing[0]) == joint


@pytest.mark.parametrize(
    "bad", [{}, [1, 2], {"a": 1.5}, {"a": -1}, {"a": 0}, {3: 5}, {"a": 10**13}, {"a": [1, 2]}, WRAPPED]
)
def test_strings_to_simulate_are_counted(bad: Any) -> None:
    with pytest.raises(InvalidArgument, match="each string"):
        simulate(RAPPOR, bad)


@pytest.mark.parametrize("bad", [[1, 2], {"3": 5}, {math.nan: 5}, {True: 5}, {3: 2.0}])
def test_numbers_to_simulate_are_counted(bad: Any) -> None:
    with pytest.raises(InvalidArgument, match="each number"):
        simulate(DuchiResponse(lower=0, upper=9, ratio=2), bad)


def test_numbers_beyond_floats_are_clipped() -> None:
    one = DuchiResponse(lower=0, upper=9, ratio=2**60)
    assert simulate(one, {10**400: 3, -(10**400): 3})["mean"][0] == pytest.approx(4.5)
    with pytest.raises(InvalidArgument, match="each item"):
        simulate(KaryResponse(domain=5, ratio=2), list(WRAPPED.values()))


@pytest.mark.parametrize(
    "one",
    [
        HaarRanges.calibrate(domain=8, epsilon=1),
        PrivUnit.calibrate(dimension=3, epsilon=1),
        PrefixExtending.calibrate(length=2, epsilon=1, rows=4, columns=8),
    ],
    ids=named,
)
def test_what_has_no_law_here_is_refused(one: Randomizer) -> None:
    with pytest.raises(InvalidArgument, match="without reports") as refusal:
        simulate(one, [1] * 8)
    assert "encode" in refusal.value.remedy


def test_too_many_strings_are_refused() -> None:
    sketch = HadamardSketch.calibrate(rows=4, columns=8, epsilon=1)
    with pytest.raises(InvalidArgument, match="at most 1000 strings"):
        simulate(sketch, {str(k): 1 for k in range(1001)})
