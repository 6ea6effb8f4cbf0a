"""PrivUnit: its caps by rigorous bounds, its error against PrivUnit's own, intervals that cover."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from measures import VECTORS, named
from scipy.integrate import quad
from scipy.special import betainc, betaln
from scipy.stats import binom, chi2, norm

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import PrivUnit
from dalenius.local.privunit import ONE
from dalenius.local.tails import Tilted

ALARM = 1e-6
REPEATS, PEOPLE = 2000, 10_000


def on_the_sphere(dimension: int, epsilon: float) -> float:
    """E‖error‖² of PrivUnit (Bhowmick and others 2018), its cap the best: 1/m² − 1, by incomplete beta."""
    half, best = (dimension - 1) / 2, math.inf
    for gamma in np.linspace(0, min(0.9, 5 / math.sqrt(dimension)), 3001):
        cap = 0.5 * betainc(half, 0.5, 1 - gamma**2)
        p = math.exp(epsilon) * cap / (1 - cap + math.exp(epsilon) * cap)
        # ∫ from γ to 1 of t(1 − t²)^{(d−3)/2}, over the whole of the density.
        moment = (1 - gamma**2) ** half / (2 * half) / math.exp(betaln(half, 0.5))
        best = min(best, (moment * (p / cap - (1 - p) / (1 - cap))) ** -2 - 1)
    return best


@pytest.mark.parametrize("dimension", [10, 100, 1000])
@pytest.mark.parametrize("epsilon", [0.5, 1, 4, 8])
def test_the_error_is_that_of_privunit(dimension: int, epsilon: float) -> None:
    """Asi, Feldman and Talwar 2022: no less, and more by a part of the order of 1/d only."""
    own = PrivUnit.calibrate(dimension=dimension, epsilon=epsilon).variance()
    published = on_the_sphere(dimension, epsilon)
    assert 1 <= own / published <= 1 + (0.8 + 0.1 * epsilon**2) / dimension


@pytest.mark.parametrize("one", VECTORS, ids=named)
def test_draws_have_the_error_that_is_stated(one: PrivUnit) -> None:
    """100,000 reports of one vector: its mean, and E‖error‖², each at false alarm 1e-6 or less."""
    value = np.zeros(one.dimension)
    value[:2] = 0.6 * float(one.radius), -0.8 * float(one.radius)
    rows = one.encode(np.repeat(value[None], 100_000, axis=0)).rows.astype(float) - 2**15
    terms = rows / 2**10 / one.law.mean * float(one.radius)
    spread = terms.std(axis=0) / math.sqrt(len(terms))
    assert (np.abs(terms.mean(axis=0) - value) < norm.isf(ALARM / 6) * spread).all()
    squares = ((terms - value) ** 2).sum(axis=1)
    assert abs(squares.mean() - one.variance()) < norm.isf(ALARM / 2) * squares.std() / math.sqrt(len(terms))


@pytest.mark.parametrize("one", [*VECTORS, PrivUnit.calibrate(dimension=500, epsilon=0.1)], ids=named)
def test_caps_are_within_their_bounds(one: PrivUnit) -> None:
    """The bounds hold the continuous cap, are near it, and the ratio holds in rational numbers."""
    low, high = one.cap
    cap = norm.sf(float(one.cut))
    assert low < cap < high and float(high - low) < 3e-4 * cap
    p = one.chance
    assert isinstance(p, Fraction) and p * (1 - low) <= one.ratio * (1 - p) * low
    assert p / (1 - p) * (1 - high) / high <= one.ratio


@pytest.mark.parametrize(
    "value", [(1, 0, 0), (1, 1, 1), (-0.3, 0.2, 0.93), (1e-300, 1e-300, 0), (1e300, 1, -1e300)]
)
def test_directions_are_long_as_they_must_be(value: tuple[float, ...]) -> None:
    """In integers, within what the bounds of the caps allow; and near the direction, either way."""
    one = VECTORS[0]
    whole = one.directions(one.read([value] * 50))
    length = (whole**2).sum(axis=1)
    assert (np.abs(length - ONE**2) <= 2 * ONE * (math.isqrt(3) + 1)).all()
    unit = np.array(value) / np.abs(value).max()
    unit = unit / np.linalg.norm(unit)
    assert np.abs(np.abs(whole @ unit) / ONE - 1).max() < 1e-5


def test_the_cap_of_the_worst_grid_vectors_is_as_bounded() -> None:
    """Along one entry the law is exact: P(u·2^20 ≥ τ) by the rounded Gaussian, within Q⁻ and Q⁺."""
    for one in VECTORS:
        cut = int(one.cut * ONE)
        exact = norm.sf((cut - 0.5) / ONE)
        assert float(one.cap[0]) <= exact <= float(one.cap[1])


def test_short_long_and_odd_vectors() -> None:
    """Short ones are unbiased, long ones cut, and what is no number is zero; false alarm 1e-6."""
    one = PrivUnit.calibrate(dimension=3, epsilon=2, radius=2)
    rows = [[0.5, 0, 0], [0, 400, 0], [math.nan, math.inf, 0.0]]
    for row, truth in zip(rows, ([0.5, 0, 0], [0, 2, 0], [0, 0, 0]), strict=True):
        found = one.estimator().add(one.encode(np.repeat([row], 40_000, axis=0))).estimate()
        off = np.abs(found["mean"] - truth) / np.sqrt(found["variance"])
        assert off.max() < norm.isf(ALARM / 18)
    with pytest.raises(InvalidArgument, match="3 entries"):
        one.encode(np.zeros((2, 4)))


def test_reports_are_as_long_as_is_said() -> None:
    """P(‖G‖² > bound) by the exact law, times how much likelier a report may be, is 2^−60 at most."""
    for dimension in (1, 3, 100, 60_000):
        one = PrivUnit.calibrate(dimension=dimension, epsilon=20 if dimension < 200 else 1)
        far = math.sqrt(one.longest) / 2**10 - 2 * math.sqrt(dimension) / 2**10
        tail = chi2.logsf(far**2, dimension)
        assert tail - math.log(float(one.cap[0])) <= -60 * math.log(2)
        assert tail > -200


def test_large_epsilons_take_many_tries() -> None:
    """As drawing does, at six standard deviations; the law of tries is near a geometric one."""
    assert PrivUnit.calibrate(dimension=10, epsilon=20).tries > 20_000
    one = PrivUnit.calibrate(dimension=2, epsilon=4)
    drawn: list[int] = []

    def counted(scale: int, size: int) -> np.ndarray:
        drawn.append(size // 2)
        return noise.rounded_gaussian(scale, size)

    with pytest.MonkeyPatch.context() as patch:
        watched = SimpleNamespace(bernoulli=noise.bernoulli, rounded_gaussian=counted)
        patch.setattr("dalenius.local.privunit.noise", watched)
        one.draw(np.repeat([[ONE, 0]], 20_000, axis=0))
    assert abs(sum(drawn) / 20_000 - one.tries) < 6 * one.tries / math.sqrt(20_000)


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(NotSound, match="not proved"):
        PrivUnit.calibrate(dimension=60_000, epsilon=1e-4)
    with pytest.raises(InvalidArgument, match="cut"):
        PrivUnit(dimension=3, radius=1, ratio=2, cut=5)
    with pytest.raises(InvalidArgument, match="cut"):
        PrivUnit(dimension=3, radius=1, ratio=2, cut=Fraction(1, 3))


@pytest.mark.parametrize("law", [Tilted.of(0.4, math.e), Tilted.of(1.5, 50.0), Tilted.of(0.0, 2.0)])
def test_moments_are_those_of_the_law(law: Tilted) -> None:
    """By integration."""
    above, below = law.heights

    def moment(of: object) -> float:
        inside = quad(lambda x: of(x) * norm.pdf(x) * below, -12, law.cut)[0]
        return inside + quad(lambda x: of(x) * norm.pdf(x) * above, law.cut, 12)[0]

    assert moment(lambda x: 1) == pytest.approx(1)
    assert moment(lambda x: x) == pytest.approx(law.mean)
    assert moment(lambda x: x**2) == pytest.approx(law.square)
    growth = math.log(moment(lambda x: math.exp(0.3 * (x - law.mean))))
    assert law._growth(0.3) >= growth - 1e-12
    assert law.lopsided >= moment(lambda x: abs(x - law.mean) ** 3) / (law.square - law.mean**2) ** 1.5


def sums_of(one: PrivUnit, length: float, size: int) -> np.ndarray:
    """Sums of the reports of PEOPLE people with one number, for so many surveys."""
    rows = one.encode(np.full((size * PEOPLE, 1), length)).rows.astype(np.int64)
    return rows.reshape(size, PEOPLE).sum(axis=1) - 2**15 * PEOPLE


@cache
def surveyed(one: PrivUnit, length: float) -> np.ndarray:
    return np.concatenate([sums_of(one, length, 100) for _ in range(REPEATS // 100)])


def covered(one: PrivUnit, length: float) -> None:
    found = one.estimates(surveyed(one, length), PEOPLE).columns
    low, high = np.array(found["mean_low"]), np.array(found["mean_high"])
    held = np.count_nonzero((low <= length + 1e-9) & (length - 1e-9 <= high))
    assert binom.cdf(held, REPEATS, 0.95) > ALARM


@pytest.mark.parametrize("length", [1.0, 0.3])
def test_intervals_cover(length: float) -> None:
    """One-sided at 1e-6: 2,000 surveys of 10,000 people; one dimension is the worst."""
    covered(PrivUnit.calibrate(dimension=1, epsilon=1), length)


@pytest.mark.parametrize("length", [1.0, 0.3])
def test_intervals_that_are_too_short_are_caught(length: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same reports at 60 %: bars are by theorems that leave room at 10,000 people."""
    monkeypatch.setattr("dalenius.local.frequency.ALPHA", 0.4)
    with pytest.raises(AssertionError):
        covered(PrivUnit.calibrate(dimension=1, epsilon=1), length)


def test_intervals_of_large_dimensions_are_by_the_normal_part() -> None:
    """Where entries are small reports are nearly normal: 1.4 times as wide at 10,000, 1.05 at 1e6."""
    law = PrivUnit.calibrate(dimension=100, epsilon=1).law
    for n, most in ((10**4, 1.4), (10**6, 1.05)):
        normal = 1.96 * math.sqrt(law.most_square / n)
        assert 1 <= law.half_width(n, 0.05) / normal <= most
