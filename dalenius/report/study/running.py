"""`run`: a study, as an owner's experiment or paid for by an account."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.report.study import charging, owning
from dalenius.report.study.data import Data
from dalenius.report.study.models import Maker, chosen
from dalenius.report.study.paying import Payment
from dalenius.report.study.result import Study
from dalenius.report.study.splitting import split, toss
from dalenius.report.study.training import Recipe
from dalenius.report.study.trials import Told, Trials

CLIPS = (Fraction(1, 10), Fraction(1), Fraction(10))
"""The bounds that an owner's study compares, as parts of the one that it trains with."""


def run(
    data: Data,
    *,
    epsilons: Sequence[Number],
    delta: Number,
    model: str | Maker | None = None,
    epochs: Number = 10,
    batch_size: int | None = None,
    clip: Number = 1,
    clips: Sequence[Number] | None = None,
    rate: Number = 0.005,
    test_share: Number = 0.2,
    seed: int = 0,
    shadows: int = 0,
    payment: Payment | None = None,
    told: Told | None = None,
) -> Study:
    """Train one model with and without privacy; with a `payment` only what it pays for.

    `clips` are bounds on the norm of a gradient to compare at the middle ε: by itself three for an owner,
    none where an account pays. `shadows` models of each setting attack it by LiRA, if any. `told` is given a
    line of public facts before each run.
    """
    if payment is not None and shadows:
        raise InvalidArgument(
            "Shadow models are for membership inference, which no account pays for.",
            remedy="Leave shadows out, or make the study as an owner's experiment, without payment.",
        )
    trials = Trials.of(epsilons, clip=clip, clips=_clips(clips, clip, payment))
    failure, share = numbers.delta(delta), numbers.rate(test_share, "test_share")
    if failure == 0 or share == 1:
        raise InvalidArgument(
            "delta and test_share must be above 0, and test_share below 1.",
            remedy="Pass delta far below one over the number of rows, and test_share such as 0.2.",
        )
    name, maker = chosen(model, data)
    if payment is not None:
        payment.check(data)
        size = int(payment.public_size * (1 - share))
        train, test = toss(data, share)
    else:
        train, test = split(data, share, numbers.count(seed, "seed", least=0))
        size = len(train)
    recipe = Recipe.of(maker, size, batch_size=batch_size, epochs=epochs, rate=rate, seed=seed, delta=failure)
    say = told or _silent
    settings = _settings(name, recipe, trials, share, epochs)
    if payment is not None:
        return charging.conducted(data, train, test, recipe, trials, payment, settings, say)
    return owning.conducted(data, train, test, recipe, trials, settings, say, shadows)


def _clips(clips: Sequence[Number] | None, clip: Number, payment: Payment | None) -> Sequence[Number]:
    if clips is not None:
        return clips
    return () if payment is not None else [part * numbers.positive(clip, "clip") for part in CLIPS]


def _settings(model: str, recipe: Recipe, trials: Trials, share: Fraction, epochs: Number) -> dict[str, Any]:
    return {
        "model": model,
        "epsilons": [float(one) for one in trials.epsilons],
        "delta": float(recipe.delta),
        "clip": float(trials.clip),
        "clips": [float(one) for one in trials.clips],
        "clips_epsilon": float(trials.middle),
        "epochs": float(numbers.exact(epochs, "epochs")),
        "steps": recipe.steps,
        "batch_size": recipe.batch_size,
        "training_rows": recipe.size,
        "rate": recipe.rate,
        "test_share": float(share),
        "seed": recipe.seed,
    }


def _silent(line: str) -> None:
    """Says nothing."""
