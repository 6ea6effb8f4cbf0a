"""A duration that follows the noise is found, another is not; the clock of most tests is made up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dalenius import noise
from dalenius.attacks.timing import timing_attack
from dalenius.errors import InvalidArgument

SURE = 1 - 1e-7


class Coins:
    """Geometric noise by tosses of a coin; each takes a tick of its clock, or every draw the same many."""

    def __init__(self, *, constant: bool) -> None:
        self.now, self.constant, self.chance = 0, constant, np.random.default_rng()

    def __call__(self) -> float:
        tosses = int(self.chance.geometric(0.01))
        jitter = int(self.chance.integers(0, 20))
        self.now += jitter + (100 if self.constant else tosses)
        return tosses

    def clock(self) -> int:
        return self.now


def test_a_draw_that_takes_as_long_as_its_noise_is_large_is_read_off_the_clock() -> None:
    """Right in 97%; false alarms below 1e-9."""
    coins = Coins(constant=False)
    found = timing_attack(coins, trials=2_000, clock=coins.clock)
    assert found.low > 0.8 and found.details["rank_correlation"] > 0.9


def test_a_draw_that_takes_always_as_long_tells_nothing() -> None:
    """False alarms: 1e-7."""
    coins = Coins(constant=True)
    found = timing_attack(coins, trials=2_000, clock=coins.clock, confidence=SURE)
    assert found.low <= 0.5 <= found.high
    assert abs(found.details["rank_correlation"]) < 0.2


def test_a_clock_that_stands_still_tells_nothing() -> None:
    found = timing_attack(Coins(constant=True), trials=100, clock=lambda: 0)
    assert found.success == 0.5 and found.details["rank_correlation"] == 0


def test_a_real_sampler_is_timed_by_the_processor() -> None:
    """What is found depends on the machine; that it is a report with an interval does not."""
    found = timing_attack(_laplace, trials=200)
    assert 0 <= found.low <= found.success <= found.high <= 1 and found.trials > 80


def _laplace() -> float:
    return float(noise.discrete_laplace(100, 1)[0])


@pytest.mark.parametrize("draw", [lambda: 0.0, lambda: 1.0])
def test_noise_that_does_not_vary_is_refused(draw: Callable[[], float]) -> None:
    with pytest.raises(InvalidArgument, match="median"):
        timing_attack(draw, trials=50)
