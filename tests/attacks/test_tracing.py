"""Exact averages tell who was in a study; noisy ones tell no more than their loss allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalenius.attacks import trace
from dalenius.attacks.demo_tracing import trials
from dalenius.attacks.tracing import STATISTICS, homer, inner_product, likelihood_ratio
from dalenius.errors import InvalidArgument

PLACES, MEMBERS = 600, 40


def study(seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Members, as many others, and what is usual."""
    rng = np.random.default_rng(seed)
    usual = rng.uniform(0.1, 0.5, PLACES)
    people = rng.random((2 * MEMBERS, PLACES)) < usual
    return people[:MEMBERS], people[MEMBERS:], usual


def test_the_statistics_are_what_the_papers_say() -> None:
    y, own, usual = [1.0, 0.0], [0.5, 0.25], [0.25, 0.5]
    assert homer(y, own, usual) == pytest.approx((0.75 - 0.5) + (0.5 - 0.25))
    assert likelihood_ratio(y, own, usual) == pytest.approx(np.log(2) + np.log(1.5))
    assert inner_product(y, own, usual) == pytest.approx(0.75 * 0.25 + 0.5 * 0.25)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_exact_frequencies_tell_who_was_in_the_study(statistic: Any) -> None:
    members, others, usual = study()
    found = trace(members, others, study=members.mean(axis=0), reference=usual, statistic=statistic, seed=1)
    assert found.success > 0.9


def test_frequencies_of_others_tell_nothing() -> None:
    """Neither group is in the study, so scores are alike; data are fixed by their seeds."""
    members, others, usual = study()
    stranger = study(2)[0].mean(axis=0)
    found = trace(members, others, study=stranger, reference=usual, seed=1)
    assert found.low < 0.5 < found.high


@pytest.mark.parametrize("score", [homer, likelihood_ratio, inner_product])
def test_frequencies_of_nobody_and_of_everybody_give_finite_scores(score: Callable[..., Any]) -> None:
    assert np.isfinite(score([[0, 1], [1, 0]], [0.0, 1.0], [1.0, 0.0])).all()


def test_the_advantage_keeps_to_the_loss_and_exact_frequencies_do_not() -> None:
    """The lower end may fail. False-alarm rate: 1e-6; exact frequencies are fixed by the seed."""
    first, second = trials(160, rng=np.random.default_rng(3), confidence=1 - 2e-6)
    assert second.bound is not None
    assert second.within_bound
    assert first.advantage_low > second.bound
    assert second.figure is not None
    names = [series.name for series in second.figure.series]
    assert "the most that the loss allows" in names
    assert {first.name, second.name} < set(names)


def test_what_does_not_fit_is_refused() -> None:
    members, others, usual = study()
    with pytest.raises(InvalidArgument, match="places differ"):
        trace(members, others, study=usual[1:], reference=usual)
    with pytest.raises(InvalidArgument, match="statistic must be"):
        trace(members, others, study=usual, reference=usual, statistic="magic")
