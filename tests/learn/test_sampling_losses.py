"""A sampling costs what its theorem says, refuses what has none, and shows public numbers only."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, NotSound, RelationMismatch, UnknownKind
from dalenius.learn.sampling import (
    Poisson,
    RandomAllocation,
    TruncatedPoisson,
    WithoutReplacement,
    read,
)
from dalenius.losses import Gaussian, Laplace
from dalenius.losses.loss import Loss
from dalenius.noise.source import Source

from .test_sampling import MADE, ROWS

NULL: dict[str, Any] = {"relation": "zero_out"}


def test_losses_are_those_of_the_theorems() -> None:
    step, null, rate = Gaussian(1.5), Gaussian(1.5, **NULL), Fraction(1, 60)
    once: dict[str, Loss] = {
        "poisson": step.poisson(rate),
        "counted": null.poisson(Fraction(100, ROWS)),
        "truncated": step.truncated_poisson(rate, population=7_000, cap=98),
        "allocation": step.poisson(rate),
        "fixed": step.under("replace").without_replacement(100, ROWS),
    }
    steps = {"poisson": 120, "counted": 7, "truncated": 9, "allocation": 180, "fixed": 62}
    for name, again in once.items():
        sampling = MADE[name]()
        run = step.random_allocation(60) * 3 if name == "allocation" else again * steps[name]
        assert (sampling.steps, sampling.again(step), sampling.loss(step)) == (steps[name], again, run)
        assert sampling.relation == run.relation == again.relation


def test_an_epoch_that_is_begun_is_charged() -> None:
    sampling = RandomAllocation(100, batch_size=10, steps=21)
    assert sampling.loss(Gaussian(1)) == Gaussian(1, **NULL).random_allocation(10) * 3
    assert [sampling.period(k) for k in (0, 9, 10, 20)] == [0, 0, 1, 2]


def test_a_step_of_several_releases_is_restated_for_null_units() -> None:
    counted = Poisson(100, batch_size=100, steps=3)
    both = Gaussian(1, **NULL) + Laplace(2, **NULL)
    assert counted.loss(Gaussian(1) + Laplace(2)) == both * 3 == counted.loss(both)
    with pytest.raises(NotSound, match='relation="zero_out"'):
        counted.loss(Gaussian(1).poisson(0.5))
    with pytest.raises(RelationMismatch):
        MADE["poisson"]().loss(Gaussian(1, **NULL))


def test_full_batches_are_everyone() -> None:
    sampling = Poisson(50, batch_size=50, epochs=4)
    assert sampling.steps == 4 and sampling.loss(Gaussian(1)) == Gaussian(1, **NULL) * 4
    assert sampling.batch(3, Source(b"a test")).tolist() == list(range(50))


@given(st.integers(1, 500), st.integers(1, 500), st.fractions("1/10", 5), st.integers(0, 600))
def test_steps_and_rate_follow_from_public_numbers(
    size: int, batch: int, epochs: Fraction, rows: int
) -> None:
    batch = min(batch, size)
    for made in (Poisson, RandomAllocation):
        one = made(rows, batch_size=batch, epochs=epochs, public_size=size)
        assert one == made(rows + 1, batch_size=batch, epochs=epochs, public_size=size)
        assert one.steps - 1 < epochs / one.rate <= one.steps
        assert one.expected == one.rate * size <= batch


def test_what_has_no_bound_is_refused_with_what_has() -> None:
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: Poisson(10, batch_size=1, steps=1, relation="add_remove"), "Declare public_size"),
        (lambda: Poisson(10, batch_size=1, steps=1, relation="replace"), "without replacement"),
        (lambda: RandomAllocation(10, batch_size=1, steps=1, relation="replace"), "public_size"),
        (lambda: TruncatedPoisson(10, batch_size=1, steps=1, cap=5), "Declare public_size"),
        (lambda: WithoutReplacement(10, batch_size=1, steps=1, relation="add_remove"), "Use Poisson"),
        (lambda: WithoutReplacement(10, batch_size=1, steps=1, relation="zero_out"), "Use Poisson"),
    ]
    for call, remedy in refused:
        with pytest.raises(NotSound, match=remedy):
            call()


def test_arguments_are_checked_by_name() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"steps": None}, "steps and epochs"),
        ({"epochs": 2}, "steps and epochs"),
        ({"batch_size": 11}, "batch_size"),
        ({"batch_size": 0}, "batch_size"),
        ({"public_size": 0}, "public_size"),
        ({"rows_per_unit": 2}, "units and rows_per_unit"),
        ({"units": np.arange(9), "rows_per_unit": 2}, "one for each row"),
        ({"units": np.arange(10.0), "rows_per_unit": 2}, "whole numbers"),
        ({"rows": -1}, "rows must be"),
        ({"rows": 0}, "no rows"),
    ]
    for given_, text in wrong:
        with pytest.raises(InvalidArgument, match=text):
            Poisson(**{"rows": 10, "batch_size": 2, "steps": 3, **given_})
    with pytest.raises(InvalidArgument, match="population"):
        TruncatedPoisson(11, batch_size=2, steps=3, cap=5, public_size=10)


@pytest.mark.parametrize("name", MADE)
def test_no_step_beyond_those_charged_is_drawn(name: str) -> None:
    sampling = MADE[name]()
    for step in (-1, sampling.steps):
        with pytest.raises(InvalidArgument, match="step"):
            sampling.batch(step, Source(b"a test"))


@pytest.mark.parametrize("name", MADE)
def test_it_is_read_as_it_was_written(name: str) -> None:
    sampling = MADE[name]()
    again = read(json.loads(json.dumps(sampling.plain())), rows=ROWS)
    assert again == sampling and hash(again) == hash(sampling)
    assert np.array_equal(again.batch(1, Source(b"a")), sampling.batch(1, Source(b"a")))


def test_what_cannot_be_read_is_refused() -> None:
    counted = MADE["counted"]().plain()
    with pytest.raises(UnknownKind):
        read({**counted, "kind": "shuffled"}, rows=ROWS)
    with pytest.raises(UnknownKind):
        read({**counted, "version": 2}, rows=ROWS)
    with pytest.raises(InvalidArgument, match="missing or unknown"):
        read({**counted, "seed": 1}, rows=ROWS)
    with pytest.raises(InvalidArgument, match="another now"):
        read(counted, rows=ROWS + 1)


def test_the_number_of_rows_shows_only_where_it_is_public() -> None:
    for name, public in {"poisson": False, "truncated": False, "allocation": False, "counted": True}.items():
        sampling = MADE[name]()
        shown = f"{sampling!r} {sampling.plain()} {sampling.notes} {sampling.expected}"
        assert (str(ROWS) in shown) == public
    assert any("6123, was taken as public; neighbours: zero_out" in note for note in MADE["counted"]().notes)
