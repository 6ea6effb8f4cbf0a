"""Additive noise that is too little, or of another law than the claim."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import losses, noise
from dalenius.audits.zoo.drawing import below, beside, gaussian, laplace, next_to, noisy, one_by_one
from dalenius.audits.zoo.specimen import Specimen
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.mechanism import Floats, Mechanism
from dalenius.privacy.unit import Unit
from dalenius.release import Release

_half, _tenth_low, _whole = laplace("1/2"), laplace("9/10"), laplace(1)
_seven_tenths, _triple, _nine = laplace("10/7"), laplace(3), laplace(9)
_narrow = one_by_one(lambda size: noise.discrete_gaussian("1/2", size))
_narrow_rounded = gaussian("1/2")
_quarter = below(4)


@dataclass(frozen=True)
class Claiming(Mechanism):
    """A mechanism that claims the loss of another."""

    inner: Mechanism
    claimed: Loss

    @property
    def loss(self) -> Loss:
        """What is claimed."""
        return self.claimed

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """That of the mechanism."""
        return self.inner.release(value, unit=unit)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Draws of the mechanism."""
        return self.inner.sample(value, size)

    def worst_case(self) -> tuple[Any, Any]:
        """That of the mechanism."""
        return self.inner.worst_case()

    def log_ratio(self, draws: NDArray[Any], pair: tuple[Any, Any]) -> Floats | None:
        """That of the mechanism."""
        return self.inner.log_ratio(draws, pair)


def _textbook(epsilon: int, scale: float, leaks: float) -> Specimen:
    """`scale` is the square root of 2 ln(1.25/δ) over ε, at δ = 10⁻⁵, rounded up."""
    twin = Gaussian.calibrate(epsilon=epsilon, delta=1e-5, sensitivity=1)
    return Specimen(
        name=f"textbook Gaussian at epsilon {epsilon}",
        wrong="a formula for the scale that holds up to epsilon 1 is used beyond",
        source="Balle and Wang 2018",
        broken=Claiming(Gaussian(scale=scale, sensitivity=1), twin.loss),
        twin=twin,
        claim=twin.loss,
        delta=1e-5,
        how="curve",
        leaks=leaks,
        trials=30_000,
    )


_STAIRS = np.repeat(np.exp(-np.arange(30.0)), 4)
_SWAPPED = np.where(np.arange(120) % 4 < 2, np.exp(-1.0), 1.0) * _STAIRS
_SIDE = np.arange(120)
_GENERATOR = np.random.default_rng()


def _swapped(size: int) -> NDArray[Any]:
    far = _GENERATOR.choice(_SIDE, size, p=_SWAPPED / _SWAPPED.sum())
    return np.where(_GENERATOR.random(size) < 0.5, far, -1 - far)


_wrong_stairs = one_by_one(_swapped)

SPECIMENS = (
    Specimen(
        name="Laplace at half the scale",
        wrong="the scale is half of sensitivity over epsilon",
        source="Dwork, McSherry, Nissim and Smith 2006",
        broken=lambda value: value + _half(),
        twin=lambda value: value + _whole(),
        claim=Pure(1),
        neighbors=beside,
        leaks=2.0,
    ),
    Specimen(
        name="Laplace at a scale a tenth low",
        wrong="the scale is nine tenths of sensitivity over epsilon",
        source="Dwork, McSherry, Nissim and Smith 2006",
        broken=lambda value: value + _tenth_low(),
        twin=lambda value: value + _whole(),
        claim=Pure(1),
        neighbors=beside,
        trials=40_000,
        leaks=1 / 0.9,
    ),
    Specimen(
        name="scale rounded to a whole number",
        wrong="a scale of 10/7 is rounded to 1",
        source="Ghosh, Roughgarden and Sundararajan 2009",
        broken=lambda value: value + _whole(),
        twin=lambda value: value + _seven_tenths(),
        claim=Pure(0.7),
        neighbors=beside,
        trials=8_000,
        leaks=1.0,
    ),
    Specimen(
        name="staircase with its parts exchanged",
        wrong="each stair is low where it should be high: the share gamma is given to the wrong part",
        source="Geng and Viswanath 2014",
        broken=lambda value: value + _wrong_stairs(),
        twin=lambda value: value + 4 * _whole() + _quarter() - 2,
        claim=Pure(1),
        neighbors=next_to(2),
        trials=8_000,
        leaks=2.0,
    ),
    Specimen(
        name="Laplace by the L2 norm",
        wrong="nine counts that all move have the L1 norm 9, and noise for their L2 norm 3",
        source="Dwork and Roth 2014",
        broken=lambda values: noisy(values, _triple),
        twin=lambda values: noisy(values, _nine),
        claim=Pure(1),
        inputs=[(0,) * 9],
        neighbors=next_to((1,) * 9),
        trials=16_000,
        leaks=3.0,
    ),
    Specimen(
        name="discrete Gaussian at the continuous scale",
        wrong="below a standard deviation of one the discrete Gaussian tells more than the continuous one",
        source="Canonne, Kamath and Steinke 2020",
        broken=lambda value: value + _narrow(),
        twin=lambda value: value + _narrow_rounded(),
        claim=losses.Gaussian(Fraction(1, 2)),
        neighbors=beside,
        delta=0.05,
        trials=6_000,
        leaks=5.3704,
    ),
    _textbook(12, 0.40374, 13.0524),
    _textbook(20, 0.24225, 25.4413),
)
