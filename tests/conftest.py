"""Settings shared by all tests, and truth by ball arithmetic at 200 bits, independent of the library."""

from __future__ import annotations

import atexit
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import HealthCheck, settings
from postgres_server import postgres

from dalenius.profiles.pair import Pair

__all__ = ["postgres"]

# No test asserts a duration: a slow machine is not a failure.
settings.register_profile("dalenius", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dalenius")


FIRST = (
    "tests/learn/test_bare_machine.py",
    "tests/learn/test_recording.py",
    "tests/learn/test_resume.py",
    "tests/learn/test_several.py",
    "tests/losses/test_filters.py",
)
"""Files whose tests share what takes ten seconds or more to make. They come first, each on one worker."""
CHUNK = 8
"""How many tests that follow each other in a file are handed out together."""


@atexit.register
def _silenced() -> None:
    """DuckDB's binding lists what outlives the interpreter, which is not ours, after pytest's summary."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _place(nodeid: str) -> int:
    """Return how early a test runs: those of Spark first, then the files of `FIRST`, then all others."""
    if "spark" in nodeid or "docs/engines.md" in nodeid:
        return 0
    return 1 if nodeid.split("::")[0] in FIRST else 2


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes long to the front, so that no worker waits for another at the end."""
    items.sort(key=lambda item: _place(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return a scheduler that hands out tests in the order of collection, a few of one file at a time.

    All tests that use Spark go to one worker, which starts Java once, and so do those of a file of `FIRST`.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def schedule(self) -> None:
            """Number the groups of tests once both workers have said which tests there are."""
            if self.collection is None:
                collected = next(iter(self.registered_collections.values()))
                self._groups = _grouped(collected)
                self._indices = {nodeid: index for index, nodeid in enumerate(collected)}
            super().schedule()

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """Forget a group that is done: what is pending is counted after each test."""
            super().mark_test_complete(node, item_index, duration)
            work = self.assigned_work[node]
            group = self._split_scope(self.registered_collections[node][item_index])
            if all(work[group].values()):
                del work[group]

        def _split_scope(self, nodeid: str) -> str:
            return self._groups[nodeid]

        def _assign_work_unit(self, node: Any) -> None:
            """Send a group, by the index of each test: all workers collect the same list."""
            group, tests = self.workqueue.popitem(last=False)
            self.assigned_work.setdefault(node, {})[group] = tests
            node.send_runtest_some([self._indices[nodeid] for nodeid, done in tests.items() if not done])

    if config.getvalue("dist") != "load":
        return None
    config.option.loadscopereorder = False
    return Together(config, log)


def _grouped(nodeids: Sequence[str]) -> dict[str, str]:
    """Return the group of each test: what belongs on one worker, or a few neighbours in a file."""
    groups: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for nodeid in nodeids:
        file = nodeid.split("::")[0]
        if (place := _place(nodeid)) < 2:
            groups[nodeid] = file if place else "spark"
        else:
            groups[nodeid] = f"{file} {counts[file] // CHUNK}"
            counts[file] += 1
    return groups


Truth = Callable[[float], arb]


def exact(number: Fraction | int | float) -> arb:
    """The ball of a rational or of a float taken as the binary number it is."""
    rational = Fraction(number)
    return arb(fmpq(rational.numerator, rational.denominator))


class Outcomes:
    """A pair given by the masses of its outcomes: the definition of H and of the moments, summed up."""

    def __init__(self, masses: Iterable[tuple[arb, arb]]) -> None:
        self.masses = list(masses)

    def hockey(self, epsilon: float) -> arb:
        y = exact(epsilon).exp()
        return sum(((p - y * q).max(arb(0)) for p, q in self.masses), arb(0))

    def log_moment(self, order: float) -> arb:
        t = exact(order)
        return sum((p * (t * (p / q).log()).exp() for p, q in self.masses if p > 0), arb(0)).log()

    def reversed(self) -> Outcomes:
        return Outcomes((q, p) for p, q in self.masses)


@pytest.fixture
def precisely() -> Iterable[None]:
    """The test body, but not what it asks of the library, is evaluated with 200 bits."""
    with flint.ctx.workprec(200):
        yield


@pytest.fixture
def outcomes(precisely: None) -> type[Outcomes]:
    return Outcomes


@pytest.fixture
def ball(precisely: None) -> Callable[[Fraction | int | float], arb]:
    return exact


@pytest.fixture
def encloses(precisely: None) -> Callable[..., None]:
    """Both answers of a pair contain the truth and are narrow; H also at losses themselves and far out."""

    def check(
        pair: Pair,
        truth: object,
        *,
        epsilons: Sequence[float] = (-50.0, -3.0, -1.0, -0.25, 0.0, 1e-9, 0.1, 0.5, 1.0, 2.5, 20.0),
        orders: Sequence[float] = (1e-3, 0.5, 1.0, 2.5, 20.0),
        width: float = 1e-11,
    ) -> None:
        with flint.ctx.workprec(53):
            lo, hi = pair.hockey(np.array(epsilons))
            moments = [pair.log_moment(order) for order in orders]
        for epsilon, low, high in zip(epsilons, lo, hi, strict=True):
            _contains((float(low), float(high)), truth.hockey(epsilon), width, 1e-300)
        for order, moment in zip(orders, moments, strict=True):
            _contains(moment, truth.log_moment(order), width, 1e-18)

    return check


def _contains(ends: tuple[float, float], truth: arb, width: float, least: float) -> None:
    assert ends[0] <= ends[1]
    assert not truth < exact(ends[0]), (ends, truth)
    assert not truth > exact(ends[1]), (ends, truth)
    assert ends[1] - ends[0] <= width * ends[1] + least, (ends, truth)
