"""`Settings`: the public settings of a private run, read from the arguments of `Private`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dalenius.errors import InvalidArgument
from dalenius.learn.adding import Plan
from dalenius.learn.clipping import Clipping, read_clipping
from dalenius.learn.closures import for_each, several
from dalenius.learn.correlated import correlated
from dalenius.learn.gradients import Watched
from dalenius.learn.numerics import grid_bits
from dalenius.learn.optimizer import planned, step_loss
from dalenius.learn.sampling import Sampling
from dalenius.losses.calibration import calibrate
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number


@dataclass(frozen=True)
class Settings:
    """What is done in every step of a run, and with how much noise.

    Attributes:
        sampling: How batches are drawn, and how many steps there are.
        clipping: How gradients are bounded.
        noise_multiplier: The scale of the noise over the bound.
        delta: The δ at which the cost of the run is stated, if any.
        evaluations: The number of gradients that the optimizer may ask for in a step.
    """

    sampling: Sampling
    clipping: Clipping
    noise_multiplier: Fraction
    delta: Fraction | None
    evaluations: int

    @classmethod
    def read(
        cls,
        sampling: Sampling,
        model: Watched,
        *,
        clip: Number | Clipping,
        noise_multiplier: Number | None,
        epsilon: Number | None,
        delta: Number | None,
        evaluations: int,
    ) -> Settings:
        """Return the settings, with noise by `noise_multiplier` or as `epsilon` and `delta` need it.

        Args:
            sampling: How batches are drawn.
            model: The model, of which the number of trained weights counts.
            clip: The bound on the gradient of an example.
            noise_multiplier: The scale of the noise over the bound. Pass this or `epsilon`.
            epsilon: The ε that the run is to cost at most, at `delta`.
            delta: The δ at which the cost is stated.
            evaluations: The number of gradients that the optimizer may ask for in a step.
        """
        clipping, at = read_clipping(clip), None if delta is None else numbers.delta(delta)
        if (noise_multiplier is None) == (epsilon is None):
            raise InvalidArgument(
                "A run has a target epsilon or a noise multiplier.",
                remedy="Pass one of epsilon and noise_multiplier.",
            )
        if noise_multiplier is not None:
            multiplier = numbers.positive(noise_multiplier, "noise_multiplier")
            return cls(sampling, clipping, multiplier, at, evaluations)
        if clipping.norm == "l2" and not at:
            raise InvalidArgument(
                "Gaussian noise keeps no promise without a delta.",
                remedy="Pass delta, far below one over the number of people, or clip=dp.learn.Absolute(…).",
            )
        weights = sum(parameter.numel() for parameter in model.names)

        def family(multiplier: Fraction) -> Loss:
            bits = grid_bits(weights, multiplier, clipping.norm)
            return sampling.loss(step_loss(clipping.norm, multiplier, bits))

        least = calibrate(family, epsilon=epsilon or 0, delta=at or 0, name="noise_multiplier")
        return cls(sampling, clipping, for_each(least, evaluations), at, evaluations)

    def plan(self, model: Watched, chunk: int, processes: int) -> Plan:
        """Return what is done in every step.

        Args:
            model: The model that is trained.
            chunk: The most examples of one backward pass.
            processes: The number of processes that share a batch.
        """
        return planned(
            model,
            self.clipping,
            self.noise_multiplier,
            self.sampling.expected,
            chunk,
            correlated=correlated(self.sampling, self.clipping, self.evaluations),
            processes=processes,
            chunks=self.sampling.chunks(chunk),
        )

    def step_loss(self, plan: Plan) -> Loss:
        """Return what a step costs a unit that takes part in it."""
        step = step_loss(self.clipping.norm, self.noise_multiplier, plan.numerics.bits)
        return several(step, self.evaluations)
