"""The contract, the theorem by exact evaluation, and the catalogue of variants that are not private.

Lyu, Su and Li 2017 collect published variants of the sparse vector technique (their Algorithms 3 to 6) that
do not keep their promise. Each is written here with discrete noise and evaluated on streams that break it.
"""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from contract import ALARM, check_json, check_law, chi_square, divergence
from scipy.stats import binom

from dalenius import noise
from dalenius.audits import audit
from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.mechanisms.mechanism import Law
from dalenius.mechanisms.sparse_vector import SparseVector
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit

EPSILON = 1.0


def whole(*, epsilon: float, count: int = 1, sensitivity: int = 1, monotone: bool = False) -> SparseVector:
    return SparseVector.calibrate(
        epsilon=epsilon, sensitivity=sensitivity, count=count, monotone=monotone, grid=Grid(0), exact=True
    )


@pytest.mark.parametrize("mechanism", [whole(epsilon=3, count=2), whole(epsilon=2, count=2, monotone=True)])
def test_several_yeses_keep_the_law_and_the_claim(mechanism: SparseVector) -> None:
    check_json(mechanism)
    check_law(mechanism)
    assert audit(mechanism, confidence=1 - ALARM, trials=200_000).holds


def neighbours(values: range, *, monotone: bool) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    moves = [(0, 1), (-1, 0)] if monotone else [(-1, 0, 1)]
    for first in product(values, repeat=3):
        for way in moves:
            for move in product(way, repeat=3):
                yield first, tuple(a + b for a, b in zip(first, move, strict=True))


@pytest.mark.parametrize(("count", "monotone"), [(1, False), (2, False), (2, True)])
def test_no_neighbouring_streams_beat_the_claim(count: int, monotone: bool) -> None:
    """All streams of three queries near the threshold and all their neighbours, at several ε."""
    mechanism = whole(epsilon=EPSILON, count=count, monotone=monotone)
    epsilons = np.array([0.0, 0.3, 0.7, 1.0])
    claims = np.array([mechanism.loss.delta(float(e)).upper for e in epsilons])
    laws = {stream: mechanism.probabilities(list(stream)) for stream in product(range(-3, 4), repeat=3)}
    worst, largest = np.zeros(len(epsilons)), 0.0
    for first, second in neighbours(range(-2, 3), monotone=monotone):
        p, q = (laws[s].masses for s in (first, second))
        for a, b in ((p, q), (q, p)):
            found = np.maximum(a - np.exp(epsilons)[:, None] * b, 0).sum(axis=1)
            worst, largest = np.maximum(worst, found), max(largest, float(np.log(a / b).max()))
    assert (worst <= claims + 1e-12).all()
    assert 0.4 * EPSILON < largest <= EPSILON


def test_the_claim_is_attained_by_many_noes() -> None:
    """log P/P′ of noes and then the yes tends to ε: here by eleven noes to queries above the threshold."""
    mechanism = whole(epsilon=1)
    first, second = ([5] * 11 + [-30], [6] * 11 + [-31])
    code = 2**12 + 1
    p, q = (
        dict(zip(law.outcomes, law.masses, strict=True))[code]
        for law in map(mechanism.probabilities, (first, second))
        if law is not None
    )
    assert 0.98 < math.log(p / q) <= 1


def test_values_of_yeses_compose_with_the_session() -> None:
    mechanism = SparseVector.calibrate(epsilon=2, sensitivity=1, answer_share=0.5, grid=Grid(0), exact=True)
    check_json(mechanism)
    assert mechanism.loss.epsilon(0).upper == pytest.approx(2)
    plain = SparseVector(
        scale=mechanism.scale,
        threshold_scale=mechanism.threshold_scale,
        sensitivity=1,
        grid=Grid(0),
        exact=True,
    )
    noise = mechanism.answers
    assert noise is not None
    reach = np.arange(-60, 61)

    def law(stream: list[int]) -> Law:
        answers = plain.probabilities(stream)
        assert answers is not None
        found: dict[tuple[int, int], float] = {}
        for code, mass in zip(answers.outcomes, answers.masses.tolist(), strict=True):
            asked = bin(code)[3:]
            if "1" not in asked:
                found[code, 0] = mass
                continue
            at = stream[len(asked) - 1]
            found |= {(code, at + int(k)): mass * p for k, p in zip(reach, noise.masses(reach), strict=True)}
        return Law(tuple(found), np.array(list(found.values())))

    pairs = [([0, 0, 0], [1, 1, -1]), ([0, 1, 1], [1, 0, 0]), ([2, 2], [3, 1]), ([-1], [0])]
    for first, second in pairs:
        for epsilon in (0.0, 0.5, 1.0, 1.5, 2.0):
            claim = mechanism.loss.delta(epsilon).upper + 1e-9
            assert divergence(law(first), law(second), epsilon) <= claim
            assert divergence(law(second), law(first), epsilon) <= claim


