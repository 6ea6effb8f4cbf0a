"""What many reports cost: numbers by composition and by the law of a memo, and plain words."""

from __future__ import annotations

import math

import pytest

from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import BitFlips, KaryResponse, Rappor, what_reports_cost

CHROME = Rappor(width=128, hashes=2, cohorts=64, replaced=0.5, low=0.5, high=0.75)


def test_fresh_reports_add_up_and_memoised_ones_do_not() -> None:
    for one in (
        KaryResponse.calibrate(domain=9, epsilon=0.5),
        BitFlips.calibrate(domain=9, epsilon=0.5, chosen=4),
    ):
        costs = what_reports_cost(one, 365).epsilons
        assert costs["one"] == costs["memoised"] == costs["unbounded"] == pytest.approx(0.5, rel=1e-9)
        assert costs["fresh"] == pytest.approx(365 * 0.5, rel=1e-9) and costs["unbounded_fresh"] == math.inf


def test_reports_of_rappor_are_between_one_and_all() -> None:
    costs = what_reports_cost(CHROME, 7).epsilons
    assert costs["one"] < costs["memoised"] < costs["unbounded"] == pytest.approx(4 * math.log(3))
    assert costs["memoised"] < 7 * costs["one"] == pytest.approx(costs["fresh"], rel=1e-9)


def test_each_change_costs() -> None:
    one = KaryResponse.calibrate(domain=9, epsilon=0.5)
    with pytest.raises(NotSound, match="changed") as refusal:
        what_reports_cost(one, 365, changes=3)
    assert "change_times_public" in refusal.value.remedy
    costs = what_reports_cost(one, 365, changes=3, change_times_public=True)
    assert costs.epsilons["memoised"] == costs.epsilons["unbounded"] == pytest.approx(4 * 0.5, rel=1e-9)
    few = what_reports_cost(one, 2, changes=30, change_times_public=True)
    assert few.epsilons["memoised"] == pytest.approx(2 * 0.5, rel=1e-9)
    with pytest.raises(InvalidArgument, match="reports"):
        what_reports_cost(one, 0)


def test_it_is_said_in_words() -> None:
    said = str(what_reports_cost(CHROME, 365))
    for part in (
        "One report costs epsilon 1.075",
        "any number of them 4.395",
        "81.01 times",
        "there is no end to it",
    ):
        assert part in said, said
    assert "changes 2 times" in str(what_reports_cost(CHROME, 365, changes=2, change_times_public=True))
