"""Questions answered over the whole range of subsampled Gaussians, and refused outside it."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest

from dalenius.errors import InvalidArgument
from dalenius.losses import Bound, Gaussian, Loss


def drawn(source: random.Random) -> tuple[float, float, int, float]:
    """q 1e-4…0.5 (and sometimes 1), σ 0.5…20, T 1…1e6 with T ≤ 30 half of the time, δ 1e-30…1e-3."""
    q = 1.0 if source.random() < 0.05 else math.exp(source.uniform(math.log(1e-4), math.log(0.5)))
    sigma = math.exp(source.uniform(math.log(0.5), math.log(20)))
    few = source.random() < 0.5
    steps = source.randint(1, 30) if few else round(math.exp(source.uniform(math.log(30), math.log(1e6))))
    return q, sigma, steps, 10 ** source.uniform(-30, -3)


def evaluated(q: float, sigma: float, steps: int, delta: float) -> tuple[Loss, Bound]:
    loss = Gaussian(noise_multiplier=sigma).poisson(q) * steps
    return loss, loss.epsilon(delta)


def narrow(bound: Bound, steps: int) -> bool:
    """The width aimed at: 1e-8 relative, 1e-6 below 30 steps, 1e-9 absolute below ε = 1e-3."""
    return bound.width <= max((1e-8 if steps >= 30 else 1e-6) * bound.upper, 1e-9 * (bound.upper < 1e-3))


def survey(count: int, seed: int) -> None:
    source, wide = random.Random(seed), []
    for _ in range(count):
        case = drawn(source)
        loss, bound = evaluated(*case)
        assert 0 <= bound.lower <= bound.upper < math.inf, (case, bound)
        if bound.upper > 0 and not narrow(bound, case[2]):
            wide.append((case, bound))
        if bound.lower == 0:
            assert bound.upper == 0 or loss.delta(0).upper > case[3], (case, bound)
    assert not wide, wide


@pytest.mark.parametrize("seed", range(3))
def test_a_survey_meets_the_target_width(seed: int) -> None:
    """No exception, no warning, no NaN, and all within the target width."""
    survey(50, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_a_long_survey_meets_the_target_width(seed: int) -> None:
    survey(100, seed)


@pytest.mark.parametrize("seed", range(3))
def test_epsilon_and_delta_agree(seed: int) -> None:
    """At the upper ε, δ is at most what was asked; at the lower, at least."""
    source = random.Random(seed)
    for _ in range(4):
        q, sigma, steps, delta = drawn(source)
        loss, bound = evaluated(q, sigma, steps, delta)
        assert loss.delta(bound.upper).lower <= delta
        assert bound.lower == 0 or loss.delta(bound.lower).upper >= delta


@pytest.mark.parametrize(("sigma", "q", "steps"), [(1, 0.01, 100), (0.6, 0.001, 5), (5, 0.2, 3000)])
def test_more_steps_less_noise_or_more_sampling_never_cost_less(sigma: float, q: float, steps: int) -> None:
    base = evaluated(q, sigma, steps, 1e-8)[1]
    for more in (
        evaluated(q, sigma, steps + 1, 1e-8),
        evaluated(q, 0.99 * sigma, steps, 1e-8),
        evaluated(1.01 * q, sigma, steps, 1e-8),
        evaluated(q, sigma, steps, 0.9e-8),
    ):
        assert more[1].upper >= base.lower


def test_nothing_is_lost_where_delta_is_large() -> None:
    assert evaluated(0.001, 10, 10, 1e-3)[1] == Bound(0.0, 0.0)
    assert (Gaussian(20).poisson(0.0001) * 3).epsilon(0.01) == Bound(0.0, 0.0)


BAD = {
    "delta one": (lambda: Gaussian(1).epsilon(1), "delta"),
    "delta negative": (lambda: Gaussian(1).epsilon(-1e-9), "delta"),
    "delta nan": (lambda: Gaussian(1).epsilon(math.nan), "delta"),
    "delta text": (lambda: Gaussian(1).epsilon("0.1"), "delta"),
    "delta bool": (lambda: Gaussian(1).epsilon(True), "delta"),
    "epsilon negative": (lambda: Gaussian(1).delta(-0.5), "epsilon"),
    "epsilon infinite": (lambda: Gaussian(1).delta(math.inf), "epsilon"),
    "rate above one": (lambda: Gaussian(1).poisson(1.5), "sampling_rate"),
    "rate zero": (lambda: Gaussian(1).poisson(0), "sampling_rate"),
    "rate negative": (lambda: Gaussian(1).poisson(-0.1), "sampling_rate"),
    "rate nan": (lambda: Gaussian(1).poisson(math.nan), "sampling_rate"),
    "noise zero": (lambda: Gaussian(0), "noise_multiplier"),
    "noise negative": (lambda: Gaussian(-1), "noise_multiplier"),
    "noise nan": (lambda: Gaussian(math.nan), "noise_multiplier"),
    "noise infinite": (lambda: Gaussian(math.inf), "noise_multiplier"),
    "noise tiny": (lambda: Gaussian(1e-300), "noise_multiplier"),
    "count negative": (lambda: Gaussian(1) * -1, "count"),
    "count zero": (lambda: Gaussian(1) * 0, "count"),
    "count fractional": (lambda: Gaussian(1) * 1.5, "count"),
    "count absurd": (lambda: Gaussian(1) * 10**13, "count"),
    "count absurd by parts": (lambda: (Gaussian(1) * 10**12) * 2, "count"),
    "group zero": (lambda: Gaussian(1).group(0), "size"),
    "fpr above one": (lambda: Gaussian(1).tradeoff(1.1), "fpr"),
    "prior above one": (lambda: Gaussian(1).meaning(prior=2), "prior"),
    "steps zero": (lambda: Gaussian.calibrate(epsilon=1, delta=1e-5, steps=0), "steps"),
    "calibrated to nothing": (lambda: Gaussian.calibrate(epsilon=0, delta=1e-5), "epsilon"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_by_name(name: str) -> None:
    call, argument = BAD[name]
    with pytest.raises(InvalidArgument, match=argument) as caught:
        call()
    assert argument in str(caught.value) and caught.value.remedy
    assert isinstance(caught.value, ValueError)


SAMPLED = Gaussian(1).poisson(0.01)
EXTREME = {
    "tiny delta": lambda loss: loss.epsilon(1e-305),
    "subnormal delta": lambda loss: loss.epsilon(1e-320),
    "delta below every float": lambda loss: loss.epsilon(Decimal("1e-400")),
    "delta next to one": lambda loss: loss.epsilon(1 - Fraction(1, 10**30)),
    "huge epsilon": lambda loss: loss.delta(1e300),
    "epsilon above every float": lambda loss: loss.delta(10**400),
    "epsilon below every float": lambda loss: loss.delta(Fraction(1, 10**400)),
}
RATES = (0, 1e-30, 1 - 1e-12)


@pytest.mark.parametrize("steps", [0, 1, 10, 1000])
@pytest.mark.parametrize("name", EXTREME)
def test_extreme_questions_have_an_answer(name: str, steps: int) -> None:
    """Where a float ends, the interval widens; nothing else happens."""
    loss = SAMPLED * steps if steps else Gaussian(30)
    bound = EXTREME[name](loss)
    assert 0 <= bound.lower <= bound.upper


@pytest.mark.slow
@pytest.mark.parametrize("steps", [0, 1, 10, 1000])
@pytest.mark.parametrize("fpr", RATES)
def test_extreme_tests_have_an_answer(fpr: float, steps: int) -> None:
    bound = (SAMPLED * steps if steps else Gaussian(30)).tradeoff(fpr)
    assert 0 <= bound.lower <= bound.upper <= 1


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "delta"),
    [
        (0.5, 0.02, 1, 1e-5),
        (0.5, 0.02, 10, 1e-5),
        (0.5, 0.001, 1, 1e-5),
        (1e-12, 1, 10**6, 1e-10),
        (4.617e-3, 0.5717, 20780, 9.04e-10),
        (0.01, 1e6, 10**12, 1e-15),
        (Fraction(10**20 - 1, 10**20), 1, 100, 1e-10),
    ],
)
def test_extreme_losses_have_a_finite_answer(q: float, sigma: float, steps: int, delta: float) -> None:
    bound = evaluated(q, sigma, steps, delta)[1]
    assert 0 <= bound.lower <= bound.upper < math.inf
