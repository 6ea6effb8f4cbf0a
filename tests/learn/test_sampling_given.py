"""Arguments beside a sampling that was made must say what it says: none is passed over."""

from __future__ import annotations

from typing import Any

import pytest

from dalenius.errors import InvalidArgument
from dalenius.learn.sampling.poisson import Poisson, TruncatedPoisson
from tests.learn.runs import data, network, run_of

ROWS = 30


@pytest.mark.parametrize(
    "other",
    [
        {"batch_size": 5},
        {"steps": 7},
        {"steps": None, "epochs": 9},
        {"public_size": 31},
        {"rows_per_unit": 2},
        {"cap": 12},
        {"bands": 2},
        {"units": list(range(ROWS))},
        {"units": [0] * ROWS, "rows_per_unit": 10},
    ],
    ids=lambda other: " and ".join(other),
)
def test_what_a_sampling_says_otherwise_is_refused(other: dict[str, Any]) -> None:
    sampling = Poisson(ROWS, batch_size=10, steps=2, public_size=ROWS)
    given = {"batch_size": 10, "steps": 2, "public_size": ROWS, "sampling": sampling} | other
    with pytest.raises(InvalidArgument) as error:
        run_of(network(), data(ROWS), **given)
    assert next(iter(name for name, value in other.items() if value is not None)) in str(error.value)


def test_the_same_is_accepted() -> None:
    sampling = TruncatedPoisson(ROWS, batch_size=10, steps=3, public_size=ROWS, cap=20)
    private = run_of(
        network(),
        data(ROWS),
        sampling=sampling,
        batch_size=10,
        epochs=1,
        steps=None,
        cap=20,
        public_size=ROWS,
    )
    assert private.sampling is sampling
