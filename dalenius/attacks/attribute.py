"""Attribute inference: guess what a record hides from the rest of it and from what was published.

A good guess is not yet a leak. Whoever learns that people who smoke fall ill more often guesses better about
every smoker, in the data or not. So each attack is run on people who were in the data and on people who were
not, and the report's baseline is its success on the latter: what is above it concerns those whose data were
used (the advantage of Yeom et al. 2018), and the difference is bounded by `loss.advantage()`. The detail
`imputation` is the success without anything published, from the records of others alone (Jayaraman and Evans
2022): what the baseline has more than this, the publication taught about everyone.

`attribute_from_model` (Fredrikson et al. 2014) guesses the value with which the model finds the record's own
label most likely, weighted by how common the value is. `attribute_from_counts` guesses the most frequent
value in the record's group. The interval includes what is uncertain about the baseline: both rates have exact
intervals, each with half the risk. They take people as independent draws, as `roc` explains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dalenius.attacks.membership import Labels, Predict, Records, likelihoods
from dalenius.attacks.result import CONFIDENCE, Attack
from dalenius.attacks.roc import Floats, rate
from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss

Counts = Callable[[Labels, Labels], NDArray[np.generic]]
"""What publishes: each person's group and value, to a table of counts, a row a group, a column a value."""


def attribute_from_model(
    predict: Predict,
    members: Records,
    others: Records,
    *,
    column: int,
    values: Sequence[float],
    loss: Loss | None = None,
    confidence: float = CONFIDENCE,
) -> Attack:
    """Guess which of `values` each record has in `column` of its features."""
    levels = np.asarray(values, dtype=np.float64)
    common = np.array([np.mean(others.features[:, column] == level) for level in levels])
    right = [
        guess_attribute(predict, records, column=column, values=levels, weights=common)
        == records.features[:, column]
        for records in (members, others)
    ]
    imputed = _imputed(members, others, column, levels) == members.features[:, column]
    return _compared("attribute from a model", right[0], right[1], imputed, loss, confidence)


def guess_attribute(
    predict: Predict,
    records: Records,
    *,
    column: int,
    values: Sequence[float] | Floats,
    weights: Sequence[float] | Floats | None = None,
) -> Floats:
    """The value, for each record, that makes its label likeliest; `weights` says how common values are."""
    levels = np.asarray(values, dtype=np.float64)
    shares = np.ones(len(levels)) if weights is None else np.asarray(weights, dtype=np.float64)
    chances = []
    for level, share in zip(levels.tolist(), shares.tolist(), strict=True):
        tried = np.array(records.features, dtype=np.float64)
        tried[:, column] = level
        chances.append(share * likelihoods(predict, Records(tried, records.labels)))
    return np.asarray(levels[np.argmax(chances, axis=0)])


def attribute_from_counts(
    publish: Counts,
    groups: Labels,
    values: Labels,
    *,
    loss: Loss | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Attack:
    """Publish counts of a random half of the people, and guess the value of everyone from their group."""
    inside = np.zeros(len(groups), dtype=bool)
    inside[np.random.default_rng(seed).permutation(len(groups))[: len(groups) // 2]] = True
    table = np.asarray(publish(groups[inside], values[inside]), dtype=np.float64)
    if table.ndim != 2 or len(table) <= groups.max() or table.shape[1] <= values.max():
        raise InvalidArgument(
            "The table must have a row for each group and a column for each value.",
            remedy="Publish a count for every pair of a group and a value, also where it is 0.",
        )
    usual = int(table.sum(axis=0).argmax())
    # A group that says nothing leaves the value that is most common overall.
    best = np.where(np.ptp(table, axis=1) == 0, usual, table.argmax(axis=1))
    right = best[groups] == values
    imputed = values[inside] == np.bincount(values[~inside]).argmax()
    return _compared("attribute from counts", right[inside], right[~inside], imputed, loss, confidence)


def _compared(
    name: str,
    members: NDArray[np.bool_],
    others: NDArray[np.bool_],
    imputed: NDArray[np.bool_],
    loss: Loss | None,
    confidence: float,
) -> Attack:
    """Success on members above that on others, with an interval of the difference."""
    each = (1 + confidence) / 2
    inner, outer = (rate(int(r.sum()), len(r), confidence=each) for r in (members, others))
    # The report divides the difference by what the baseline misses, so the bound is divided likewise.
    missed = 1 - outer.value
    return Attack(
        name,
        inner.value,
        outer.value,
        inner.low - (outer.high - outer.value),
        inner.high + (outer.value - outer.low),
        len(members),
        confidence,
        None if loss is None else min(1.0, loss.advantage().upper / max(missed, 1e-300)),
        details=MappingProxyType({"imputation": float(imputed.mean()), "others": outer.value}),
    )


def _imputed(members: Records, others: Records, column: int, levels: Floats) -> Floats:
    """A linear guess at the column from the rest of the record, learned from people not in the data."""
    known = others.features[:, [column]] == levels
    weights = np.linalg.lstsq(_rest(others, column), known.astype(np.float64), rcond=None)[0]
    return np.asarray(levels[np.argmax(_rest(members, column) @ weights, axis=1)])


def _rest(records: Records, column: int) -> Floats:
    return np.column_stack(
        [np.delete(records.features, column, axis=1), records.labels, np.ones(len(records.labels))]
    )
