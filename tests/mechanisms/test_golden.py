"""The JSON of mechanisms: golden files are read for ever, so a file here is never changed, only added."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dalenius.errors import InvalidArgument
from dalenius.learn.pate import ConfidentGNMax, GNMax
from dalenius.local import (
    BitFlips,
    CountMeanSketch,
    DuchiResponse,
    FragmentPuzzle,
    HaarRanges,
    HadamardResponse,
    HadamardSketch,
    HybridResponse,
    KaryResponse,
    LocalHashing,
    PiecewiseResponse,
    PrefixExtending,
    PrivUnit,
    ProjectiveResponse,
    Rappor,
    SquareWave,
    SubsetSelection,
    TreeRanges,
    UnaryEncoding,
)
from dalenius.mechanisms import (
    BoundedMean,
    BoundedSum,
    Covariance,
    DiscreteGaussian,
    Evaluation,
    Exponential,
    Gaussian,
    Histogram,
    Laplace,
    Marginals,
    Mechanism,
    NoisyThreshold,
    PartitionSelection,
    PermuteAndFlip,
    PrivateSelection,
    ProposeTestRelease,
    Quantile,
    Quantiles,
    RandomizedResponse,
    ReportNoisyMax,
    SampleAndAggregate,
    Skellam,
    SmoothMedian,
    SparseVector,
    Staircase,
    Thresholdout,
    TopK,
    TruncatedLaplace,
    Variance,
)
from dalenius.mechanisms.mechanism import _load_all
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.streams import (
    ContinualSum,
    DecayedSum,
    DistinctCount,
    EndlessSum,
    HeavyHitters,
    PanPrivateCount,
    PanPrivateDensity,
    TreeSum,
    WindowSum,
)

GOLDEN = Path(__file__).parent / "golden"
WHOLE: dict[str, Any] = {"grid": Grid(0), "exact": True}
SWAPPED = Sensitivity.of_number(4, relation="replace")
MECHANISMS: dict[str, Mechanism] = {
    "bit_flips": BitFlips(domain=32, chosen=4, own=Fraction(2, 3)),
    "bounded_mean": BoundedMean(lower=0, upper=1, scale=Fraction(7, 3), noise="gaussian", grid=Grid(-4)),
    "bounded_sum": BoundedSum(lower=-2, upper=3, scale=6, per_unit=2, relation="replace", grid=Grid(0)),
    "confident_gnmax_labels": ConfidentGNMax(
        threshold=200, test_scale=150, scale=40, queries=640, answers=286
    ),
    "continual_sum": ContinualSum(
        horizon=100, scale=9, decays=[0, Fraction(1, 2)], scales=[Fraction(1, 4)] * 2, largest=3, most=2
    ),
    "count_mean_sketch": CountMeanSketch(rows=64, columns=128, ratio=Fraction(5, 2)),
    "covariance": Covariance(lower=[0, -1], upper=[1, 2.5], scale=4, noise="laplace", bits=10),
    "decayed_sum": DecayedSum(
        horizon=50, decay=Fraction(9, 10), scale=4, decays=[0], scales=[Fraction(1, 4)], categories=7
    ),
    "discrete_gaussian": DiscreteGaussian(scale=4, sensitivity=Sensitivity(l0=3, linf=2), **WHOLE),
    "distinct_count": DistinctCount(epsilon=1, buckets=64, levels=20, salt=5),
    "endless_sum": EndlessSum(
        epoch=64,
        scale=9,
        total_scale=Fraction(19, 2),
        decays=[0, 0.5],
        scales=[0.25, 0.25],
        largest=3,
        most=2,
    ),
    "evaluation": Evaluation(classes=("no", "01", 7), scale=2, answer="confusion", relation="replace"),
    "exponential": Exponential(scale=2, sensitivity=1, monotone=True, grid=Grid(-3)),
    "fragment_puzzle": FragmentPuzzle(length=4, rows=64, columns=32, ratio=3, kept=16),
    "gaussian": Gaussian(scale=0.1, sensitivity=Sensitivity(l0=9, l2=1, relation="replace"), grid=Grid(-30)),
    "gnmax_labels": GNMax(scale=Fraction(81, 2), queries=1000, relation="replace"),
    "hadamard_response": HadamardResponse(domain=100, ratio=Fraction(27, 10), blocks=2),
    "heavy_hitters": HeavyHitters(epsilon=Fraction(1, 2), delta=1e-6, counters=30),
    "hadamard_sketch": HadamardSketch(rows=64, columns=128, ratio=3, relation="zero_out"),
    "histogram": Histogram(categories=["a", "1", 1], scale=2.5, l0=2, linf=3, other=True),
    "duchi_response": DuchiResponse(lower=0, upper=24, ratio=3, relation="zero_out"),
    "haar_ranges": HaarRanges(domain=100, ratio=Fraction(27, 10)),
    "hybrid_response": HybridResponse(
        lower=-1, upper=1, ratio=Fraction(27, 10), steps=1024, width=621, blend=0.39
    ),
    "piecewise_response": PiecewiseResponse(lower=0.1, upper=2.5, ratio=3, steps=16, width=9),
    "privunit": PrivUnit(dimension=10, radius=0.5, ratio=3, cut=Fraction(3, 8)),
    "square_wave": SquareWave(lower=0, upper=1, ratio=3, bins=64, width=33),
    "tree_ranges": TreeRanges(
        domain=7, branching=4, oracles=(KaryResponse(domain=2, ratio=3), KaryResponse(domain=7, ratio=3))
    ),
    "kary_response": KaryResponse(domain=5, ratio=3, relation="zero_out"),
    "laplace": Laplace(scale=Fraction(1, 3), sensitivity=1, grid=Grid(-14)),
    "local_hashing": LocalHashing(domain=1000, ratio=Fraction(8, 3), values=4),
    "marginals": Marginals(
        columns={"sex": 2, "region": 16}, marginals=[["sex", "region"], ["sex"]], scale=5, weights=[1, 0.5]
    ),
    "noisy_threshold": NoisyThreshold(scale=1, threshold=9, noise="gaussian"),
    "pan_private_count": PanPrivateCount(horizon=1000, state_scale=10, output_scale=20, largest=2),
    "pan_private_density": PanPrivateDensity(
        items=500, state_epsilon=Fraction(1, 2), answer_epsilon=Fraction(1, 3), answers=2, intrusions=1
    ),
    "partition_selection": PartitionSelection(epsilon=1, delta=1e-6, keys=2),
    "permute_and_flip": PermuteAndFlip(scale=2, sensitivity=0.5, grid=Grid(-8)),
    "prefix_extending": PrefixExtending(length=8, rows=64, columns=32, ratio=Fraction(7, 2), kept=16),
    "private_selection": PrivateSelection(
        base=Laplace(scale=1, sensitivity=2, **WHOLE), stop=0.25, shape=0.5
    ),
    "projective_response": ProjectiveResponse(domain=1000, ratio=50, order=53),
    "propose_test_release": ProposeTestRelease(
        mechanism=Gaussian(scale=2, sensitivity=1, grid=Grid(-3)), test_scale=1, threshold=4
    ),
    "quantile": Quantile(level=0.25, scale=2, lower=0, upper=15, grid=Grid(0)),
    "quantiles": Quantiles(levels=[0.25, 0.5], scale=2, lower=0, upper=15, grid=Grid(0)),
    "randomized_response": RandomizedResponse(randomize=Fraction(1, 3), categories=5),
    "rappor": Rappor(width=128, hashes=2, cohorts=64, replaced=0.5, low=0.25, high=0.75),
    "report_noisy_max": ReportNoisyMax(scale=1, sensitivity=1, grid=Grid(0)),
    "sample_and_aggregate": SampleAndAggregate(
        mechanism=Gaussian(scale=4, sensitivity=SWAPPED, grid=Grid(-3), exact=True),
        blocks=2,
        lower=0,
        upper=4,
        default=1,
    ),
    "skellam": Skellam(scale=1.5, sensitivity=Sensitivity(l0=1, linf=1, relation="zero_out"), **WHOLE),
    "smooth_median": SmoothMedian(epsilon=1, ratio=0.75, scale=2, lower=0, upper=64, grid=Grid(0)),
    "sparse_vector": SparseVector(scale=2, threshold_scale=1, sensitivity=1, threshold=5, **WHOLE),
    "staircase": Staircase(epsilon=1, width=2, sensitivity=5, **WHOLE),
    "subset_selection": SubsetSelection(domain=20, ratio=3, chosen=5),
    "thresholdout": Thresholdout(records=10, scale=Fraction(1, 15), threshold=0.2, grid=Grid(0)),
    "top_k": TopK(count=2, scale=2, sensitivity=1, grid=Grid(0)),
    "tree_sum": TreeSum(scale=8, horizon=64, law="laplace", estimator="full", separation=4, most=3),
    "truncated_laplace": TruncatedLaplace(scale=3, bound=8, sensitivity=3, **WHOLE),
    "unary_encoding": UnaryEncoding(domain=8, own=Fraction(1, 2), other=Fraction(1, 4)),
    "variance": Variance(lower=0, upper=2, scale=4, per_unit=3, grid=Grid(-6)),
    "window_sum": WindowSum(window=24, scale=6, largest=10),
}


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_a_golden_file_means_what_it_meant(name: str) -> None:
    text = (GOLDEN / f"{name}.json").read_text().strip()
    assert Mechanism.from_json(text) == MECHANISMS[name]
    assert MECHANISMS[name].to_json() == text


def test_every_kind_has_a_golden_file() -> None:
    _load_all()
    ours = {kind for (kind, _), cls in Mechanism.kinds.items() if cls.__module__.startswith("dalenius.")}
    assert ours == set(MECHANISMS) == {path.stem for path in GOLDEN.glob("*.json")}


ADDITIVE: list[tuple[type[Any], dict[str, Any]]] = [
    (DiscreteGaussian, {"scale": 2}),
    (Gaussian, {"scale": 2, **WHOLE}),
    (Laplace, {"scale": 2, **WHOLE}),
    (Skellam, {"scale": 2}),
    (Staircase, {"epsilon": 1, "width": 1}),
    (TruncatedLaplace, {"scale": 2, "bound": 9}),
]
CALIBRATED: list[Any] = [
    DiscreteGaussian.calibrate(epsilon=1, delta=0.01, sensitivity=1),
    Gaussian.calibrate(epsilon=1, delta=0.01, sensitivity=1, **WHOLE),
    Gaussian.textbook(epsilon=0.5, delta=0.01, sensitivity=1, **WHOLE),
    Laplace.calibrate(epsilon=1, sensitivity=1, **WHOLE),
    Laplace.calibrate(epsilon=1, delta=0.01, sensitivity=1, **WHOLE),
    Skellam.calibrate(epsilon=1, delta=0.01, sensitivity=1),
    Staircase.calibrate(epsilon=1, sensitivity=1),
    TruncatedLaplace.calibrate(epsilon=1, delta=0.01, sensitivity=1),
]


@pytest.mark.parametrize(
    "mechanism", [kind(sensitivity=1, **given) for kind, given in ADDITIVE] + CALIBRATED, ids=str
)
def test_the_sensitivity_of_one_number_serves_no_vector_after_the_disk(mechanism: Any) -> None:
    """It would be charged as if one entry could change."""
    for found in (mechanism, Mechanism.from_json(mechanism.to_json())):
        assert found.sensitivity.of_one_number
        assert len(found.release(0)) == 1
        with pytest.raises(InvalidArgument, match="l0="):
            found.release([0, 0])


@pytest.mark.parametrize(("kind", "given"), ADDITIVE)
def test_a_vector_of_which_one_entry_changes_stays_one(kind: type[Any], given: dict[str, Any]) -> None:
    stated = kind(sensitivity=Sensitivity(l0=1, linf=1), **given)
    again: Any = Mechanism.from_json(stated.to_json())
    assert again == stated != kind(sensitivity=1, **given)
    assert len(again.release([0, 0])) == 2


@pytest.mark.parametrize(("kind", "given"), ADDITIVE)
def test_a_text_that_does_not_say_is_read_as_of_one_number(kind: type[Any], given: dict[str, Any]) -> None:
    """As written before the two were told apart."""
    text = kind(sensitivity=Sensitivity(l0=1, linf=1), **given).to_json()
    early = text.replace('"of_one_number":false,', "")
    assert early != text
    found: Any = Mechanism.from_json(early)
    assert found == kind(sensitivity=1, **given)
    with pytest.raises(InvalidArgument, match="l0="):
        found.release([0, 0])
