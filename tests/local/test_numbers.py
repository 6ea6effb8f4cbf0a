"""Means of numbers: laws by enumeration, the variances of papers, intervals that cover."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from measures import NUMBERS, named, surveys
from scipy.stats import binom, norm

from dalenius.errors import InvalidArgument
from dalenius.local import DuchiResponse, HybridResponse, PiecewiseResponse
from dalenius.local.reals import FINE, NumberRandomizer, read_units, rounded
from dalenius.local.windows import Window

ALARM = 1e-6
REPEATS, PEOPLE = 2000, 10_000
KINDS = (DuchiResponse, PiecewiseResponse, HybridResponse)


def exact_masses(window: Window, place: int) -> list[Fraction]:
    inside = range(place, place + window.width)
    return [(window.ratio if j in inside else 1) / window.total for j in range(window.reports)]


@pytest.mark.parametrize(("steps", "width"), [(1, 1), (7, 4), (4, 9), (12, 1)])
def test_a_window_is_unbiased_exactly(steps: int, width: int) -> None:
    """In rational numbers: masses add up to 1, the mean is the value, the square as stated, the ratio r."""
    window = Window(steps, width, Fraction(19, 7))
    points = [(j - Fraction(window.reports - 1, 2)) * window.grain for j in range(window.reports)]
    laws = [exact_masses(window, place) for place in range(steps + 1)]
    level, bend = window.square
    for place, law in enumerate(laws):
        t = Fraction(2 * place, steps) - 1
        assert sum(law) == 1
        assert sum(m * y for m, y in zip(law, points, strict=True)) == t
        if steps > 1:
            assert sum(m * y**2 for m, y in zip(law, points, strict=True)) == level + bend * t**2
        assert window.masses(place) == pytest.approx([float(m) for m in law], abs=1e-15)
    assert max(p / q for one in laws for two in laws for p, q in zip(one, two, strict=True)) == window.ratio


@pytest.mark.parametrize("one", NUMBERS, ids=named)
@pytest.mark.parametrize("share", [0, 0.03, 0.5, 0.77, 1])
def test_means_are_unbiased_and_variances_bounded(one: NumberRandomizer, share: float) -> None:
    """By enumeration, for numbers on the grid and between."""
    low, high = float(one.lower), float(one.upper)
    value = low + share * (high - low)
    law = one.probabilities(value)
    held = (low + high) / 2 + float(one.half) * one.points
    mean = float(law.masses @ held)
    assert mean == pytest.approx(value, abs=1e-9 * (high - low))
    spread = float(law.masses @ (held - mean) ** 2)
    assert spread <= one.variance() * (1 + 1e-12)


@pytest.mark.parametrize("one", NUMBERS, ids=named)
def test_the_least_ratio_is_the_one_that_is_charged(one: NumberRandomizer) -> None:
    """Over a fine grid of numbers no report is likelier by more than e^ε, and the ends attain it."""
    values = np.linspace(float(one.lower), float(one.upper), 21)
    laws = np.array([one.probabilities(value).masses for value in values])
    laws = laws[:, laws.max(axis=0) > 0]
    worst = (laws.max(axis=0) / laws.min(axis=0)).max()
    assert worst == pytest.approx(float(one.ratio), rel=1e-9)
    assert float(one.loss.epsilon(0).upper) == pytest.approx(math.log(one.ratio), rel=1e-9)


@pytest.mark.parametrize(("kind", "published"), list(zip(KINDS, (4.683, 5.224, 4.289), strict=True)))
def test_published_worst_variances(kind: type[NumberRandomizer], published: float) -> None:
    """Wang, Xiao, Yang and others 2019, at ε = 1 on [−1, 1], to the digits printed, on the default grid."""
    one = kind.calibrate(lower=-1, upper=1, epsilon=1)
    assert round(one.variance(), 3) == published
    worst = 0.0
    for t in np.linspace(-1, 1, 41):
        masses = one.probabilities(t).masses
        worst = max(worst, float(masses @ one.points**2) - t**2)
    assert round(worst, 3) == published


@pytest.mark.parametrize("epsilon", [0.3, 0.6, 0.63, 2, 5])
def test_published_formulas(epsilon: float) -> None:
    """The hybrid is the best of the three, and is Duchi's for ε up to about 0.61."""
    made = [kind.calibrate(lower=-1, upper=1, epsilon=epsilon) for kind in KINDS]
    duchi, piecewise, hybrid = (one.variance() for one in made)
    root, e = math.exp(epsilon / 2), math.exp(epsilon)
    assert duchi == pytest.approx(((e + 1) / (e - 1)) ** 2, rel=1e-9)
    assert piecewise == pytest.approx(1 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2), rel=5e-3)
    assert hybrid <= min(duchi, piecewise) * (1 + 1e-12)
    blend = made[2].blend
    assert (blend == 0) if epsilon < 0.61 else float(blend) == pytest.approx(1 - 1 / root, abs=2e-3)


def test_one_bit_mean_is_duchi() -> None:
    """Ding, Kulkarni and Yekhanin 2017: the bit is 1 with 1/(e^ε + 1) + x/m·(e^ε − 1)/(e^ε + 1)."""
    one, e = DuchiResponse.one_bit_mean(most=24, epsilon=1), math.e
    for x in (0, 3, 7.5, 24):
        ones = one.probabilities(x).masses[1]
        assert ones == pytest.approx(1 / (e + 1) + x / 24 * (e - 1) / (e + 1), abs=1e-12)
    found = one.estimates(np.array([60, 40]), 100).columns["mean"][0]
    assert found == pytest.approx(24 / 100 * (40 * (e + 1) - 100) / (e - 1))


