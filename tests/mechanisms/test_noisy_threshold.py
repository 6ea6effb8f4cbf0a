from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm
from sizes import slow

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.new_keys import Noise, delta
from dalenius.mechanisms.noisy_threshold import NoisyThreshold


def law(mechanism: NoisyThreshold, count: int) -> dict[int, float]:
    """One key's law, written out: 0 stands for a key that is not shown."""
    scale, threshold = float(mechanism.scale), mechanism.threshold
    reach = range(threshold, threshold + 90)
    if count == 0:
        return {0: 1.0}
    if mechanism.noise == "laplace":
        a = math.exp(-1 / scale)
        shown = {k: (1 - a) / (1 + a) * a ** abs(k - count) for k in reach}
    else:
        ends = [float(norm.sf((k - 0.5 - count) / scale)) for k in [*reach, reach[-1] + 1]]
        shown = {k: high - low for k, (high, low) in zip(reach, itertools.pairwise(ends), strict=True)}
    return {0: 1 - math.fsum(shown.values()), **shown}


def product(laws: list[dict[int, float]]) -> dict[Any, float]:
    return {
        outcome: math.prod(law[k] for law, k in zip(laws, outcome, strict=True))
        for outcome in itertools.product(*laws)
    }


def hockey(p: dict[Any, float], q: dict[Any, float], epsilon: float) -> float:
    return math.fsum(max(0.0, mass - math.exp(epsilon) * q.get(outcome, 0.0)) for outcome, mass in p.items())


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("alone", [False, True])
def test_no_unit_costs_more_than_the_loss(noise: Noise, alone: bool) -> None:
    """Two keys a unit: new, held by few, held by many, in every pair of them."""
    mechanism = NoisyThreshold.calibrate(epsilon=1.5, delta=0.02, keys=2, noise=noise, alone=alone)
    claims = {epsilon: mechanism.loss.delta(epsilon).upper for epsilon in (0.7, 1.5, 2.5)}
    worst = dict.fromkeys(claims, 0.0)
    cases = [0, 1, mechanism.threshold + 25]
    for counts in itertools.combinations_with_replacement(cases, 2):
        without, having = (product([law(mechanism, n + d) for n in counts]) for d in (0, 1))
        for epsilon in claims:
            both = hockey(having, without, epsilon), hockey(without, having, epsilon)
            worst[epsilon] = max(worst[epsilon], *both)
    for epsilon, claim in claims.items():
        assert worst[epsilon] <= claim + 1e-9
    if alone or noise == "laplace":
        # At the ε it was made for nothing is given away but what the whole threshold costs.
        assert worst[1.5] >= (0.98 if noise == "laplace" else 0.9) * claims[1.5]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.5), (0.01, 0.2), (0.001, 0.01)])
@pytest.mark.parametrize("keys", [1, 2])
def test_a_delta_above_epsilon_keeps_its_promise(
    noise: Noise, epsilon: float, delta: float, keys: int
) -> None:
    """That a new key is likely shown costs δ and no more, whatever ε is."""
    mechanism = NoisyThreshold.calibrate(epsilon=epsilon, delta=delta, keys=keys, noise=noise, alone=True)
    assert mechanism.loss.epsilon(delta).upper <= math.nextafter(epsilon, 1)
    claim = mechanism.loss.delta(epsilon).upper
    assert claim <= delta
    if keys == 1 and epsilon > 0.1:
        for count in (0, 1, mechanism.threshold + 60):
            without, having = (law(mechanism, n) for n in (count, count + 1))
            assert hockey(having, without, epsilon) <= claim + 1e-9
            assert hockey(without, having, epsilon) <= claim + 1e-9


@pytest.mark.parametrize("new", [1, 2])
def test_what_a_likely_new_key_costs_beside_an_old_one(new: int) -> None:
    """Where it is shown more often than ε allows for: δ by the exact laws of both keys."""
    mechanism = NoisyThreshold(scale=2, threshold=1, keys=3)
    old = [law(mechanism, 40 + d) for d in (0, 1)]
    hidden = law(mechanism, 1)[0]
    fresh = [{0: 1.0}, {0: hidden, 1: 1 - hidden}]
    without, having = (product([old[d]] + [fresh[d]] * new) for d in (0, 1))
    for epsilon in (0.05, 0.8):
        claim = float(delta(mechanism.scale, 1, "laplace", 1, new, Fraction(epsilon)))
        found = max(hockey(having, without, epsilon), hockey(without, having, epsilon))
        assert found <= claim + 1e-9
        assert claim <= found + 1e-3


