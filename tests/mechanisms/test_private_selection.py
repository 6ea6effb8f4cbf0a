from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from contract import ALARM, check_json, check_law, chi_square, divergence
from scipy.stats import chi2, poisson

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import Approximate, Pure
from dalenius.mechanisms import (
    Gaussian,
    Laplace,
    Mechanism,
    NoisyThreshold,
    RandomizedResponse,
    SampleAndAggregate,
    SparseVector,
)
from dalenius.mechanisms.exponential import Exponential
from dalenius.mechanisms.mechanism import Law
from dalenius.mechanisms.poisson_runs import PoissonRuns
from dalenius.mechanisms.private_selection import PrivateSelection
from dalenius.mechanisms.repetition import Repetition
from dalenius.mechanisms.runs import price
from dalenius.privacy.quantized import Grid

BASE = Laplace(scale=1, sensitivity=2, grid=Grid(0), exact=True)
SHAPES = [Fraction(1), Fraction(0), Fraction(-1, 2), Fraction(1, 3)]


def test_a_base_without_a_pure_claim_keeps_its_law_and_its_delta() -> None:
    base = Gaussian(scale=3, sensitivity=2, grid=Grid(0))
    mechanism = PrivateSelection(base=base, stop=0.2, shape=-0.5, delta=0.01)
    check_json(mechanism)
    check_law(mechanism)
    limit = mechanism.loss.epsilon(mechanism.delta).upper
    pair = [mechanism.probabilities(v) for v in mechanism.worst_case()]
    assert max(divergence(*pair, limit), divergence(*pair[::-1], limit)) <= float(mechanism.delta)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stop", [0.5, 0.05])
def test_the_number_of_runs_has_its_law(stop: float, shape: Fraction) -> None:
    runs, eta = Repetition(Fraction(stop), shape), float(shape)
    weights = [1.0]
    for k in range(1, 3000):
        weights.append(weights[-1] * (1 - stop) * (k + eta) / (k + 1))
    law = np.array(weights) / sum(weights)
    assert runs.mean == pytest.approx(float(np.dot(law, np.arange(1, 3001))), rel=1e-9)
    counts = np.bincount(np.minimum(runs.draw(20_000), 8), minlength=9)[1:]
    expected = 20_000 * np.append(law[:7], law[7:].sum())
    # A false alarm has probability at most 1e-7.
    assert chi2.sf(float(np.sum((counts - expected) ** 2 / expected)), 7) > ALARM