def crowds(one: NumberRandomizer) -> list[dict[float, int]]:
    low, high = float(one.lower), float(one.upper)
    middle = low + 0.4 * (high - low)
    return [{low: PEOPLE}, {middle: PEOPLE}, {low: PEOPLE // 2, high: PEOPLE // 2}, {low: 9900, high: 100}]


def estimated(one: NumberRandomizer, tallies: np.ndarray) -> dict[str, np.ndarray]:
    if isinstance(one, DuchiResponse):
        found = one.of_ones(tallies[:, 1], PEOPLE)
    else:
        found = one.means(tallies @ one.points / PEOPLE, tallies @ one.points**2 / PEOPLE, PEOPLE)
    return {name: np.array(column) for name, column in found.columns.items()}


def covered(one: NumberRandomizer, people: dict[float, int]) -> None:
    truth = sum(value * many for value, many in people.items()) / PEOPLE
    found = estimated(one, surveys(one, people, REPEATS))
    slack = 1e-9 * float(one.half)
    held = np.count_nonzero((found["mean_low"] - slack <= truth) & (truth <= found["mean_high"] + slack))
    assert binom.cdf(held, REPEATS, 0.95) > ALARM
    real, stated = found["mean"].var(), found["variance"].mean()
    assert abs(found["mean"].mean() - truth) < norm.isf(ALARM / 2) * math.sqrt(real / REPEATS) * 1.05 + slack
    assert real <= stated * (1 + 6 * math.sqrt(2 / REPEATS))


@pytest.mark.parametrize("crowd", range(4))
@pytest.mark.parametrize("one", NUMBERS, ids=named)
def test_intervals_cover(one: NumberRandomizer, crowd: int) -> None:
    """One-sided at 1e-6: 2,000 surveys of 10,000 people, alike, apart, or nearly all at an end."""
    covered(one, crowds(one)[crowd])


@pytest.mark.parametrize("place", [0, 2, 5])
def test_intervals_that_are_too_short_are_caught(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same kind at 70 %: conservative bars of 90 % would still hold 95 %."""
    monkeypatch.setattr("dalenius.local.frequency.ALPHA", 0.3)
    with pytest.raises(AssertionError):
        covered(NUMBERS[place], crowds(NUMBERS[place])[1])


@pytest.mark.parametrize(
    ("kind", "users", "most"), [(PiecewiseResponse, 10**4, 1.45), (HybridResponse, 10**6, 1.04)]
)
def test_intervals_are_not_much_wider_than_normal_ones(kind: type, users: int, most: float) -> None:
    one = kind.calibrate(lower=-1, upper=1, epsilon=1)
    level, _ = map(float, one.square)
    found = one.means(np.array([0.0]), np.array([level]), users).columns
    width = found["mean_high"][0] - found["mean_low"][0]
    assert 1 <= width / (2 * 1.96 * math.sqrt(level / users)) <= most


@pytest.mark.parametrize("one", NUMBERS, ids=named)
def test_reports_of_many_people_are_estimated(one: NumberRandomizer) -> None:
    """From end to end, over the wire; false alarm 1e-6."""
    values = np.linspace(float(one.lower), float(one.upper), 30_001)
    found = one.estimator().add(one.encode(values).to_bytes()).estimate()
    off = abs(found["mean"][0] - values.mean()) / math.sqrt(found["variance"][0])
    assert off < norm.isf(ALARM / 2) * 1.05
    assert found["mean_low"][0] <= found["mean"][0] <= found["mean_high"][0]


def test_rounding_to_places_is_unbiased() -> None:
    """Exactly: over all draws of the last step. And ends stay ends."""
    assert rounded(np.full(1000, 1 << FINE), 12).tolist() == [12] * 1000
    assert rounded(np.zeros(1000, np.int64), 12).tolist() == [0] * 1000
    drawn = rounded(np.full(40_000, (1 << FINE) // 3), 4)
    assert set(drawn.tolist()) == {1, 2}
    assert binom.cdf(np.count_nonzero(drawn == 2), 40_000, 1 / 3) == pytest.approx(0.5, abs=0.5 - ALARM)


def test_whatever_is_no_number_counts_as_lower() -> None:
    odd = [2, None, "2", math.nan, -math.inf, math.inf, 1j, [3], 10**400, -(10**400), True, Fraction(1, 2)]
    units = read_units(odd, 0.0, 2.0) / 2**FINE * 2
    assert units.tolist() == [2, 0, 0, 0, 0, 2, 0, 0, 2, 0, 1, 0.5]
    assert read_units(np.array([np.nan, 5, -5], np.float32), -1.0, 1.0).tolist() == [0, 1 << FINE, 0]
    assert read_units(np.array([-1e308, 1e308]), -1e308, 1e308).tolist() == [0, 1 << FINE]
    assert len(read_units([[1, 2], [3, 4]], 0.0, 1.0)) == 2
    others = [Decimal("0.5"), Decimal("NaN"), np.complex64(1)]
    assert read_units(others, 0.0, 1.0).tolist() == [1 << (FINE - 1), 0, 0]
    with pytest.raises(InvalidArgument, match="by their type"):
        read_units(np.array(["a"]), 0.0, 1.0)


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="below upper"):
        DuchiResponse(lower=1, upper=1, ratio=2)
    with pytest.raises(InvalidArgument, match="steps"):
        PiecewiseResponse.calibrate(lower=0, upper=1, epsilon=1, steps=0)
    with pytest.raises(InvalidArgument, match="blend"):
        HybridResponse(lower=0, upper=1, ratio=2, steps=4, width=3, blend=1.5)
