"""`Adam` for private gradients: the second moment without the part that is noise.

A private gradient is g + n with noise n of a known standard deviation s, so E(g + n)² = Eg² + s². Where
gradients are small, Adam divides by the noise: all coordinates move alike, and it becomes momentum descent.
Subtracting s² makes the second moment unbiased again (DP-AdamBC; Tang, Shpilevskiy and Lécuyer 2023):

    m ← β₁m + (1 − β₁)g,   v ← β₂v + (1 − β₂)g²,   m̂ = m/(1 − β₁ᵗ),   v̂ = v/(1 − β₂ᵗ)
    w ← w(1 − lr·decay) − lr·m̂/(√max(v̂ − s², floor) + eps)

An estimate below `floor` is no estimate. Left out, floor is the standard deviation that v̂ − s² has by noise
alone, s²·√(2(1−β₂)/(1+β₂)·(1+β₂ᵗ)/(1−β₂ᵗ)): 1.4 s² in the first step, 0.03 s² in the long run for
β₂ = 0.999. It all follows from private gradients and public numbers, and costs nothing.

A private run tells the optimizer s by `set_noise`; without noise this is AdamW, with decoupled decay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from dalenius.errors import InvalidArgument
from dalenius.learn.adding import Plan
from dalenius.learn.sharded import local


class Adam(torch.optim.Optimizer):
    """As torch's AdamW, and `noise` is the standard deviation of the noise on a gradient's numbers."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        noise: float = 0.0,
        floor: float | None = None,
    ) -> None:
        for name, value in (("lr", lr), ("eps", eps), ("weight_decay", weight_decay), ("floor", floor or 0)):
            _checked(name, value)
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise InvalidArgument("betas are two numbers from 0 to 1, below 1.", remedy="Pass (0.9, 0.999).")
        given = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "floor": floor}
        super().__init__(params, {**given, "noise": _checked("noise", noise)})

    def set_noise(self, noise: float) -> None:
        """From the next step on, in all groups."""
        for group in self.param_groups:
            group["noise"] = _checked("noise", noise)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; all tensors of a group at once."""
        result = None
        if closure is not None:
            with torch.enable_grad():
                result = closure()
        for group in self.param_groups:
            params = [one for one in group["params"] if one.grad is not None]
            if params:
                self._move(params, group)
        return result

    def _move(self, params: list[Tensor], group: dict[str, Any]) -> None:
        (beta1, beta2), noise = group["betas"], group["noise"]
        grads = [one.grad for one in params if one.grad is not None]
        means, squares, times = self._moments(params)
        # Of what is sharded, the numbers that are here.
        params, grads, means, squares = (list(map(local, some)) for some in (params, grads, means, squares))
        if group["weight_decay"]:
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_lerp_(means, grads, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        below = torch._foreach_div(squares, [1 - beta2**t for t in times])
        if noise:
            torch._foreach_sub_(below, noise**2)
            torch._foreach_maximum_(below, [least(noise, beta2, t, group["floor"]) for t in times])
        torch._foreach_sqrt_(below)
        torch._foreach_add_(below, group["eps"])
        torch._foreach_addcdiv_(params, means, below, [-group["lr"] / (1 - beta1**t) for t in times])

    def _moments(self, params: Iterable[Tensor]) -> tuple[list[Tensor], list[Tensor], list[int]]:
        states = [self.state[one] or self._begun(one) for one in params]
        for state in states:
            state["step"] += 1
        return (
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
        )

    def _begun(self, parameter: Tensor) -> dict[str, Any]:
        state: dict[str, Any] = self.state[parameter]
        state.update(step=0, exp_avg=torch.zeros_like(parameter), exp_avg_sq=torch.zeros_like(parameter))
        return state


def least(noise: float, beta: float, step: int, floor: float | None) -> float:
    """What an estimate of the second moment is raised to after so many steps."""
    if floor is not None:
        return floor
    share = beta**step
    return noise**2 * math.sqrt(2 * (1 - beta) / (1 + beta) * (1 + share) / (1 - share))


def deviation(plan: Plan, clip: float) -> float:
    """Of the noise on each number of a private gradient, for the bound in force; public."""
    law = math.sqrt(2) if plan.clipping.norm == "l1" else 1.0
    shape = law if plan.correlated is None else plan.correlated.deviation
    return shape * float(plan.noise_multiplier) * clip / float(plan.expected)


def tell(optimizer: torch.optim.Optimizer, plan: Plan, clip: float) -> None:
    """Let an optimizer know the noise on the gradient that follows, if it wants to."""
    if hasattr(optimizer, "set_noise"):
        optimizer.set_noise(deviation(plan, clip))


def _checked(name: str, value: float) -> float:
    if not 0 <= value < math.inf:
        raise InvalidArgument(
            f"{name} must be a number from 0 on.", remedy=f"Choose {name}=0 or a positive one."
        )
    return value
