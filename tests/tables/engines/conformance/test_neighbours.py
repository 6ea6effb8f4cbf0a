"""One unit never moves an answer by more than was charged: random questions on random neighbours."""

from __future__ import annotations

import pytest
from engines.conformance.pairs import tried
from engines.conformance.sites import PAIRS, SITES, Site, sized

from dalenius.tables.planning import plan as planning

TOGETHER = 5
"""Pairs in one test."""


@sized({name: PAIRS[name] // TOGETHER for name in SITES})
def test_neighbours_are_no_further_apart_than_charged(site: Site, number: int) -> None:
    for seed in range(number * TOGETHER, (number + 1) * TOGETHER):
        tried(site, seed)


@pytest.mark.slow
@sized({"duckdb": 200, "postgres": 400, "spark": 60}, first=10**6)
def test_neighbours_at_length(site: Site, number: int) -> None:
    for seed in range(number * TOGETHER, (number + 1) * TOGETHER):
        tried(site, seed)


def test_a_charge_that_is_too_small_would_be_noticed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search itself: with a part of the sensitivity charged, it finds neighbours too far apart."""
    norm = planning.norm
    monkeypatch.setattr(planning, "norm", lambda measure, bounding: norm(measure, bounding) / 4)
    with pytest.raises(AssertionError):
        for seed in range(6, 200):
            tried(site, seed)
