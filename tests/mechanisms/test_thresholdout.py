from __future__ import annotations

import copy
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from contract import ALARM, chi_square, divergence

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.mechanisms.mechanism import Law
from dalenius.mechanisms.thresholdout import Thresholdout
from dalenius.privacy.quantized import Grid
from dalenius.privacy.unit import Unit

TRAINING = np.array([0.0, 0.0, 1.0])
"""Of mean 1/3, which no noisy answer from ten records can be; it stands for a sum of 3."""


def small(**changes: Any) -> Thresholdout:
    given = {"epsilon": 2, "records": 10, "threshold": 0.2, "grid": Grid(0)}
    return Thresholdout.calibrate(**{**given, **changes})


def query(total: int) -> tuple[np.ndarray, np.ndarray]:
    return TRAINING, np.repeat([1.0, 0.0], [total, 10 - total])


def test_the_cost_is_that_of_the_paper() -> None:
    """Dwork et al. 2015: 2B/(σn) for B overfits, noise σ and n holdout records."""
    mechanism = Thresholdout(scale=0.05, threshold=0.1, records=500, overfits=7)
    assert mechanism.loss.epsilon(0).upper == pytest.approx(2 * 7 / (0.05 * 500))
    assert mechanism.loss.relation == "replace"
    assert small(overfits=3).loss.epsilon(0).upper == pytest.approx(2)


def test_many_overfits_cost_less_together() -> None:
    """Less than the paper's √(32 B log(2/δ))/(σn), and than 2B/(σn)."""
    given = {"epsilon": 1, "delta": 1e-6, "records": 1000, "threshold": 0.05, "overfits": 50}
    mechanism = Thresholdout.calibrate(**given, grid=Grid(0))
    assert mechanism.loss.epsilon(1e-6).upper <= 1
    assert float(mechanism.scale) < min(2 * 50, math.sqrt(32 * 50 * math.log(2e6))) / 1000


def one_round(mechanism: Thresholdout, totals: tuple[int, ...]) -> Law:
    """The exact law of a session with one overfit: at which query it was, and the noisy sum; none is 0, 0."""
    answers = mechanism.round.probabilities([abs(total - 3) for total in totals])
    assert answers is not None
    found: dict[tuple[int, int], float] = {}
    reach = np.arange(-100, 101)
    for code, mass in zip(answers.outcomes, answers.masses.tolist(), strict=True):
        told = bin(code)[3:]
        at = len(told) if told.endswith("1") else 0
        for k, p in zip(reach.tolist(), mechanism.answer.masses(reach).tolist(), strict=True):
            key = (at, totals[at - 1] + k) if at else (0, 0)
            found[key] = found.get(key, 0.0) + mass * p
    return Law(tuple(found), np.array(list(found.values())))


def test_no_neighbouring_holdouts_beat_the_claim() -> None:
    """Two queries on either side of the training mean, each moved by at most one record."""
    mechanism = small()
    claims = {epsilon: mechanism.loss.delta(epsilon).upper + 1e-9 for epsilon in (0.0, 0.5, 1.0, 1.5, 2.0)}
    laws = {totals: one_round(mechanism, totals) for totals in product((2, 3, 4, 5, 6), repeat=2)}
    for first, second in product(laws, laws):
        if max(abs(a - b) for a, b in zip(first, second, strict=True)) <= 1:
            for epsilon, claim in claims.items():
                assert divergence(laws[first], laws[second], epsilon) <= claim


def patterns(mechanism: Thresholdout, totals: tuple[int, ...], left: int) -> dict[str, float]:
    """Which queries are overfits (1), agree (0), or come too late (-), round by round."""
    if not totals or not left:
        return {"-" * len(totals): 1.0}
    law = mechanism.round.probabilities([abs(total - 3) for total in totals])
    assert law is not None
    found: dict[str, float] = {}
    for code, mass in zip(law.outcomes, law.masses.tolist(), strict=True):
        told = bin(code)[3:]
        later = patterns(mechanism, totals[len(told) :], left - 1) if "1" in told else {"": 1.0}
        for rest, share in later.items():
            found[told + rest] = found.get(told + rest, 0.0) + mass * share
    return found


def pattern(flags: list[float]) -> str:
    return "".join("-" if math.isnan(flag) else str(int(flag)) for flag in flags)


