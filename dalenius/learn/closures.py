"""Optimizers that evaluate a gradient several times in one step, as LBFGS does: each time is a release.

All evaluations of a step are on one batch, each at weights that follow from those before. Given that a unit
is in the batch, k Gaussian releases of noise multiplier z are together dominated by one of z/√k, adaptive as
they are (Dong, Roth and Su 2022); otherwise nothing depends on it. So a step is charged as that one release,
before the sampler makes of it what it does: the batch is drawn once.

The number of evaluations is the optimizer's limit, whatever it uses. Past that limit it sees the last
gradient again, which was released already. As value of the loss it sees how often it has asked: a real one
would be a release. A line search compares losses, and is refused.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import torch

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss

Closure = Callable[[], Any]


def evaluations(optimizer: torch.optim.Optimizer, processes: int = 1) -> int:
    """How many gradients a step may ask for."""
    if not calls_closures(optimizer):
        _check_step(optimizer)
        return 1
    if processes > 1:
        raise NotSound(
            "How often this optimizer evaluates a gradient may differ from process to process.",
            remedy="Use an optimizer without closures, or train in one process.",
        )
    (group,) = optimizer.param_groups
    if group["line_search_fn"] is not None:
        raise NotSound(
            "A line search compares values of the loss, which are not private.",
            remedy="Pass line_search_fn=None to LBFGS, and a small lr.",
        )
    return max(1, min(int(group["max_iter"]), int(group["max_eval"])))


def calls_closures(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether the step of an optimizer evaluates a closure."""
    return isinstance(optimizer, torch.optim.LBFGS)


def _check_step(optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimizer, other than LBFGS, whose step cannot be called without a closure."""
    try:
        given = inspect.signature(optimizer.step).parameters.get("closure")
    except (AttributeError, TypeError, ValueError):
        return
    if given is not None and given.default is given.empty:
        raise NotSound(
            "The step of this optimizer needs a closure, and it is not known how often it evaluates it.",
            remedy="Use torch.optim.LBFGS, whose evaluations are counted, or an optimizer without closures.",
        )


def several(step: Loss, count: int) -> Loss:
    """So many releases on one batch, as one: the multiplier z/√count, rounded down at 2⁻³²."""
    if count == 1:
        return step
    if not isinstance(step, Gaussian):
        raise NotSound(
            "Several releases on one batch are known as one for Gaussian noise only.",
            remedy="Clip in the L2 norm, or use an optimizer without closures.",
        )
    square = step.noise_multiplier**2 * 2**64 / count
    return Gaussian(Fraction(math.isqrt(math.floor(square)), 2**32), relation=step.relation)


def for_each(multiplier: Fraction, count: int) -> Fraction:
    """The noise of each of so many releases that together cost one of this multiplier, or a little less."""
    if count == 1:
        return multiplier
    raised = multiplier + Fraction(1, 2**31)
    return Fraction(math.isqrt(math.ceil(raised**2 * count * 2**64)) + 1, 2**32)


def check_closure(closure: Closure | None, needed: bool) -> None:
    """Refuse a step without a closure of an optimizer that evaluates one."""
    if closure is None and needed:
        raise InvalidArgument(
            "This optimizer evaluates the loss by itself, as often as it needs, in a step.",
            remedy="Pass step a closure that zeroes gradients, computes the loss and calls backward.",
        )


class Evaluated:
    """What an optimizer gets for a closure: `evaluate` gives it a private gradient, `most` times."""

    def __init__(self, evaluate: Callable[[int], None], most: int) -> None:
        self._evaluate, self._most, self.asked = evaluate, most, 0

    def __call__(self) -> float:
        """How often it was asked."""
        if self.asked < self._most:
            self._evaluate(self.asked)
        self.asked += 1
        return float(self.asked)
