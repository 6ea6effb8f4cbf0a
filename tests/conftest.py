"""Settings shared by all tests, and truth by ball arithmetic at 200 bits, independent of the library."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import settings
from postgres_server import postgres

from dalenius.profiles.pair import Pair

__all__ = ["postgres"]

# No test asserts a duration: a slow machine is not a failure.
settings.register_profile("dalenius", deadline=None)
settings.load_profile("dalenius")


COSTLY = (
    "tests/learn/test_bare_machine.py",
    "tests/learn/test_resume.py",
    "tests/learn/test_several.py",
    "tests/losses/test_filters.py",
)
"""Files whose tests share what takes ten seconds or more to make."""


@atexit.register
def _silenced() -> None:
    """DuckDB's binding lists what outlives the interpreter, which is not ours, after pytest's summary."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests go to workers one by one, but all that use Spark to the same, which starts Java once.

    So do those of a file whose fixture takes long.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if "spark" in nodeid or "docs/engines.md" in nodeid:
                return "spark"
            file = nodeid.split("::")[0]
            return file if file in COSTLY else nodeid

    return Together(config, log) if config.getvalue("dist") == "load" else None


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
