"""A study as an owner's experiment: nothing is charged, all is counted, nothing is private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from dalenius.report.study.data import Data
from dalenius.report.study.measuring import Scores, counted, exactly, predictions, recognized, scores
from dalenius.report.study.result import Run, Study
from dalenius.report.study.splitting import Part
from dalenius.report.study.training import ALONE, Recipe, planned, train_plainly, train_privately
from dalenius.report.study.trials import Told, Trials

NOT_PRIVATE = (
    "NOT PRIVATE: an owner's experiment. Its numbers were counted exactly on people's data, and no account "
    "paid for them. Whoever sees them may learn about these people. Do not publish them."
)
"""What is said of a study that no account paid for."""


def conducted(
    data: Data,
    train: Part,
    test: Part,
    recipe: Recipe,
    trials: Trials,
    settings: Mapping[str, Any],
    told: Told,
) -> Study:
    """Run after run."""
    told("without privacy")
    model = train_plainly(recipe, data, train)
    plain = recognized(model, train, test, None)
    runs = [Run("without privacy", "plain", _scores(data, test, model), membership=plain)]
    for trial, private in planned(recipe, data, train, trials):
        told(trial.name)
        model = train_privately(private)
        receipt = replace(private.receipt, warnings=(*private.receipt.warnings, NOT_PRIVATE))
        runs.append(
            Run(
                trial.name,
                "private",
                _scores(data, test, model),
                float(trial.epsilon),
                float(trial.clip),
                float(private.noise_multiplier),
                recognized(model, train, test, private.loss),
                receipt,
                grid=trial.grid,
            )
        )
    for bound in trials.clips:
        name = f"clipping alone, clip {float(bound):g}"
        told(name)
        model = train_privately(recipe.private(data, train, clip=bound, noise_multiplier=ALONE))
        found = _scores(data, test, model)
        runs.append(Run(name, "clipping", found, clip=float(bound), noise_multiplier=float(ALONE), grid=True))
    counts = {"test_rows": len(test), "rows": len(data)}
    return Study(
        data.name, NOT_PRIVATE, False, data.classes, data.groups, tuple(runs), {**settings, **counts}
    )


def _scores(data: Data, test: Part, model: nn.Module) -> Scores:
    return scores(data, counted(data, test, predictions(model, test)), exactly)
