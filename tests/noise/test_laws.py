"""What a table is told about a law: balls, doubles within their stated error, and steps that halve."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from dalenius.noise.counts import Binomial, Skellam
from dalenius.noise.exponential import Geometric, Laplace
from dalenius.noise.gaussian import DiscreteGaussian, RoundedGaussian
from dalenius.noise.law import Law, exponentials

SCALES = st.one_of(
    st.fractions(Fraction(1, 1000), 100),
    st.integers(1, 2**50).map(Fraction),
    st.sampled_from([Fraction(1, 10**400), Fraction(10**400 + 1, 10**400), Fraction(1, 7)]),
)
LAWS = st.one_of(
    st.builds(Laplace, SCALES),
    st.builds(DiscreteGaussian, SCALES),
    st.builds(RoundedGaussian, SCALES),
    st.builds(
        Geometric, st.fractions(Fraction(1, 2**50), Fraction(2**60 - 1, 2**60)).filter(lambda p: p > 0)
    ),
    st.builds(Geometric, st.just(1 - Fraction(1, 10**400))),
)


@given(law=LAWS, spreads=st.lists(st.floats(0, 60), min_size=1, max_size=20))
def test_an_estimate_is_within_its_error(law: Law, spreads: list[float]) -> None:
    k = np.array([round(x * max(law.spread, 1)) for x in spreads])
    with np.errstate(all="ignore"):
        value, off = law.estimate(k)
    with flint.ctx.workprec(400):
        for at, middle, error in zip(k.tolist(), value.tolist(), off.tolist(), strict=True):
            assert not np.isfinite(error) or abs(law.weight(at) - middle) <= error


@given(law=LAWS, near=st.floats(0, 30), far=st.floats(0.01, 5), away=st.sampled_from([1, -1]))
def test_weights_drop_as_far_as_is_said(law: Law, near: float, far: float, away: int) -> None:
    away = 1 if law.one_sided else away
    k = away * round(near * max(law.spread, 1)) - (away < 0)
    step = away * max(1, round(far * law.spread))
    with flint.ctx.workprec(400):
        assert not law.weight(k + step) > (-law.drop(k, step)).exp() * law.weight(k)


@given(law=LAWS, near=st.floats(0, 20))
def test_weights_are_log_concave(law: Law, near: float) -> None:
    k = 1 + round(near * max(law.spread, 1))
    with flint.ctx.workprec(600):
        assert not law.weight(k) ** 2 < law.weight(k - 1) * law.weight(k + 1)


@given(st.lists(st.floats(0, 800), min_size=1, max_size=50))
def test_the_exponential_of_doubles_is_as_good_as_stated(x: list[float]) -> None:
    """At exact arguments it must leave room for eight roundings of them: 2^−50, and 2^−300 far out."""
    value, _ = exponentials(np.array(x))
    with flint.ctx.workprec(200):
        for at, found in zip(x, value.tolist(), strict=True):
            truth = (-arb(at)).exp()
            assert abs(truth - found) <= truth * 2.0**-50 + arb(2) ** -900


@pytest.mark.parametrize("k", [0, 1, 7, 40])
def test_weights_against_other_libraries(k: int) -> None:
    """scipy's ndtr, ive and binom."""
    rounded = RoundedGaussian(Fraction(3))
    truth = special.ndtr((k + 0.5) / 3) - special.ndtr((k - 0.5) / 3)
    assert float(rounded.weight(k)) == pytest.approx(3 * np.sqrt(2 * np.pi) * truth, rel=1e-9, abs=1e-15)
    assert float(Skellam(Fraction(9)).weight(-k)) == pytest.approx(special.ive(k, 9), rel=1e-12)
    binomial = Binomial(50, Fraction(1, 5))
    assert binomial.mode == 10
    at = special.binom(50, 10 + k) * 0.2 ** (10 + k) * 0.8 ** (40 - k)
    assert float(binomial.weight(k)) == pytest.approx(at, rel=1e-12)
    assert binomial.weight(41) == binomial.weight(-11) == 0
