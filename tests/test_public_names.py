"""Every public name is exported on purpose, documented, and never rebound by an import."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

EXPORTED = {
    "dalenius": {
        "Audit",
        "Bound",
        "Bounds",
        "Budget",
        "Figure",
        "Ledger",
        "Loss",
        "Release",
        "Unit",
        "agg",
        "audit",
        "audit_training",
        "count",
        "gaussian",
        "histogram",
        "laplace",
        "mean",
        "median",
        "people_needed",
        "sum",
        "table",
    },
    "dalenius.attacks": {
        "Attack",
        "Block",
        "Records",
        "Shadows",
        "Uniqueness",
        "attribute_from_counts",
        "attribute_from_model",
        "by_difference",
        "demo",
        "difference",
        "inversion_attack",
        "invert",
        "judge",
        "likeliest_block",
        "link",
        "links",
        "lira",
        "loss_threshold",
        "mislabelled",
        "precision_attack",
        "random_groups",
        "reconstruct",
        "rmia",
        "shadow_attack",
        "solve_block",
        "suppressed",
        "timing_attack",
        "trace",
        "train_shadows",
        "uniqueness",
    },
    "dalenius.audits": {
        "Audit",
        "Recorder",
        "TrainingAudit",
        "audit",
        "audit_training",
        "one_run",
        "replay",
    },
    "dalenius.learn": {
        "Absolute",
        "Adam",
        "Automatic",
        "Average",
        "Ensemble",
        "Flat",
        "Pad",
        "PerLayer",
        "Private",
        "PrivateOptimizer",
        "Quantile",
        "Scattering",
        "Tuned",
        "evaluate",
        "fit",
        "mean_of",
        "normalized",
        "read_receipt",
        "register_function",
        "replaced",
        "scattering",
        "serve",
        "tune",
        "tuning_loss",
    },
    "dalenius.learn.pate": {
        "ConfidentGNMax",
        "GNMax",
        "Labelling",
        "Network",
        "Sanitizer",
        "Student",
        "Teachers",
    },
    "dalenius.learn.sampling": {
        "Cyclic",
        "Poisson",
        "RandomAllocation",
        "Sampling",
        "TruncatedPoisson",
        "WithoutReplacement",
        "read",
    },
    "dalenius.learn.tabular": {
        "BoostedTrees",
        "CategoricalNB",
        "GaussianNB",
        "KMeans",
        "LinearRegression",
        "LogisticRegression",
        "PCA",
    },
    "dalenius.ledger": {
        "Account",
        "Anchor",
        "Budget",
        "Entry",
        "Ledger",
        "Left",
        "Reservation",
        "Spent",
        "is_signed",
        "new_key",
    },
    "dalenius.local": {
        "Batch",
        "BitFlips",
        "Choice",
        "Client",
        "Costs",
        "CountMeanSketch",
        "DuchiResponse",
        "Estimator",
        "FragmentPuzzle",
        "FrequencyOracle",
        "HaarRanges",
        "HadamardResponse",
        "HadamardSketch",
        "KaryResponse",
        "LocalHashing",
        "Plan",
        "PrefixExtending",
        "HybridResponse",
        "PiecewiseResponse",
        "PrivUnit",
        "ProjectiveResponse",
        "Randomizer",
        "Rappor",
        "Reports",
        "Shuffler",
        "SquareWave",
        "SubsetSelection",
        "TreeRanges",
        "UnaryEncoding",
        "decode",
        "on_simplex",
        "plan",
        "consistent",
        "distribution",
        "range_shares",
        "simulate",
        "what_reports_cost",
    },
    "dalenius.mechanisms": {
        "BoundedMean",
        "BoundedSum",
        "Covariance",
        "DiscreteGaussian",
        "Evaluation",
        "Exponential",
        "Gaussian",
        "Histogram",
        "Laplace",
        "Marginals",
        "Mechanism",
        "NoisyThreshold",
        "PartitionSelection",
        "PermuteAndFlip",
        "PrivateSelection",
        "ProposeTestRelease",
        "Quantile",
        "Quantiles",
        "RandomizedResponse",
        "ReportNoisyMax",
        "SampleAndAggregate",
        "Session",
        "Skellam",
        "SmoothMedian",
        "SparseVector",
        "Staircase",
        "Thresholdout",
        "TopK",
        "TruncatedLaplace",
        "Variance",
    },
    "dalenius.noise": {
        "bernoulli",
        "bernoulli_exp",
        "binomial",
        "discrete_gaussian",
        "discrete_laplace",
        "exponential_mechanism",
        "geometric",
        "noisy_max",
        "permute_and_flip",
        "rounded_gaussian",
        "seeded",
        "skellam",
        "tainted",
        "uniform",
    },
    "dalenius.privacy": {"Grid", "Sensitivity", "Unit", "clip_norm", "exact_sum", "steps_between"},
    "dalenius.report": set(),
    "dalenius.report.study": {"Data", "Payment", "Run", "Study", "read", "run"},
    "dalenius.streams": {
        "ContinualSum",
        "Counter",
        "DecayedSum",
        "DistinctCount",
        "EndlessSum",
        "HeavyHitters",
        "PanPrivateCount",
        "PanPrivateDensity",
        "RateAlarm",
        "StreamQuantiles",
        "TreeSum",
        "WindowSum",
        "load",
    },
    "dalenius.tables": {"Asked", "Bounds", "Explanation", "Table"},
    "dalenius.losses": {
        "Approximate",
        "Bound",
        "BoundedRange",
        "Comparison",
        "Composition",
        "CorrelatedGaussian",
        "Cost",
        "DiscreteGaussian",
        "DiscreteLaplace",
        "DiscretePair",
        "Filter",
        "GNMax",
        "Gaussian",
        "GaussianDP",
        "GaussianMixture",
        "Joint",
        "LNMax",
        "Laplace",
        "LastIterate",
        "LocalRandomizer",
        "Loss",
        "MeanConcentrated",
        "Mixture",
        "Odometer",
        "PrivacyLossDistribution",
        "Pure",
        "RandomizedResponse",
        "Renyi",
        "Skellam",
        "SmoothGaussian",
        "TradeoffCurve",
        "ZeroConcentrated",
        "calibrate",
        "compare",
        "compose",
    },
    "dalenius.losses.generalization": {
        "Drift",
        "Gap",
        "Plan",
        "drift",
        "generalization",
        "most_queries",
        "plan",
    },
    "dalenius.losses.individuals": {"IndividualFilter", "PersonalSampling"},
    "dalenius.losses.pate": {
        "ConfidentVotes",
        "GNMax",
        "LNMax",
        "Sanitized",
        "Sanitizer",
        "SmoothGaussian",
        "Votes",
        "confident_votes",
    },
    "dalenius.losses.shuffling": {"LocalRandomizer", "SameOthers", "Shuffled", "shuffle"},
    "dalenius.losses.streams": {
        "Banded",
        "BandedInverse",
        "BandedSquareRoot",
        "BandedToeplitz",
        "BinaryTree",
        "BufferedToeplitz",
        "CorrelatedGaussian",
        "Errors",
        "Factorization",
        "Participation",
        "SquareRoot",
        "Toeplitz",
        "cyclic",
        "min_separation",
        "once",
    },
}
NAMES = [(package, name) for package, names in EXPORTED.items() for name in sorted(names)]

REBOUND = """
import importlib, pkgutil, types
import dalenius
for module in pkgutil.walk_packages(dalenius.__path__, "dalenius."):
    # Kernels of a GPU need Triton, which is not installed where there is none.
    if not module.name.endswith("__main__") and not module.name.startswith("dalenius.learn.gpu."):
        importlib.import_module(module.name)
