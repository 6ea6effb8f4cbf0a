"""The classical theorems side by side with the certified answer, for one loss.

    >>> from dalenius.losses import Pure, compare
    >>> for row in compare(Pure(0.1) * 100, delta=1e-6).rows:
    ...     print(f"{row.name:21} {row.epsilon:7.4f}  {row.status}")
    certified              4.7746  exact
    basic                 10.0000  upper bound
    advanced               6.3082  upper bound
    optimal                4.7746  exact
    moments                5.5794  upper bound
    moments, sharper       5.0812  upper bound
    zcdp                   5.7542  upper bound

Theorems that start from (ε_i, δ_i) get each term of the composition at its own ε: at δ_i = 0 where
that is finite, else at an equal share of δ. Those that start from moments or ρ get the loss's own.
A theorem that does not apply, or says nothing (ε = ∞), has no row. `parallel` never has one: that
the data were disjoint is not part of a loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument
from dalenius.losses import theorems
from dalenius.losses.bound import Bound
from dalenius.losses.composition import Composition
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.guarantee import Guarantee, Status, Step, bound_fields
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Poisson
from dalenius.losses.pure import Approximate, Pure
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

if TYPE_CHECKING:
    from rich.table import Table

Terms = tuple[tuple[Loss, int], ...]

SHARPER_ORDERS = (*range(1, 65), 80, 96, 128, 192, 256, 512, 1024)
"""Orders of the sharper conversion: dense where it is usually best, then sparse for tiny costs."""

_STYLES: dict[Status, str] = {"exact": "bold green", "upper bound": "", "approximation": "yellow"}


@dataclass(frozen=True)
class Row:
    """One theorem's ε, its ratio to the certified one (None where that is 0), and its standing."""

    name: str
    epsilon: float
    ratio: float | None
    status: Status
    reference: str


@dataclass(frozen=True)
class Comparison:
    """The answers of all theorems that apply, the certified one first."""

    delta: Fraction
    truth: Bound
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON; the keys are stable."""
        return {
            "delta": float(self.delta),
            "epsilon": bound_fields(self.truth),
            "rows": [asdict(row) for row in self.rows],
        }

    def __str__(self) -> str:
        lines = (f"{row.name:22} {row.epsilon:12.6f}  {row.status:13}  {row.reference}" for row in self.rows)
        return "\n".join((f"ε at δ = {float(self.delta):.3g}", *lines))

    def __rich__(self) -> Table:
        from rich.table import Table

        caption = "an approximation guarantees nothing" if self._approximate else None
        table = Table(title=f"ε at δ = {float(self.delta):.3g}", caption=caption)
        table.add_column("theorem")
        table.add_column("ε", justify="right")
        table.add_column("ratio", justify="right")
        table.add_column("status")
        table.add_column("reference")
        for row in self.rows:
            ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
            cells = (row.name, f"{row.epsilon:.6f}", ratio, row.status, row.reference)
            table.add_row(*cells, style=_STYLES[row.status])
        return table

    @property
    def _approximate(self) -> bool:
        return any(row.status == "approximation" for row in self.rows)


def compare(loss: Loss, delta: Number) -> Comparison:
    """Every theorem that applies to `loss`, at the same total δ."""
    total = numbers.delta(delta)
    truth = loss.epsilon(total)
    certified = Guarantee(
        "certified", truth.upper, total, "exact" if truth.tight else "upper bound", "Loss.epsilon"
    )
    answers = (certified, *(answer for answer in _answers(loss, total) if math.isfinite(answer.epsilon)))
    return Comparison(total, truth, tuple(_row(answer, truth.upper) for answer in answers))


def _row(answer: Guarantee, truth: float) -> Row:
    ratio = answer.epsilon / truth if 0 < truth < math.inf else None
    return Row(answer.theorem, answer.epsilon, ratio, answer.status, answer.reference)


def _answers(loss: Loss, delta: Fraction) -> Iterator[Guarantee]:
    terms = loss.terms if isinstance(loss, Composition) else ((loss, 1),)
    yield from _from_steps(terms, delta)
    yield from _from_moments(loss, delta)
    yield from _from_limit(terms, delta)


def _from_steps(terms: Terms, delta: Fraction) -> Iterator[Guarantee]:
    """Basic, advanced and optimal composition: half of δ, where shared, is left to the last two."""
    count = sum(n for _, n in terms)
    whole, half = _steps(terms, delta / count), _steps(terms, delta / (2 * count))
    if whole is not None:
        yield theorems.basic(whole)
    if half is None or count == 1:
        return
    yield theorems.advanced(half, delta=delta)
    best = _optimal(half, delta)
    described = all(isinstance(term, Pure | Approximate) for term, _ in terms)
    if best is not None:
        yield best if described else replace(best, status="upper bound")


def _optimal(steps: tuple[Step, ...], delta: Fraction) -> Guarantee | None:
    """The exact optimum of equal steps, a rounded one of unequal steps; None where those are too many."""
    first = steps[0]
    if all((step.epsilon, step.delta) == (first.epsilon, first.delta) for step in steps):
        count = sum(step.count for step in steps)
        return theorems.optimal(Step(first.epsilon, delta=first.delta, count=count), delta=delta)
    try:
        return theorems.optimal_heterogeneous(steps, delta=delta)
    except InvalidArgument:
        return None


def _steps(terms: Terms, share: Fraction) -> tuple[Step, ...] | None:
    """Each term as (ε_i, δ_i); None where some ε_i is infinite."""
    steps = []
    for term, count in terms:
        epsilon, delta = _step(term, share)
        if epsilon is None:
            return None
        steps.append(Step(epsilon, delta=delta, count=count))
    return tuple(steps)


def _step(term: Loss, share: Fraction) -> tuple[Fraction | None, Fraction]:
    if isinstance(term, Pure):
        return term.limit, Fraction(0)
    if isinstance(term, Approximate):
        return term.limit, term.failure
    for delta in (Fraction(0), share):
        epsilon = term.epsilon(delta).upper
        if math.isfinite(epsilon):
            return Fraction(epsilon), delta  # the binary number itself: as printed it could be smaller
    return None, share


def _from_moments(loss: Loss, delta: Fraction) -> Iterator[Guarantee]:
    yield theorems.moments(loss.moment, delta=delta)
    sharper = theorems.moments(
        loss.moment, delta=delta, orders=SHARPER_ORDERS, conversion=theorems.canonne_kamath_steinke
    )
    yield replace(sharper, theorem="moments, sharper")
    rho = loss.zcdp().upper
    if math.isfinite(rho):
        yield theorems.zcdp(Fraction(rho), delta=delta)


def _from_limit(terms: Terms, delta: Fraction) -> Iterator[Guarantee]:
    """The central limit, for repeated Gaussian steps on Poisson samples."""
    term, count = terms[0]
    if len(terms) == 1 and isinstance(term, Poisson) and isinstance(term.loss, Gaussian):
        noise, rate = term.loss.noise_multiplier, term.sampling_rate
        yield theorems.gdp_clt(noise, sampling_rate=rate, count=count, delta=delta)
