"""Users rather than rows: each takes part as one, with rows of its own, and with so many at most."""

from __future__ import annotations

import json
import os
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from dalenius.learn.sampling import (
    Poisson,
    RandomAllocation,
    Sampling,
    TruncatedPoisson,
    WithoutReplacement,
    read,
)
from dalenius.losses import Gaussian
from dalenius.noise.source import Source
from dalenius.noise.stream import StreamKey

OWNERS = st.lists(st.integers(-5, 12), min_size=1, max_size=60)


def schemes(owners: list[int], most: int) -> list[Sampling]:
    units = np.array(owners)
    common: dict[str, Any] = {"steps": 3, "units": units, "rows_per_unit": most}
    count, rows = len(set(owners)), len(owners)
    half = -(-count // 2)
    return [
        Poisson(rows, batch_size=half, **common),
        Poisson(rows, batch_size=2, public_size=4, **common),
        TruncatedPoisson(rows, batch_size=half, cap=2, public_size=count, **common),
        RandomAllocation(rows, batch_size=half, **common),
        WithoutReplacement(rows, batch_size=half, **common),
    ]


@given(OWNERS, st.integers(1, 6), st.binary(min_size=8, max_size=8))
def test_a_unit_brings_rows_of_its_own_and_so_many_at_most(owners: list[int], most: int, seed: bytes) -> None:
    sizes = {owner: owners.count(owner) for owner in owners}
    for sampling in schemes(owners, most):
        batch = sampling.batch(1, Source(seed))
        assert batch.dtype == np.int64 and batch.ndim == 2 and batch.shape[1] == most
        seen = []
        for line in batch.tolist():
            rows = [row for row in line if row >= 0]
            (owner,) = {owners[row] for row in rows}
            assert len(set(rows)) == len(rows) == min(sizes[owner], most)
            assert line == rows + [-1] * (most - len(rows))
            seen.append(owner)
        assert len(set(seen)) == len(seen)
        assert np.array_equal(batch, sampling.batch(1, Source(seed)))


@given(OWNERS)
def test_an_epoch_takes_each_unit_once(owners: list[int]) -> None:
    sampling = RandomAllocation(len(owners), batch_size=1, epochs=1, units=np.array(owners), rows_per_unit=2)
    found = [sampling.batch(k, Source(b"an epoch"))[:, 0] for k in range(sampling.steps)]
    assert sampling.steps == len(set(owners))
    assert sorted(owners[row] for row in np.concatenate(found)) == sorted(set(owners))


def test_units_are_sampled_at_the_rate_of_units() -> None:
    """Whether a unit has one row or many; binomial, false alarm 2e-7."""
    owners = np.repeat(np.arange(30), np.arange(30) % 5 + 1)
    sampling = Poisson(owners.size, batch_size=12, steps=1500, public_size=48, units=owners, rows_per_unit=2)
    source, counts = Source(os.urandom(16)), np.zeros(30, int)
    for step in range(sampling.steps):
        counts[owners[sampling.batch(step, source)[:, 0]]] += 1
    tail = 1e-7 / 30
    assert sampling.loss(Gaussian(1)) == Gaussian(1).poisson(0.25) * 1500
    assert binom.ppf(tail, 1500, 0.25) <= counts.min() and counts.max() <= binom.isf(tail, 1500, 0.25)


@pytest.mark.parametrize("scheme", [Poisson, RandomAllocation])
def test_the_rows_of_a_large_unit_are_a_random_part(scheme: type[Sampling]) -> None:
    """χ² over all parts of two units, fresh in every step; false alarm 2e-7."""
    owners = np.array([7] * 5 + [3] * 4)
    sampling = scheme(9, batch_size=2, steps=3000, units=owners, rows_per_unit=2)
    key = StreamKey.fresh()
    found = [sampling.batch(k, key.stream(k)) for k in range(sampling.steps)]
    first, second = (np.sort(np.stack([batch[unit] for batch in found]), axis=1) for unit in (0, 1))
    for pairs, rows in ((first, range(5, 9)), (second, range(5))):
        parts = [tuple(part) for part in pairs.tolist()]
        seen = np.array([parts.count(part) for part in combinations(rows, 2)])
        expected = 3000 / seen.size
        assert seen.sum() == 3000
        assert chi2.sf(((seen - expected) ** 2 / expected).sum(), seen.size - 1) > 1e-7


def test_the_number_of_units_is_what_is_taken_as_public() -> None:
    owners = np.array([4, 4, 4, 9, 9, 1])
    sampling = Poisson(6, batch_size=1, steps=2, units=owners, rows_per_unit=2)
    assert sampling.size == 3 and sampling.rate.denominator == 3 and sampling.relation == "zero_out"
    assert sampling.notes[1:] == (
        "the number of units, 3, was taken as public; neighbours: zero_out",
        "sums are divided by the expected batch size, 1",
        "at most 2 rows of a unit in a step, chosen at random",
    )
    assert read(json.loads(json.dumps(sampling.plain())), rows=6, units=owners) == sampling