def test_stated_at_one_epsilon_the_gaussian_needs_less() -> None:
    for keys in (1, 4):
        whole = NoisyThreshold.calibrate(epsilon=1, delta=1e-5, keys=keys, noise="gaussian")
        alone = NoisyThreshold.calibrate(epsilon=1, delta=1e-5, keys=keys, noise="gaussian", alone=True)
        assert alone.scale < whole.scale
        assert alone.threshold < whole.threshold
        for found in (whole, alone):
            assert found.loss.epsilon(1e-5).upper <= 1
            assert NoisyThreshold.from_json(found.to_json()) == found


def test_for_one_key_the_gaussian_is_as_large_as_either_part_alone_asks() -> None:
    """scale of Balle and Wang 2018; P(1 + noise ≥ T) ≤ δ."""
    found = NoisyThreshold.calibrate(epsilon=1, delta=1e-5, noise="gaussian", alone=True)
    assert float(found.scale) == pytest.approx(3.7306316348, rel=1e-9)
    assert norm.sf((found.threshold - 1.5) / 3.7306316348) <= 1e-5
    assert norm.sf((found.threshold - 2.5) / 3.7306316348) > 1e-5


@pytest.mark.parametrize("keys", [1, 3, 50])
def test_the_laplace_threshold_is_that_of_the_formula(keys: int) -> None:
    """Pure noise of keys/ε; P(1 + noise ≥ T) ≤ 1 − (1 − δ)^{1/keys}."""
    found = NoisyThreshold.calibrate(epsilon=1, delta=1e-5, keys=keys)
    assert found.scale == keys
    assert found.loss.epsilon(1e-5).upper <= 1
    a, each = math.exp(-1 / keys), -math.expm1(math.log1p(-1e-5) / keys)
    assert a ** (found.threshold - 1) / (1 + a) <= each
    assert a ** (found.threshold - 2) / (1 + a) > each


def test_what_is_shown() -> None:
    mechanism = NoisyThreshold(scale=1, threshold=20)
    found = mechanism.release({"b": 10**6, "c": 0, "a": 10**6, "d": -5, "e": -(10**400)})
    assert list(found.columns) == ["key", "n", "n_low", "n_high"]
    assert list(found.columns["key"]) == ["a", "b"]
    assert len(mechanism.release({})) == 0
    assert len(NoisyThreshold(scale=1, threshold=1).release({"unseen": 0})) == 0


def test_a_wrong_bar_is_shown_no_more_often_than_it_says() -> None:
    """False-alarm rate 1e-7."""
    mechanism = NoisyThreshold(scale=3, threshold=4)
    for count in (1, 3, 10):
        found = mechanism.sample({"a": count}, 50_000)
        wrong = int(np.count_nonzero((found >= 4) & (np.abs(found - count) > mechanism.error(0.1))))
        assert binom.sf(wrong - 1, 50_000, 0.1) > 1e-7


@pytest.mark.parametrize(
    ("scale", "threshold", "keys"),
    [(0, 5, 1), (-1, 5, 1), (float("nan"), 5, 1), (float("inf"), 5, 1), (1, 0, 1), (1, 5, 0), (1, 2.5, 1)],
)
def test_bad_parameters_are_refused(scale: float, threshold: int, keys: int) -> None:
    with pytest.raises(InvalidArgument):
        NoisyThreshold(scale=scale, threshold=threshold, keys=keys)


def test_bad_promises_are_refused() -> None:
    for epsilon, failure in ((0, 1e-5), (1e-12, 1e-5), (1, 0), (1, 1), (float("nan"), 1e-5)):
        with pytest.raises(InvalidArgument, match="epsilon" if failure == 1e-5 else "delta"):
            NoisyThreshold.calibrate(epsilon=epsilon, delta=failure)
    with pytest.raises(InvalidArgument, match=r"threshold .* beyond"):
        NoisyThreshold.calibrate(epsilon=1e-8, delta=1e-300, keys=1000)
    with pytest.raises(InvalidArgument):
        NoisyThreshold.calibrate(epsilon=1, delta=1e-5, keys=65, noise="gaussian", alone=True)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("units", [2, *slow([5])])
def test_no_group_costs_more_than_its_claim(noise: Noise, units: int) -> None:
    """One key that all of them hold and nobody else."""
    mechanism = NoisyThreshold(scale=1, threshold=8, noise=noise)
    without, having = law(mechanism, 0), law(mechanism, units)
    claim = mechanism.loss.group(units)
    for epsilon in (0.0, 0.5, 2.0, 5.0, 20.0):
        found = max(hockey(having, without, epsilon), hockey(without, having, epsilon))
        assert found <= claim.delta(epsilon).upper + 1e-9
    # Its parts, each enlarged by itself, claim too little: under Laplace noise by far.
    assert noise == "gaussian" or mechanism.loss.loss.group(units).delta(20).upper < found