@pytest.mark.parametrize("shape", SHAPES)
def test_the_greatest_of_a_random_number_has_its_law(shape: Fraction) -> None:
    """Summed over the number of runs."""
    runs, masses = Repetition(Fraction(1, 5), shape), np.array([0.5, 0.2, 0.25, 0.05])
    weights = [1.0]
    for k in range(1, 400):
        weights.append(weights[-1] * 0.8 * (k + float(shape)) / (k + 1))
    heads = np.cumsum(masses)
    under = sum(w * heads ** (k + 1) for k, w in enumerate(weights)) / sum(weights)
    assert runs.greatest(masses) == pytest.approx(np.diff(under, prepend=0.0), rel=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stop", [Fraction(1, 2), Fraction(1, 10), Fraction(1, 1000)])
def test_no_pure_base_beats_the_price_and_one_attains_it(stop: Fraction, shape: Fraction) -> None:
    """Bases of losses ±ε in every order of twelve outcomes drawn at random, and the one of the proof."""
    runs, epsilon, grown = Repetition(stop, shape), 0.7, math.exp(0.7)
    claim = price(Pure(Fraction(7, 10)), runs, Fraction(0), None).epsilon(0).upper
    shift = math.log((grown + float(stop)) / (1 + float(stop) * grown))
    assert claim == pytest.approx(epsilon + float(1 + shape) * shift, abs=1e-9)
    assert claim <= float(2 + shape) * epsilon
    source = np.random.default_rng(7)
    for _ in range(50):
        sign = source.permutation([1.0] * 6 + [-1.0] * 6)
        parts = source.dirichlet(np.full(12, 0.3)) + 1e-9
        up = parts * (sign > 0)
        down = parts * (sign < 0)
        # Masses u·e^ε + v and u + v·e^ε, each of total one.
        q = up / up.sum() / (1 + grown) + down / down.sum() * grown / (1 + grown)
        p = np.where(sign > 0, q * grown, q / grown)
        assert np.abs(np.log(runs.greatest(p) / runs.greatest(q))).max() <= claim + 1e-9
    tiny = 1e-7
    q = np.array([1 - 2 * tiny, tiny * (1 + grown), grown]) / (1 + grown)
    p = np.array([grown * (1 - 2 * tiny), grown * tiny * (1 + grown), 1.0]) / (1 + grown)
    p, q = p / p.sum(), q / q.sum()
    assert np.log(runs.greatest(p) / runs.greatest(q))[1] == pytest.approx(claim, abs=1e-4)


def test_figures_of_the_papers() -> None:
    """Liu and Talwar 2019: 3ε for geometric stopping; Papernot and Steinke 2022: (2 + η)ε; as stop → 0."""
    for shape, times in [(1, 3), (0, 2), (Fraction(-1, 2), 1.5)]:
        found = PrivateSelection(base=Laplace(scale=10, sensitivity=1, grid=Grid(0)), stop=1e-6, shape=shape)
        assert found.loss.epsilon(0).upper == pytest.approx(0.1 * times, rel=1e-4)
        assert found.loss.epsilon(0).upper < 0.1 * times


@pytest.mark.parametrize("shape", SHAPES)
def test_gaussian_bases_at_a_delta_and_of_an_order(shape: Fraction) -> None:
    """The exact law of the selection, on a fine grid, against both claims."""
    base = Gaussian(scale=4, sensitivity=1, grid=Grid(-3))
    at_delta = PrivateSelection(base=base, stop=0.1, shape=shape, delta=1e-4)
    assert isinstance(at_delta.loss, Approximate)
    pair = [at_delta.probabilities(v) for v in at_delta.worst_case()]
    limit = at_delta.loss.epsilon(1e-4).upper
    assert max(divergence(*pair, limit), divergence(*pair[::-1], limit)) <= 1e-4
    alpha = 8
    of_order = PrivateSelection(base=base, stop=0.1, shape=shape, alpha=alpha)
    for first, second in (pair, pair[::-1]):
        p, q = (dict(zip(law.outcomes, law.masses, strict=True)) for law in (first, second))
        moment = sum(m**alpha * q[o] ** (1 - alpha) for o, m in p.items() if q.get(o, 0) > 1e-15)
        assert math.log(moment) / (alpha - 1) <= of_order.loss.renyi(alpha).upper


def test_it_selects_a_candidate_with_its_score() -> None:
    mechanism = PrivateSelection(base=BASE, stop=0.01)
    found = [mechanism.release([0, 10_000], candidates=["a", "b"]) for _ in range(60)]
    right = [f for f in found if f.columns["choice"] == ("b",)]
    # All runs miss the best candidate with probability 1/101, so 20 of 60 do with one below 1e-20.
    assert len(right) > 40
    assert all(abs(f.columns["score"][0] - 10_000) < 200 for f in right)
    assert found[0].confidence is None
    assert found[0].receipt.numerics == BASE.numerics


def test_several_candidates_have_the_closed_law() -> None:
    mechanism = PrivateSelection(base=BASE, stop=0.3, shape=0)
    values = [0, 1, 1]
    # A false alarm has probability at most 1e-7.
    assert chi_square(mechanism.sample(values, 20_000), mechanism.probabilities(values)) > ALARM


def test_calibration_keeps_the_promise() -> None:
    found = PrivateSelection.calibrate(
        epsilon=1, base=lambda scale: Laplace(scale=scale, sensitivity=1, grid=Grid(0)), stop=0.1
    )
    assert 0.999 < found.loss.epsilon(0).upper <= 1
    assert 2 < found.base.scale < 3
    found = PrivateSelection.calibrate(
        epsilon=1, delta=1e-6, base=lambda scale: Gaussian(scale=scale, sensitivity=1), stop=0.1
    )
    assert 0.999 < found.loss.epsilon(1e-6).upper <= 1


def test_bases_without_a_guarantee_are_refused_with_a_remedy_that_works() -> None:
    base = Gaussian(scale=4, sensitivity=1)
    with pytest.raises(NotSound) as refusal:
        PrivateSelection(base=base, stop=0.1)
    assert "delta above 0, or a Rényi order alpha" in refusal.value.remedy
    assert PrivateSelection(base=base, stop=0.1, delta=1e-6).loss.epsilon(1e-6).upper < math.inf
    assert PrivateSelection(base=base, stop=0.1, alpha=10).loss.renyi(10).upper < math.inf
    with pytest.raises(NotSound):
        price(Approximate(1, delta=1e-6), Repetition(Fraction(1, 10), Fraction(1)), Fraction(0), Fraction(8))


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *[("stop", bad) for bad in (0, 1, -0.5, math.nan, math.inf)],
        *[("shape", bad) for bad in (-1, 1.5, math.nan)],
        *[("delta", bad) for bad in (1, -0.1, math.nan)],
        *[("alpha", bad) for bad in (1, 0.5, math.nan)],
        ("base", 3),
    ],
)
def test_bad_parameters_are_refused_by_name(name: str, bad: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name} must be"):
        PrivateSelection(**({"base": BASE, "stop": 0.1} | {name: bad}))


