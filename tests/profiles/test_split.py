"""Bulk and jumps read apart, against a recursion that shares nothing with contours.

δ_T(ε) = E δ_{T−1}(ε − L) with positive terms only, in 80-bit arithmetic, by Chebyshev interpolation and
tanh-sinh quadrature; two resolutions agreed to 1e-16 on every row.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dalenius.losses import Gaussian
from dalenius.losses.routes import profiles
from dalenius.profiles.mixture_profile import MixtureProfile
from dalenius.profiles.plan import Sketch
from dalenius.profiles.reading import read_at

ROWS = [
    # rate, noise multiplier, steps, ε, δ of removing a unit
    ("7.264e-05", "1.742", 3, 0.001299, 1.6892448202558163e-11),
    ("1.208e-04", "0.501", 3, 2.444, 1.3345040830406143e-10),
    ("2.158e-03", "0.517", 3, 16.28, 1.9364788382730452e-25),
    ("3.118e-03", "0.761", 5, 4.153, 7.1436057471260244e-15),
    ("1.257e-03", "0.942", 5, 1.167, 3.2124329730893711e-14),
    ("6.466e-06", "0.807", 10, 8.173e-05, 1.8388699619311019e-06),
    ("4.459e-06", "0.894", 3, 0.128, 3.0830312261273383e-24),
]


@pytest.mark.parametrize("row", ROWS)
def test_split_readings_hold(row: tuple[str, str, int, float, float]) -> None:
    rate, noise, steps, epsilon, truth = row
    loss = Gaussian(Fraction(noise)).poisson(Fraction(rate)) * steps
    profile = profiles(loss)[0]
    assert isinstance(profile, MixtureProfile)
    reading = read_at(Sketch(profile.parts, 1, math.log(truth)), epsilon)
    assert reading is not None
    assert reading.lower is not None
    low, high = reading.read(epsilon)
    assert low * (1 - 1e-14) <= truth <= high * (1 + 1e-14)
    assert high - low < 1e-6 * high
    (below, above) = profile.epsilon(truth)
    assert below * (1 - 1e-9) <= epsilon <= above * (1 + 1e-9)


def test_a_proof_of_a_split_reading_is_as_narrow() -> None:
    loss = Gaussian(Fraction("0.502")).poisson(Fraction("0.00112")) * 3
    proved, plain = (loss.epsilon(delta=3.95e-15, proof=proof) for proof in (True, False))
    assert max(proved.lower, plain.lower) <= min(proved.upper, plain.upper)
    assert proved.width < 1e-6 * proved.upper
