"""`tune`: the best of a random number of private runs, charged for as one selection.

    tuned = dp.learn.tune(train, [0.1, 0.5, 2.0], loss=one_run, runs=10, account=people, by="ana", delta=1e-6)
    tuned.candidate, tuned.score, tuned.model, tuned.receipt

K is drawn in secret, each of K runs is made on a candidate drawn uniformly, and only the run with the
greatest score is kept. `train(candidate)` gives a score and a model which together cost `loss`, at most,
whatever the candidate: a score that is taken from private data is part of it. Runs must not know each other.
Of equal scores the first run is kept: runs have one law, so that is as good as a coin.

Theorem (Liu and Talwar 2019; Papernot and Steinke 2022; by profiles Koskela, Redberg and Wang 2024). The best
run costs `losses.selection.selected`: about two to three times one run, however many candidates there are
(`mechanisms.private_selection`, with the proof). It holds because K is random, drawn whatever the data, and
never shown. The best of a fixed number of runs may cost as many runs, though only one of them is seen.

What would show K, or a run that was not chosen, is kept back. Nothing that runs print is seen, and they
charge no account: their entries would count them. A run that raises counts as one with the least score of
all, and which did, and why, is not told; so `train` is best tried on made-up data before. Generators that
libraries share are afterwards as they were. Not kept back: how long it takes, which grows with K, and files
that a run writes. Where others can see the duration, hold the answer back until a time fixed beforehand.

The whole is charged before the first run; what is broken off stays charged, and nothing of it is shown.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from dalenius import noise
from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.learn.quiet import FAILURES, chance, quiet
from dalenius.ledger.account import Account
from dalenius.ledger.closing import closed
from dalenius.losses.fields import a_loss
from dalenius.losses.loss import Loss
from dalenius.losses.selection import selected
from dalenius.mechanisms.poisson_runs import PoissonRuns
from dalenius.mechanisms.repetition import Repetition
from dalenius.mechanisms.runs import Runs
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.release.receipt import Receipt

Distribution = Literal["geometric", "logarithmic", "poisson"]
Train = Callable[[Any], tuple[Any, Any]]
FEWEST, MOST = 2, 10_000
"""Runs on average."""
DIGITS = 10**9
"""How finely the chance to stop is chosen where it follows from a number of runs."""
VOUCHED = "that of the runs, whose loss the caller states"


@dataclass(frozen=True)
class Tuned:
    """The best run; of a Poisson number of runs there may have been none, and then all is None."""

    candidate: Any
    score: float | None
    model: Any = field(repr=False)
    receipt: Receipt = field(repr=False)


def tuning_loss(loss: Loss, *, runs: Number = 10, distribution: Distribution = "geometric") -> Loss:
    """What `tune` charges where one run costs `loss`."""
    return selected(a_loss(loss, "loss"), **_stated(runs, distribution))


def tune(
    train: Train,
    candidates: Sequence[Any],
    *,
    loss: Loss,
    runs: Number = 10,
    distribution: Distribution = "geometric",
    account: Account | None = None,
    by: str = "",
    purpose: str = "tuning",
    delta: Number | None = None,
) -> Tuned:
    """The best of about `runs` private runs, each on one of the candidates; see the module."""
    if not callable(train) or not isinstance(candidates, list | tuple) or not candidates:
        raise InvalidArgument(
            "Tuning needs a function of one candidate, and candidates.",
            remedy="Pass train, which returns a score and a model, and a list such as [0.1, 1.0].",
        )
    law, price = read_runs(runs, distribution), tuning_loss(loss, runs=runs, distribution=distribution)
    receipt = Receipt(
        loss=price,
        mechanism=f"the best of a secret number of runs, {distribution}, about {law.mean:.4g}",
        numerics=VOUCHED,
        bounds=("each run on a candidate drawn at random; only the best is kept",),
        tainted=noise.tainted(),
        delta=None if delta is None else numbers.delta(delta),
    )
    if account is None:
        return _kept(train, candidates, law, receipt)
    with account.reserve(price, by=by, purpose=purpose) as reservation:
        paid = replace(receipt, unit=account.unit_for(price), entry=reservation.line())
        found = _kept(train, candidates, law, paid)
        reservation.end("commit")
    return found


def read_runs(runs: Number, distribution: Distribution) -> Runs:
    """The law of the number of runs."""
    stated = _stated(runs, distribution)
    if "mean" in stated:
        return PoissonRuns(stated["mean"])
    return Repetition(stated["stop"], stated["shape"])


def _stated(runs: Number, distribution: Distribution) -> dict[str, Fraction]:
    number = numbers.exact(runs, "runs")
    if not FEWEST <= number <= MOST:
        raise InvalidArgument(
            f"runs must be from {FEWEST} to {MOST}, on average.", remedy="Choose runs such as 10."
        )
    if distribution == "poisson":
        return {"mean": number}
    if distribution == "geometric":
        return {"stop": 1 / number, "shape": Fraction(1)}
    if distribution == "logarithmic":
        return {"stop": _logarithmic(number), "shape": Fraction(0)}
    raise InvalidArgument(
        "distribution must be geometric, logarithmic or poisson.", remedy="Pass one of these names."
    )


def _logarithmic(runs: Fraction) -> Fraction:
    """The chance to stop with which (1 − γ)/(γ·log(1/γ)) is about `runs`."""
    low, high = 0.0, 1.0
    while high - low > 1 / DIGITS:
        stop = (low + high) / 2
        more = (1 - stop) / (stop * -math.log(stop)) > runs
        low, high = (stop, high) if more else (low, stop)
    return Fraction(round(high * DIGITS), DIGITS)


def _kept(train: Train, candidates: Sequence[Any], law: Runs, receipt: Receipt) -> Tuned:
    """The best run, the first of equal ones; nothing else outlives this."""
    best = Tuned(None, None, None, receipt)
    (count,) = law.draw(1).tolist()
    with quiet(), chance(), closed():
        for place in noise.uniform(len(candidates), count).tolist():
            # A copy each: what a run does to its candidate would tell how many runs there were.
            score, model = _run(train, copy.deepcopy(candidates[place]))
            if best.score is None or score > best.score:
                best = Tuned(candidates[place], score, model, receipt)
    if best.score == -math.inf:
        raise QueryFailed(
            "None of the runs gave a score and a model; nothing is released.",
            remedy="Try train(candidate) by itself on made-up data: it returns a number and a model. A run "
            "that raises, or charges an account, counts as failed.",
        )
    return best


def _run(train: Train, candidate: Any) -> tuple[float, Any]:
    """A score and a model; the least score where there is none."""
    try:
        score, model = train(candidate)
        number = float(score)
    except FAILURES:
        return -math.inf, None
    return (-math.inf, None) if math.isnan(number) else (number, model)
