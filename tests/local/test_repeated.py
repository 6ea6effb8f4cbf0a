"""What many reports cost: numbers by composition and by exact laws of a memo, and plain words."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest
from memoised import delta, devices, law, pattern
from scipy.stats import chi2
from sizes import slow

from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import (
    BitFlips,
    Client,
    CountMeanSketch,
    KaryResponse,
    Rappor,
    TreeRanges,
    what_reports_cost,
)

CHROME = Rappor(width=128, hashes=2, cohorts=64, replaced=0.5, low=0.5, high=0.75)
SMALL: list[tuple[Any, list[Any], int]] = [
    (KaryResponse(domain=3, ratio=3), [0, 1, 2], 3),
    (KaryResponse(domain=2, ratio=2), [0, 1], 4),
    (BitFlips(domain=3, chosen=1, own=0.7), [0, 1, 2], 3),
    (BitFlips(domain=3, chosen=2, own=0.7), [0, 1, 2], 3),
    (BitFlips(domain=4, chosen=2, own=0.6), [0, 1, 2, 3], 3),
    (BitFlips(domain=3, chosen=3, own=0.6), [0, 1, 2], 3),
    (Rappor(width=2, hashes=1, cohorts=2, replaced=0.5, low=0.25, high=0.75), ["a", "b", "c", "d"], 4),
    (Rappor(width=2, hashes=1, cohorts=1, replaced=0.4, low=0, high=1), ["a", "b", "c", "d"], 3),
    (Rappor(width=4, hashes=2, cohorts=1, replaced=0.5, low=0.4, high=0.75), ["a", "b"], 2),
]
EPSILONS = (0.0, 0.3, 1.0, 1.7, 2.5, 4.0)


def worst(randomizer: Any, values: list[Any], reports: int) -> dict[int, dict[float, float]]:
    """By the number of keys, the largest divergences given what a device drew and who shares a response."""
    found: dict[int, dict[float, float]] = defaultdict(lambda: dict.fromkeys((*EPSILONS, math.inf), 0.0))
    for _, device in devices(randomizer):
        alike: dict[tuple[int, ...], dict[tuple[Any, ...], dict[Any, float]]] = defaultdict(dict)
        for sequence in product(values, repeat=reports):
            keys = tuple(device[0](v) for v in sequence)
            if keys not in (group := alike[pattern(device, sequence)]):
                group[keys] = law(device, sequence)
        for same, group in alike.items():
            most = found[len(set(same))]
            for p, q in product(group.values(), repeat=2):
                for epsilon in EPSILONS:
                    most[epsilon] = max(most[epsilon], delta(p, q, epsilon))
                most[math.inf] = max(most[math.inf], *(math.log(p[y] / q[y]) for y in p if p[y]))
    found[1] = {epsilon: staying(randomizer, values, reports, epsilon) for epsilon in EPSILONS} | {
        math.inf: found[1][math.inf]
    }
    return found


def staying(randomizer: Any, values: list[Any], reports: int, epsilon: float) -> float:
    """The largest divergence of two values that stay, over what a device draws."""
    known = [device for _, device in devices(randomizer)]
    return max(
        sum(delta(law(one, [v] * reports), law(one, [w] * reports), epsilon) for one in known) / len(known)
        for v, w in product(values, repeat=2)
    )


@pytest.mark.parametrize(("randomizer", "values", "reports"), SMALL)
def test_exact_laws_are_within_what_is_claimed(randomizer: Any, values: list[Any], reports: int) -> None:
    """Of all pairs of sequences with one pattern; and some reach it, where keys are told as they are."""
    found = worst(randomizer, values, reports)
    assert max(found) > 1
    for keys, most in found.items():
        costs = what_reports_cost(randomizer, reports, values=keys, pattern_public=True)
        for epsilon in EPSILONS:
            for claimed in (costs.memoised, costs.unbounded):
                assert most[epsilon] <= claimed.delta(epsilon).upper + 1e-12
            if keys > 1 and not isinstance(randomizer, Rappor):
                assert most[epsilon] == pytest.approx(costs.memoised.delta(epsilon).upper, abs=1e-9)
        assert most[math.inf] <= costs.epsilons["memoised"] + 1e-12
    # The fewest keys cost no more than is said of the most.
    top = what_reports_cost(randomizer, reports, values=max(found), pattern_public=True)
    assert all(most[math.inf] <= top.epsilons["memoised"] + 1e-12 for most in found.values())
    assert found[max(found)][math.inf] == pytest.approx(top.epsilons["memoised"], rel=1e-9)


def test_reports_of_rappor_cost_most_where_they_are_shared_out_evenly() -> None:
    for reports, keys in ((7, 3), (2, 5), (12, 4), (300, 7)):
        costs = what_reports_cost(CHROME, reports, values=keys, pattern_public=True).epsilons
        splits = [
            split for split in product(range(reports + 1), repeat=keys - 1) if sum(split) <= reports
        ] if reports < 13 else [(n,) * (keys - 1) for n in range(reports // (keys - 1))]  # fmt: skip
        each = [0.0, *(CHROME.epsilon_of(k) for k in range(1, reports + 1))]
        most = max(sum(each[k] for k in (*split, reports - sum(split))) for split in splits)
        assert costs["memoised"] == pytest.approx(most, rel=1e-9)
        assert costs["memoised"] <= min(costs["fresh"], costs["unbounded"]) * (1 + 1e-12)


def test_who_shares_a_response_is_not_hidden() -> None:
    """A, B, A and A, B, C: the third report is the first one again, always and seldom."""
    kary = KaryResponse.calibrate(domain=8, epsilon=1)
    [(_, device)] = devices(kary)
    back, on = (law(device, sequence) for sequence in ((0, 1, 0), (0, 1, 2)))
    assert sum(mass for sent, mass in back.items() if sent[0] != sent[2]) == 0
    assert delta(on, back, 700.0) > 0.8
    for _ in range(50):
        client = Client(kary)
        first, _, third = (client.report(v) for v in (0, 1, 0))
        assert first == third
    for randomizer in (kary, CHROME, BitFlips.calibrate(domain=9, epsilon=0.5, chosen=4)):
        with pytest.raises(NotSound, match="same value") as refusal:
            what_reports_cost(randomizer, 3, values=3)
        assert "pattern_public=True" in refusal.value.remedy and "encode" in refusal.value.remedy
        with pytest.raises(NotSound):
            what_reports_cost(randomizer, 3, values=3, pattern_public=1)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            what_reports_cost(randomizer, 3, changes=2, change_times_public=True)  # type: ignore[call-arg]


def test_a_memo_keeps_buckets_so_nothing_is_averaged_over_them() -> None:
    """Buckets drawn anew for each response would cost less than is true: 0.02 where it is 0.06."""
    flips = BitFlips.calibrate(domain=3, epsilon=2, chosen=2)
    exact = sum(
        delta(law(device, (0, 1)), law(device, (1, 0)), 3.0) / 3
        for _, device in devices(flips)
        if pattern(device, (0, 1)) == pattern(device, (1, 0))
    )
    assert exact == pytest.approx(0.0602, abs=1e-4)
    assert (flips.loss * 2).delta(3).upper == pytest.approx(0.0201, abs=1e-4)
    assert what_reports_cost(flips, 2, values=2, pattern_public=True).memoised.delta(3).upper >= exact


@pytest.mark.parametrize(
    ("randomizer", "values"),
    [
        (KaryResponse(domain=3, ratio=3), (0, 1, 0)),
        *slow([(BitFlips(domain=3, chosen=1, own=0.7), (0, 1, 2))]),
        (BitFlips(domain=3, chosen=2, own=0.7), (1, 0, 1)),
        (Rappor(width=2, hashes=1, cohorts=2, replaced=0.5, low=0.25, high=0.75), ("a", "b", "a")),
    ],
)
def test_clients_have_the_law_that_is_counted(randomizer: Any, values: tuple[Any, ...]) -> None:
    """At 1e-6, by all sequences of reports."""
    expected: Counter[Any] = Counter()
    known = list(devices(randomizer))
    for drawn, device in known:
        for sent, mass in law(device, values).items():
            expected[_joined(randomizer, drawn, sent)] += mass / len(known)
    many = 2000
    seen = Counter(
        tuple(tuple(client.report(v).rows[0].tolist()) for v in values)
        for client in (Client(randomizer) for _ in range(many))
    )
    assert set(seen) <= set(expected) and sum(expected.values()) == pytest.approx(1)
    off = sum((seen[sent] - many * mass) ** 2 / (many * mass) for sent, mass in expected.items())
    assert chi2.sf(off, len(expected) - 1) > 1e-6


def _joined(randomizer: Any, drawn: Any, sent: tuple[Any, ...]) -> tuple[tuple[int, ...], ...]:
    """Reports as they are sent, with what the device drew."""
    if isinstance(randomizer, KaryResponse):
        return tuple((one,) for one in sent)
    if isinstance(randomizer, BitFlips):
        return tuple(tuple(2 * b + bit for b, bit in zip(drawn, word, strict=True)) for word in sent)
    rows = randomizer.joined(np.full(len(sent), drawn), np.array(sent))
    return tuple(map(tuple, rows.tolist()))


def test_fresh_reports_add_up_and_memoised_ones_do_not() -> None:
    for one in (
        KaryResponse.calibrate(domain=9, epsilon=0.5),
        BitFlips.calibrate(domain=9, epsilon=0.5, chosen=4),
    ):
        costs = what_reports_cost(one, 365).epsilons
        assert costs["one"] == costs["memoised"] == costs["unbounded"] == pytest.approx(0.5, rel=1e-9)
        assert costs["fresh"] == pytest.approx(365 * 0.5, rel=1e-9) and costs["unbounded_fresh"] == math.inf


def test_reports_of_rappor_are_between_one_and_all() -> None:
    costs = what_reports_cost(CHROME, 7).epsilons
    assert costs["one"] < costs["memoised"] < costs["unbounded"] == pytest.approx(4 * math.log(3))
    assert costs["memoised"] < 7 * costs["one"] == pytest.approx(costs["fresh"], rel=1e-9)


def test_each_value_costs_up_to_as_many_as_there_are() -> None:
    def ever(randomizer: Any, values: int, reports: int = 365) -> tuple[float, float]:
        found = what_reports_cost(randomizer, reports, values=values, pattern_public=True).epsilons
        return found["memoised"], found["unbounded"]

    kary = KaryResponse.calibrate(domain=9, epsilon=0.5)
    assert ever(kary, 4) == pytest.approx((2, 2), rel=1e-9)
    assert ever(kary, 30, reports=2) == pytest.approx((1, 4.5), rel=1e-9)
    assert ever(TreeRanges.calibrate(domain=4, epsilon=1), 30) == pytest.approx((4, 4), rel=1e-9)
    assert ever(CountMeanSketch.calibrate(rows=8, columns=8, epsilon=1), 30)[1] == pytest.approx(30, rel=1e-9)
    assert ever(CHROME, 13)[1] == pytest.approx(13 * 4 * math.log(3))
    windows = BitFlips.calibrate(domain=32, epsilon=1.672, chosen=4)
    for values, most in ((2, 2), (4, 4), (5, 4), (32, 4)):
        assert ever(windows, values)[1] == pytest.approx(most * 1.672, rel=1e-9)
    single = BitFlips.calibrate(domain=32, epsilon=1, chosen=1)
    assert ever(single, 32) == pytest.approx((2, 2), rel=1e-9)


def test_what_is_wrong_is_refused() -> None:
    one = KaryResponse(domain=9, ratio=2)
    with pytest.raises(InvalidArgument, match="reports"):
        what_reports_cost(one, 0)
    with pytest.raises(InvalidArgument, match="values"):
        what_reports_cost(one, 3, values=0)
    with pytest.raises(NotSound, match="no value"):
        zeroed = KaryResponse(domain=9, ratio=2, relation="zero_out")
        what_reports_cost(zeroed, 3, values=2, pattern_public=True)


def test_it_is_said_in_words() -> None:
    said = str(what_reports_cost(CHROME, 365))
    for part in (
        "One report costs epsilon 1.075",
        "365 reports of a value that stays cost 4.395",
        "any number of them 4.395",
        "81.01 times",
        "there is no end to it",
    ):
        assert part in said, said
    said = str(what_reports_cost(CHROME, 365, values=3, pattern_public=True))
    for part in ("at most 3 values cost 13.19", "given which reports share a response, which is not hidden"):
        assert part in said, said


def test_a_large_epsilon_is_not_said_to_be_less() -> None:
    """Five hundred values of ε∞ = 4.4 are not e^700, and no number of three hundred digits is shown."""
    costs = what_reports_cost(CHROME, 10**6, values=500, pattern_public=True)
    epsilon = costs.epsilons["unbounded"]
    said = re.search(r"at most e\^([0-9.]+) times likelier", str(costs))
    assert epsilon > 1000 and said is not None and float(said[1]) >= epsilon
    assert float(said[1]) < epsilon * 1.001 and max(map(len, str(costs).split())) < 20
