"""Distinct items, frequent items, quantiles and alarms of a stream."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from dalenius import audit, noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.mechanisms.mechanism import Mechanism
from dalenius.privacy.unit import Unit
from dalenius.streams import (
    DistinctCount,
    HeavyHitters,
    PanPrivateCount,
    PanPrivateDensity,
    RateAlarm,
    StreamQuantiles,
)
from dalenius.streams.alarms import MOST_EVENTS
from dalenius.streams.hashing import hashed
from dalenius.streams.heavy import MisraGries

ALARM = 1e-6


# Different items.


def test_one_item_moves_one_bit_at_most() -> None:
    mechanism = DistinctCount(epsilon=1, buckets=8, levels=4)
    sharp = DistinctCount(epsilon=1000, buckets=8, levels=4)
    assert float(mechanism.flip) == pytest.approx(1 / (1 + math.e), abs=1e-9)
    assert (1 - mechanism.flip) / mechanism.flip <= Fraction(math.e)
    for many in range(40):
        first, second = (sharp.sample(np.arange(n), 1)[0] for n in (many, many + 1))
        assert np.abs(first - second).sum() <= 1


def test_places_are_spread_as_told() -> None:
    mechanism = DistinctCount(epsilon=1, buckets=16, levels=6)
    places = mechanism.places(np.arange(64_000))
    shares = np.bincount(places % 6, minlength=6) / 64_000
    assert np.abs(shares - [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 32]).max() < 0.012
    assert np.bincount(places // 6, minlength=16).min() > 3600


@pytest.mark.parametrize("items", [0, 300, 20_000])
def test_the_estimate_covers(items: int) -> None:
    misses, errors = 0, []
    for salt in range(400):
        mechanism = DistinctCount(epsilon=2, buckets=256, levels=16, salt=salt)
        n, far = mechanism.estimate(mechanism.sample(np.arange(items), 1)[0].astype(bool))
        misses += abs(n - items) > far
        errors.append(n - items)
    assert misses <= binom.isf(ALARM, 400, 0.05)
    assert np.mean(np.abs(errors)) < max(0.12 * items, 60)


def test_appearing_again_changes_nothing_and_texts_count() -> None:
    session = DistinctCount(epsilon=3, buckets=512, levels=12).start()
    for _ in range(3):
        session.add([f"user {k}" for k in range(1000)])
    value = session.value()
    assert value == session.value() and abs(value.value - 1000) < 400
    with pytest.raises(NotSound):
        session.add("late")
    with pytest.raises(InvalidArgument, match="by their type"):
        hashed(np.array([1.5]), 0)
    assert hashed([5, 2**70], 0)[0] == hashed(np.array([5]), 0)[0] == hashed(np.array([5], np.int8), 0)[0]


def test_the_audit_of_a_flipped_sketch_passes() -> None:
    found = audit(DistinctCount(epsilon=1, buckets=2, levels=2), trials=20_000, confidence=1 - ALARM)
    assert found.holds and found.epsilon_lower > 0.7


# Frequent items.


@pytest.mark.parametrize("counters", [1, 2, 3])
def test_the_lemma_on_all_short_streams(counters: int) -> None:
    """Two sketches of streams that differ in one event: what the theorem's proof rests on."""

    def sketch(stream: tuple[str, ...]) -> dict[tuple[int, str], int]:
        found = MisraGries(counters)
        for item in stream:
            found.add(item)
        return found.counts

    for length in range(1, 7):
        for stream in itertools.product("abcd", repeat=length):
            whole = sketch(stream)
            for place in range(length):
                less = sketch(stream[:place] + stream[place + 1 :])
                assert len(whole.keys() & less.keys()) >= counters - 2
                keys = whole.keys() | less.keys()
                gap = {key: whole.get(key, 0) - less.get(key, 0) for key in keys}
                single = sorted(gap.values())[:-1] == [0] * (len(keys) - 1) and max(gap.values()) == 1
                everywhere = all(gap[key] == -1 for key in less) and not any(
                    whole[key] for key in whole.keys() - less.keys()
                )
                assert single or everywhere, (stream, place)


def test_counters_are_those_of_misra_and_gries() -> None:
    rng = np.random.default_rng(3)
    stream = [f"{k}" for k in rng.geometric(0.2, 3000)]
    found, truth = MisraGries(10), Counter(stream)
    for item in stream:
        found.add(item)
    assert len(found.counts) == 10
    for item, count in truth.items():
        kept = found.counts.get((1, item), 0)
        assert count - 3000 / 11 <= kept <= count


