"""Every stage of every fit, on neighbours: sums move no further than stated, and all stages keep the promise.

A fit on one data set is recorded. On the neighbour the same noisy answers are given again, whatever its own
sums are, as the theorem on adaptive stages has it: all that may differ then is each stage's exact sums.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dalenius.learn.tabular import bayes, boosting, clusters, coins, descent, halving, moments
from dalenius.learn.tabular.sums import noisy
from dalenius.mechanisms.additive import Additive
from tests.learn.tabular.models import NAMES, PURE, made, rows

MODULES = (boosting, bayes, clusters, descent, halving, moments)
STAGED = [*(name for name in NAMES if name != "objective"), "two", "two trees"]


@dataclass
class Tape:
    """What each stage summed, under which noise, and what it answered."""

    sums: list[Any] = field(default_factory=list)
    noises: list[Additive] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    again: Tape | None = None

    def answer(self, sums: Any, noise: Additive, *, unit: int = 1) -> Any:
        told = noisy(sums, noise, unit=unit) if self.again is None else self.again.answers[len(self.sums)]
        self.sums.append(sums)
        self.noises.append(noise)
        self.answers.append(told)
        return told


@contextlib.contextmanager
def recorded(patch: pytest.MonkeyPatch, again: Tape | None = None) -> Iterator[Tape]:
    """The chance that protects nobody, such as the shapes of trees, is the same both times."""
    tape = Tape(again=again)
    chance = np.random.default_rng(7)
    with patch.context() as here:
        here.setattr(coins.Coins, "random", lambda _, size: chance.random(size))
        here.setattr(coins.Coins, "integers", lambda _, below, size: chance.integers(below, size=size))
        for module in MODULES:
            here.setattr(module, "noisy", tape.answer)
        yield tape


def neighbours(relation: str) -> list[tuple[Any, Any]]:
    """Data sets that differ in one row, at the ends and beyond them; a null row is one of NaN."""
    x, y = rows(60)
    found = []
    for ends, label in (([1, 1, 1], 2), ([-1, -1, -1], 0), ([np.inf, -np.inf, 9], 1), ([0.3, np.nan, 0], 0)):
        other = np.array(ends, dtype=float)
        if relation == "add_remove":
            found.append(((x, y), (np.vstack([other, x]), np.append(label, y))))
        else:
            null = [np.nan] * 3 if relation == "zero_out" else [-1.0, 1.0, 0.0]
            first, second = (np.vstack([one, x]) for one in (other, null))
            found.append(((first, np.append(label, y)), (second, np.append(0, y))))
    return found


@pytest.mark.parametrize("relation", ["add_remove", "zero_out", "replace"])
@pytest.mark.parametrize("name", STAGED)
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_stage_moves_no_further_than_stated(
    name: str, delta: float, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if delta == 0 and name not in (*PURE, "two trees"):
        pytest.skip("has no pure form")
    for first, second in neighbours(relation):
        model = made(name, epsilon=1, delta=delta, relation=relation)
        with recorded(monkeypatch) as one:
            model.fit(*first)
        with recorded(monkeypatch, one) as two:
            made(name, epsilon=1, delta=delta, relation=relation).fit(*second)
        assert len(one.sums) == len(two.sums)
        for before, after, noise, again in zip(one.sums, two.sums, one.noises, two.noises, strict=True):
            assert noise == again
            moved = [abs(int(k)) for k in np.ravel(before - after).tolist()]
            assert sum(moved) <= noise.sensitivity.need("l1")
            assert sum(k * k for k in moved) <= noise.sensitivity.need("l2") ** 2
            assert max(moved) <= noise.sensitivity.need("linf")
        check_total(one, model)


def check_total(tape: Tape, model: Any) -> None:
    """The stages together cost no more than what was charged, added up in rationals."""
    bounds = [(noise.sensitivity, noise.scale) for noise in tape.noises]
    if model.delta == 0:
        assert sum(bound.need("l1") / scale for bound, scale in bounds) <= 1
    else:
        multiplier = model.loss_.distance
        assert sum((bound.need("l2") / scale) ** 2 for bound, scale in bounds) <= multiplier**2
        assert model.loss_.epsilon(Fraction(1, 10**6)).upper <= 1


def test_each_bound_is_met_by_some_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the models whose rows can use all they may: nobody pays for noise that protects nothing."""
    full = (np.ones((1, 3)), np.array([0]))
    for name in ("gaussian", "categorical", "components"):
        with recorded(monkeypatch) as one:
            made(name, epsilon=1, delta=1e-6).fit(np.zeros((0, 3)), np.zeros(0))
        with recorded(monkeypatch, one) as two:
            made(name, epsilon=1, delta=1e-6).fit(*full)
        for before, after, noise in zip(one.sums, two.sums, one.noises, strict=True):
            moved = float(np.sqrt(np.square(np.ravel(after - before).astype(float)).sum()))
            assert moved >= 0.999 * float(noise.sensitivity.need("l2")), name


@pytest.mark.parametrize("name", STAGED)
def test_units_of_several_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit with five rows, of which two may count."""
    x, y = rows(40)
    units = np.arange(40)
    more, labels, owners = np.vstack([np.ones((5, 3)), x]), np.append([2] * 5, y), np.append([99] * 5, units)
    given = {"epsilon": 1, "delta": 1e-6, "rows_per_unit": 2}
    with recorded(monkeypatch) as one:
        made(name, **given).fit(x, y, units=units)
    with recorded(monkeypatch, one) as two:
        made(name, **given).fit(more, labels, units=owners)
    for before, after, noise in zip(one.sums, two.sums, one.noises, strict=True):
        moved = sum(int(k) ** 2 for k in np.ravel(after - before).tolist())
        assert moved <= noise.sensitivity.need("l2") ** 2
