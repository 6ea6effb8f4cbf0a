"""Selection as losses, for whoever runs it elsewhere: the best of K runs.

`selected(loss, stop=…, shape=…)` and `selected(loss, mean=…)`: a release is run K times, each time on a
candidate drawn at random, and only the run with the greatest score is shown; K is random and never revealed.
The theorems are in `repeated`: a bound on the profile, δ(x + c) ≤ E[K]·δ₀(x), and one on Rényi divergences.
Both are kept, and the lesser counts. Where one run is ε₀-private, the best one is (ε₀ + c)-private: at most
(2 + η)ε₀. Not tight at δ > 0; from below it is bounded by one run, as scores may be drawn whatever the data.
The bounds hold for any two data sets for which that on one run does, so a group is the selection by the loss
of a group.

Noisy max, the sparse vector technique and Thresholdout are in `thresholds`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.attained import attained
from dalenius.losses.fields import a_loss
from dalenius.losses.loss import Loss
from dalenius.losses.pure import four_points
from dalenius.losses.selection.best_run import SelectedPair, log_moment, set_apart
from dalenius.losses.selection.repeated import Geometrics, Poissons, Repeated, a_mean, a_shape, a_stop
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles.pair import Worst


def selected(
    loss: Loss, *, stop: Number | None = None, shape: Number = 1, mean: Number | None = None
) -> Loss:
    """The best of a random number of runs: `stop` with a `shape`, or a Poisson `mean`, says how many."""
    if (stop is None) == (mean is None) or (mean is not None and shape != 1):
        raise InvalidArgument(
            "Either stop, with a shape, or mean says how many runs there are.",
            remedy="Pass stop=0.1, or mean=10 without a shape.",
        )
    if mean is not None:
        return PoissonSelected(loss, a_mean(mean, "mean"))
    return Selected(loss, a_stop(stop, "stop"), a_shape(shape, "shape"))


@dataclass(frozen=True)
class Best(Loss):
    """The best of a random number of runs of `loss`."""

    loss: Loss

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", a_loss(self.loss, "loss").relation)
        if self.directions() is None and self.moment(2.0**-4) == math.inf:
            raise NotSound(
                "Too little is known of one run for its best run to be bounded.",
                remedy="State the loss of one run by its mechanism, or by zero-concentrated privacy.",
            )

    @property
    def runs(self) -> Repeated:
        """The law of the number of runs."""
        raise NotImplementedError

    @property
    def tight(self) -> bool:
        """No mechanism is known that attains the bounds."""
        return False

    def directions(self) -> tuple[Worst, ...] | None:
        """One bound for both, where one run has pairs."""
        pair = SelectedPair(self.loss, self.runs, set_apart(self.loss))
        if self.loss.directions() is None or max(pair.apart, pair.lost) >= 1:
            return None
        return (((pair, 1),),) if not pair.lost else (((pair, 1), (four_points(Fraction(0), pair.lost), 1)),)

    def moment(self, order: float) -> float:
        """The theorem on Rényi divergences."""
        if self.loss.directions() is None or set_apart(self.loss):
            return log_moment(self.loss, self.runs, order)
        return SelectedPair(self.loss, self.runs).log_moment(order)[1]


@dataclass(frozen=True)
class Selected(Best, kind="selected"):
    """The best of K ≥ 1 runs, K truncated negative binomial."""

    stop: Fraction
    shape: Fraction = Fraction(1)
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", a_stop(self.stop, "stop"))
        object.__setattr__(self, "shape", a_shape(self.shape, "shape"))
        super().__post_init__()

    @property
    def runs(self) -> Geometrics:
        """The law of the number of runs."""
        return Geometrics(self.stop, self.shape)

    def attained(self) -> Loss | None:
        """One run: scores may be drawn whatever the data."""
        return attained(self.loss)

    def enlarged(self, size: int) -> Selected:
        """The selection by the loss of a group."""
        return Selected(self.loss.group(size), self.stop, self.shape)


@dataclass(frozen=True)
class PoissonSelected(Best, kind="poisson_selected"):
    """The best of a Poisson number of runs, of `mean`; where there are none, nothing is shown."""

    mean: Fraction
    relation: Relation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", a_mean(self.mean, "mean"))
        super().__post_init__()

    @property
    def runs(self) -> Poissons:
        """The law of the number of runs."""
        return Poissons(self.mean)

    def enlarged(self, size: int) -> PoissonSelected:
        """The selection by the loss of a group."""
        return PoissonSelected(self.loss.group(size), self.mean)
