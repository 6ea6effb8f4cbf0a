"""Caps of the sphere: rigorous bounds on how likely they are, decided exactly, drawn on both sides alike."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from measures import VECTORS, named
from scipy.stats import norm

from dalenius import noise
from dalenius.local import PrivUnit, caps
from dalenius.local.caps import ONE


@pytest.mark.parametrize("one", [*VECTORS, PrivUnit.calibrate(dimension=500, epsilon=0.1)], ids=named)
def test_caps_are_within_their_bounds(one: PrivUnit) -> None:
    """The bounds hold the continuous cap, are near it, and the ratio holds in rational numbers."""
    low, high = one.cap
    half = (one.dimension - 1) / 2
    with mpmath.workdps(30):
        cap = mpmath.betainc(half, 0.5, 0, 1 - mpmath.mpf(float(one.cut)) ** 2, regularized=True) / 2
        assert float(low) < cap < float(high)
    assert float(high - low) < 1e-4 * cap
    p = one.chance
    assert isinstance(p, Fraction) and p * (1 - low) <= one.ratio * (1 - p) * low
    assert p / (1 - p) * (1 - high) / high <= one.ratio


@pytest.mark.parametrize("cut", [0, 0.25, 0.75, 0.9375])
@pytest.mark.parametrize("d", [2, 3])
def test_caps_of_a_coarse_grid_are_as_bounded(d: int, cut: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With s = 8 all of the law can be added up, and its bounds matter: for many w, aligned ones too."""
    scale, reach = 8, 40
    line = np.arange(-reach, reach + 1)
    mass = norm.cdf((line + 0.5) / scale) - norm.cdf((line - 0.5) / scale)
    points = np.stack(np.meshgrid(*[line] * d, indexing="ij"), -1).reshape(-1, d)
    masses = np.prod(np.stack(np.meshgrid(*[mass] * d, indexing="ij"), -1), -1).ravel()
    zero = (points == 0).all(axis=1)
    spare = masses[zero].item() / (1 - masses[zero].item()) + 1e-4
    monkeypatch.setattr("dalenius.local.caps.ONE", scale)
    monkeypatch.setattr("dalenius.local.caps.SPARE", Fraction(spare))
    low, high = caps.bounds(d, Fraction(cut))
    exact = Fraction(cut)
    spread = []
    for w in [(1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 1, 0), (5, 3, 1), (4, 1, 1), (7, 0, 4)]:
        aim = np.array(w[:d])
        dot, sizes = points @ aim, (points**2).sum(axis=1) * (aim**2).sum()
        inside = (dot > 0) & (exact.denominator**2 * dot**2 >= exact.numerator**2 * sizes)
        spread.append(masses[inside].sum() / (1 - masses[zero].item()))
    assert float(low) <= min(spread) and max(spread) <= float(high)


def test_the_cap_is_decided_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where floats see no difference as well: cosines of 1/256 exactly, and one unit to either side."""
    called = []
    own = caps._steep

    def counted(cut: Fraction, fine: np.ndarray, aim: np.ndarray) -> bool:
        called.append(cut)
        return own(cut, fine, aim)

    monkeypatch.setattr("dalenius.local.caps._steep", counted)
    d, k = 1 << 16, 11 * ONE - 3
    rows = np.full((1, 3, d), float(k))
    rows[0, 1, 7], rows[0, 2, 9] = k + 1, k - 1
    aim = np.zeros((1, d))
    aim[0, 0] = ONE
    found, along, _ = caps.steep(Fraction(1, 256), rows, aim)
    assert found.tolist() == [[True, False, True]] and (along == k * ONE).all() and len(called) == 3


@pytest.mark.parametrize("d", [1, 2, 5, 300])
def test_the_cap_is_that_of_integers(d: int) -> None:
    rng = np.random.default_rng(d)
    aim = rng.integers(-ONE, ONE, (40, d)).astype(float)
    fine = np.concatenate([np.round(aim[:, None] * 3), caps.gaussians(1200, d).reshape(40, 30, d)], axis=1)
    fine[:, 1] = 0
    for cut in (Fraction(0), Fraction(1, 2**20), Fraction(3, 32), Fraction(5, 8), 1 - Fraction(1, 2**20)):
        found, along, size = caps.steep(cut, fine, aim)
        for i, j in np.ndindex(*found.shape):
            u, w = [int(x) for x in fine[i, j]], [int(x) for x in aim[i]]
            dot, mine, its = (
                sum(a * b for a, b in zip(x, y, strict=True)) for x, y in ((u, w), (u, u), (w, w))
            )
            assert found[i, j] == (dot**2 * cut.denominator**2 >= cut.numerator**2 * mine * its)
            assert along[i, j] == dot and size[i, j] == pytest.approx(mine)


def test_the_zero_vector_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside and outside alike."""
    first = [True]

    def zeros_first(scale: int, size: int) -> np.ndarray:
        drawn = noise.rounded_gaussian(scale, size)
        return np.zeros_like(drawn) if first and first.pop() else drawn

    watched = SimpleNamespace(rounded_gaussian=zeros_first)
    monkeypatch.setattr("dalenius.local.caps.noise", watched)
    for cut in (Fraction(0), Fraction(1, 2)):
        first[:] = [True]
        found = caps.draw(cut, np.arange(20) % 2 == 0, np.repeat([[ONE, 0, 0]], 20, axis=0), at_once=1)
        assert not first and found.any(axis=1).all()


def test_how_much_is_drawn_does_not_tell_the_side() -> None:
    whole = np.repeat([[ONE, 0, 0]], 50, axis=0)
    drawn: list[list[int]] = []

    def counted(scale: int, size: int) -> np.ndarray:
        drawn[-1].append(size)
        return noise.rounded_gaussian(scale, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dalenius.local.caps.noise", SimpleNamespace(rounded_gaussian=counted))
        for inside in (True, False):
            drawn.append([])
            with noise.seeded(b"one"):
                caps.draw(Fraction(7, 8), np.full(50, inside), whole, at_once=2)
    assert drawn[0] == drawn[1] and len(drawn[0]) > 1