def test_the_split_is_that_of_lyu_su_and_li() -> None:
    for count, monotone, times in ((1, False, 2), (5, False, 10), (5, True, 5)):
        mechanism = whole(epsilon=1, count=count, monotone=monotone)
        first, second = 1 / mechanism.threshold_scale, times / mechanism.scale
        assert first + second == 1
        assert float(second / first) == pytest.approx(times ** (2 / 3), rel=1e-9)
        assert mechanism.loss.epsilon(0).upper == 1


def test_a_session_follows_the_law() -> None:
    """False alarm 1e-7."""
    mechanism = whole(epsilon=1, count=2)
    stream, codes = [1, -2, 0], []
    for _ in range(2000):
        session, code = mechanism.start(), 1
        for value in stream:
            if session.left:
                code = 2 * code + bool(session.answer(value)[0])
        codes.append(code)
    law = mechanism.probabilities(stream)
    assert law is not None
    assert chi_square(np.array(codes), law) > ALARM


def test_after_the_last_yes_every_question_is_refused_alike() -> None:
    session = whole(epsilon=100).start()
    assert not session.ask(-1000).value
    found = session.ask(1000)
    assert found.value is True
    assert found.receipt.bounds == ("one charge for a session of up to 1 positive answers",)
    errors = []
    for value in (-1000, 0, 10**30):
        with pytest.raises(NotSound, match="charged for") as caught:
            session.ask(value)
        errors.append(str(caught.value))
    assert len(set(errors)) == 1


def test_a_release_ends_with_the_last_yes() -> None:
    mechanism = SparseVector.calibrate(epsilon=200, sensitivity=1, answer_share=0.5, threshold=10)
    found = mechanism.release([0.0, np.nan, 1e6, 5.0])
    assert found.columns["above"] == (False, False, True)
    assert found.columns["value"][:2] == (None, None)
    assert found["value"][2] == pytest.approx(1e6, abs=1)  # A hundred times the scale of its noise.


def test_a_session_is_not_copied_and_does_not_survive_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    session = whole(epsilon=1).start()
    for copies in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotSound):
            copies(session)
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(NotSound):
        session.ask(0)


def test_odd_values_are_values_like_others() -> None:
    session = SparseVector.calibrate(epsilon=1, sensitivity=1, threshold=1000).start()
    for value in (float("nan"), -float("inf"), -1e308, Fraction(-1, 3), -(10**400)):
        assert session.ask(value).value is False
    with pytest.raises(InvalidArgument):
        session.ask([1.0, 2.0])
    with pytest.raises(InvalidArgument):
        whole(epsilon=1).start().ask(1.0)


def test_the_margin_holds() -> None:
    """False alarm 1e-7."""
    mechanism = whole(epsilon=1)
    margin = round(mechanism.margin(3, 0.05))
    codes = mechanism.sample([-margin - 1] * 3, 20_000)
    assert binom.sf(np.count_nonzero(codes != 8) - 1, 20_000, 0.05) > ALARM
    codes = mechanism.sample([margin + 1], 20_000)
    assert binom.sf(np.count_nonzero(codes != 3) - 1, 20_000, 0.05) > ALARM


@pytest.mark.parametrize("name", ["scale", "threshold_scale", "sensitivity", "answer_scale"])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
def test_bad_parameters_are_refused_by_name(name: str, bad: float) -> None:
    good: dict[str, float] = {"scale": 1, "threshold_scale": 1, "sensitivity": 1}
    with pytest.raises(InvalidArgument, match=name):
        SparseVector(**{**good, name: bad})


