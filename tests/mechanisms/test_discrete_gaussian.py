from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from contract import ALARM, check_error

from dalenius.audits import audit
from dalenius.errors import InvalidArgument
from dalenius.losses import Composition, ZeroConcentrated
from dalenius.losses import DiscreteGaussian as Scalar
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity


def test_the_claim_for_vectors_withstands_an_attack() -> None:
    """False-alarm rate 1e-7."""
    mechanism = DiscreteGaussian(scale=1, sensitivity=Sensitivity(l0=2, linf=1))
    assert [np.size(value) for value in mechanism.worst_case()] == [2, 2]
    assert audit(mechanism, trials=40_000, confidence=1 - ALARM).holds
    check_error(mechanism)


def hockey(scale: float, shift: tuple[int, ...], epsilon: float) -> float:
    """Σ (p − e^ε q)₊ over the lattice, written out."""
    reach = math.ceil(9 * scale) + max(shift)
    masses = [math.exp(-0.5 * (k / scale) ** 2) for k in range(-reach, reach + 1)]
    total = math.fsum(masses)
    log = [math.log(mass / total) for mass in masses]
    entries = []
    for d in shift:
        low = range(d, len(log))
        entries.append((np.array([log[i] for i in low]), np.array([log[i - d] for i in low])))
    p, q = entries[0]
    for more in entries[1:]:
        p, q = (np.add.outer(a, b).ravel() for a, b in zip((p, q), more, strict=True))
    return float(np.maximum(np.exp(p) - math.exp(epsilon) * np.exp(q), 0.0).sum())


@pytest.mark.parametrize("bound", [Sensitivity(l2=2), Sensitivity(l1=2), Sensitivity(l0=3, l2=1.8)])
def test_no_vector_within_the_bound_costs_more_than_the_loss(bound: Sensitivity) -> None:
    loss = DiscreteGaussian(scale=1.25, sensitivity=bound).loss
    for shift in itertools.product(range(3), repeat=4):
        entries = tuple(d for d in sorted(shift, reverse=True) if d)
        norms = (len(entries), sum(entries), math.hypot(*entries))
        limits = (bound.l0, bound.l1, bound.need("l2"))
        if not entries or any(m is not None and n > m + 1e-9 for n, m in zip(norms, limits, strict=True)):
            continue
        for epsilon in (0.0, 1.0, 3.0):
            assert hockey(1.25, entries, epsilon) <= loss.delta(epsilon).upper + 1e-12


def test_a_histogram_is_charged_exactly_and_a_ball_by_its_norm() -> None:
    """Canonne, Kamath and Steinke 2020: ρ = Δ²/(2σ²)."""
    histogram = DiscreteGaussian(scale=4, sensitivity=Sensitivity(l0=9, linf=1)).loss
    assert histogram == Scalar(4) * 9
    ball = DiscreteGaussian(scale=4, sensitivity=Sensitivity(l2=3)).loss
    assert ball == ZeroConcentrated(9 / 32)
    assert histogram.epsilon(1e-5).upper < ball.epsilon(1e-5).upper
    swapped = Sensitivity.of_sum(l0=1, linf=1, nonnegative=True, relation="replace")
    assert DiscreteGaussian(scale=4, sensitivity=swapped).loss == Scalar(4, relation="replace") * 2
    assert isinstance(
        DiscreteGaussian(scale=4, sensitivity=Sensitivity(l1=2)).loss, Composition | ZeroConcentrated
    )


@pytest.mark.parametrize("bound", [1, 3, Sensitivity(l0=9, linf=1), Sensitivity(l2=5)])
def test_calibration_keeps_the_promise_and_little_less_does_not(bound: Sensitivity | int) -> None:
    found = DiscreteGaussian.calibrate(epsilon=1, delta=1e-5, sensitivity=bound)
    assert found.loss.epsilon(1e-5).upper <= 1
    assert DiscreteGaussian(scale=found.scale * 0.999, sensitivity=bound).loss.delta(1).upper > 1e-5


def test_it_does_not_share_the_figure_of_the_continuous_gaussian() -> None:
    assert DiscreteGaussian(scale=3.7306, sensitivity=1).loss.delta(1).lower == pytest.approx(
        1.0346e-5, rel=1e-4
    )
    assert float(DiscreteGaussian.calibrate(epsilon=1, delta=1e-5, sensitivity=1).scale) > 3.7306316348


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.9, 4.0, 60.0, 5000.0])
def test_tails_are_those_of_the_law_and_not_below(scale: float) -> None:
    mechanism = DiscreteGaussian(scale=scale, sensitivity=1)
    reach = mechanism.reach(Fraction(1, 20))
    masses = mechanism.masses(np.arange(-math.ceil(12 * scale) - 1, math.ceil(12 * scale) + 2))
    assert math.fsum(masses) == pytest.approx(1, abs=1e-12)
    beyond = 1 - math.fsum(mechanism.masses(np.arange(-reach, reach + 1)))
    assert beyond <= mechanism.beyond(reach) <= 0.05
    assert mechanism.beyond(reach) == pytest.approx(beyond, rel=1e-3)


def test_floats_are_rounded_onto_a_fine_grid_and_charged() -> None:
    mechanism = DiscreteGaussian(scale=2, sensitivity=Sensitivity(l0=1, linf=1), exact=False)
    assert mechanism.step == 1 / 64
    assert mechanism.loss == Scalar(128, sensitivity=64)
    found = mechanism.release(np.array([np.nan, np.inf, -np.inf, 1e300, 0.5]), name="x")
    assert np.isfinite(found["x"]).all()
    assert (
        len(DiscreteGaussian(scale=1, sensitivity=Sensitivity(l0=1, linf=1)).release(np.array([], dtype=int)))
        == 0
    )
    with pytest.raises(InvalidArgument):
        DiscreteGaussian(scale=2, sensitivity=1).release(0.5)


@pytest.mark.parametrize(
    ("scale", "sensitivity"),
    [(0, 1), (-1, 1), (1, 0), (float("inf"), 1), (1, float("inf")), (float("nan"), 1), (1, 0.5)],
)
def test_bad_parameters_are_refused(scale: float, sensitivity: float) -> None:
    with pytest.raises(InvalidArgument):
        DiscreteGaussian(scale=scale, sensitivity=sensitivity, grid=Grid(0))
    with pytest.raises(InvalidArgument):
        DiscreteGaussian.calibrate(epsilon=scale, delta=0, sensitivity=sensitivity)