def test_frequent_items_are_found_and_rare_ones_never_shown() -> None:
    mechanism = HeavyHitters(epsilon=1, delta=1e-6, counters=20)
    tail = 3 * math.exp(-(mechanism.threshold - 1) / 2) / (1 + math.exp(-1))
    assert tail <= 1e-6 < tail * math.e
    session = mechanism.start()
    session.add(["a"] * 500 + ["b"] * 300 + [f"rare {k}" for k in range(15)])
    value = session.value()
    assert value["item"].tolist() == ["a", "b"] and value == session.value()
    with pytest.raises(NotSound):
        session.add("late")
    with pytest.raises(InvalidArgument):
        HeavyHitters(epsilon=1, delta=0)


def test_the_audit_of_frequent_items_passes() -> None:
    mechanism = HeavyHitters(epsilon=1, delta=Fraction(1, 100), counters=3)
    found = audit(mechanism, trials=8000, confidence=1 - ALARM)
    assert found.holds, str(found)


def test_the_audit_of_an_event_that_moves_all_counters_passes() -> None:
    """An item for which there is no room takes one from each counter: one noise they share hides that."""
    mechanism = HeavyHitters(epsilon=1, delta=Fraction(1, 100), counters=8)
    full = sorted("abcdefgh" * 2 * mechanism.threshold)

    def seen(stream: list[str]) -> list[int]:
        sketch = MisraGries(8)
        for item in stream:
            sketch.add(item)
        found = dict(mechanism.noisy(sketch.counts))
        counts = [found.get(item, 0) for item in "abcdefgh"]
        return [sum(counts), *counts]

    found = audit(seen, inputs=[full], neighbors=lambda _: [[*full, "z"]], claim=mechanism.loss, trials=2500)
    assert found.holds, str(found)


def test_sketches_read_back() -> None:
    for mechanism in (DistinctCount(epsilon=1), HeavyHitters(epsilon=1, delta=1e-6)):
        assert Mechanism.from_json(mechanism.to_json()) == mechanism


# Quantiles and alarms.


def test_quantiles_are_within_their_bars() -> None:
    made = StreamQuantiles.calibrate(horizon=16, epsilon=2, delta=1e-6, lower=0, upper=10, bins=20)
    misses = 0
    for seed in range(60):
        values = np.random.default_rng(seed).exponential(2, (8, 500))
        session = made.start()
        for batch in values:
            session.add(batch)
        found = session.value([0.5, 0.9])
        truth = np.quantile(np.minimum(values, 10), [0.5, 0.9])
        misses += not np.all((found["value_low"] <= truth) & (truth <= found["value_high"]))
        assert np.all(np.abs(found["value"] - truth) < 1.5)
    assert misses <= binom.isf(ALARM, 60, 0.1)
    assert session.steps == 8 and found.receipt.postprocessing


def test_an_alarm_comes_when_the_rate_passes_the_limit() -> None:
    alarm = RateAlarm.calibrate(limit=0.01, window=5, epsilon=1, alarms=2)
    watch = alarm.start()
    assert alarm.loss.epsilon(0).upper == pytest.approx(1)
    quiet = [watch.add(bad=20, events=10_000).value for _ in range(50)]
    assert not any(quiet) and watch.left == 2
    loud = [watch.add(bad=1000, events=10_000).value for _ in range(2)]
    assert any(loud) and watch.left < 2
    with pytest.raises(InvalidArgument):
        watch.add(bad=0.5, events=1)


def test_one_event_moves_a_rate_by_what_is_charged() -> None:
    alarm = RateAlarm.calibrate(limit=0.25, window=3, epsilon=1)
    most = alarm.mechanism.sensitivity.linf
    queries = {
        (bad, events): alarm.limit.denominator * bad - alarm.limit.numerator * events
        for events in range(5)
        for bad in range(events + 1)
    }
    moves = [
        abs(queries[bad, events] - queries[bad - wrong, events - 1])
        for bad, events in queries
        for wrong in (0, 1)
        if (bad - wrong, events - 1) in queries
    ]
    assert max(moves) == most == 3


