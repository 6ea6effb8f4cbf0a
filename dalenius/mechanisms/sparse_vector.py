"""The sparse vector technique: which queries of a stream reach a threshold, paying for the yeses alone.

One noise ρ is added to the threshold T, a fresh ν to each query, all in whole steps of a grid and discrete
Laplace; the answer is [q + ν ≥ T + ρ], until `count` answers were yes.

Theorem (Dwork and Roth 2014, Section 3.6; Lyu, Su and Li 2017). Let queries, chosen with sight of all earlier
answers, move by at most s steps between neighbours. With b₁ and b₂ the scales of ρ and ν in steps, a session
of any length is ε-private, ε = s/b₁ + 2·count·s/b₂; where queries are `monotone` (between any two neighbours
all move the same way, as counts do when a unit comes or goes) ε = s/b₁ + count·s/b₂. Moving ρ by s maps
integers to integers, so the proof holds for discrete noise: docs/mechanisms/sparse_vector.md. At δ = 0 the
bound is tight in the limit of many noes; for δ > 0 nothing better is claimed.

`answer_scale` adds the value of each yes, with fresh noise: count·DiscreteLaplace, composed. `calibrate`
splits ε as 1 : (2·count)^{2/3}, or count^{2/3} where monotone, so that q + ν − T − ρ has the least variance
(Lyu, Su and Li 2017). A yes or no has no distance to the truth: `margin` says how far beyond T it may err.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Parameter, whole
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.mechanisms.above_threshold import AboveThreshold, Answer, paid, whom_for
from dalenius.mechanisms.gridded import (
    Bounded,
    default_grid,
    read_flag,
    read_grid,
    read_sensitivity,
    steps_of,
)
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.mechanism import Law, Mechanism, Payer, risk
from dalenius.mechanisms.step_noise import LEFT_OUT
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import MOST, Grid
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import AGGREGATE, EXACT, Release

LISTED, CODED, NOES = 12, 62, 3
"""Queries whose law is listed, whose answers fit an integer, and that get a no in the worst case."""
MOST_SCALE = 2**50
"""Of noise in steps, as far as it can be drawn."""


@dataclass(frozen=True)
class SparseVector(Mechanism, kind="sparse_vector"):
    """Up to `count` queries that reach `threshold`, by noise of `scale` on each of them."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    threshold_scale: Parameter[Fraction] = Parameter(numbers.positive)
    sensitivity: Bounded = Bounded()
    threshold: Parameter[Fraction] = Parameter(numbers.exact, Fraction(0))
    count: Parameter[int] = Parameter(whole, 1)
    monotone: bool = False
    answer_scale: Fraction | None = None
    grid: Grid | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        read_flag(self.monotone, "monotone")
        read_flag(self.exact, "exact")
        object.__setattr__(self, "sensitivity", _of_each(self.sensitivity))
        object.__setattr__(self, "grid", self._on(self.scale).grid)
        if self.answer_scale is not None:
            object.__setattr__(self, "answer_scale", numbers.positive(self.answer_scale, "answer_scale"))
        for name in ("scale", "threshold_scale", "answer_scale"):
            if (getattr(self, name) or 0) > MOST_SCALE * self.query.step:
                raise InvalidArgument(
                    f"{name} must be at most 2^50 grid steps.", remedy="Choose it smaller, or a coarser grid."
                )
        if self.monotone and self.sensitivity.relation == "replace":
            raise NotSound(
                "Where records are replaced, some queries may rise as others fall: they are not monotone.",
                remedy="Use monotone=False, or state the sensitivity for add_remove.",
            )
        _ = self.loss

    def _on(self, scale: Fraction) -> Laplace:
        return Laplace(scale=scale, sensitivity=self.sensitivity, grid=self.grid, exact=self.exact)

    @cached_property
    def query(self) -> Laplace:
        """The noise on a query."""
        return self._on(self.scale)

    @cached_property
    def shift(self) -> Laplace:
        """The noise on the threshold."""
        return self._on(self.threshold_scale)

    @cached_property
    def answers(self) -> Laplace | None:
        """The noise on the value of a yes, where that is paid for."""
        return None if self.answer_scale is None else self._on(self.answer_scale)

    @property
    def loss(self) -> Loss:
        """Of a whole session."""
        most = self.query.charged.need("l1") * self.query.step
        yes = most * self.count * (1 if self.monotone else 2) / self.scale
        session = Pure(most / self.threshold_scale + yes, relation=self.sensitivity.relation)
        return session if self.answers is None else session + self.answers.loss * self.count

    @property
    def numerics(self) -> str:
        """Whether the caller's own arithmetic is covered."""
        return EXACT if self.exact else AGGREGATE

    @property
    def bar(self) -> int:
        """The threshold in steps: whole numbers that reach it reach its ceiling."""
        return max(-MOST, min(MOST, math.ceil(self.threshold / self.query.step)))

    def start(
        self, account: Payer | None = None, *, unit: Unit | None = None, by: str = "", purpose: str = ""
    ) -> AboveThreshold:
        """A session, all of whose answers together cost `loss`: charged now, where there is an account."""
        whom = whom_for(self.loss, account, unit)
        return AboveThreshold(self, whom, paid(self, account, whom, by, purpose))

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """The answers to a stream of values, up to the last yes that is paid for."""
        session, steps = self.start(unit=unit), self.query.steps(value).tolist()
        return self.released([session.answer(k) for k in steps if session.left], unit)

    def released(self, answers: Sequence[Answer], unit: Unit | None, *, tainted: bool = False) -> Release:
        """Answers as a release, whose receipt is that of the session."""
        names = ("above",) if self.answer_scale is None else ("above", "value", "value_low", "value_high")
        columns = {name: [answer[i] for answer in answers] for i, name in enumerate(names)}
        found = self._released(columns, names[:2], unit, tainted=tainted)
        note = f"one charge for a session of up to {self.count} positive answers"
        return replace(found, receipt=replace(found.receipt, bounds=(note,)))

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Answers on a public stream, as binary digits after a leading 1; then the values, 0 for a no."""
        steps = self.query.steps(value)
        if steps.size > CODED:
            raise InvalidArgument(f"A stream of over {CODED} queries.", remedy="Sample a shorter one.")
        bars = self.bar + self.shift.draw(size)
        noisy = steps + self.query.draw(size * steps.size).reshape(size, steps.size)
        above = np.greater_equal(noisy, bars[:, None])
        asked = np.cumsum(above, axis=1) - above < self.count
        codes = np.ones(size, np.int64)
        for yes, there in zip(above.T, asked.T, strict=True):
            codes = np.where(there, 2 * codes + yes, codes)
        if self.answers is None:
            return codes
        values = self.answers.sample(np.asarray(value), size)
        return np.column_stack([codes, np.where(above & asked, values, 0.0)])

    def worst_case(self) -> tuple[Any, Any]:
        """Noes to queries that rise by all they may, then yeses to queries that fall, or stay if monotone."""
        most, step = int(self.query.charged.need("l1")), self.query.step
        down = 0 if self.monotone else -most
        streams = [0] * (NOES + self.count), [most] * NOES + [down] * self.count
        first, second = ([self.bar + k for k in stream] for stream in streams)
        return (first, second) if self.exact else ([k * step for k in first], [k * step for k in second])

    def probabilities(self, value: Any) -> Law | None:
        """By summation over ρ, for short streams without values."""
        steps = self.query.steps(value)
        if steps.size > LISTED or self.answer_scale is not None:
            return None
        reach = self.shift.reach(Fraction(LEFT_OUT))
        rho = np.arange(-reach, reach + 1)
        yes = [_at_least(self.bar + rho - k, float(self.query.step / self.scale)) for k in steps.tolist()]
        law: dict[int, float] = {}
        for row in product((0, 1), repeat=steps.size):
            code, mass = 1, self.shift.masses(rho)
            for answer, chance in zip(row, yes, strict=True):
                if bin(code).count("1") <= self.count:
                    code, mass = 2 * code + answer, mass * (chance if answer else 1 - chance)
            law[code] = float(mass.sum())
        return Law(tuple(sorted(law)), np.array([law[code] for code in sorted(law)]), LEFT_OUT)

    def margin(self, queries: int, alpha: Number) -> float:
        """How far below the threshold a yes, or above it a no, is in any of so many answers.

        But for a probability of at most `alpha`, half for the threshold's noise and half for the queries'.
        Where values are rounded onto the grid it is one step more.
        """
        chance, many = risk(alpha) / 2, numbers.count(queries, "queries")
        reach = self.shift.reach(chance) + self.query.reach(chance / many)
        return float((reach + (not self.exact)) * self.query.step)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        sensitivity: Sensitivity | Number,
        threshold: Number = 0,
        count: int = 1,
        monotone: bool = False,
        answer_share: Number = 0,
        grid: Grid | None = None,
        exact: bool = False,
    ) -> SparseVector:
        """A session that is epsilon-private, `answer_share` of it for the values of the yeses."""
        bound, many = _of_each(sensitivity), whole(count, "count")
        grid = read_grid(grid, default_grid(bound, "linf", Laplace.fineness))
        read_flag(monotone, "monotone")
        read_flag(exact, "exact")
        most = steps_of(bound, grid, exact=exact).need("linf") * grid.step
        total, share = numbers.positive(epsilon, "epsilon"), numbers.delta(answer_share, "answer_share")
        times = many if monotone else 2 * many
        first = Fraction(math.ceil(2**40 / (1 + times ** (2 / 3))), 2**40) * total * (1 - share)
        return SparseVector(
            scale=times * most / (total * (1 - share) - first),
            threshold_scale=most / first,
            sensitivity=bound,
            threshold=numbers.exact(threshold, "threshold"),
            count=many,
            monotone=monotone,
            answer_scale=many * most / (total * share) if share else None,
            grid=grid,
            exact=exact,
        )


def _of_each(sensitivity: Sensitivity | Number) -> Sensitivity:
    """How far each single query moves."""
    bound = read_sensitivity(sensitivity)
    return Sensitivity(l0=1, linf=bound.linf, relation=bound.relation)


def _at_least(k: NDArray[np.int64], rate: float) -> NDArray[np.float64]:
    """P(ν ≥ k) of discrete Laplace noise, P(ν = k) ∝ e^{−rate·|k|}."""
    far = np.exp(-rate * np.where(k > 0, k, 1 - k)) / (1 + math.exp(-rate))
    return np.where(k > 0, far, 1 - far)
