"""Gaussian noise in proportion to a smooth sensitivity.

A number f is released as f + S·N(0, σ²), where S depends on the data too: for neighbours |f − f′| ≤ c·min(S,
S′), and S and S′ are at most a factor 1/θ apart (Nissim, Raskhodnikova and Smith 2007). Here σ is `scale`, θ
is `ratio` and c is `reach`, 1 where nothing but f moves.

Theorem. For every λ > 1 with t = λ − 1 and K = λ − t/θ² > 0,
    D_λ ≤ log θ − log(K)/2t + λc²/(2σ²K),
and two Gaussians attain it: S = S′/θ and f, f′ cS′ apart. Beyond, D_λ is infinite.

Proof. Let r = S²/S′², between θ² and 1/θ². The divergence of two Gaussians is
F(r) + λ(f − f′)²/(2σ²S′²(λ − tr)), F(r) = −log(r)/2 − log(λ − tr)/2t, and the second term is at most
λc²·min(1, r)/(2σ²(λ − tr)), which grows with r. F is 0 at its least, r = 1, and with u = log r its difference
F(u) − F(−u) has the derivative ½(1/x + 1/y) − 1 in u, where x = λe^u − t, y = λe^{−u} − t and
xy = λ² + t² − 2λt·cosh u ≤ 1, so that it is not negative for u ≥ 0: r = 1/θ² is worst for both terms. ∎

The bound λe^{2β}/σ² + (βλ − ½ log(1 − 2λβ))/(λ−1) for θ = e^{−β} and λ < 1/2β, with which the code of
Papernot et al. 2018 releases their figure, is below this one where λ is near 1/2β: there it does not hold.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.concentrated import Moments
from dalenius.losses.fields import Parameter
from dalenius.losses.fields import ratio as moderate
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball, upper


def _share(value: object, name: str) -> Fraction:
    number = numbers.exact(value, name)
    if not Fraction(1, 100) <= number < 1:
        raise InvalidArgument(f"{name} must be from 0.01 to below 1.", remedy=f"Choose {name} such as 0.99.")
    return number


def _reach(value: object, name: str) -> Fraction:
    return numbers.at_least(value, name, 1)


@dataclass(frozen=True, repr=False)
class SmoothGaussian(Moments, kind="smooth_gaussian"):
    """Gaussian noise of `scale` smooth sensitivities, which are within a factor `ratio` for neighbours."""

    scale: Parameter[Fraction] = Parameter(moderate)
    _: KW_ONLY
    ratio: Parameter[Fraction] = Parameter(_share)
    reach: Parameter[Fraction] = Parameter(_reach, Fraction(1))
    relation: Relation = "add_remove"

    def moment(self, order: float) -> float:
        """t·D_{1+t}, and infinite where the variances are too far apart."""
        t = Fraction(order)
        rest = 1 + t - t / self.ratio**2
        if rest <= 0:
            return math.inf
        with workprec(BITS):
            spread = ball(order) * ball(self.ratio).log() - ball(rest).log() / 2
            return max(upper(spread + ball(t * (1 + t) * (self.reach / self.scale) ** 2 / (2 * rest))), 0.0)

    def orders(self) -> tuple[float, ...]:
        """Below 1/(1/θ² − 1), where the moments end."""
        most = 1 / (1 / self.ratio**2 - 1)
        return tuple(float(most) * part for part in (0.25, 0.5, 0.75, 0.9))