def test_draws_follow_the_law_round_by_round() -> None:
    """False alarm 2e-7."""
    mechanism, totals = small(overfits=2), (5, 2, 9)
    law = patterns(mechanism, totals, 2)
    names = {name: i for i, name in enumerate(law)}
    draws = mechanism.sample([query(total) for total in totals], 20_000)
    codes = np.array([names[pattern(row)] for row in draws[:, 1::2].tolist()])
    assert chi_square(codes, Law(tuple(range(len(law))), np.array(list(law.values())))) > ALARM
    assert set(draws[draws[:, 1] == 0, 0]) == {1 / 3}
    first = draws[draws[:, 1] == 1, 0]
    reach = np.arange(-400, 401)
    noise = Law(tuple(((5 + reach) / 10).tolist()), mechanism.answer.masses(reach), 1e-9)
    assert chi_square(first, noise) > ALARM


def test_a_session_follows_the_same_law() -> None:
    """False alarm 1e-7."""
    mechanism, totals = small(overfits=2), (5, 2, 9)
    law = patterns(mechanism, totals, 2)
    names = {name: i for i, name in enumerate(law)}
    codes = []
    for _ in range(1000):
        session, row = mechanism.start(), []
        for total in totals:
            row.append(session.answer(*mechanism.sums(query(total)))[3] if session.left else math.nan)
        codes.append(names[pattern(row)])
    assert chi_square(np.array(codes), Law(tuple(range(len(law))), np.array(list(law.values())))) > ALARM


def test_a_query_that_generalizes_is_answered_from_the_training_set() -> None:
    mechanism = Thresholdout(scale=1e-6, threshold=0.2, records=10)
    session = mechanism.start()
    agreed = session.ask(query(4))
    assert agreed.columns == {
        "value": (1 / 3,),
        "value_low": (None,),
        "value_high": (None,),
        "overfit": (False,),
    }
    caught = session.ask(query(9))
    assert caught.columns["overfit"] == (True,)
    assert caught.low <= 0.9 <= caught.high
    assert caught.value == pytest.approx(0.9, abs=0.01)


def test_after_the_last_overfit_every_question_is_refused_alike() -> None:
    mechanism = Thresholdout(scale=1e-6, threshold=0.2, records=10, overfits=2)
    assert mechanism.release([query(9), query(3), query(9), query(3)]).columns["overfit"] == (
        True,
        False,
        True,
    )
    session = mechanism.start()
    session.ask(query(9))
    session.ask(query(9))
    errors = set()
    for total in (3, 9):
        with pytest.raises(NotSound) as caught:
            session.ask(query(total))
        errors.add(str(caught.value))
    assert len(errors) == 1
    with pytest.raises(NotSound):
        copy.deepcopy(mechanism.start())
    with pytest.raises(NotSound):
        copy.copy(mechanism.start())


def test_odd_values_are_values_like_others() -> None:
    session = small().start()
    odd = np.array([np.nan, np.inf, -np.inf, 1e300, 0.5] * 2)
    assert len(session.ask((odd, odd))) == 1


@pytest.mark.parametrize(
    "bad", [np.zeros(10), (TRAINING, np.zeros(9)), (np.zeros(0), np.zeros(10)), (TRAINING, [0.0] * 10)]
)
def test_a_query_is_its_values_on_all_records(bad: Any) -> None:
    with pytest.raises(InvalidArgument):
        small().start().ask(bad)


@pytest.mark.parametrize("name", ["epsilon", "records", "threshold", "overfits"])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
def test_bad_parameters_are_refused_by_name(name: str, bad: float) -> None:
    with pytest.raises(InvalidArgument, match=name):
        small(**{name: bad})


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.1, 3.3])
def test_a_promise_reads_back(epsilon: float) -> None:
    for overfits in (1, 3, 7):
        found = small(epsilon=epsilon, overfits=overfits)
        assert found.loss.epsilon(0).upper <= epsilon
        assert float(found.scale) == pytest.approx(2 * overfits / (10 * epsilon), rel=1e-12)


def test_a_session_is_one_charge_and_keeps_the_taint_of_its_start() -> None:
    mechanism = small(overfits=2)
    with noise.seeded(b"a test"):
        session = mechanism.start()
    found = session.ask(query(3)).receipt
    assert found.tainted
    assert found.bounds == ("one charge for a session of up to 2 overfits",)
    assert not mechanism.start().ask(query(3)).receipt.tainted
    with pytest.raises(AttributeError):
        session.left = 5
    with pytest.raises(RelationMismatch):
        mechanism.start(unit=Unit("person"))


def test_a_session_that_was_stopped_midway_gives_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    session = small(overfits=5).start()

    def stopped(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session._round, "answer", stopped)
    with pytest.raises(KeyboardInterrupt):
        session.ask(query(9))
    monkeypatch.undo()
    with pytest.raises(NotSound, match="in the middle of a change"):
        session.ask(query(3))
