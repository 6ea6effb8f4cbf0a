from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from contract import ALARM, chi_square, divergence
from scipy.stats import binom

from dalenius.errors import InvalidArgument
from dalenius.mechanisms import Laplace
from dalenius.mechanisms.sample_and_aggregate import SampleAndAggregate
from dalenius.privacy.quantized import Grid


def three(**changes: Any) -> SampleAndAggregate:
    given = {"epsilon": 1, "blocks": 3, "lower": 0, "upper": 2, "grid": Grid(0)}
    return SampleAndAggregate.calibrate(**{**given, **changes})


def test_no_neighbours_beat_the_claim() -> None:
    """A unit that comes, beside up to two others, with any values: beyond the bounds, none, not numbers."""
    mechanism = three(relation="add_remove")
    values = (-1e9, 0.0, 1.0, 1e9, np.nan)
    others = [[], *([v] for v in values), [0.0, 1e9]]
    for rest in others:
        without = mechanism.probabilities(np.array(rest, dtype=np.float64))
        for new in values:
            with_ = mechanism.probabilities(np.array([*rest, new]))
            assert without is not None
            assert with_ is not None
            for epsilon in (0.0, 0.5, 1.0):
                claim = mechanism.loss.delta(epsilon).upper + 1e-12
                assert divergence(without, with_, epsilon) <= claim
                assert divergence(with_, without, epsilon) <= claim


def crash(block: Any) -> float:
    raise RuntimeError(f"a secret: {block}")


def leave(block: Any) -> float:
    raise SystemExit(7)


def warn(block: Any) -> float:
    warnings.warn(f"a secret: {block}", stacklevel=1)
    return float(np.log(np.zeros(1) - 1)[0])


@pytest.mark.parametrize("function", [crash, leave, warn, lambda block: "text", lambda block: None, np.array])
def test_a_block_that_fails_gives_the_default(function: Callable[[Any], Any]) -> None:
    """No exception and no warning passes, whatever the function does. False alarm 1e-9."""
    mechanism = SampleAndAggregate.calibrate(epsilon=1000, blocks=10, lower=0, upper=10, default=7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mechanism.release(list(range(40)), function=function)
    assert found.value == pytest.approx(7, abs=0.1)


def test_results_are_clipped() -> None:
    mechanism = SampleAndAggregate.calibrate(epsilon=1000, blocks=10, lower=0, upper=10)
    for function, expected in (
        (lambda b: np.inf, 10),
        (lambda b: -1e300, 0),
        (lambda b: Fraction(5, 2), 2.5),
    ):
        assert mechanism.release([1, 2, 3], function=function).value == pytest.approx(expected, abs=0.1)


def test_every_unit_is_in_one_block() -> None:
    seen: list[int] = []

    def count(block: list[int]) -> int:
        seen.extend(block)
        return len(block)

    three(upper=100).release(list(range(50)), function=count)
    assert sorted(seen) == list(range(50))
    blocks: list[int] = []
    three(upper=100).release(np.arange(60), function=lambda block: blocks.append(block.size) or 0)
    assert len(blocks) == 3
    assert sum(blocks) == 60


def test_error_bars_cover_the_mean_of_the_results() -> None:
    """False alarm 1e-7."""
    mechanism = SampleAndAggregate.calibrate(epsilon=1, blocks=4, lower=0, upper=8, default=0, grid=Grid(0))
    misses = 0
    for _ in range(1000):
        found = mechanism.release([], function=np.mean)
        misses += not found.low <= 0 <= found.high
    assert binom.sf(misses - 1, 1000, 0.05) > ALARM
    assert found.high - found.value == pytest.approx(mechanism.error(0.05))
    assert mechanism.scale == 2


def test_releases_follow_the_law() -> None:
    """Two units that share a block or do not; false alarm 1e-7."""
    mechanism = three(epsilon=4, default=0)
    units = np.array([2.0, 2.0])
    law = mechanism.probabilities(units)
    assert law is not None
    draws = np.array([mechanism.release(units).value for _ in range(1500)])
    assert chi_square(draws, law) > ALARM


def test_odd_units_are_units_like_others() -> None:
    mechanism = three()
    for units in ([], [None, "x", 3], np.array([np.nan, np.inf]), np.zeros((5, 2)), ((1, 2), (3,))):
        assert len(mechanism.release(units)) == 1
    with pytest.raises(InvalidArgument):
        mechanism.release("text")


@pytest.mark.parametrize("name", ["epsilon", "blocks", "lower", "upper", "default"])
@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf")])
def test_bad_parameters_are_refused_by_name(name: str, bad: float) -> None:
    if (name, bad) == ("lower", -1):
        bad = 3
    with pytest.raises(InvalidArgument, match=name):
        three(**{name: bad})


def test_the_inner_mechanism_covers_the_bounds() -> None:
    for inner in (
        Laplace(scale=1, sensitivity=1, grid=Grid(0), exact=True),
        Laplace(scale=1, sensitivity=9, grid=Grid(0)),
    ):
        with pytest.raises(InvalidArgument, match="mechanism"):
            SampleAndAggregate(mechanism=inner, blocks=2, lower=0, upper=2, default=1)


class Brittle(Sequence[int]):
    """Units that cannot all be read."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, at: Any) -> int:
        raise KeyError(at)


def test_units_that_cannot_be_read_are_blocks_that_fail() -> None:
    """False alarm 1e-9."""
    mechanism = SampleAndAggregate.calibrate(epsilon=1000, blocks=10, lower=0, upper=10, default=7)
    assert mechanism.release(Brittle()).value == pytest.approx(7, abs=0.1)


@pytest.mark.parametrize(("blocks", "share"), [(1, 0.999), (2, 0.99), (3, 0.85)])
def test_a_default_between_the_ends_hides_nothing(blocks: int, share: float) -> None:
    for default in (1, Fraction(3, 2)):
        mechanism = three(blocks=blocks, default=default, relation="add_remove", grid=Grid(-1))
        pair = [mechanism.probabilities(value) for value in mechanism.worst_case()]
        for epsilon in (0.0, 0.5):
            claim = mechanism.loss.delta(epsilon).upper
            found = max(divergence(*pair, epsilon), divergence(*pair[::-1], epsilon))
            assert share * claim <= found <= claim + 1e-9


def test_under_zero_out_a_null_unit_stays_a_unit() -> None:
    first, second = three(relation="zero_out", default=0).worst_case()
    assert np.isnan(first).tolist() == [True]
    assert second.tolist() == [2.0]
