"""Pictures of one loss: its trade-off curve, and its ε at every δ."""

from __future__ import annotations

import math
from fractions import Fraction

from dalenius.errors import InvalidArgument
from dalenius.figures import Figure, Series
from dalenius.losses.loss import Loss


def tradeoff_figure(loss: Loss, *, points: int = 101) -> Figure:
    """The least false-negative rate at each false-positive rate, beside guessing."""
    rates = [Fraction(i, points - 1) for i in range(points)]
    x = tuple(float(rate) for rate in rates)
    return Figure(
        title="What any attack must miss",
        x_label="false-positive rate",
        y_label="false-negative rate",
        series=(
            Series("at least", x, tuple(loss.tradeoff(rate).lower for rate in rates)),
            Series("guessing", x, tuple(1 - value for value in x), style="dotted"),
        ),
        notes=("No test between neighbouring data sets falls below the curve.",),
    )


def epsilon_figure(loss: Loss, *, smallest: int = -12, per_decade: int = 5) -> Figure:
    """ε at each δ from 10^smallest to 0.1, where it is finite."""
    deltas = [10.0 ** (i / per_decade) for i in range(smallest * per_decade, -per_decade + 1)]
    found = [(delta, loss.epsilon(delta).upper) for delta in deltas]
    finite = [(delta, epsilon) for delta, epsilon in found if math.isfinite(epsilon)]
    if not finite:
        raise InvalidArgument("ε is infinite at every δ drawn.", remedy="Draw the trade-off curve instead.")
    return Figure(
        title="Privacy loss ε at each δ",
        x_label="δ",
        y_label="ε",
        x_scale="log",
        series=(Series("ε", tuple(d for d, _ in finite), tuple(e for _, e in finite)),),
        notes=("Every point is an upper bound.",),
    )
