"""A study as an owner's experiment: nothing is charged, all is counted, nothing is private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from dalenius.report.study.data import Data
from dalenius.report.study.measuring import Scores, counted, exactly, predictions, recognized, scores
from dalenius.report.study.result import Run, Study
from dalenius.report.study.shadowing import Shadowing
from dalenius.report.study.splitting import Part
from dalenius.report.study.training import (
    ALONE,
    Recipe,
    planned,
    rehearsed,
    train_plainly,
    train_privately,
)
from dalenius.report.study.trials import Told, Trials

NOT_PRIVATE = (
    "NOT PRIVATE: an owner's experiment. Its numbers were counted exactly on people's data, and no account "
    "paid for them. Whoever sees them may learn about these people. Do not publish them."
)
"""What is said of a study that no account paid for."""
FOR_FREE = (
    "epsilon is that of the training alone: the number of rows, and classes, groups and scales that nobody "
    "stated, were read off the data for free"
)
"""What is said of the receipt of one of its runs."""


def conducted(
    data: Data,
    train: Part,
    test: Part,
    recipe: Recipe,
    trials: Trials,
    settings: Mapping[str, Any],
    told: Told,
    shadows: int = 0,
) -> Study:
    """Run after run."""
    shadowing = Shadowing(train, test, shadows, recipe.seed)
    rehearsed(recipe, data)
    told("without privacy")
    plainly = partial(train_plainly, recipe, data)
    model = plainly(train)
    lira = shadowing.attack(model, plainly, told, "without privacy")
    plain = replace(recognized(model, train, test, None), lira=lira)
    runs = [Run("without privacy", "plain", _scores(data, test, model), membership=plain)]
    for trial, private in planned(recipe, data, train, trials):
        told(trial.name)
        model = train_privately(private)
        again = partial(_again, recipe, data, trial.clip, private.noise_multiplier)
        lira = None if trial.grid else shadowing.attack(model, again, told, trial.name)
        receipt = replace(private.receipt, warnings=(*private.receipt.warnings, NOT_PRIVATE, FOR_FREE))
        runs.append(
            Run(
                trial.name,
                "private",
                _scores(data, test, model),
                float(trial.epsilon),
                float(trial.clip),
                float(private.noise_multiplier),
                replace(recognized(model, train, test, private.cost), lira=lira),
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
    counts = {
        "test_rows": len(test),
        "rows": len(data),
        "rows_left_out": data.left_out,
        "test_rows_by_class": np.bincount(test.y.numpy(), minlength=len(data.classes)).tolist(),
        "shadows": shadows,
    }
    if test.group is not None:
        counts["test_rows_by_group"] = np.bincount(test.group, minlength=len(data.groups)).tolist()
    return Study(
        data.name, NOT_PRIVATE, False, data.classes, data.groups, tuple(runs), {**settings, **counts}
    )


def _again(recipe: Recipe, data: Data, clip: Fraction, noise: Fraction, rows: Part) -> nn.Module:
    """The same private training, on other rows."""
    return train_privately(recipe.private(data, rows, clip=clip, noise_multiplier=noise))


def _scores(data: Data, test: Part, model: nn.Module) -> Scores:
    return scores(data, counted(data, test, predictions(model, test)), exactly)
