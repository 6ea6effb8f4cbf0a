"""States that may be seized: an audit of the state itself, twice seen, and of counters that are none."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dalenius import audit
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import Pure
from dalenius.mechanisms.mechanism import Mechanism
from dalenius.streams import PanPrivateCount, PanPrivateDensity, TreeSum

COUNT = PanPrivateCount(horizon=7, state_scale=3, output_scale=3)
ORDINARY = TreeSum(horizon=7, scale=3, law="laplace", estimator="plain")
NOTHING, EARLY, BETWEEN = [0, 0, 0], [1, 0, 0], [0, 1, 0]
ALARM = 1e-6
OTHER = {"mechanism", "unit", "_stamp", "_lock", "_process", "_broken"}
"""What a session holds that is not of the data."""


def near(stream: list[int]) -> list[list[int]]:
    return [EARLY, BETWEEN]


def seized(session: Any) -> list[float]:
    """Every number in the memory of a session, wherever it lies, and of what it holds."""
    found: list[float] = []
    for name, part in sorted(vars(session).items()):
        if name in OTHER or name in ("_keeper", "_key", "_drawn"):
            continue
        parts = vars(part).values() if hasattr(part, "__dict__") else [part]
        for each in parts:
            if isinstance(each, int | np.ndarray | list):
                found += [float(x) for x in np.ravel(np.asarray(each, dtype=object)) if isinstance(x, int)]
                if isinstance(each, np.ndarray) and each.dtype.kind == "i":
                    found += [float(x) for x in each.ravel()]
    return found


def two_intrusions(mechanism: Any, *, announced: bool = True) -> Any:
    """The last output, and the memory after the first and after the second step, and how it changed."""

    def seen(stream: list[int]) -> list[float]:
        session, states = mechanism.start(), []
        for step, number in enumerate(stream):
            session.add(number)
            if step < 2:
                states.append(np.array(seized(session)))
                if announced and hasattr(session, "intruded"):
                    session.intruded()
        return [float(session.value().value), *states[0], *(states[1] - states[0])]

    return seen


def test_the_audit_of_a_pan_private_state_passes() -> None:
    assert COUNT.loss == Pure(1)
    found = audit(two_intrusions(COUNT), inputs=[NOTHING], neighbors=near, claim=Pure(1), trials=1500)
    assert found.holds, str(found)


def test_the_ordinary_counter_fails_the_same_audit() -> None:
    assert ORDINARY.loss.epsilon(0).upper == pytest.approx(1)
    found = audit(two_intrusions(ORDINARY), inputs=[NOTHING], neighbors=near, claim=Pure(1), trials=1500)
    assert found.violated, str(found)


def test_two_looks_without_a_word_break_it() -> None:
    seen = two_intrusions(COUNT, announced=False)
    assert audit(seen, inputs=[NOTHING], neighbors=near, claim=Pure(1), trials=1500).violated


def one_look(stream: list[int]) -> list[float]:
    """The memory after the first step, unannounced, and what the first long block came to since."""
    session, found = COUNT.start(), []
    for step, number in enumerate(stream):
        session.add(number)
        if step == 0:
            found = [float(each) for each in session.open[:, 0]]
    return [*found, float(session.closed[1, 0]) - found[1]]


def test_one_look_without_a_word_passes_and_needs_the_noise_of_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"inputs": [NOTHING], "neighbors": near, "claim": Pure(1), "trials": 1500}
    assert audit(one_look, **given).holds
    quiet = PanPrivateCount(horizon=7, state_scale=3, output_scale=Fraction(1, 100))
    monkeypatch.setitem(globals(), "COUNT", quiet)
    assert audit(one_look, **given).violated


def test_the_outputs_alone_pass_too() -> None:
    found = audit(COUNT, trials=20_000, confidence=1 - ALARM)
    assert found.holds and found.epsilon_lower > 0


def test_the_memory_holds_nothing_else() -> None:
    session = COUNT.start()
    session.add(1)
    held = set(vars(session)) - OTHER
    assert held == {"open", "closed", "steps", "_noises", "_closed_noises"}
    assert session.state() == (session.open[:, 0].tolist(), session.closed[:, 0].tolist())


@pytest.mark.parametrize("intrusions", [0, 3])
def test_error_bars_cover_and_know_of_intrusions(intrusions: int) -> None:
    mechanism, misses, squares = PanPrivateCount(horizon=7, state_scale=3, output_scale=2), 0, 0.0
    for _ in range(1500):
        session = mechanism.start()
        for step in range(7):
            session.add(1)
            if step < intrusions:
                session.intruded()
        value = session.value()
        misses += not value.low <= 7 <= value.high
        squares += (value.value - 7) ** 2
    assert misses <= binom.isf(ALARM, 1500, 0.05)
    assert value.high - value.value <= 1.3 * 1.96 * math.sqrt(squares / 1500) + 1


def test_a_pan_private_stream_ends_and_reads_back() -> None:
    session = PanPrivateCount.calibrate(horizon=2, epsilon=1).start()
    with pytest.raises(InvalidArgument):
        session.value()
    session.add(1)
    session.add([1, 1])
    assert session.value() == session.value()
    with pytest.raises(NotSound):
        session.add(1)
    for mechanism in (COUNT, DENSITY):
        assert Mechanism.from_json(mechanism.to_json()) == mechanism


# The table of bits.

DENSITY = PanPrivateDensity(
    items=3, state_epsilon=Fraction(1, 2), answer_epsilon=Fraction(1, 2), intrusions=1
)


THERE, AWAY = [0, 0], [-1, -1]
"""One item in both phases, or no item in its place: all that a unit did at once."""


def density_seen(stream: list[int]) -> list[float]:
    table, found = DENSITY.start(), []
    for phase, item in enumerate(stream):
        table.add(item)
        found += table.state()
        found.append(float(table.value().value))
        if phase == 0:
            table.intruded()
    return found


def test_the_audit_of_the_table_passes() -> None:
    found = audit(density_seen, inputs=[AWAY], neighbors=lambda _: [THERE], claim=DENSITY.loss, trials=1500)
    assert DENSITY.loss == Pure(2) and found.holds, str(found)


def test_a_table_without_its_bias_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PanPrivateDensity, "bias", Fraction(1, 2))
    found = audit(density_seen, inputs=[AWAY], neighbors=lambda _: [THERE], claim=DENSITY.loss, trials=1500)
    assert found.violated


def test_the_law_of_the_table() -> None:
    bias = DENSITY.bias
    assert float(bias) == pytest.approx((1 - math.exp(-0.5)) / 2, abs=1e-9)
    assert -math.log(1 - 2 * float(bias)) <= 0.5
    mechanism = PanPrivateDensity(items=4000, state_epsilon=1, answer_epsilon=1)
    table = mechanism.start()
    table.add(np.repeat(np.arange(2000), 2))
    ones = int(table.bits[:2000].sum())
    low, high = (binom.ppf(q, 2000, 0.5 + float(mechanism.bias)) for q in (ALARM / 2, 1 - ALARM / 2))
    assert low <= ones <= high
    assert binom.ppf(ALARM / 2, 2000, 0.5) <= table.bits[2000:].sum() <= binom.isf(ALARM / 2, 2000, 0.5)
    value = table.value()
    assert value.low <= 2000 <= value.high
    with pytest.raises(NotSound):
        table.value()
    with pytest.raises(InvalidArgument):
        table.intruded()


def test_bars_of_the_table_cover() -> None:
    mechanism = PanPrivateDensity(items=50, state_epsilon=2, answer_epsilon=2)
    reach = mechanism.error()
    found = (mechanism.sample(list(range(20)), 1000) - 25) / float(mechanism.bias)
    assert (np.abs(found - 20) > reach).sum() <= binom.isf(ALARM, 1000, 0.05)
    assert abs(found.mean() - 20) < 6 * found.std() / math.sqrt(1000)