for package in {packages!r}:
    exports = importlib.import_module(package)
    for name in exports.__all__:
        if isinstance(getattr(exports, name), types.ModuleType):
            print(package, name)
"""


@pytest.mark.parametrize("package", EXPORTED)
def test_what_is_exported_is_what_is_listed_here(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) == EXPORTED[package]
    assert len(module.__all__) == len(set(module.__all__))
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_a_public_name_is_documented(package: str, name: str) -> None:
    value = getattr(importlib.import_module(package), name)
    assert inspect.getdoc(value), f"{package}.{name} has no docstring"
    members = vars(value).items() if inspect.isclass(value) else ()
    for member, what in members:
        if not member.startswith("_") and (callable(what) or isinstance(what, property | staticmethod)):
            assert inspect.getdoc(getattr(value, member)), f"{package}.{name}.{member} has no docstring"


def test_a_name_that_is_not_listed_is_not_there() -> None:
    for package in EXPORTED:
        assert not hasattr(importlib.import_module(package), "nonsense")


@pytest.mark.parametrize("package", EXPORTED)
def test_no_exported_name_is_also_a_module(package: str) -> None:
    modules = {module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__)}
    assert EXPORTED[package] & modules == set()


def test_importing_every_module_rebinds_no_exported_name() -> None:
    code = REBOUND.format(packages=list(EXPORTED))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
