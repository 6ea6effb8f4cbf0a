"""Estimators: parts make the whole, charges come first, and state is kept."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from oracles import SMALL, named

from dalenius import noise
from dalenius.errors import BudgetExceeded, InvalidArgument, NotSound
from dalenius.ledger import Budget, Ledger
from dalenius.local import (
    Estimator,
    FrequencyOracle,
    HadamardSketch,
    KaryResponse,
    Shuffler,
    decode,
    on_simplex,
)
from dalenius.local.simplex import nearest
from dalenius.privacy.unit import Unit
from dalenius.release import Release


@pytest.fixture
def account(tmp_path: Path) -> object:
    ledger = Ledger(tmp_path / "ledger.db")
    return ledger.open("phones", unit=Unit("person", relation="replace"), budget=Budget(epsilon=1.5))


@pytest.mark.parametrize("oracle", SMALL, ids=named)
def test_merging_is_adding(oracle: FrequencyOracle) -> None:
    parts = [oracle.encode(np.arange(20) % oracle.domain), oracle.encode([0]), oracle.encode([])]
    whole = oracle.estimator().add(parts[0] + parts[1] + parts[2])
    one, two, three = (oracle.estimator().add(part) for part in parts)
    kept = Estimator.from_bytes(one.to_bytes(), oracle)
    copied = pickle.loads(pickle.dumps(two))
    added = kept + copied + three
    assert kept.count == 20 and copied.count == 1
    for merged in (added, oracle.estimator().merge(three).merge(two).merge(one)):
        assert merged.count == whole.count == 21
        assert (merged.tally == whole.tally).all()
        assert merged.estimate().columns == whole.estimate().columns
    assert one.count == two.count == 0 and not one.tally.any()


def test_states_are_read_or_refused() -> None:
    oracle = KaryResponse(domain=5, ratio=2)
    state = oracle.estimator().add(oracle.encode([1, 2])).to_bytes()
    for bad in (b"", state[:-1], state + b"\0", b"DLNR" + state[4:], state[:5] + bytes(16) + state[21:]):
        with pytest.raises(InvalidArgument):
            Estimator.from_bytes(bad, oracle)
    with pytest.raises(InvalidArgument, match="other parameters"):
        oracle.estimator().merge(KaryResponse(domain=5, ratio=3).estimator())


def test_nothing_is_estimated_from_nothing() -> None:
    with pytest.raises(InvalidArgument, match="no reports"):
        KaryResponse(domain=5, ratio=2).estimator().estimate()


def test_an_account_pays_before_reports_are_accepted(account) -> None:
    oracle = KaryResponse.calibrate(domain=4, epsilon=1)
    estimator = oracle.estimator(account, by="ana", purpose="settings")
    assert float(account.spent.epsilon) == pytest.approx(1, rel=1e-9)
    found = estimator.add(oracle.encode([0, 1, 2, 3] * 50)).estimate()
    assert found.receipt.entry is not None and found.receipt.unit == Unit("person", relation="replace")
    assert found.receipt.bounds == ("one report of each", "200 reports")
    assert Release.from_json(found.to_json()) == found
    with pytest.raises(BudgetExceeded):
        oracle.estimator(account)


def test_parts_are_merged_into_the_one_that_paid(account) -> None:
    oracle = KaryResponse.calibrate(domain=4, epsilon=0.5)
    paid, part = oracle.estimator(account), oracle.estimator().add(oracle.encode([1, 2]))
    assert paid.merge(part).count == 2 and paid.estimate().receipt.entry is not None
    with pytest.raises(NotSound, match="two charges"):
        paid.merge(oracle.estimator(account))
    with pytest.raises(NotSound, match="copied"):
        pickle.dumps(paid)


def test_one_charge_is_of_one_estimator(account) -> None:
    oracle = KaryResponse.calibrate(domain=4, epsilon=0.5)
    paid, part = oracle.estimator(account).add(oracle.encode([3])), oracle.estimator()
    for both in ((paid, part), (part, paid)):
        with pytest.raises(NotSound, match="two estimators"):
            _ = both[0] + both[1]
    assert part.merge(paid).paid and not paid.paid
    assert part.estimate().receipt.entry is not None


def test_what_was_merged_is_counted_once(account) -> None:
    """Neither again, nor there and back, nor by itself on another receipt."""
    oracle = KaryResponse.calibrate(domain=4, epsilon=0.5)
    paid, part = oracle.estimator(account), oracle.estimator().add(oracle.encode([1, 2]))
    paid.merge(part)
    refused = [
        lambda: paid.merge(part),
        lambda: part.merge(paid),
        lambda: part.merge(oracle.estimator()),
        lambda: part + oracle.estimator(),
        lambda: oracle.estimator() + part,
        lambda: part.add(oracle.encode([1])),
        part.estimate,
        part.to_bytes,
        lambda: decode(part, ["a"]),
        lambda: pickle.dumps(part),
    ]
    for ask in refused:
        with pytest.raises(InvalidArgument, match="merged into another") as refusal:
            ask()
        assert "randomizer.estimator()" in refusal.value.remedy
    assert paid.count == 2 and paid.paid


def test_a_charge_does_not_go_on_in_a_forked_process(account) -> None:
    oracle = KaryResponse.calibrate(domain=4, epsilon=0.5)
    sent = oracle.encode([1, 2])
    paid, free = oracle.estimator(account).add(sent), oracle.estimator().add(sent)
    paid._process = free._process = -1
    refused = [
        lambda: paid.add(sent),
        lambda: paid.merge(free),
        lambda: free.merge(paid),
        paid.estimate,
        lambda: decode(paid, ["a"]),
    ]
    for ask in refused:
        with pytest.raises(NotSound, match="forked"):
            ask()
    assert free.add(sent).count == 4 and free.estimate().receipt.entry is None
    # Parts from other processes are merged where it was paid.
    here = oracle.estimator(account)
    assert here.merge(Estimator.from_bytes(free.to_bytes(), oracle)).estimate().receipt.entry is not None
    assert free.merge(here).estimate().receipt.entry is not None


def test_nothing_counts_twice_by_itself() -> None:
    oracle = KaryResponse.calibrate(domain=4, epsilon=0.5)
    one = oracle.estimator().add(oracle.encode([1, 2]))
    with pytest.raises(InvalidArgument, match="itself"):
        one.merge(one)
    with pytest.raises(InvalidArgument, match="itself"):
        _ = one + one
    assert one.count == 2


def test_a_seed_taints_what_is_estimated_later() -> None:
    """Reports, sums of them, parts, copies and batches; what was drawn afresh stays clean."""
    oracle = KaryResponse.calibrate(domain=4, epsilon=1)
    with noise.seeded(b"a test"):
        seeded = oracle.encode([1] * 100)
    fresh = oracle.encode([1] * 100)
    assert seeded.tainted and not fresh.tainted
    assert (
        (fresh + seeded).tainted
        and seeded.take(np.arange(3)).tainted
        and not fresh.take(np.arange(3)).tainted
    )
    bad, good = oracle.estimator().add(seeded), oracle.estimator().add(fresh)
    copied, again = (pickle.loads(pickle.dumps(bad)) for _ in range(2))
    for estimator in (bad, copied, good + bad, oracle.estimator().merge(again)):
        assert estimator.estimate().receipt.tainted
    assert not good.estimate().receipt.tainted
    assert Shuffler(oracle, minimum=100).add(fresh).add(seeded).batch().estimate().receipt.tainted
    shuffler = Shuffler(oracle, minimum=100).add(fresh)
    with noise.seeded(b"a test"):
        ordered = shuffler.batch()
    assert ordered.estimate().receipt.tainted
    assert not Shuffler(oracle, minimum=100).add(fresh).batch().estimate().receipt.tainted
    sketch = HadamardSketch.calibrate(rows=4, columns=8, epsilon=1)
    with noise.seeded(b"a test"):
        words = sketch.estimator().add(sketch.encode(["a"]))
    assert decode(words, ["a"]).receipt.tainted


def test_units_must_agree(account) -> None:
    oracle = KaryResponse.calibrate(domain=4, epsilon=0.5)
    with pytest.raises(InvalidArgument, match="session is for"):
        oracle.estimator(account, unit=Unit("device", relation="replace"))
    with pytest.raises(NotSound):
        oracle.estimator(unit=Unit("person"))
    one, two = (oracle.estimator(unit=Unit(name, relation="replace")) for name in ("person", "device"))
    with pytest.raises(InvalidArgument, match="different units"):
        one.merge(two)


def test_shares_on_the_simplex_are_shares_and_say_so() -> None:
    oracle = KaryResponse.calibrate(domain=50, epsilon=1)
    found = oracle.estimator().add(oracle.encode([0] * 800 + [1] * 200)).estimate()
    assert found["share"].min() < 0
    moved = on_simplex(found)
    assert moved["share"].min() >= 0 and moved["share"].sum() == pytest.approx(1)
    assert "biased" in moved.receipt.postprocessing[0] and not found.receipt.postprocessing
    assert "variance" not in moved.columns and moved.columns["share_low"] == found.columns["share_low"]
    with pytest.raises(InvalidArgument, match="no shares"):
        on_simplex(oracle.release([1]))


def test_the_nearest_shares_are_nearest() -> None:
    """Of a thousand others none is nearer; false alarm none."""
    shares = np.array([0.9, 0.4, -0.3, 0.05, -0.1])
    found = nearest(shares)
    others = np.random.default_rng(1).dirichlet(np.ones(5) / 2, 1000)
    assert np.sum((found - shares) ** 2) <= np.sum((others - shares) ** 2, axis=1).min()
    assert found == pytest.approx([0.75, 0.25, 0, 0, 0])
