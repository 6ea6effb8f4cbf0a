from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses.concentrated import Renyi, ZeroConcentrated
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.raw import DiscretePair
from dalenius.losses.selection import PoissonSelected, Selected, selected
from dalenius.losses.selection.thresholds import noisy_max, sparse_vector, thresholdout
from dalenius.profiles import dots


def best_law(masses, stop=None, shape=1.0, mean=None):
    """The law of the best run by summation over K; outcomes from worst to best, then nothing."""
    head = np.cumsum(masses)
    if mean is not None:
        weights = [math.exp(-mean)]
        for k in range(1, 200):
            weights.append(weights[-1] * mean / k)
    else:
        weights = [0.0, 1.0]
        for k in range(1, 2000):
            weights.append(weights[-1] * (1 - stop) * (k + shape) / (k + 1))
    weights = np.array(weights) / sum(weights)
    under = sum(w * head**k for k, w in enumerate(weights) if k)
    return np.append(np.diff(under, prepend=0.0), weights[0])


@pytest.mark.parametrize("law", [{"stop": 0.2}, {"stop": 0.1, "shape": 0}, {"mean": 3}, {"mean": 0.5}])
def test_the_exact_law_of_the_best_run_is_dominated(law):
    """Every order of three outcomes: profile and divergences of the best run by enumeration."""
    p, q = (Fraction(1, 8), Fraction(3, 8), Fraction(1, 2)), (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
    loss = selected(DiscretePair(p, q), **law)
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        first, second = (best_law([float(side[i]) for i in order], **law) for side in (p, q))
        for a, b in ((first, second), (second, first)):
            for epsilon in (0.0, 0.4, 0.9, 1.5):
                truth = np.maximum(a - math.exp(epsilon) * b, 0).sum()
                assert truth <= loss.delta(epsilon).upper + 1e-12
            there = b > 0
            for alpha in (1.5, 2, 8):
                truth = math.log(np.sum(a[there] ** alpha * b[there] ** (1 - alpha))) / (alpha - 1)
                assert truth <= loss.renyi(alpha).upper + 1e-12


@pytest.mark.parametrize("law", [{"stop": 0.3}, {"stop": 0.1, "shape": -0.5}, {"mean": 0.5}, {"mean": 3}])
def test_two_best_runs_together_are_dominated(law):
    """Every order of three outcomes, one of them possible on one side only: the product by enumeration."""
    p, q = (Fraction(1, 8), Fraction(7, 8), Fraction(0)), (Fraction(5, 32), Fraction(13, 16), Fraction(1, 32))
    loss = selected(DiscretePair(p, q), **law)
    for order in permutations(range(3)):
        first, second = (best_law([float(side[i]) for i in order], **law) for side in (p, q))
        for a, b in ((first, second), (second, first)):
            pairs = ((loss, a, b), (loss * 2, np.outer(a, a), np.outer(b, b)))
            for stated, above, below in pairs:
                for epsilon in (0.0, 0.05, 0.2, 0.6, 1.2):
                    truth = np.maximum(above - math.exp(epsilon) * below, 0).sum()
                    assert truth <= stated.delta(epsilon).upper + 1e-12


@pytest.mark.parametrize(
    ("base", "law", "count", "epsilon", "most"),
    [
        # By a hull of 5,000 points and plain convolution: 8.0e-4 and 0.020.
        (Gaussian(20), {"stop": 0.05}, 10, 2, 8.05e-4),
        (Gaussian(5), {"stop": 0.3}, 2, 1, 0.0201),
        # Below c, where the theorem alone says nothing.
        (Gaussian(20), {"stop": 0.05}, 1, 0, 0.116),
    ],
)
def test_selections_compose_by_a_convex_profile(base, law, count, epsilon, most):
    assert (selected(base, **law) * count).delta(epsilon).upper <= most


def test_a_pure_selection_composes_as_its_size_says():
    loss = selected(Pure(0.5), stop=0.1)
    size = Pure(loss.epsilon(0).upper)
    for epsilon in (0.5, 1.5, 3):
        assert (loss * 3).delta(epsilon).upper <= (size * 3).delta(epsilon).upper * (1 + 1e-6)


@pytest.mark.parametrize("law", [{"stop": 0.05}, {"stop": 0.5, "shape": -0.5}, {"mean": 0.5}, {"mean": 15}])
def test_the_pair_of_a_best_run_has_the_mass_of_one(law):
    for base in (Gaussian(20), Gaussian(1), Pure(0.2), Laplace(1).poisson(0.1)):
        ((pair, _),) = selected(base, **law).directions()[0]
        found = dots.law(pair, dots.Mesh(0.01, 400, 400, 1e-30))
        assert float(found.masses.sum()) + found.infinite[1] == pytest.approx(1, abs=1e-9)
        epsilon = np.linspace(-3, 3, 601)
        many = pair.hockey(epsilon)[1]
        few = np.concatenate([pair.hockey(epsilon[k : k + 1])[1] for k in range(0, 601, 40)])
        assert (few <= many[::40] * 1.2 + 1e-15).all()
        slopes = np.diff(many) / np.diff(np.exp(epsilon))
        assert (np.diff(slopes) >= -1e-10).all()


@pytest.mark.parametrize(("shape", "factor"), [(1, 3), (0, 2), (-0.5, 1.5)])
def test_a_pure_loss_grows_as_papernot_and_steinke_say(shape, factor):
    # Liu and Talwar 2019: 3ε for a geometric number; Papernot and Steinke 2022, Corollary 3: (2 + η)ε.
    for epsilon in (0.1, 0.5):
        found = selected(Pure(epsilon), stop=1e-6, shape=shape).epsilon(0).upper
        assert found <= factor * epsilon
        assert found == pytest.approx(factor * epsilon, rel=1e-4)


@pytest.mark.parametrize(("rho", "stop", "shape"), [(0.1, 0.05, 1), (0.01, 0.1, 0), (0.5, 0.01, -0.5)])
def test_concentrated_privacy_grows_as_papernot_and_steinke_say(rho, stop, shape):
    # Papernot and Steinke 2022, Corollary 4, as dp-accounting 0.6 tests it:
    # ρ(α − 1) + log E[K]/(α − 1) + 2(1 + η)√(ρ log(1/γ)) − ηρ.
    loss = selected(ZeroConcentrated(rho), stop=stop, shape=shape)
    runs = loss.runs.mean
    for alpha in (40, 100):
        paper = rho * (alpha - 1) + math.log(runs) / (alpha - 1)
        paper += 2 * (1 + shape) * math.sqrt(rho * math.log(1 / stop)) - shape * rho
        assert paper * (1 - 1e-12) <= loss.renyi(alpha).upper <= paper * 1.003


@pytest.mark.parametrize(("alpha", "peer"), [(1.5, 5.41797540220442), (2, 2.71055020110221)])
def test_poisson_runs_cost_what_dp_accounting_says(alpha, peer):
    # dp-accounting 0.6: RepeatAndSelectDpEvent(GaussianDpEvent(20), 15, inf), where no run costs nothing. A
    # divergence is no more than a later one, so the figure of this order alone is compared.
    loss = selected(Gaussian(20), mean=15)
    found = loss.runs.renyi(Gaussian(20), Fraction(alpha))
    assert peer < found < peer + 1e-6
    assert loss.renyi(alpha).upper < found


def test_no_figure_is_above_what_dp_accounting_says():
    # dp-accounting 0.6 at δ = 1e-6, by Rényi alone: 20 runs (geometric), 15 (Poisson) of GaussianDpEvent(20).
    for law, peer in (({"stop": 0.05}, 0.4885986373059751), ({"mean": 15}, 0.5864757972407753)):
        assert Gaussian(20).epsilon(1e-6).lower < selected(Gaussian(20), **law).epsilon(1e-6).upper < peer


def test_the_profile_is_that_of_the_theorem():
    # At δ = 1e-6: the ε of the base at δ/E[K], and 2τ: docs/mechanisms/private_selection.md has 0.3383.
    loss = selected(Gaussian(20), stop=0.05)
    assert loss.epsilon(1e-6).upper == pytest.approx(0.3383, abs=5e-5)
    assert loss.epsilon(1e-6).lower == Gaussian(20).epsilon(1e-6).lower
    assert not loss.epsilon(1e-6).tight


@pytest.mark.parametrize(
    ("base", "law"),
    [
        (Gaussian(5), {"stop": 0.1}),
        (Approximate(0.2, delta=1e-7), {"stop": 0.1, "shape": 0}),
        (Pure(0.1) * 4, {"mean": 4}),
    ],
)
def test_the_best_of_runs_is_a_loss_like_any_other(base, law):
    loss = selected(base, **law)
    assert Loss.from_json(loss.to_json()) == loss
    assert loss.delta(0.3).upper == Loss.from_json(loss.to_json()).delta(0.3).upper
    assert (loss + Gaussian(9)) == (Gaussian(9) + loss)
    once, twice = loss.epsilon(1e-4).upper, (loss * 2).epsilon(1e-4).upper
    assert once <= twice < math.inf
    assert loss.group(2) == selected(base.group(2), **law)
    assert loss.poisson(0.1).epsilon(1e-4).upper < once


@settings(max_examples=8, deadline=None)
@given(
    epsilon=st.floats(0.05, 2),
    stop=st.floats(0.001, 0.9),
    shape=st.sampled_from([-0.9, 0, 0.3, 1]),
    at=st.floats(0, 3),
)
def test_more_runs_never_cost_less_at_delta_zero(epsilon, stop, shape, at):
    loss, more = (selected(Pure(epsilon), stop=s, shape=shape) for s in (stop, stop / 2))
    assert loss.epsilon(0).upper <= more.epsilon(0).upper + 1e-9
    assert Pure(epsilon).epsilon(0).upper <= loss.epsilon(0).upper
    assert loss.delta(at).upper >= loss.delta(at + 0.1).upper


def test_the_number_of_runs_is_said_one_way_and_in_range():
    for given_ in ({}, {"stop": 0.1, "mean": 3}, {"mean": 3, "shape": 0}):
        with pytest.raises(InvalidArgument, match="Either stop"):
            selected(Pure(1), **given_)
    for name, law in (
        ("stop", {"stop": 1}),
        ("shape", {"stop": 0.1, "shape": 2}),
        ("shape", {"stop": 0.1, "shape": 1e-60}),
        ("mean", {"mean": 0}),
    ):
        with pytest.raises(InvalidArgument, match=f"^{name} must be"):
            selected(Pure(1), **law)
    with pytest.raises(InvalidArgument, match="loss must be a loss"):
        Selected(1, Fraction(1, 2))
    with pytest.raises(NotSound, match="Too little is known"):
        PoissonSelected(ZeroConcentrated(1, delta=0.1), Fraction(3))
    with pytest.raises(NotSound, match="Too little is known"):
        selected(DiscretePair([0, 1], [1, 0]), mean=0.5)
    with pytest.raises(RelationMismatch):
        selected(Pure(1, relation="replace"), mean=2) + Pure(1)


def test_a_loss_of_one_order_is_selected_up_to_that_order():
    loss = selected(Renyi(8, epsilon=0.1), stop=0.1)
    assert loss.renyi(8).upper < 1.5 and loss.renyi(9).upper == math.inf


def noisy_max_law(utilities, scale):
    """By numerical integration of the density of each candidate's noisy utility being the greatest."""
    x = np.linspace(-60, 60, 240_001)
    density = [np.exp(-np.abs(x - u) / scale) / (2 * scale) for u in utilities]
    heads = [
        np.where(x < u, np.exp((x - u) / scale) / 2, 1 - np.exp(-(x - u) / scale) / 2) for u in utilities
    ]
    wins = [d * np.prod(heads[:i] + heads[i + 1 :], axis=0) for i, d in enumerate(density)]
    return np.array([float(np.trapezoid(w, x)) for w in wins])


def test_noisy_max_is_dominated_by_one_number():
    loss = noisy_max(2, sensitivity=1)
    assert loss == Laplace(1) and noisy_max(2, monotone=True) == Laplace(2)
    for n in (1, 4, 8):
        first, second = (noisy_max_law([0.5] * n + [x], 2) for x in (0.5, 0.5))
        moved = noisy_max_law([1.5] * n + [-0.5], 2)
        for a, b in ((first, moved), (moved, second)):
            assert np.abs(np.log(a / b)).max() <= loss.epsilon(0).upper
            for epsilon in (0.0, 0.3, 0.7):
                assert np.maximum(a - math.exp(epsilon) * b, 0).sum() <= loss.delta(epsilon).upper + 1e-9
    # The ε of Dwork and Roth 2014, 2Δ/scale = 1, is nearly reached among many that tie.
    assert np.abs(np.log(first / moved)).max() > 0.98


def test_thresholds_cost_what_the_papers_say():
    # Lyu, Su and Li 2017: ε₁ + ε₂ with b₁ = Δ/ε₁ and b₂ = 2cΔ/ε₂, c = 3 yeses, ε₁ = 1/4, ε₂ = 3/4.
    assert sparse_vector(8, threshold_scale=4, count=3).epsilon(0).upper == 1
    assert sparse_vector(4, threshold_scale=4, count=3, monotone=True).epsilon(0).upper == 1
    # Dwork et al. 2015: 2B/(σn) in all; the library's own mechanism has the same at δ = 0.
    session = thresholdout(0.001, records=10_000, overfits=5)
    assert session.relation == "replace" and session.epsilon(0).upper == pytest.approx(1)
    with pytest.raises(NotSound, match="not monotone"):
        noisy_max(1, monotone=True, relation="replace")
    with pytest.raises(InvalidArgument, match="monotone must be"):
        noisy_max(1, monotone=1)
    with pytest.raises(InvalidArgument, match=r"^threshold_scale must be"):
        sparse_vector(1, threshold_scale=0)
