"""The law of an entry of PrivUnit's reports: its moments, and how fast their sums may grow."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, betaln

from dalenius.local import PrivUnit
from dalenius.local.tails import Tilted

LAWS = [Tilted(3, 0.4, 0.6), Tilted(10, 0.25, 0.9), Tilted(2, 0.5, 0.8), Tilted(500, 0.0, 0.7)]


@pytest.mark.parametrize("law", LAWS)
def test_moments_are_those_of_the_law(law: Tilted) -> None:
    """By integration over the angle, with the entry of a uniform direction by its own moments."""
    half = (law.dimension - 1) / 2
    q = betainc(half, half, (1 - law.cut) / 2)
    total, edge = math.exp(betaln(0.5, half)), math.acos(law.cut)

    def moment(of: Callable[[float], float]) -> float:
        def density(x: float) -> float:
            return of(math.cos(x)) * math.sin(x) ** (law.dimension - 2) / total

        inside = quad(density, 0, edge, epsabs=1e-13, limit=400, points=[max(edge - 0.3, 0.01)])[0]
        outside = quad(density, edge, math.pi, epsabs=1e-13, limit=400, points=[min(edge + 0.3, 3.1)])[0]
        return inside * law.chance / q + outside * (1 - law.chance) / (1 - q)

    assert moment(lambda t: 1) == pytest.approx(1)
    assert moment(lambda t: t) == pytest.approx(law.mean)
    for k in (2, 4):
        assert moment(lambda t, k=k: t**k) == pytest.approx(law.moment(k))
    cosine, weight = law.cosines
    assert weight.sum() == pytest.approx(1) and weight @ cosine == pytest.approx(law.mean, rel=1e-9)
    assert weight @ cosine**4 == pytest.approx(law.moment(4), rel=1e-9)
    root = math.sqrt(law.dimension)
    growth = math.log(moment(lambda t: math.exp(0.3 * root * (t - law.mean))))
    assert law._growth(0.3) >= growth - 1e-12
    assert law.lopsided >= moment(lambda t: abs(t - law.mean) ** 3) / (law.moment(2) - law.mean**2) ** 1.5


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("entry", [0.0, 0.4, 0.8])
def test_entries_grow_no_faster_than_is_said(
    law: Tilted, entry: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole law of an entry by its density: E e^{λx} is below the bound, its square no more than said."""
    n, root = law.dimension - 1, math.sqrt(law.dimension)
    if n == 1:
        z, likely = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    else:
        nodes, weights = np.polynomial.legendre.leggauss(400)
        angles = math.pi / 2 * (1 + nodes)
        z, likely = np.cos(angles), weights * np.sin(angles) ** (n - 2)
        likely = likely / likely.sum()
    t, mass = law.cosines
    x = root * (entry * t[:, None] + math.sqrt(1 - entry**2) * np.sqrt(1 - t**2)[:, None] * z)
    both = mass[:, None] * likely
    monkeypatch.setattr(Tilted, "entries", lambda law, many: np.array([entry]))
    for rate in (0.02, 0.3, 1.0):
        exact = math.log((both * np.exp(rate * (x - root * entry * law.mean))).sum())
        assert exact <= law._growth(rate) + 1e-9
    assert (both * x**2).sum() <= law.most_square * (1 + 1e-9)


def test_intervals_of_large_dimensions_are_by_the_normal_part() -> None:
    """Where entries are small reports are nearly normal: 1.4 times as wide at 10,000, 1.05 at 1e6."""
    law = PrivUnit.calibrate(dimension=100, epsilon=1).law
    for n, most in ((10**4, 1.4), (10**6, 1.05)):
        normal = 1.96 * math.sqrt(law.most_square / n)
        assert 1 <= law.half_width(n, 0.05) / normal <= most
