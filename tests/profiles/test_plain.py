"""Contours without cutoffs: bounds against balls, readings against the other routes."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import acb, arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.losses import Approximate, Gaussian, Laplace, Loss, Pure, RandomizedResponse, compose
from dalenius.losses.laplace import LaplacePair
from dalenius.losses.pure import four_points
from dalenius.losses.routes import profiles
from dalenius.profiles.discrete import discrete_profile
from dalenius.profiles.mixture_profile import MixtureProfile
from dalenius.profiles.nodes import Part
from dalenius.profiles.pair import Transformed
from dalenius.profiles.plain import Plain, short
from dalenius.profiles.plan import Sketch
from dalenius.profiles.reading import read_at
from dalenius.profiles.rows import Rows, Table, Tilted

parts = st.builds(
    lambda q, a, n: Part((1 - q, q), (0.0, a), n),
    st.floats(1e-4, 0.9),
    st.floats(0.05, 2.0),
    st.integers(1, 100),
)
exponents = st.one_of(st.floats(1.01, 6.0), st.floats(-5.0, -0.01))


def moment(part: Part, z: acb) -> acb:
    """∫ φ w^z by a fine midpoint rule in balls: analytic in a strip, so its error is below e^{−100}."""
    step, total = arb("0.0625"), acb(0)
    q, a = (arb(v) for v in (part.weights[1], part.shifts[1]))
    reach = 14 + int(8 * part.shifts[1])
    for j in range(-14 * 16, reach * 16):
        x = step * (2 * j + 1) / 2
        log = (q * (a * x - a * a / 2).expm1()).log1p()
        total += (acb(log) * z - acb(x * x / 2)).exp()
    return total * step / (2 * arb.pi()).sqrt()


def table(part: Part, step: float) -> Table:
    reach = 12 + 8 * part.shifts[1]
    return Table(Rows.of([part]), step, -math.ceil(11 / step), math.ceil(reach / step))


@settings(max_examples=30, deadline=None)
@given(parts, exponents, st.floats(0.0, 8.0), st.sampled_from([0.125, 0.4375, 0.875]))
def test_moments_ratios_and_decay_hold_in_balls(part: Part, s: float, y: float, step: float) -> None:
    tilted = Tilted(table(part, step), s)
    with flint.ctx.workprec(120):
        real = moment(part, acb(arb(s)))
        log = float(real.real.log().mid())
        value, error = (float(v[0, 0]) for v in tilted.log_moment)
        assert abs(value - log) <= error + 1e-25
        turned = moment(part, acb(arb(s), arb(y)))
        ratio = complex((turned / real - 1).mid())
        found, off = tilted.ratios(1, y / 3, 4)
        assert abs(complex(found[0, 3]) - ratio) <= float(off[0, 3]) + 1e-25
        theta = np.array([[0.5 * math.pi / 2 / part.shifts[1]]])
        bound = float(tilted.log_decay(np.array([y]), theta)[0, 0])
        for more in (1.0, 1.3, 2.0):
            beyond = moment(part, acb(arb(s), arb(y * more)))
            assert float(abs(beyond).log().mid()) <= bound + 1e-12


@settings(max_examples=30, deadline=None)
@given(st.lists(parts, min_size=1, max_size=4), st.sampled_from([1, -1]), st.floats(0.0, 4.0))
def test_agrees_with_cutoffs(mixtures: list[Part], sign: int, squared: float) -> None:
    delta = 1e-7
    found = Plain(tuple(mixtures), sign, squared).at_delta(delta)
    if found is None:
        return
    epsilon, reading = found
    sketch = Sketch(tuple(mixtures), sign, math.log(delta), squared)
    other = read_at(sketch, epsilon)
    if other is None:
        return
    (low, high), (below, above) = reading.read(epsilon), other.read(epsilon)
    assert low <= above
    assert below <= high


MIXED: dict[str, list[Loss]] = {
    "Gaussian and Laplace": [Gaussian(2), Laplace(3)],
    "subsampled and Laplace": [Gaussian(1).poisson(0.1) * 40, Laplace(8) * 5],
    "with a chance of failure": [Gaussian(3), Approximate(0.3, delta=1e-7) * 3],
    "with reports": [Gaussian(4) * 3, RandomizedResponse(0.7, categories=4) * 2, Pure(0.2)],
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_compositions_agree_with_the_lattice(name: str) -> None:
    loss = compose(MIXED[name])
    for profile, worst in zip(profiles(loss), loss.directions() or (), strict=True):
        assert isinstance(profile, MixtureProfile)
        for delta in (1e-3, 1e-5):
            low, high = profile.epsilon(delta)
            below, above = discrete_profile(worst).epsilon(delta)
            assert max(low, below) <= min(high, above)
            assert high - low <= 1e-8 * high


@pytest.mark.parametrize(
    "pair", [LaplacePair(Fraction(1, 3)), four_points(Fraction(1, 5), Fraction(1, 1000))]
)
def test_transforms_hold_in_balls(pair: Transformed) -> None:
    randomness = random.Random(5)
    for _ in range(200):
        c, y = 10 ** randomness.uniform(-3, 1.5), randomness.uniform(0, 60)
        value, error = pair.transform(np.array([complex(c, y)]))
        with flint.ctx.workprec(200):
            z, e = acb(arb(c), arb(y)), arb(1) / (3 if isinstance(pair, LaplacePair) else 5)
            if isinstance(pair, LaplacePair):
                truth = ((1 + z) * (z * e).exp() + z * (-(1 + z) * e).exp()) / (1 + 2 * z)
            else:
                high, low = 1 / (1 + (-e).exp()), 1 / (1 + e.exp())
                truth = (1 - arb(1) / 1000) * (high * (z * e).exp() + low * (-z * e).exp())
            assert abs(complex(value[0]) - complex(truth.mid())) <= float(error[0]) + 1e-30
            bound = pair.log_beyond(c, np.array([y * 0.7]))
            assert float(abs(truth).log().mid()) <= float(bound[0])


def test_a_thousand_different_releases_are_certified() -> None:
    losses = [
        (
            Gaussian(40 + i / 10),
            Laplace(40 + i / 10),
            Gaussian(2 + i / 250).poisson(Fraction(200 + i, 100_000)),
        )[i % 3]
        for i in range(1000)
    ]
    found = compose(losses).epsilon(delta=1e-5)
    assert found.upper - found.lower <= 1e-8 * found.upper
    assert found.lower <= 1.32507653823 <= found.upper


def test_short_steps_have_exact_multiples() -> None:
    for value in (0.3, 0.24999, 1.0, 3.14159, 1e-3):
        step = short(value)
        assert value * 15 / 16 <= step * (1 + 1e-15)
        assert step <= value
        mantissa, _ = math.frexp(step)
        assert mantissa * 16 == round(mantissa * 16)
