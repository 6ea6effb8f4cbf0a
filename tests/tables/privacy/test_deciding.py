"""What decisions on keys may cost: within the promise by the loss's own evaluation, and hardly below it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dalenius.losses import Gaussian
from dalenius.tables.deciding import decision_epsilon, together


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3), Fraction(1, 10)])
@pytest.mark.parametrize("decisions", [1, 2, 8])
@pytest.mark.parametrize("delta", [Fraction(1, 10**9), Fraction(1, 100)])
def test_decisions_fill_what_noise_leaves(epsilon: Fraction, decisions: int, delta: Fraction) -> None:
    noise = Gaussian(Gaussian.calibrate(epsilon=epsilon, delta=delta).noise_multiplier * Fraction(118, 100))
    failure = delta / 1000 / decisions
    each = decision_epsilon(noise, failure, decisions, epsilon=epsilon, delta=delta)
    assert together(noise, each, failure, decisions).epsilon(delta).upper <= epsilon
    more = each * (1 + Fraction(1, 10**5))
    assert together(noise, more, failure, decisions).epsilon(delta).lower > epsilon
