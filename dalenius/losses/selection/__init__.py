"""The best of a random number of private runs, and what noisy maxima and thresholds cost."""

from dalenius.losses.selection.random_runs import PoissonSelected, Selected, selected

__all__ = ["PoissonSelected", "Selected", "selected"]
