"""`evaluate`: how well any model does on private rows, in one charge.

    >>> import numpy as np
    >>> x = np.arange(4000) % 7
    >>> found = evaluate(lambda rows: rows > 3, (x, x > 2), classes=[False, True], epsilon=1)
    >>> abs(found["accuracy"].value - 6 / 7) < 0.01, found.receipt.cost
    (True, 'epsilon 1')

The model, its classes, the metrics and all bounds are public: nothing of them is taken from the rows. A model
that was trained on these rows without a charge of its own is private too: this does not cover it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.learn.data.row_seeds import READ_ALONE
from dalenius.learn.evaluation.independence import independence
from dalenius.learn.evaluation.metrics import Counted
from dalenius.learn.evaluation.passes import SIZE, answered, made_up, rehearse
from dalenius.learn.evaluation.planning import BINS, SCORES, check_outputs, planned
from dalenius.learn.evaluation.tables import GRID, Plan
from dalenius.learn.models import Answering, Outputs, at_rest
from dalenius.learn.quiet import SEEDS
from dalenius.learn.rows import Rows, taken
from dalenius.learn.whose import check_rows, check_units
from dalenius.learn.whose import counted as rows_counted
from dalenius.ledger.account import Account
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, EXACT, Cell, Receipt, Release

Metric = Literal["accuracy", "recall", "confusion", "calibration", "ece", "auc", "loss"]
NUMERICS = f"{EXACT}; a row's answer is computed at a place of its own in passes of one shape"


@dataclass(frozen=True)
class Scores(Mapping[str, Release]):
    """Each metric as a release; one charge paid for all of them."""

    releases: Mapping[str, Release]

    @property
    def receipt(self) -> Receipt:
        """Of all of them, but for what was done afterwards."""
        return replace(next(iter(self.releases.values())).receipt, postprocessing=())

    @property
    def loss(self) -> Loss:
        """What they cost together."""
        return self.receipt.loss

    def __getitem__(self, metric: str) -> Release:
        if metric not in self.releases:
            raise InvalidArgument(
                f"{metric!r} was not measured.", remedy=f"Name one of these: {', '.join(self.releases)}."
            )
        return self.releases[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(self.releases)

    def __len__(self) -> int:
        return len(self.releases)

    def __str__(self) -> str:
        return "\n".join(f"{release}" for release in self.releases.values())


def evaluate(
    model: Any,
    dataset: Any,
    *,
    epsilon: Number,
    delta: Number = 0,
    metrics: Sequence[Metric] | Metric = "accuracy",
    classes: Sequence[Cell] | int | None = None,
    outputs: Outputs | None = None,
    account: Account | None = None,
    unit: Unit | None = None,
    by: str = "",
    purpose: str = "evaluation",
    units: Any = None,
    rows_per_unit: int | None = None,
    loss: Literal["log", "squared", "absolute"] | None = None,
    loss_bound: Number | None = None,
    bins: int = BINS,
    score_bins: int = SCORES,
    batch_size: int | None = None,
    synthetic: Any = None,
    collate: Callable[[list[Any]], Any] | None = None,
    confidence: Number = CONFIDENCE,
) -> Scores:
    """Metrics of a torch module, of what has `predict`, or of a function, on rows of (inputs, target).

    All are counted at once and charged as one. `units` says whose each row is: of each `rows_per_unit` count.

    The charge covers a model that answers each row from that row alone. The receipt says whether that is
    established by the layers of the model, or assumed (`independence`). That a data set reads each row by
    itself is assumed as well.

    Args:
        model: A torch module, an object with `predict` or `predict_proba`, or a function.
        dataset: Rows of (inputs, target), as arrays, tensors, frames or dictionaries; or a data set of pairs.
        epsilon: What all metrics together may cost.
        delta: The δ of Gaussian noise; 0 for Laplace noise.
        metrics: One or several metrics by name.
        classes: All classes, or how many there are, numbered from 0; None for regression.
        outputs: What the model gives, where its kind does not tell.
        account: The account to charge; without one, releases are uncharged.
        unit: Who is protected, where there is no account.
        by: Who asks.
        purpose: What for.
        units: Whose each row is.
        rows_per_unit: How many rows of one unit count.
        loss: The loss of the metric "loss".
        loss_bound: What losses are clipped to.
        bins: Bins of confidences.
        score_bins: Bins of scores, for the AUC.
        batch_size: Rows of a pass; 64 where rows can be made up, else 1.
        synthetic: Two or more made-up rows of inputs, to rehearse the model on.
        collate: Stacks the rows of a data set.
        confidence: Of the intervals.
    """
    asked = (metrics,) if isinstance(metrics, str) else tuple(dict.fromkeys(metrics))
    plan = planned(asked, classes, loss, loss_bound, bins, score_bins)
    answering = Answering(model, outputs, plan.classes)
    check_outputs(answering, plan)
    per_unit = _rows_per_unit(units, rows_per_unit)
    whom = _whom(account, unit, by_unit=units is not None)
    law = _noise(plan, per_unit, whom, epsilon, delta)
    sure = numbers.confidence(confidence)
    rows = Rows(dataset, collate=collate, seed=int(noise.uniform(SEEDS, 1)[0]))
    rows.check_labels(plan.classes)
    if units is not None:
        check_units(units, len(rows))
    with at_rest(model):
        size = _rehearsed(answering, rows, synthetic, batch_size)
        apart = independence(answering.model, _of_form(rows, size))

        def counted() -> dict[str, Release]:
            kept = np.ones(len(rows), bool)
            if units is not None:
                kept = rows_counted(units, per_unit)
            totals = plan.totals(answered(answering, rows, size), rows.targets(), kept)
            noisy: NDArray[np.object_] = np.add(totals, law.draw(totals.size), dtype=object)
            ends = np.cumsum([0, *plan.sizes.values()])
            tables = {name: noisy[a:b] for name, a, b in zip(plan.sizes, ends, ends[1:], strict=False)}
            found = Counted(plan, tables, law, float(1 - sure))
            promised = numbers.delta(delta) if isinstance(law, Gaussian) else None
            receipt = _receipt(law, plan, asked, whom, per_unit, units is not None)
            reading = (f"assumed, not checked: {READ_ALONE}",) if rows.by_number else ()
            receipt = replace(receipt, bounds=(*receipt.bounds, *reading, apart), delta=promised)
            return {metric: _release(found, metric, receipt, sure) for metric in asked}

        return Scores(_charged(counted, law.loss, account, by, purpose))


def _charged(
    counted: Callable[[], dict[str, Release]], loss: Loss, account: Account | None, by: str, purpose: str
) -> dict[str, Release]:
    """On disk before a row is read."""
    if account is None:
        return counted()
    with account.reserve(loss, by=by, purpose=purpose) as reservation:
        found = counted()
        for release in found.values():
            reservation.check(release)
        line = reservation.line()
        reservation.end("commit")
    return {metric: account.signed(release.charged(line)) for metric, release in found.items()}


def _release(found: Counted, metric: str, receipt: Receipt, sure: Fraction) -> Release:
    columns, measures = found.measure(metric)
    noted = replace(receipt, postprocessing=(f"{metric} of the noisy counts",))
    return Release({k: tuple(v) for k, v in columns.items()}, measures[::-1], noted, sure)


def _receipt(
    law: Additive, plan: Plan, asked: Sequence[str], whom: Unit | None, per_unit: int, by_hash: bool
) -> Receipt:
    each = (
        f"at most {per_unit} rows per unit, chosen by a hash of its id" if by_hash else "each row is a unit"
    )
    clipped = (f"losses clipped to [0, {float(plan.bound):g}]",) if plan.loss else ()
    return Receipt(
        loss=law.loss,
        mechanism=law.to_json(),
        numerics=NUMERICS,
        unit=whom,
        bounds=(f"one charge for {', '.join(asked)}", each, *clipped),
        tainted=noise.tainted(),
    )


def _noise(plan: Plan, per_unit: int, whom: Unit | None, epsilon: Number, delta: Number) -> Additive:
    """The law that reaches less far; Laplace noise needs no δ."""
    bound = plan.sensitivity(per_unit, "add_remove" if whom is None else whom.relation)
    given: dict[str, Any] = {"epsilon": epsilon, "sensitivity": bound, "grid": GRID, "exact": True}
    laws: list[Additive] = [Laplace.calibrate(**given)]
    if numbers.delta(delta):
        laws.append(Gaussian.calibrate(delta=delta, **given))
    return min(laws, key=lambda law: law.error())


def _of_form(rows: Rows, size: int) -> Any:
    """Return a made-up batch of the form of private ones; None where there is none."""
    made = None if rows.by_number else made_up(rows.form())
    return None if made is None else taken(made, [place % 2 for place in range(size)])


def _rehearsed(answering: Answering, rows: Rows, synthetic: Any, batch_size: int | None) -> int:
    """Return how many rows a pass has; rows of which none can be made up go one by one, as of data sets.

    Stacking rows of a data set may mix them, by their keys, types or lengths, and a first row is private too.
    """
    made = synthetic if synthetic is not None or rows.by_number else made_up(rows.form())
    usual = 1 if made is None or rows.by_number else SIZE
    size = usual if batch_size is None else numbers.count(batch_size, "batch_size", most=2**20)
    if rows.by_number and size > 1:
        raise InvalidArgument(
            "Rows of a data set are read one by one: what stacks them may mix them.",
            remedy="Leave batch_size out, or pass (x, y) as tensors, arrays, frames or dictionaries.",
        )
    if made is not None:
        rehearse(answering, made, size)
    elif size > 1:
        raise InvalidArgument(
            "Rows of this kind cannot be made up, so that it is not known whether the model mixes them.",
            remedy="Pass synthetic=…, two or more made-up rows of inputs, or leave batch_size out.",
        )
    return size


def _rows_per_unit(units: Any, rows_per_unit: int | None) -> int:
    if (units is None) != (rows_per_unit is None):
        raise InvalidArgument(
            "units and rows_per_unit go together.",
            remedy="Pass both: to whom each row belongs, and how many rows of one count at most.",
        )
    return 1 if rows_per_unit is None else numbers.count(rows_per_unit, "rows_per_unit", most=10**6)


def _whom(account: Account | None, unit: Unit | None, *, by_unit: bool) -> Unit | None:
    whom = unit if account is None else account.unit
    check_rows(whom, by_unit=by_unit)
    if unit is not None and account is not None and unit != account.unit:
        raise InvalidArgument(
            f"This evaluation is for {unit}; the account is for {account.unit}.",
            remedy="Leave unit out, or charge an account of that unit.",
        )
    return whom
