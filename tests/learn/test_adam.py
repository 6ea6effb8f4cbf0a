"""Adam without the noise in its second moment: its formula, its law on pure noise, AdamW without noise."""

from __future__ import annotations

import copy
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dalenius.errors import InvalidArgument
from dalenius.learn.adam import Adam, deviation, least, tell
from dalenius.learn.adding import Plan
from dalenius.learn.clipping import Absolute, Flat
from dalenius.learn.correlated import Correlated
from dalenius.learn.numerics import Numerics
from dalenius.noise.narrow import fill_rounded_gaussian
from dalenius.noise.stream import StreamKey

SHAPES = ((3, 4), (5,), (2, 1, 2))


def made(count: int = 2) -> list[list[nn.Parameter]]:
    """The same parameters so many times."""
    bits = torch.Generator().manual_seed(1)
    first = [torch.randn(shape, generator=bits, dtype=torch.float64) for shape in SHAPES]
    return [[nn.Parameter(one.clone()) for one in first] for _ in range(count)]


def gradients(step: int) -> list[Tensor]:
    bits = torch.Generator().manual_seed(100 + step)
    return [
        torch.randn(shape, generator=bits, dtype=torch.float64) / (1 + i) for i, shape in enumerate(SHAPES)
    ]


def trained(optimizer: torch.optim.Optimizer, params: list[nn.Parameter], steps: range) -> None:
    for step in steps:
        for one, gradient in zip(params, gradients(step), strict=True):
            one.grad = gradient
        optimizer.step()


@pytest.mark.parametrize("floor", [None, 0.25])
def test_steps_are_those_of_a_loop_over_numbers(floor: float | None) -> None:
    ours, theirs = made()
    lr, (b1, b2), eps, decay, noise = 0.1, (0.8, 0.9), 1e-3, 0.05, 0.7
    trained(
        Adam(ours, lr, betas=(b1, b2), eps=eps, weight_decay=decay, noise=noise, floor=floor), ours, range(5)
    )
    for place, parameter in enumerate(theirs):
        flat = parameter.data.view(-1)
        for i in range(flat.numel()):
            w, m, v = float(flat[i]), 0.0, 0.0
            for t in range(1, 6):
                g = float(gradients(t - 1)[place].view(-1)[i])
                w -= lr * decay * w
                m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
                error = noise**2 * math.sqrt(2 * (1 - b2) / (1 + b2) * (1 + b2**t) / (1 - b2**t))
                left = max(v / (1 - b2**t) - noise**2, error if floor is None else floor)
                w -= lr * m / (1 - b1**t) / (math.sqrt(left) + eps)
            flat[i] = w
    for one, two in zip(ours, theirs, strict=True):
        assert torch.allclose(one, two, rtol=1e-12)


def test_without_noise_it_is_adamw() -> None:
    ours, theirs = made()
    trained(Adam(ours, 0.05, weight_decay=0.1), ours, range(20))
    trained(torch.optim.AdamW(theirs, 0.05, weight_decay=0.1, foreach=True), theirs, range(20))
    for one, two in zip(ours, theirs, strict=True):
        assert torch.allclose(one, two, rtol=1e-11)


def test_on_pure_noise_the_second_moment_is_zero_on_average() -> None:
    """v̂ − s² averages to zero, with the standard deviation that the floor says; false alarms 1e-6 (4.9)."""
    size, steps, beta, noise, key = 20_000, 12, 0.9, 0.03, StreamKey.fresh()
    parameter = nn.Parameter(torch.zeros(size, dtype=torch.float64))
    optimizer = Adam([parameter], betas=(0.9, beta), noise=noise)
    for step in range(steps):
        drawn = np.empty(size, np.int32)
        fill_rounded_gaussian(drawn, Fraction(2**20), key.stream(step))
        parameter.grad = torch.from_numpy(drawn).double() * (noise / 2**20)
        optimizer.step()
    estimate = optimizer.state[parameter]["exp_avg_sq"] / (1 - beta**steps) - noise**2
    error = least(noise, beta, steps, None)
    assert abs(float(estimate.mean())) < 4.9 * error / math.sqrt(size)
    assert float(estimate.std()) == pytest.approx(error, rel=0.1)


def test_a_state_is_saved_and_loaded() -> None:
    ours, again = made()
    first = Adam(ours, 0.1, noise=0.5)
    trained(first, ours, range(3))
    for one, two in zip(again, ours, strict=True):
        one.data.copy_(two.data)
    second = Adam(again, 0.9)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    trained(first, ours, range(3, 6))
    trained(second, again, range(3, 6))
    assert all(torch.equal(one, two) for one, two in zip(ours, again, strict=True))
    assert second.param_groups[0]["noise"] == 0.5


def plan(norm: str = "l2", correlated: Correlated | None = None) -> Plan:
    clipping = Flat(2) if norm == "l2" else Absolute(2)
    return Plan(clipping, Fraction(3), Fraction(10), Numerics(10, Fraction(1, 100)), correlated)


def test_noise_is_told_to_who_wants_to_know() -> None:
    (params,) = made(1)
    optimizer, other = Adam(params), torch.optim.SGD(params, 0.1)
    tell(optimizer, plan(), 2.0)
    tell(other, plan(), 2.0)
    assert optimizer.param_groups[0]["noise"] == pytest.approx(0.6) and "noise" not in other.param_groups[0]


def test_the_deviation_of_noise_is_that_of_its_law() -> None:
    assert deviation(plan("l1"), 2.0) == pytest.approx(0.6 * math.sqrt(2))
    assert deviation(plan(correlated=Correlated(2)), 2.0) == pytest.approx(0.6 * math.sqrt(1.25))


def test_parameters_without_gradient_stay_and_join_later() -> None:
    ours, theirs = made()
    for params, optimizer in (
        (ours, Adam(ours, 0.1)),
        (theirs, torch.optim.AdamW(theirs, 0.1, weight_decay=0)),
    ):
        for step in range(4):
            for i, (one, gradient) in enumerate(zip(params, gradients(step), strict=True)):
                one.grad = None if i == 1 and step < 2 else gradient
            optimizer.step()
    assert all(torch.allclose(one, two, rtol=1e-11) for one, two in zip(ours, theirs, strict=True))


@pytest.mark.parametrize(
    "bad", [{"lr": -1.0}, {"noise": -1.0}, {"noise": math.nan}, {"betas": (0.9, 1.0)}, {"floor": -1.0}]
)
def test_arguments_out_of_range_are_refused(bad: dict[str, float]) -> None:
    (params,) = made(1)
    with pytest.raises(InvalidArgument):
        Adam(params, **bad)  # type: ignore[arg-type]
