"""What an evaluation asks for, read into the tables it takes: public arguments only."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dalenius.errors import InvalidArgument
from dalenius.learn.evaluation.metrics import METRICS
from dalenius.learn.evaluation.tables import Plan
from dalenius.learn.models import Answering, read_classes
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.release import Cell

BINS, SCORES = 10, 32
"""Of confidences, and of scores."""
MOST_BINS = 1000


def planned(
    asked: Sequence[str], classes: Any, loss: str | None, loss_bound: Number | None, bins: int, scores: int
) -> Plan:
    """The tables that these metrics take, the fewest entries that serve."""
    if not asked or not set(asked) <= set(METRICS):
        raise InvalidArgument(
            f"metrics are some of {', '.join(METRICS)}.", remedy='Pass metrics=["accuracy", …].'
        )
    labels = read_classes(classes)
    if not labels and set(asked) != {"loss"}:
        raise InvalidArgument(
            "These metrics need classes, which are public and not taken from the rows.",
            remedy='Pass classes=10 or classes=["no", "yes"]; for regression, metrics="loss" alone.',
        )
    if "auc" in asked and len(labels) != 2:
        raise InvalidArgument(
            "The AUC is of two classes.", remedy='Leave "auc" out, or judge one class against the others.'
        )
    named = _loss(asked, labels, loss, loss_bound)
    finest = next((name for name in ("confusion", "recall", "accuracy") if name in asked), None)
    graded = {"calibration", "ece"} & set(asked)
    return Plan(
        classes=tuple(labels),
        outcomes=finest,
        bins=numbers.count(bins, "bins", most=MOST_BINS) if graded else 0,
        scores=numbers.count(scores, "score_bins", least=2, most=MOST_BINS) if "auc" in asked else 0,
        loss=named,
        bound=Fraction(1) if named is None else numbers.positive(loss_bound, "loss_bound"),
    )


def _loss(asked: Sequence[str], labels: list[Cell], loss: str | None, bound: Number | None) -> str | None:
    if "loss" not in asked:
        return None
    kinds = ("log",) if labels else ("squared", "absolute")
    named = loss or kinds[0]
    if named not in kinds:
        raise InvalidArgument(
            f"A loss of this model is {' or '.join(kinds)}.",
            remedy="Pass classes for a classifier, and none for regression.",
        )
    if bound is None:
        raise InvalidArgument(
            "A mean loss needs a bound, from public knowledge: larger losses are clipped to it.",
            remedy="Pass loss_bound, such as 5 for a log loss.",
        )
    return named


def check_outputs(answering: Answering, plan: Plan) -> None:
    """Refuse metrics of what the model does not give."""
    if plan.classes and answering.outputs == "numbers":
        raise InvalidArgument(
            "outputs='numbers' is for regression.", remedy="Leave classes out, or say what the model gives."
        )
    if not plan.classes and answering.outputs != "numbers":
        raise InvalidArgument(
            "Without classes a model gives numbers.", remedy='Pass classes, or outputs="numbers".'
        )
    if not answering.graded and (plan.bins or plan.scores or plan.loss == "log"):
        raise InvalidArgument(
            "This model gives no chances of classes, which calibration, AUC and log loss need.",
            remedy='Pass what has predict_proba, or outputs="probabilities" or "logits".',
        )
