"""Dalenius and its peers behind the same four questions.

Every peer runs as its documentation shows, with its own defaults; prv-accountant, which has no default
for the error in ε, gets that of Opacus, whose method is the same. ε is what a careful user would state:
the upper bound where the library gives one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from measure import Answer, Unsupported

EPS_ERROR = 0.01
"""Opacus's default for its PRV accountant."""


@dataclass(frozen=True)
class Step:
    """One release: a noise scale per unit of sensitivity, on a Poisson sample at `rate`."""

    scale: float
    rate: float = 1.0
    law: str = "gaussian"


class Accountant:
    """The questions; what a library does not override is not asked of it here."""

    name: str
    package: str

    def steps(self, step: Step, count: int, delta: float) -> Answer:
        """ε of `count` equal steps."""
        raise Unsupported

    def pure(self, epsilon: float, count: int, delta: float) -> Answer:
        """ε of `count` arbitrary mechanisms, each `epsilon`-private."""
        raise Unsupported

    def calibrate(self, epsilon: float, delta: float, rate: float, count: int) -> Answer:
        """The least noise multiplier."""
        raise Unsupported

    def many(self, steps: Sequence[Step], delta: float) -> Answer:
        """ε of different steps."""
        raise Unsupported


class Dalenius(Accountant):
    name, package = "Dalenius", "dalenius"

    def __init__(self) -> None:
        from dalenius import losses

        self.losses = losses

    def steps(self, step: Step, count: int, delta: float) -> Answer:
        return self._answer((self.loss(step) * count).epsilon(delta))

    def pure(self, epsilon: float, count: int, delta: float) -> Answer:
        return self._answer((self.losses.Pure(epsilon=epsilon) * count).epsilon(delta))

    def calibrate(self, epsilon: float, delta: float, rate: float, count: int) -> Answer:
        found = self.losses.Gaussian.calibrate(epsilon=epsilon, delta=delta, sampling_rate=rate, steps=count)
        return Answer(float(found.noise_multiplier), "promise certified")

    def many(self, steps: Sequence[Step], delta: float) -> Answer:
        return self._answer(self.losses.compose([self.loss(step) for step in steps]).epsilon(delta))

    def loss(self, step: Step):
        kinds = self.losses
        one = (
            kinds.Gaussian(noise_multiplier=step.scale)
            if step.law == "gaussian"
            else kinds.Laplace(scale=step.scale)
        )
        return one if step.rate == 1 else one.poisson(step.rate)

    @staticmethod
    def _answer(bound) -> Answer:
        return Answer(bound.upper, f"certified, width {bound.width / (bound.upper or 1):.1e} relative")


class DpAccounting(Accountant):
    name, package = "dp-accounting, PLD", "dp-accounting"
    error = "upper bound, no width"

    def __init__(self) -> None:
        import dp_accounting
        from dp_accounting import pld

        self.dp, self.pld = dp_accounting, pld

    def steps(self, step: Step, count: int, delta: float) -> Answer:
        accountant = self.pld.PLDAccountant().compose(self.event(step), count)
        return Answer(accountant.get_epsilon(delta), self.error)

    def pure(self, epsilon: float, count: int, delta: float) -> Answer:
        parameters = self.pld.common.DifferentialPrivacyParameters(epsilon, 0)
        one = self.pld.privacy_loss_distribution.from_privacy_parameters(parameters)
        return Answer(one.self_compose(count).get_epsilon_for_delta(delta), self.error)

    def calibrate(self, epsilon: float, delta: float, rate: float, count: int) -> Answer:
        found = self.dp.calibrate_dp_mechanism(
            self.pld.PLDAccountant,
            lambda sigma: self.dp.SelfComposedDpEvent(self.event(Step(sigma, rate)), count),
            epsilon,
            delta,
            self.dp.LowerEndpointAndGuess(0.5, 1),
        )
        return Answer(found, "±1e-6 in the multiplier")

    def many(self, steps: Sequence[Step], delta: float) -> Answer:
        accountant = self.pld.PLDAccountant()
        for step in steps:
            accountant.compose(self.event(step))
        return Answer(accountant.get_epsilon(delta), self.error)

    def event(self, step: Step):
        kind = self.dp.GaussianDpEvent if step.law == "gaussian" else self.dp.LaplaceDpEvent
        return (
            kind(step.scale) if step.rate == 1 else self.dp.PoissonSampledDpEvent(step.rate, kind(step.scale))
        )


class Prv(Accountant):
    name, package = "prv-accountant", "prv-accountant"

    def __init__(self) -> None:
        import prv_accountant
        from prv_accountant import dpsgd

        self.prv, self.dpsgd = prv_accountant, dpsgd

    def steps(self, step: Step, count: int, delta: float) -> Answer:
        law = self.prv.PoissonSubsampledGaussianMechanism(
            noise_multiplier=step.scale, sampling_probability=step.rate
        )
        return self._compose(law, count, delta)

    def pure(self, epsilon: float, count: int, delta: float) -> Answer:
        return self._compose(self.prv.PureDPMechanism(epsilon), count, delta)

    def calibrate(self, epsilon: float, delta: float, rate: float, count: int) -> Answer:
        return Answer(self.dpsgd.find_noise_multiplier(rate, count, epsilon, delta), "±0.1 in ε")

    def _compose(self, law, count: int, delta: float) -> Answer:
        accountant = self.prv.PRVAccountant(
            law, eps_error=EPS_ERROR, delta_error=delta / 1000, max_self_compositions=count
        )
        low, _, high = accountant.compute_epsilon(delta, count)
        return Answer(float(high), f"claimed width {high - low:.1e}")


class Opacus(Accountant):
    package = "opacus"

    def __init__(self, mechanism: str) -> None:
        from opacus import accountants
        from opacus.accountants.utils import get_noise_multiplier

        self.create, self.search, self.mechanism = (
            accountants.create_accountant,
            get_noise_multiplier,
            mechanism,
        )
        self.error = f"claimed ±{EPS_ERROR}" if mechanism == "prv" else "upper bound, no width"

    def steps(self, step: Step, count: int, delta: float) -> Answer:
        accountant = self.create(self.mechanism)
        accountant.history = [(step.scale, step.rate, count)]
        return Answer(float(accountant.get_epsilon(delta)), self.error)

    def calibrate(self, epsilon: float, delta: float, rate: float, count: int) -> Answer:
        sigma = self.search(
            target_epsilon=epsilon,
            target_delta=delta,
            sample_rate=rate,
            steps=count,
            accountant=self.mechanism,
        )
        return Answer(sigma, "±0.01 in ε")


class OpacusPrv(Opacus):
    name = "Opacus, PRV"

    def __init__(self) -> None:
        super().__init__("prv")


class OpacusRdp(Opacus):
    name = "Opacus, RDP"

    def __init__(self) -> None:
        super().__init__("rdp")


PEERS: tuple[type[Accountant], ...] = (DpAccounting, Prv, OpacusPrv, OpacusRdp)