def test_odd_values() -> None:
    real = PrivateSelection(base=Laplace(scale=1, sensitivity=1), stop=0.5)
    assert np.isfinite(real.release([math.nan, math.inf, -math.inf, 1e300]).columns["score"][0])
    for bad in ([], 3.0, "ab"):
        with pytest.raises(InvalidArgument, match=r"^value must be"):
            real.release(bad)
    with pytest.raises(InvalidArgument, match="release a number"):
        real.release([[1.0, 2.0]])
    index = PrivateSelection(base=Exponential(scale=1, sensitivity=1), stop=0.5)
    assert index.release([[0.0, 900.0]]).columns["score"] == (1.0,)


def test_a_loss_is_stated_at_a_delta_or_of_an_order() -> None:
    with pytest.raises(InvalidArgument, match="alpha and delta"):
        PrivateSelection(base=BASE, stop=0.1, delta=1e-6, alpha=8)


@pytest.mark.parametrize(
    "base",
    [
        SampleAndAggregate.calibrate(epsilon=1, blocks=5, lower=0, upper=1),
        SparseVector.calibrate(epsilon=1, sensitivity=1),
        NoisyThreshold.calibrate(epsilon=1, delta=1e-6),
        PrivateSelection(base=BASE, stop=0.1),
    ],
)
def test_bases_whose_draws_depend_on_how_many_data_there_are_are_refused(base: Mechanism) -> None:
    with pytest.raises(InvalidArgument, match=r"^base must be") as refusal:
        PrivateSelection(base=base, stop=0.1, delta=1e-3)
    assert "Laplace" in refusal.value.remedy


def test_a_candidate_is_refused_whether_it_is_drawn_or_not() -> None:
    mechanism = PrivateSelection(base=Laplace(scale=1, sensitivity=1), stop=0.99)
    for _ in range(40):
        with pytest.raises(InvalidArgument, match="release a number"):
            mechanism.release([0.0, 1.0, [1.0, 2.0]])
    reports = PrivateSelection(base=RandomizedResponse(randomize=0.5), stop=0.99)
    assert reports.release([1]).columns["score"][0] in (0.0, 1.0)
    with pytest.raises(InvalidArgument, match="release a number"):
        reports.release([np.array([0, 1])])


@pytest.mark.parametrize("mean", [Fraction(1, 3), Fraction(5, 2), Fraction(4)])
def test_a_poisson_number_of_runs_has_its_law(mean: Fraction) -> None:
    runs = PoissonRuns(mean)
    law = Law(tuple(range(60)), poisson.pmf(np.arange(60), float(mean)))
    # A false alarm has probability at most 1e-7.
    assert chi_square(runs.draw(20_000), law) > ALARM
    masses = np.array([0.5, 0.2, 0.25, 0.05])
    under = sum(poisson.pmf(k, float(mean)) * np.cumsum(masses) ** k for k in range(60))
    assert runs.greatest(masses) == pytest.approx(np.diff(under, prepend=runs.none), rel=1e-9)
    assert runs.none + runs.greatest(masses).sum() == pytest.approx(1)


