"""Several threads that ask one ensemble are answered in turn, and nothing of it outlasts them."""

from __future__ import annotations

import logging
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import dalenius as dp
from dalenius.learn.models import at_rest
from dalenius.learn.pate import GNMax, Teachers
from dalenius.learn.quiet import quiet

X = np.arange(40.0).reshape(20, 2)
Y = np.arange(20) % 2
THREADS = 4


class Watched:
    """Notes whether another thread asks while it answers."""

    def __init__(self) -> None:
        self.busy, self.met = threading.Lock(), False

    def predict(self, rows: Any) -> Any:
        free = self.busy.acquire(blocking=False)
        self.met |= not free
        time.sleep(0.002)
        if free:
            self.busy.release()
        random.random()
        print("of a model")
        return [0] * len(rows)


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """The same work in several threads, all of which begin together."""
    start = threading.Barrier(THREADS)

    def begun(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begun, range(THREADS)))


def test_sessions_of_one_ensemble_are_answered_in_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [Watched() for _ in range(3)]
    service = dp.learn.serve(dp.learn.Ensemble(models), classes=2, epsilon=1)
    budget = dp.Budget(epsilon=40)
    people = dp.Ledger(tmp_path / "a.ledger").open("people", unit=dp.Unit("person"), budget=budget)
    before, streams = random.getstate(), (sys.stdout, sys.stderr)
    sessions = [service.start(people, by=f"{i}") for i in range(THREADS)]
    found = at_once(lambda i: [sessions[i].ask(X[i]), sessions[i].ask_all(X[:3])])
    assert not any(model.met for model in models), "two threads were within one model"
    assert random.getstate() == before and (sys.stdout, sys.stderr) == streams
    assert logging.root.manager.disable == 0 and "of a model" not in capsys.readouterr().out
    assert float(people.spent) == pytest.approx(4 * THREADS)
    events = [entry.event for entry in people.entries()][1:]
    assert events == ["reserve", "commit"] * (2 * THREADS), "no charge comes between another and its answer"
    assert len({one.receipt.entry.number for both in found for one in both}) == 2 * THREADS


def test_one_session_remembers_one_answer(tmp_path: Path) -> None:
    service = dp.learn.serve(dp.learn.Ensemble([Watched() for _ in range(3)]), classes=2, epsilon=1)
    budget = dp.Budget(epsilon=40)
    people = dp.Ledger(tmp_path / "a.ledger").open("people", unit=dp.Unit("person"), budget=budget)
    session = service.start(people)
    answers = at_once(lambda _: session.ask(X[0]))
    assert len({one.value for one in answers}) == 1 and float(people.spent) == pytest.approx(1)
    prepaid = service.start(people, answers=5)
    at_once(lambda i: prepaid.ask(X[i]))
    assert prepaid.left == 5 - THREADS


def test_a_module_is_at_rest_for_all_who_ask() -> None:
    """The first that leaves would wake it up for the second."""
    net, left, awake = nn.Dropout(), threading.Event(), []

    def second() -> None:
        with at_rest(net):
            left.wait(600)
            awake.append(net.training)

    thread = threading.Thread(target=second)
    with at_rest(net):
        thread.start()
        time.sleep(0.05)
    left.set()
    thread.join()
    assert awake == [False] and net.training


def test_teachers_vote_in_turn() -> None:
    model = Watched()
    teachers = Teachers(_Whole(model), (X, Y), count=2, classes=2)
    sessions = [GNMax(scale=1, queries=5).start(teachers=teachers) for _ in range(THREADS)]
    at_once(lambda i: sessions[i].label(X[:3]))
    assert not model.met and teachers._votes == THREADS


class _Whole:
    """A model whose copies are itself."""

    def __init__(self, model: Watched) -> None:
        self.model = model

    def fit(self, x: Any, y: Any) -> Any:
        return self

    def predict(self, x: Any) -> Any:
        return self.model.predict(x)

    def __deepcopy__(self, memo: Any) -> _Whole:
        return self


def test_it_is_quiet_until_the_last_has_left(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = threading.Event(), threading.Event()

    def long() -> None:
        with quiet():
            first.set()
            second.wait(600)
            print("still private")

    thread = threading.Thread(target=long)
    with quiet():
        thread.start()
        first.wait(600)
    second.set()
    thread.join()
    print("seen")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.warn("told", stacklevel=1)
    assert capsys.readouterr().out == "seen\n" and len(told) == 1
    assert logging.root.manager.disable == 0
    assert torch.is_grad_enabled()
