"""The comparison: what applies is shown, bounds lie above the truth, approximations are marked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.losses import Approximate, Gaussian, Laplace, Loss, Pure, ZeroConcentrated, compare
from dalenius.losses.comparison import Comparison

SAMPLED = Gaussian(4).poisson(0.01) * 10_000
CASES = {
    "sampled": SAMPLED,
    "gaussian": Gaussian(2) * 3,
    "one gaussian": Gaussian(2),
    "laplace": Laplace(5) * 20,
    "pure": Pure(0.1) * 100,
    "approximate": Approximate(0.1, delta=1e-9) * 50,
    "unequal": Pure(0.1) * 30 + Pure(0.25) * 10 + Approximate(0.05, delta=1e-9) * 5,
    "mixed": Gaussian(10) * 3 + Laplace(10) * 3,
    "concentrated": ZeroConcentrated(0.01) * 4,
}


def named(comparison: Comparison) -> dict[str, float]:
    return {row.name: row.epsilon for row in comparison.rows}


@pytest.mark.parametrize("loss", CASES.values(), ids=CASES)
def test_no_bound_lies_below_the_truth(loss: Loss) -> None:
    comparison = compare(loss, delta=1e-5)
    assert comparison.rows[0].name == "certified"
    for row in comparison.rows:
        if row.status != "approximation":
            assert row.epsilon >= comparison.truth.lower, row.name


def test_the_theorems_of_a_sampled_gaussian() -> None:
    comparison = compare(SAMPLED, delta=1e-5)
    rows = named(comparison)
    assert rows["certified"] == pytest.approx(0.9468668008, abs=1e-9)
    assert rows["moments"] == pytest.approx(1.2586, abs=1e-4)
    assert rows["certified"] < rows["moments, sharper"] < rows["moments"] < rows["advanced"] < rows["basic"]


def test_the_central_limit_is_an_approximation_and_below_the_truth_here() -> None:
    comparison = compare(SAMPLED, delta=1e-5)
    (limit,) = (row for row in comparison.rows if row.name == "gdp_clt")
    assert limit.status == "approximation"
    assert limit.epsilon < comparison.truth.lower


def test_optimal_composition_of_pure_losses_is_exact() -> None:
    comparison = compare(Pure(0.1) * 1000, delta=1e-6)
    (best,) = (row for row in comparison.rows if row.name == "optimal")
    assert best.status == "exact"
    assert best.ratio == pytest.approx(1)


def test_optimal_composition_of_other_losses_is_only_a_bound() -> None:
    statuses = {row.name: row.status for row in compare(Laplace(5) * 20, delta=1e-5).rows}
    assert statuses["optimal"] == "upper bound"


def test_without_delta_only_pure_theorems_speak() -> None:
    assert set(named(compare(Pure(0.1) * 10, delta=0))) == {"certified", "basic", "optimal"}
    assert named(compare(Pure(0.1) * 10, delta=0))["basic"] == 1.0


def test_one_release_needs_no_composition() -> None:
    assert not {"advanced", "optimal"} & set(named(compare(Gaussian(2), delta=1e-5)))


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 30)), min_size=1, max_size=3),
    st.sampled_from([1e-4, 1e-8]),
)
def test_unequal_pure_losses_keep_the_order_of_the_theorems(
    parts: list[tuple[int, int]], delta: float
) -> None:
    loss = Pure(parts[0][0] / 100) * parts[0][1]
    for hundredths, count in parts[1:]:
        loss += Pure(hundredths / 100) * count
    comparison = compare(loss, delta=delta)
    rows = named(comparison)
    best = rows.get("optimal", rows.get("optimal_heterogeneous", rows["basic"]))
    assert comparison.truth.lower <= best * (1 + 1e-12)
    assert best <= rows["basic"] * (1 + 1e-12)


def test_a_comparison_prints_and_serializes() -> None:
    comparison = compare(Pure(0.1) * 100, delta=1e-6)
    assert "upper bound" in str(comparison)
    fields = json.loads(json.dumps(comparison.to_dict()))
    assert set(fields["rows"][0]) == {"name", "epsilon", "ratio", "status", "reference"}
