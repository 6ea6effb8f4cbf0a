"""The square wave: its law, the paper's numbers, the intervals of reports, and what is guessed from them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from measures import WAVES, named, surveys
from scipy.stats import binom

from dalenius.errors import InvalidArgument
from dalenius.local import DuchiResponse, SquareWave, distribution
from dalenius.local.reconstruction import maximized
from dalenius.local.square_wave import half_wave

ALARM = 1e-6
REPEATS, PEOPLE = 2000, 10_000


def matrix(wave: SquareWave) -> np.ndarray:
    """The law of a report, a column for each bin."""
    low, high = float(wave.lower), float(wave.upper)
    middles = low + (np.arange(wave.bins) + 0.5) * (high - low) / wave.bins
    return np.array([wave.probabilities(value).masses for value in middles]).T


def test_the_published_width() -> None:
    """Li and others 2020: b = 0.256 at ε = 1, towards 1/2 for none and 0 for large ε; 2⌊b·d⌋ + 1 reports."""
    assert half_wave(1.0) == pytest.approx(1 / (2 * math.e * (math.e - 2)), rel=1e-12)
    assert round(half_wave(1.0), 3) == 0.256
    assert half_wave(1e-3) == pytest.approx(0.5, abs=1e-3) and half_wave(9e-4) == 0.5
    assert half_wave(0.1) > half_wave(1.0) > half_wave(5.0) > 0
    wave = SquareWave.calibrate(lower=0, upper=1, epsilon=1, bins=1024)
    assert wave.width == 2 * 262 + 1 and wave.cells == 1024 + 2 * 262


@pytest.mark.parametrize("wave", WAVES, ids=named)
def test_a_report_is_likelier_near_the_number(wave: SquareWave) -> None:
    law = matrix(wave)
    assert law.sum(axis=0) == pytest.approx(np.ones(wave.bins))
    heights = np.unique(np.round(law, 12))
    assert heights[1] / heights[0] == pytest.approx(float(wave.ratio)) and len(heights) == 2
    assert (np.argmax(law, axis=0) == np.arange(wave.bins)).all()


def test_numbers_fall_into_bins() -> None:
    wave = SquareWave(lower=-5, upper=5, ratio=2, bins=5, width=1)
    odd = [-5, -3.001, -2.999, 4.999, 5, 7, math.inf, None, math.nan]
    assert wave.read(odd).tolist() == [0, 0, 1, 4, 4, 4, 4, 0, 0]


def test_intervals_that_are_too_short_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 88 % are a fifth shorter."""
    monkeypatch.setattr("dalenius.local.frequency.ALPHA", 0.12)
    with pytest.raises(AssertionError):
        test_intervals_of_reports_cover(WAVES[0])


@pytest.mark.parametrize("wave", WAVES, ids=named)
def test_intervals_of_reports_cover(wave: SquareWave) -> None:
    """One-sided at 1e-6 for each report, of the mean chance of people who are not alike."""
    low, high = float(wave.lower), float(wave.upper)
    people = {low: 7000, (low + high) / 2: 2000, high: 1000}
    chances = sum(wave.probabilities(value).masses * many for value, many in people.items()) / PEOPLE
    tallies = surveys(wave, people, REPEATS)
    found = [wave.estimates(tally, PEOPLE).columns for tally in tallies]
    lows, highs = (np.array([one[name] for one in found]) for name in ("share_low", "share_high"))
    held = ((lows <= chances) & (chances <= highs)).sum(axis=0)
    assert (binom.cdf(held, REPEATS, 0.95) > ALARM / wave.cells).all()
    assert (binom.sf(held - 1, REPEATS, 0.98) > ALARM / wave.cells).all()


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("wave", WAVES, ids=named)
def test_steps_are_those_of_the_matrix(wave: SquareWave, smooth: bool) -> None:
    """The same by the whole matrix, step by step."""
    counts = np.arange(wave.cells, dtype=float) ** 2 + 5
    law, last = matrix(wave), -np.inf
    shares = np.full(wave.bins, 1 / wave.bins)
    enough = 1e-3 if smooth else 1e-3 * float(wave.ratio)
    while (likelihood := float(counts @ np.log(law @ shares))) - last >= enough:
        last = likelihood
        shares = shares * (law.T @ (counts / (law @ shares))) / counts.sum()
        if smooth:
            wide = np.pad(shares, 1, mode="edge")
            shares = (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4
            shares = shares / shares.sum()
    assert maximized(counts, wave.window, smooth=smooth) == pytest.approx(shares, rel=1e-9)


def test_expectation_maximization_finds_the_most_likely() -> None:
    """Where the counts are what is expected, it is the truth; and no step lowers the likelihood."""
    wave = SquareWave(lower=0, upper=1, ratio=50, bins=6, width=2)
    truth = np.array([0.1, 0.3, 0.05, 0.25, 0.2, 0.1])
    found = maximized(1e9 * (matrix(wave) @ truth), wave.window, smooth=False)
    assert found == pytest.approx(truth, abs=1e-3)


def test_a_distribution_is_near_the_truth() -> None:
    """A beta law of 100,000 people at ε = 1: within 0.02 in Wasserstein distance, and nearer than without."""
    wave = SquareWave.calibrate(lower=0, upper=1, epsilon=1)
    values = np.random.default_rng(1).beta(5, 2, 100_000)
    raw = wave.estimator().add(wave.encode(values).to_bytes()).estimate()
    found = distribution(raw)
    truth = np.cumsum(np.histogram(values, wave.bins, (0, 1))[0] / values.size)
    assert np.abs(np.cumsum(found["share"]) - truth).mean() < 0.02
    assert found["share"].sum() == pytest.approx(1) and found["share"].min() >= 0
    assert list(found.columns) == ["from", "to", "share"]
    assert "without error bars" in found.receipt.postprocessing[0] and not raw.receipt.postprocessing
    assert "not yet of numbers" in raw.receipt.bounds[1]


def test_only_reports_of_a_wave_are_read() -> None:
    wave = WAVES[0]
    done = distribution(wave.estimator().add(wave.encode([0.5] * 10)).estimate())
    duchi = DuchiResponse(lower=0, upper=1, ratio=2)
    for bad in (done, duchi.estimator().add(duchi.encode([1])).estimate()):
        with pytest.raises(InvalidArgument, match="square wave"):
            distribution(bad)
