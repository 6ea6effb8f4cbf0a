"""Filters whose poles are met exactly when halving: noise is there, of the right law, and floats are near."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import dalenius.noise.buffered as buffered
from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.streams import BufferedToeplitz
from dalenius.noise.buffered import Buffers, Running
from dalenius.noise.stream import StreamKey
from dalenius.streams import ContinualSum, DecayedSum, StreamQuantiles

ALARM = 1e-7
HALF = Fraction(1, 2)
PAIRS = [
    (0, "1/2"),
    (0, "1/4"),
    (0, "1/8"),
    ("1/3", "1/3"),
    ("1/2", "3/4"),
    ("1/3", "1/4"),
    ("1/3", "1/2"),
    (0, "3/4"),
    (0, 1),
]


def _filter(decay: str, scale: str, summed: bool = True) -> Buffers:
    return Buffers((Fraction(decay),), (Fraction(scale),), summed)


@pytest.mark.parametrize("summed", [True, False])
@pytest.mark.parametrize(("decay", "scale"), PAIRS)
def test_noise_has_the_variance_of_the_filter(decay: str, scale: str, summed: bool) -> None:
    buffers, width = _filter(decay, scale, summed), 4000
    drawn = Running(buffers, Fraction(50), StreamKey.fresh(), width).next()[:16].astype(float)
    sums = BufferedToeplitz(16, buffers.decays, buffers.scales).decoder_coefficients()
    weights = sums if summed else np.diff(sums, prepend=0)
    for step in range(16):
        variance = 2500 * (weights[: step + 1] ** 2).sum() + 1 / 12
        total = (drawn[step] ** 2).sum() / variance
        assert chi2.ppf(ALARM, width) < total < chi2.isf(ALARM, width)


@pytest.mark.parametrize("summed", [True, False])
@pytest.mark.parametrize(("decay", "scale"), PAIRS)
def test_floats_match_balls(decay: str, scale: str, summed: bool) -> None:
    buffers = _filter(decay, scale, summed)
    near, weights, off = buffers.floats
    with workprec(400):
        poles = buffers.poles(300)
        gains = buffers.gains(poles)
        assert float(poles[0].rad()) < 2.0**-250 and poles[0].overlaps(
            arb(Fraction(decay).numerator) / Fraction(decay).denominator
            - arb(Fraction(scale).numerator) / Fraction(scale).denominator
        )
        for pole, gain, m, g, far in zip(poles, gains, near, weights, off, strict=True):
            assert abs(pole - arb(float(m))) <= far
            assert abs(gain - arb(float(g))) <= 1.1 * 2.0**-53 * abs(gain)
    running = Running(buffers, Fraction(7, 3), StreamKey.fresh(), 1, 2)
    drawn = running.next()
    assert [running._exact(step, 0) for step in range(40)] == drawn[:40, 0].tolist()


def test_poles_next_to_decays_are_known_as_well() -> None:
    tiny = Fraction(1, 10**40)
    buffers = Buffers((Fraction(1, 3), Fraction(1, 2)), (Fraction(1, 4), tiny))
    with workprec(600):
        gains = buffers.gains(buffers.poles(200))
        assert all(gain.rad() <= 2.0**-60 * abs(gain) for gain in gains)
    assert np.all(buffers.floats[1] != 0)


def test_filters_that_floats_do_not_know_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Buffers.poles
    for wrong in (arb("nan"), arb(-0.5, 2.0**-50)):
        monkeypatch.setattr(Buffers, "poles", lambda self, bits, m=wrong: [m, *whole(self, bits)[1:]])
        with pytest.raises(InvalidArgument, match="too near"):
            _ = _filter("0", "1/2").floats
        with pytest.raises(InvalidArgument, match="too near"):
            ContinualSum(horizon=4, scale=5, decays=[0], scales=[HALF])
        with pytest.raises(InvalidArgument, match="too near"):
            DecayedSum(horizon=4, decay=HALF, scale=5, decays=[0], scales=[HALF])


def test_what_is_no_number_is_never_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (np.nan, np.inf, 1e200):
        running = Running(_filter("0", "1/2"), Fraction(5), StreamKey.fresh())
        running.gains = np.array([wrong, 1.0])
        with pytest.raises(NotSound):
            running.next()
    # A margin that is none leaves everything to balls.
    monkeypatch.setattr(buffered, "LEAST", 8)
    monkeypatch.setattr(buffered, "BLOCK", 8)
    running = Running(_filter("0", "1/2"), Fraction(5), StreamKey.fresh())
    monkeypatch.setattr(running, "_margin", lambda steps: float("nan"))
    assert running.next()[:, 0].tolist() == [running._exact(step, 0) for step in range(8)]
    assert running.settled == 8


@pytest.mark.parametrize("horizon", [1, 2])
def test_short_streams_have_their_noise(horizon: int) -> None:
    sums = ContinualSum.designed(horizon=horizon, scale=50)
    faded = DecayedSum.designed(horizon=horizon, decay=0.5, scale=50)
    for mechanism in (sums, faded):
        drawn = mechanism.sample([0] * horizon, 4000)[:, 0].astype(float)
        total = (drawn**2).sum() / (2500 + (1 / 12 if mechanism is sums else 0))
        assert chi2.ppf(ALARM, 4000) < total * (1 + 1e-6) and total < chi2.isf(ALARM, 4000)
    # Noise of deviation 10⁶ leaves four values the data with probability 10⁻²⁵.
    wide = ContinualSum.designed(horizon=horizon, scale=10**6)
    assert {wide.release([1] * horizon)["value"].tolist()[-1] for _ in range(4)} != {horizon}
    assert len({wide.release([1] * horizon)["value"].tolist()[0] for _ in range(4)}) > 1


def test_quantiles_of_one_step_have_their_noise() -> None:
    quantiles = StreamQuantiles.calibrate(horizon=1, epsilon=1, delta=1e-6, lower=0, upper=1, bins=8)
    scale, many = float(quantiles.counts.scale), 200
    squares = 0.0
    for _ in range(many):
        session = quantiles.start()
        session.add([0.1, 0.2, 0.9])
        assert np.isfinite(session.value()["value_low"]).all()
        off = session.counter.value()["value"] - np.bincount(quantiles.bins([0.1, 0.2, 0.9]), minlength=8)
        squares += float((off.astype(float) ** 2).sum()) / (scale**2 + 1 / 12)
    assert chi2.ppf(ALARM, 8 * many) < squares < chi2.isf(ALARM, 8 * many)