@pytest.mark.parametrize("mean", [Fraction(1, 2), Fraction(3), Fraction(20)])
def test_no_base_beats_the_price_of_poisson_runs(mean: Fraction) -> None:
    """Bases of losses ±ε on six outcomes, by the exact law of the best run: pure, and of two orders."""
    runs, grown = PoissonRuns(mean), math.exp(0.4)
    claim = price(Pure(0.4), runs, Fraction(0), None).epsilon(0).upper
    assert claim == pytest.approx(0.4 + float(mean) * math.tanh(0.2))
    orders = {
        alpha: price(Pure(0.4), runs, Fraction(0), Fraction(alpha)).renyi(alpha).upper for alpha in (2, 5)
    }
    source = np.random.default_rng(5)
    for _ in range(100):
        sign = source.permutation([1.0] * 3 + [-1.0] * 3)
        up, down = (source.dirichlet(np.full(3, 0.4)) + 1e-9 for _ in range(2))
        q = np.empty(6)
        q[sign > 0], q[sign < 0] = up / up.sum() / (1 + grown), down / down.sum() * grown / (1 + grown)
        p = np.where(sign > 0, q * grown, q / grown)
        first, second = (np.append(runs.none, runs.greatest(side)) for side in (p, q))
        assert np.abs(np.log(first / second)).max() <= claim + 1e-9
        for alpha, limit in orders.items():
            assert math.log(np.sum(first**alpha * second ** (1 - alpha))) / (alpha - 1) <= limit + 1e-9


def test_the_order_of_poisson_runs_is_that_of_the_paper() -> None:
    """Papernot and Steinke 2022: D⁰ + μδ̂ + log(μ)/(α − 1) for δ̂ = δ₀(log(1 + 1/(α − 1)))."""
    base, alpha, mean = Gaussian(scale=20, sensitivity=1), 8, 15
    found = PrivateSelection(base=base, mean=mean, alpha=alpha).loss.renyi(alpha).upper
    failure = base.loss.delta(math.log(8 / 7)).upper
    paper = base.loss.renyi(alpha).upper + mean * failure + math.log(mean) / 7
    assert paper < found < paper + 1e-6
    assert found < PrivateSelection(base=base, stop=1 / mean, alpha=alpha).loss.renyi(alpha).upper


def test_gaussian_bases_of_poisson_runs() -> None:
    base = Gaussian(scale=4, sensitivity=1, grid=Grid(-3))
    for alpha in (2, 8):
        mechanism = PrivateSelection(base=base, mean=6, alpha=alpha)
        check_json(mechanism)
        first, second = (mechanism.probabilities(v) for v in mechanism.worst_case())
        p, q = (dict(zip(law.outcomes, law.masses, strict=True)) for law in (first, second))
        moment = sum(m**alpha * q[o] ** (1 - alpha) for o, m in p.items() if q.get(o, 0) > 1e-15)
        assert math.log(moment) / (alpha - 1) <= mechanism.loss.renyi(alpha).upper
    at_delta = PrivateSelection(base=base, mean=2, delta=1e-4)
    limit = at_delta.loss.epsilon(1e-4).upper
    assert max(divergence(first, second, limit), divergence(second, first, limit)) <= 1e-4


def test_without_a_run_nothing_is_released() -> None:
    mechanism = PrivateSelection(base=BASE, mean=0.001)
    # All of 5 releases have a run with probability 1e-15.
    empty = next(f for f in (mechanism.release([0, 1]) for _ in range(5)) if f.value is None)
    assert empty.columns == {"choice": (None,), "score": (None,)}
    assert mechanism.sample([0], 0).shape == (0, 2)


def test_the_number_of_runs_is_said_one_way() -> None:
    for given in ({}, {"stop": 0.1, "mean": 3}, {"mean": 3, "shape": 0}):
        with pytest.raises(InvalidArgument, match="Either stop"):
            PrivateSelection(base=BASE, **given)
    for bad in (0, -1, math.nan, math.inf, 10**6):
        with pytest.raises(InvalidArgument, match=r"^mean must be"):
            PrivateSelection(base=BASE, mean=bad)
    found = PrivateSelection.calibrate(
        epsilon=1, base=lambda scale: Laplace(scale=scale, sensitivity=1, grid=Grid(0)), mean=2
    )
    assert 0.999 < found.loss.epsilon(0).upper <= 1
