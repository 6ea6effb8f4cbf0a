"""A session that was stopped in the middle of a change gives nothing more: no noise meets other data."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalenius.streams.density as density
import dalenius.streams.pan_private as pan_private
from dalenius.errors import InvalidArgument, NotSound
from dalenius.mechanisms.sparse_vector import SparseVector
from dalenius.noise.buffered import Running
from dalenius.privacy.quantized import Grid
from dalenius.streams import (
    ContinualSum,
    DecayedSum,
    DistinctCount,
    EndlessSum,
    HeavyHitters,
    PanPrivateCount,
    PanPrivateDensity,
    RateAlarm,
    TreeSum,
    WindowSum,
    load,
)
from dalenius.streams.counter import Counter
from dalenius.streams.heavy import MisraGries

KINDS = [
    ContinualSum.designed(horizon=9000, scale=5),
    TreeSum(scale=6),
    TreeSum(scale=6, law="laplace", estimator="plain"),
    EndlessSum.designed(epoch=2**12, scale=5),
    WindowSum(window=10, scale=8),
    DecayedSum.designed(horizon=9000, decay=0.9, scale=5),
]


def stop(*_: Any, **__: Any) -> Any:
    """Ctrl-C."""
    raise KeyboardInterrupt


def broken(session: Any, *calls: Callable[[], Any]) -> None:
    """All of these are refused."""
    for call in calls:
        with pytest.raises(NotSound, match="in the middle of a change") as refused:
            call()
        assert refused.value.remedy == type(session).again


def uses(counter: Counter, path: Path) -> list[Callable[[], Any]]:
    return [
        counter.value,
        lambda: counter.add(1),
        lambda: counter.extend([1]),
        lambda: counter.series([1]),
        lambda: counter.save(path / "other"),
    ]


@pytest.mark.parametrize("where", ["blocks", "tally"])
@pytest.mark.parametrize("mechanism", KINDS, ids=lambda m: m.kind)
def test_a_counter_that_was_stopped_ends(
    mechanism: Any, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = mechanism.start()
    counter.extend(np.ones(counter._blocks.steps, np.int64))
    part, name = (counter._blocks, "next") if where == "blocks" else (counter._tally, "series")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(part, name, stop)
        counter.series([1, 1])
    broken(counter, *uses(counter, tmp_path))


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda m: m.kind)
def test_old_noise_is_not_used_again_even_without_the_refusal(
    mechanism: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter, twin = mechanism.start(), None
    twin = Counter(mechanism, None, lambda release: release, counter._key)
    many = counter._blocks.steps - 2
    for each in (counter, twin):
        each.extend(np.ones(many, np.int64))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(counter._blocks, "next", stop)
        counter.series([1, 1, 1, 1])
    counter._broken = False
    assert counter.series([1, 1, 1, 1]) == twin.series([1, 1, 1, 1])


@pytest.mark.parametrize("summed", [True, False])
def test_a_block_that_was_stopped_is_drawn_as_if_it_were_not(
    summed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = KINDS[0 if summed else -1].start()
    one, two = (counter.mechanism.blocks(counter._key, 1) for _ in range(2))
    assert isinstance(one, Running)
    one.next(), two.next()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(one, "_rounded", stop)
        one.next()
    assert np.array_equal(one.next(), two.next())


def test_a_signal_in_the_middle_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = KINDS[0].start()
    counter.extend(np.ones(counter._blocks.steps - 1, np.int64))
    counter.save(tmp_path / "state")
    given, cells = counter.value(), Running.cells

    def slow(self: Running, block: int) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return cells(self, block)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Running, "cells", slow)
            counter.series([5, 5, 5])
    finally:
        signal.signal(signal.SIGINT, before)
    broken(counter, *uses(counter, tmp_path))
    # The remedy: the file is free, and holds what was given.
    again = load(tmp_path / "state")
    assert again.value() == given
    again.add(1)
    broken(counter, counter.value)


def test_refusals_do_not_end_a_counter() -> None:
    counter = ContinualSum.designed(horizon=2, scale=5).start()
    with pytest.raises(InvalidArgument):
        counter.value()
    with pytest.raises(InvalidArgument):
        counter.add(1, unit="ana")
    with pytest.raises(NotSound, match="charged for 2 steps"):
        counter.series([1, 1, 1])
    counter.add(1)
    assert counter.steps == 1 and counter.value() == counter.value()
    bounded = ContinualSum.designed(horizon=1, scale=5, most=1).start()
    bounded.add(1, unit="ana")
    with pytest.raises(NotSound, match="charged for 1 steps"):
        bounded.add(1, unit="bob")
    assert bounded._participants.seen == {"ana": (0, 1)}


def test_units_that_were_noted_halfway(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = TreeSum(scale=6, most=2).start()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(counter._participants, "admitted", stop)
        counter.add(1, unit="ana")
    broken(counter, counter.value, lambda: counter.add(1, unit="ana"))


def test_loading_that_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = TreeSum(scale=6).start()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(counter._blocks, "next", stop)
        counter._go_on(3, None)
    broken(counter, *uses(counter, tmp_path))
    assert counter.steps == 0


@pytest.mark.parametrize("what", ["add", "intruded"])
def test_a_pan_private_counter_ends(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = PanPrivateCount(horizon=7, state_scale=3, output_scale=3).start()
    session.add(1)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(pan_private.fresh, "discrete_laplace", stop)
        session.add(1) if what == "add" else session.intruded()
    broken(session, session.value, lambda: session.add(1), session.intruded, session.closed_sum)


@pytest.mark.parametrize("what", ["add", "value", "intruded"])
def test_a_table_ends(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = PanPrivateDensity(items=3, state_epsilon=1, answer_epsilon=1, answers=2, intrusions=1).start()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(density, "bernoulli", stop)
        patched.setattr(density.fresh, "discrete_laplace", stop)
        {"add": lambda: table.add([1]), "value": table.value, "intruded": table.intruded}[what]()
    broken(table, table.value, lambda: table.add([1]), table.intruded)


def test_sketches_draw_once_or_end(monkeypatch: pytest.MonkeyPatch) -> None:
    distinct = DistinctCount(epsilon=1, buckets=16, levels=4)
    heavy = HeavyHitters(epsilon=1, delta=1e-6, counters=4)
    for mechanism, noise in ((distinct, "flipped"), (heavy, "noisy")):
        # Stopped while noise is drawn: no second draw.
        session = mechanism.start()
        session.add(["a", "b"])
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(type(mechanism), noise, stop)
            session.value()
        broken(session, session.value, lambda session=session: session.add(["c"]))
        # Stopped afterwards: the same draw again.
        session = mechanism.start()
        session.add(["a"] * 100)
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(type(mechanism), "released", stop)
            session.value()
        with monkeypatch.context() as patched:
            patched.setattr(type(mechanism), noise, stop)
            assert session.value() == session.value()
    session = heavy.start()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(MisraGries, "add", stop)
        session.add("a")
    broken(session, session.value, lambda: session.add("a"))


def test_an_alarm_counts_no_step_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = RateAlarm.calibrate(limit=0.01, window=5, epsilon=1).start()
    watch.add(bad=0, events=10)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(watch._session, "ask", stop)
        watch.add(bad=1, events=10)
    broken(watch, lambda: watch.add(bad=1, events=10))


def test_the_sparse_vector_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    session = SparseVector.calibrate(epsilon=1, sensitivity=1, count=1, grid=Grid(0), exact=True).start()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(type(session.mechanism.query), "draw", stop)
        session.ask(0)
    broken(session, lambda: session.ask(0))
