"""Where exponents run out of range: an answer may be wide, never false, and nothing is raised."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dalenius.losses import Gaussian, Laplace, Pure, compose
from dalenius.profiles.nodes import Part
from dalenius.profiles.rows import Rows, Table, Tilted


def test_moments_below_e_to_the_600_are_not_clipped() -> None:
    """log E w^{−870} for a half and half mixture 3 apart is 601.38474676, from ball arithmetic."""
    table = Table(Rows.of([Part((0.5, 0.5), (0.0, 3.0), 1)]), 2.0**-7, -45 * 128, 12 * 128)
    value, error = (float(v[0, 0]) for v in Tilted(table, -870.0).log_moment)
    assert abs(value - 601.38474676) <= error + 1e-8


def test_a_delta_that_underflows_is_not_zero() -> None:
    for times, epsilon in ((380, 950), (364, 910), (360, 900)):
        found = compose([Gaussian(1) * times, Laplace(1000)]).delta(epsilon=epsilon)
        assert found.upper > found.lower >= 0


def test_tiny_losses_are_answered() -> None:
    loss = compose([Pure(Fraction(1 + i, 10**7)) for i in range(5)])
    assert loss.epsilon(delta=1e-9).upper <= 15e-7
    assert loss.delta(epsilon=1e-7).upper <= 15e-7
    assert math.isfinite((Gaussian(2).poisson(Fraction(1, 10**170)) * 5).epsilon(delta=1e-9).upper)


def test_a_composition_far_beyond_its_loss_is_answered() -> None:
    loss = compose([Gaussian(20), Gaussian(20).poisson(Fraction(1, 100)) * 10])
    assert np.isfinite(loss.delta(epsilon=3).upper)