def test_one_event_moves_a_rate_by_no_more_at_the_clip() -> None:
    alarm = RateAlarm.calibrate(limit=0.25, window=3, epsilon=1)
    edge = range(MOST_EVENTS - 2, MOST_EVENTS + 3)
    pairs = [(b, g) for b in (*range(3), *edge, 10**20) for g in (*range(3), *edge, 10**20)]
    moves = [
        abs(alarm.query(bad + more, bad + good + 1) - alarm.query(bad, bad + good))
        for bad, good in pairs
        for more in (0, 1)
    ]
    assert max(moves) == alarm.mechanism.sensitivity.linf == 3
    assert alarm.query(7, 20) == 4 * 7 - 20


@pytest.mark.parametrize(
    "mechanism",
    [DistinctCount(epsilon=1), PanPrivateDensity(items=5, state_epsilon=1, answer_epsilon=1)],
    ids=lambda m: m.kind,
)
def test_units_of_a_column_must_be_the_items(mechanism: DistinctCount) -> None:
    person = Unit("person", "person_id")
    for refused in (lambda: mechanism.start(unit=person), lambda: mechanism.release([1], unit=person)):
        with pytest.raises(NotSound, match="items_are_units"):
            refused()
    assert mechanism.start(unit=person, items_are_units=True).value().receipt.unit == person
    assert mechanism.release([1], unit=person, items_are_units=True).receipt.unit == person
    assert mechanism.start(unit=Unit("visit")).value().receipt.unit == Unit("visit")


def test_no_value_of_an_item_is_refused() -> None:
    words = hashed(["a", "\ud800", "\udfff"], 0)
    assert len(set(words.tolist())) == 3 and hashed("\ud800", 0)[0] == words[1]
    assert hashed(np.array([5, 2**70]), 0)[0] == hashed([5], 0)[0]
    DistinctCount(epsilon=1).start().add(["\ud800"])


def test_no_number_is_too_large_for_a_bin() -> None:
    made = StreamQuantiles.calibrate(horizon=4, epsilon=1, delta=1e-6, lower=-1, upper=1, bins=4)
    huge = [2**70, -(2**70), 10**400, -(10**400), 0, float("nan"), float("inf"), -float("inf"), 0.6]
    assert made.bins(huge).tolist() == [3, 0, 3, 0, 2, 0, 3, 0, 3]
    assert made.bins(10**400).tolist() == [3] and made.bins([2**64 - 1, -1]).tolist() == [3, 0]


@pytest.mark.parametrize(
    "promise",
    [{"epsilon": 1, "delta": Fraction(1, 10**400)}, {"epsilon": Fraction(1, 10**400), "delta": 1e-6}],
)
def test_a_promise_beyond_floats_is_refused_at_once(promise: dict[str, Fraction]) -> None:
    with pytest.raises(InvalidArgument):
        HeavyHitters(**promise)
    assert HeavyHitters(epsilon=1, delta=Fraction(1, 10**200)).threshold > 900


@pytest.mark.parametrize(
    "mechanism", [DistinctCount(epsilon=2), HeavyHitters(epsilon=1, delta=1e-6)], ids=lambda m: m.kind
)
def test_a_sketch_remembers_where_its_noise_came_from(mechanism: DistinctCount) -> None:
    seeded, clean = mechanism.start(), mechanism.start()
    for session in (seeded, clean):
        session.add(["a"] * 100)
    assert not clean.value().receipt.tainted
    with noise.seeded(b"for a test"):
        assert seeded.value().receipt.tainted and not clean.value().receipt.tainted
    assert seeded.value().receipt.tainted


@pytest.mark.parametrize(
    "mechanism",
    [
        PanPrivateCount.calibrate(horizon=8, epsilon=1),
        PanPrivateDensity(items=10**4, state_epsilon=1, answer_epsilon=1),
    ],
    ids=lambda m: m.kind,
)
def test_a_seed_draws_no_noise_of_pan_private_sessions(mechanism: PanPrivateCount) -> None:
    found = []
    for _ in range(8):
        with noise.seeded(b"for a test"):
            found.append(mechanism.release([1, 0, 1]))
    assert len({release.value for release in found}) > 1
    assert not any(release.receipt.tainted for release in found)


def test_one_bit_alone_is_no_sketch() -> None:
    with pytest.raises(InvalidArgument, match="One bit"):
        DistinctCount(epsilon=1, buckets=1, levels=1)
    for shape in ({"buckets": 1, "levels": 2}, {"buckets": 2, "levels": 1}):
        assert DistinctCount(epsilon=1, **shape).release([1, 2, 3]).value >= 0