def test_bad_counts_and_thresholds_are_refused() -> None:
    for bad in (
        {"count": 0},
        {"count": 1.5},
        {"threshold": float("nan")},
        {"answer_share": 1},
        {"epsilon": 0},
    ):
        with pytest.raises(InvalidArgument, match=next(iter(bad))):
            SparseVector.calibrate(**{"epsilon": 1, "sensitivity": 1, **bad})


def test_monotone_queries_under_replace_are_refused() -> None:
    bound = Sensitivity(l0=1, linf=1, relation="replace")
    with pytest.raises(NotSound):
        SparseVector.calibrate(epsilon=1, sensitivity=bound, monotone=True)
    assert SparseVector.calibrate(epsilon=1, sensitivity=bound).loss.relation == "replace"


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("monotone", 1),
        ("exact", "no"),
        ("grid", 0),
        ("threshold_scale", 10**30),
        ("scale", 10**30),
        ("answer_scale", 10**30),
    ],
)
def test_flags_grids_and_scales_are_what_they_say(name: str, bad: object) -> None:
    good: dict[str, Any] = {"scale": 1, "threshold_scale": 1, "sensitivity": 1}
    with pytest.raises(InvalidArgument, match=f"^{name} must be"):
        SparseVector(**{**good, name: bad})
    if name in ("monotone", "exact", "grid"):
        with pytest.raises(InvalidArgument, match=f"^{name} must be"):
            SparseVector.calibrate(**{"epsilon": 1, "sensitivity": 1, name: bad})


def test_the_margin_counts_the_rounding_of_values() -> None:
    """Noise this small is zero but for e^−1000: what is left is rounding, of 0.99 to 0 and 0.01 to 1."""
    given: dict[str, Any] = {
        "scale": Fraction(1, 1000),
        "threshold_scale": Fraction(1, 1000),
        "sensitivity": 1,
    }
    mechanism = SparseVector(**given, threshold=Fraction(1, 100), grid=Grid(0))
    assert mechanism.start().ask(0.99).value is False
    assert mechanism.margin(1, 0.05) == 1
    assert SparseVector(**given, grid=Grid(0), exact=True).margin(1, 0.05) == 0


def test_a_session_keeps_its_own_count_and_the_taint_of_its_start() -> None:
    mechanism = whole(epsilon=1)
    session = mechanism.start()
    with pytest.raises(AttributeError):
        session.left = 5
    assert session.left == 1
    assert not session.ask(-1000).receipt.tainted
    with noise.seeded(b"a test"):
        session = mechanism.start()
    assert session.ask(-1000).receipt.tainted
    assert not mechanism.start().ask(-1000).receipt.tainted


def test_a_unit_under_another_relation_is_refused_at_the_start() -> None:
    with pytest.raises(RelationMismatch):
        whole(epsilon=1).start(unit=Unit("person", relation="replace"))


# The catalogue. `chance` is P(answers) by summation over the noise of the threshold, T = 0.


def masses(scale: float, steps: np.ndarray) -> np.ndarray:
    return np.tanh(0.5 / scale) * np.exp(-np.abs(steps) / scale)


def at_least(k: np.ndarray, scale: float | None) -> np.ndarray:
    if scale is None:
        return (k <= 0).astype(float)
    a = math.exp(-1 / scale)
    return np.where(k > 0, a ** np.maximum(k, 0) / (1 + a), 1 - a ** (1 - np.minimum(k, 0)) / (1 + a))


def chance(
    stream: list[int],
    answers: list[int],
    *,
    threshold: float | None,
    query: float | None,
    most: int = 10**9,
    fresh: bool = False,
    value: int | None = None,
) -> float:
    """`fresh` draws the threshold's noise anew for each query; `value` is the noisy query shown for a yes."""
    rho = np.arange(-400, 401) if threshold else np.zeros(1, dtype=int)
    weight = masses(threshold, rho) if threshold else np.ones(1)
    parts = []
    for q, answer in zip(stream, answers, strict=True):
        yes = at_least(rho - q, query)
        if answer and value is not None:
            assert query is not None
            yes = masses(query, np.array(value - q)) * (value >= rho)
        parts.append(yes if answer else 1 - yes)
    assert sum(answers) <= most
    if fresh:
        return math.prod(float(weight @ part) for part in parts)
    return float(weight @ np.prod(parts, axis=0))


