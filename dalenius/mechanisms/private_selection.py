"""Private selection: the best of K runs of a private mechanism, K random and never revealed.

Each run draws a candidate uniformly, runs `base` on that candidate's private value, which gives a score, and
the run with the greatest score is released, candidate and score (equal scores: the later candidate). K ≥ 1
has the truncated negative binomial law of `shape` η in (−1, 1] and `stop` γ in (0, 1): P(K = k) ∝ (1 − γ)^k
Π_{l<k} (l + η)/(l + 1), with η = 1 the geometric law, η = 0 the logarithmic one. With `mean` instead of
`stop` K is Poisson (see `poisson_runs`), and where it is 0 nothing is released.

Theorem (as γ → 0: Liu and Talwar 2019, Papernot and Steinke 2022; by profiles: Koskela, Redberg and Wang
2024). Let δ₀(ε) be the profile of the base, and τ the least number with δ₀(τ) ≤ (e^τ − 1)γ/(1 − γ). Then

    δ(x + (1 + η)τ) ≤ E[K]·δ₀(x)  for all x ≥ 0.

For an ε-private base τ ≤ log((e^ε + γ)/(1 + γe^ε)) ≤ ε: the selection is ε + (1 + η)τ-private, at most (2 +
η)ε. The proof is in docs/mechanisms/private_selection.md. `delta` = 0 states that; `delta` > 0 states the ε
at that δ, for bases without a pure guarantee. `alpha` states Rényi privacy of that order instead (Papernot
and Steinke 2022): D_α ≤ D⁰_α + (1+η)(1 − 1/β)D⁰_β + (1+η)·log(1/γ)/β + log E[K]/(α − 1), for the best β ≥ 1.

Not protected: a selection takes as long as its K runs, so its duration shows K. Where that can be seen, wait
until a time fixed beforehand.

`error` is None: the best of several noisy scores is too high by an amount that depends on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.losses.calibration import calibrate
from dalenius.losses.concentrated import Renyi
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.losses.selection.repeated import a_mean, a_shape, a_stop
from dalenius.mechanisms.candidates import listed, named
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.mechanisms.poisson_runs import PoissonRuns
from dalenius.mechanisms.repetition import Repetition
from dalenius.mechanisms.runs import Runs, grown, price
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.release import Cell, Release

MANY = ("sparse_vector", "thresholdout", "noisy_threshold", "partition_selection", "private_selection")
"""Kinds that give no score: what they release is several things, or as many as the data say."""
LISTED = ("sample_and_aggregate",)
"""Kinds that draw for audits from a law which they list, as far as the data are few."""
NOTHING = (-1.0, 0.0)
"""How `sample` and `probabilities` write that there was no run."""
BATCH = 2**17
"""Selections whose runs are drawn together."""


@dataclass(frozen=True)
class PrivateSelection(Mechanism, kind="private_selection"):
    """The greatest score of a random number of runs of `base`, each on a random candidate."""

    _: KW_ONLY
    base: Mechanism
    stop: Fraction | None = None
    shape: Parameter[Fraction] = Parameter(a_shape, Fraction(1))
    delta: Parameter[Fraction] = Parameter(numbers.delta, Fraction(0))
    alpha: Fraction | None = None
    mean: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.stop is None) == (self.mean is None) or (self.mean is not None and self.shape != 1):
            raise InvalidArgument(
                "Either stop, with a shape, or mean says how many runs there are.",
                remedy="Pass stop=0.1, or mean=10 without a shape.",
            )
        for name, read in (("stop", a_stop), ("mean", a_mean)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, read(getattr(self, name), name))
        if not isinstance(self.base, Mechanism):
            raise InvalidArgument("base must be a mechanism.", remedy="Pass one that releases a number.")
        if getattr(self.base, "kind", None) in MANY + LISTED:
            raise InvalidArgument(
                "base must be a mechanism that draws one number whatever the data are.",
                remedy="Pass one such as Laplace, on a score that is computed beforehand.",
            )
        if self.alpha is not None and self.delta:
            raise InvalidArgument(
                "alpha and delta cannot both be given: a loss is stated at one of them.",
                remedy="Leave one of them out.",
            )
        if self.alpha is not None:
            object.__setattr__(self, "alpha", Renyi(self.alpha, epsilon=0).alpha)
        _ = self.loss

    @property
    def runs(self) -> Runs:
        """The law of the number of runs."""
        return _runs(self.stop, self.shape, self.mean)

    @property
    def loss(self) -> Loss:
        """What the base's loss becomes; refused where it says too little."""
        return price(self.base.loss, self.runs, self.delta, self.alpha)

    @property
    def numerics(self) -> str:
        """The base's."""
        return self.base.numerics

    def release(
        self, value: Any, *, candidates: Sequence[Cell] | None = None, unit: Unit | None = None
    ) -> Release:
        """Select once among private values, one a candidate: the candidate and its score."""
        names = named(candidates, len(listed(value)))
        best, score = self.sample(value, 1)[0].tolist()
        chosen: tuple[Cell, Cell] = (None, None) if best == NOTHING[0] else (names[int(best)], score)
        columns: dict[str, Sequence[Cell]] = {"choice": chosen[:1], "score": chosen[1:]}
        return self._released(columns, ("choice", "score"), unit)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Independent selections among public values: rows of an index and a score."""
        values = listed(value)
        for each in values:
            # Every candidate, so that no refusal tells which of them were drawn.
            _scores(self.base, each, 1)
        parts = [self._select(values, min(BATCH, size - start)) for start in range(0, size, BATCH)]
        return np.concatenate([np.empty((0, 2)), *parts])

    def _select(self, values: Sequence[Any], size: int) -> NDArray[np.float64]:
        found, drawn = np.tile(NOTHING, (size, 1)), self.runs.draw(size)
        counts = drawn[drawn > 0]
        if not counts.size:
            return found
        which = noise.uniform(len(values), int(counts.sum())).astype(np.int64)
        scores = np.empty(which.size)
        for i in np.unique(which).tolist():
            rows = np.flatnonzero(which == i)
            scores[rows] = _scores(self.base, values[i], rows.size)
        first = np.cumsum(counts) - counts
        best = np.maximum.reduceat(scores, first)
        able = np.where(scores == np.repeat(best, counts), which, -1)
        found[drawn > 0] = np.column_stack([np.maximum.reduceat(able, first), best])
        return found

    def worst_case(self) -> tuple[Any, Any]:
        """That of the base, of one candidate."""
        first, second = self.base.worst_case()
        return (first,), (second,)

    def probabilities(self, value: Any) -> Law | None:
        """That of the greatest of K runs, from the base's law; None where that has none."""
        values = listed(value)
        laws = [self.base.probabilities(v) for v in values]
        known = [law for law in laws if law is not None]
        if len(known) < len(laws) or any(isinstance(o, tuple | str) for law in known for o in law.outcomes):
            return None
        places = [(float(o), float(i)) for i, law in enumerate(known) for o in law.outcomes]
        masses = np.concatenate([law.masses for law in known]) / len(known)
        order = sorted(range(len(places)), key=places.__getitem__)
        greatest = self.runs.greatest(masses[order])
        rest = max(law.rest for law in known) * self.runs.mean
        outcomes = tuple((places[i][1], places[i][0]) for i in order)
        if self.runs.none:
            outcomes, greatest = (NOTHING, *outcomes), np.append(self.runs.none, greatest)
        return Law(outcomes, greatest, rest)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        base: Callable[[Fraction], Mechanism],
        stop: Number | None = None,
        shape: Number = 1,
        mean: Number | None = None,
    ) -> PrivateSelection:
        """The selection whose base, a function of a noise scale, has the least that keeps the promise."""
        runs, failure = _runs(stop, shape, mean), numbers.delta(delta)
        scale = calibrate(
            lambda b: Pure(grown(base(b).loss, runs, failure)), epsilon=epsilon, delta=0, name="scale"
        )
        return PrivateSelection(
            base=base(scale),
            stop=None if stop is None else a_stop(stop, "stop"),
            shape=shape,
            delta=delta,
            mean=None if mean is None else a_mean(mean, "mean"),
        )


def _runs(stop: Number | None, shape: Number, mean: Number | None) -> Runs:
    if mean is not None:
        return PoissonRuns(a_mean(mean, "mean"))
    return Repetition(a_stop(stop, "stop"), a_shape(shape, "shape"))


def _scores(base: Mechanism, value: Any, size: int) -> NDArray[np.float64]:
    drawn = base.sample(value, size)
    if drawn.shape != (size,) or drawn.dtype.kind not in "biuf":
        raise InvalidArgument("The base must release a number.", remedy="Pass one such as Laplace.")
    return drawn.astype(np.float64)
