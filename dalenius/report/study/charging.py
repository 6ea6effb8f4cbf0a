"""A study that an account pays for: every run and every table is charged before a row is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dalenius.errors import DaleniusError, InvalidArgument
from dalenius.losses.composition import compose
from dalenius.release.digits import at_most
from dalenius.report.study.data import Data
from dalenius.report.study.measuring import predictions, scores
from dalenius.report.study.paying import Payment, answered, noisily, read_counts
from dalenius.report.study.result import Run, Study
from dalenius.report.study.splitting import Part
from dalenius.report.study.training import Recipe, planned, rehearsed, train_privately
from dalenius.report.study.trials import Told, Trials

LEFT_OUT = (
    "the model without privacy, and clipping without noise: no budget pays for them",
    "membership inference: how well the rows of these people are recognized is about them, and has no noise",
)
"""What a charged study does not have."""
MOVED = {
    "add_remove": "for each row, added or removed",
    "replace": "for each row, replaced by another (the epsilon of a run by itself: added or removed)",
}
"""Whose epsilon is stated, by the relation of the account."""


def conducted(
    data: Data,
    train: Part,
    test: Part,
    recipe: Recipe,
    trials: Trials,
    payment: Payment,
    settings: Mapping[str, Any],
    told: Told,
) -> Study:
    """All losses are fixed and charged as one; then run after run, each with its noisy table."""
    all_runs = [*planned(recipe, data, train, trials)]
    table = payment.table(data)
    losses = [loss for _, private in all_runs for loss in (private.cost, table.loss)]
    rehearsed(recipe, data)
    relation = payment.account.unit.relation
    total = at_most(compose(losses).under(relation).epsilon(recipe.delta).upper)
    entry = payment.charge(losses)
    runs = []
    for trial, private in all_runs:
        told(trial.name)
        with _silently():
            said = predictions(train_privately(private), test, at_once=1)
        found = table.release(answered(data, test, said))
        runs.append(
            Run(
                trial.name,
                "private",
                scores(data, read_counts(data, found), noisily(table.scale)),
                float(trial.epsilon),
                float(trial.clip),
                float(private.noise_multiplier),
                receipt=payment.receipt(private.receipt, entry),
                released=payment.paid(found, entry),
                grid=trial.grid,
            )
        )
    statement = (
        f"PAID FOR: every run and every number was charged to {entry.account}, entry {entry.number}: epsilon "
        f"{total} at delta {float(recipe.delta):g} in all, {MOVED[relation]}. Left: {entry.left}."
    )
    more = {
        "public_size": payment.public_size,
        "metrics_epsilon": float(payment.metrics_epsilon),
        "account": entry.account,
        "entry": entry.number,
        "left": entry.left,
    }
    return Study(
        data.name,
        statement,
        True,
        data.classes,
        data.groups,
        tuple(runs),
        {**settings, **more},
        LEFT_OUT,
    )


@contextmanager
def _silently() -> Iterator[None]:
    """What a model of one's own raises may tell of the row that it met."""
    try:
        yield
    except DaleniusError:
        raise
    except Exception:
        raise InvalidArgument(
            "The model failed on the rows. Nothing is released, and what was charged stays charged.",
            remedy="Pass a model that answers any row of finite numbers.",
        ) from None