def cost(first: list[int], second: list[int], answers: list[int], **how: object) -> float:
    p, q = (chance(stream, answers, **how) for stream in (first, second))
    return math.inf if q == 0 else math.log(p / q)


def ours(first: list[int], second: list[int], answers: list[int], count: int) -> float:
    """The same transcript under the mechanism of this library, by its own law."""
    mechanism = whole(epsilon=EPSILON, count=count)
    code = int("1" + "".join(map(str, answers)), 2)
    laws = [mechanism.probabilities(stream) for stream in (first, second)]
    p, q = (dict(zip(law.outcomes, law.masses, strict=True))[code] for law in laws if law is not None)
    how = {"threshold": float(mechanism.threshold_scale), "query": float(mechanism.scale)}
    assert math.log(p / q) == pytest.approx(cost(first, second, answers, **how), abs=1e-9)
    return math.log(p / q)


NOES, YESES = [0] * 5, [1] * 5
DOWN, UP = [0] * 10, [1] * 5 + [-1] * 5


def test_without_noise_on_queries_a_transcript_tells_all() -> None:
    """Algorithm 5, Stoddard, Chen and Machanavajjhala 2014: an answer is possible on one neighbour only."""
    assert cost([0, 1], [1, 0], [0, 1], threshold=2 / EPSILON, query=None) == math.inf
    assert ours([0, 1], [1, 0], [0, 1], 1) <= EPSILON


def test_without_a_limit_on_yeses_the_cost_grows() -> None:
    """Algorithm 6, Chen, Xiao, Zhang and Xu 2015: any number of yeses at the price of one."""
    half = 2 / EPSILON
    few = cost([0] * 4, [1, 1, -1, -1], [0, 0, 1, 1], threshold=half, query=half)
    many = cost(DOWN, UP, NOES + YESES, threshold=half, query=half)
    assert many > few > EPSILON
    assert many > 2 * EPSILON
    assert ours(DOWN, UP, NOES + YESES, 5) <= EPSILON


def test_noise_that_does_not_grow_with_the_yeses_is_too_little() -> None:
    """Algorithm 4, Lee and Clifton 2014: a quarter on the threshold, the rest on queries whatever the count.

    Lyu, Su and Li find that it is (1 + 6c)/4·ε-private: 7.75 ε for five yeses.
    """
    found = cost(DOWN, UP, NOES + YESES, threshold=4 / EPSILON, query=4 / 3 / EPSILON, most=5)
    assert 3 * EPSILON < found <= 7.75 * EPSILON


def test_showing_the_noisy_query_that_was_compared_is_not_private() -> None:
    """Algorithm 3, Roth 2011: the value of a yes bounds the noisy threshold, so every no is paid for."""
    half = 2 / EPSILON
    costs = [
        cost([0] * m + [0], [1] * m + [0], [0] * m + [1], threshold=half, query=half, value=-5)
        for m in (2, 6, 12)
    ]
    assert costs[0] < costs[1] < costs[2]
    assert costs[1] > EPSILON
    assert costs[2] > 4 * EPSILON


def test_without_noise_on_the_threshold_every_no_is_paid_for() -> None:
    found = cost([0] * 12, [1] * 12, [0] * 12, threshold=None, query=2 / EPSILON)
    assert found > 2 * EPSILON
    assert ours([0] * 12, [1] * 12, [0] * 12, 1) <= EPSILON


def test_a_threshold_drawn_anew_for_each_query_is_paid_for_each_time() -> None:
    half = 2 / EPSILON
    assert cost([0] * 12, [1] * 12, [0] * 12, threshold=half, query=2 * half, fresh=True) > EPSILON
    assert cost([0] * 12, [1] * 12, [0] * 12, threshold=half, query=2 * half) <= EPSILON
