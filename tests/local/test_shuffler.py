"""The shuffler: uniform orders, a minimum, and both guarantees on the receipt."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.ledger import Budget, Ledger
from dalenius.local import (
    CountMeanSketch,
    HaarRanges,
    HadamardSketch,
    KaryResponse,
    Rappor,
    Reports,
    Shuffler,
    decode,
    range_shares,
)
from dalenius.local import shuffler as module
from dalenius.local.shuffler import permutation
from dalenius.local.sketch import Sketch
from dalenius.privacy.unit import Unit
from dalenius.release import Release

ORACLE = KaryResponse.calibrate(domain=4, epsilon=2)


def chance(draw, size: int, repeated: int) -> float:
    """The p-value of orders against uniform ones."""
    places = {order: number for number, order in enumerate(permutations(range(size)))}
    counts = np.bincount([places[tuple(draw(size).tolist())] for _ in range(repeated)], minlength=len(places))
    expected = repeated / len(places)
    return float(chi2.sf(np.sum((counts - expected) ** 2) / expected, len(places) - 1))


def test_orders_are_uniform() -> None:
    """All 24 orders of four, at 1e-6; a biased shuffle is seen."""
    assert chance(permutation, 4, 20_000) > 1e-6

    def naive(size: int) -> np.ndarray:
        order = np.arange(size)
        for place in range(size):
            other = int(noise.uniform(size, 1)[0])
            order[[place, other]] = order[[other, place]]
        return order

    assert chance(naive, 4, 20_000) < 1e-6


def test_ties_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With keys below four, orders of three are uniform all the same, at 1e-6."""
    monkeypatch.setattr(module, "KEYS", 4)
    assert chance(permutation, 3, 6_000) > 1e-6


def test_a_batch_is_the_same_reports_in_another_order() -> None:
    sent = ORACLE.encode(np.arange(1000) % 4)
    batch = (
        Shuffler(ORACLE, minimum=100)
        .add(sent.take(np.arange(600)))
        .add(sent.take(np.arange(600, 1000)).to_bytes())
        .batch()
    )
    assert sorted(batch.reports.rows[:, 0]) == sorted(sent.rows[:, 0])
    assert not np.array_equal(batch.reports.rows, sent.rows)
    assert batch.reports.to_bytes()[:29] == sent.to_bytes()[:29]


def test_small_batches_stay_and_are_not_counted_out() -> None:
    shuffler = Shuffler(ORACLE, minimum=500)
    texts = set()
    for many in (1, 300, 198):
        shuffler.add(ORACLE.encode([1] * many))
        with pytest.raises(NotSound, match="at least 500") as refusal:
            shuffler.batch()
        texts |= {f"{refusal.value} {refusal.value.remedy} {shuffler!r}"}
    assert len(texts) == 1
    assert len(shuffler.add(ORACLE.encode([1])).batch().reports) == 500
    with pytest.raises(NotSound):
        shuffler.batch()


def test_the_receipt_has_both_guarantees(tmp_path) -> None:
    ledger = Ledger(tmp_path / "l.db")
    account = ledger.open("phones", unit=Unit("person", relation="replace"), budget=Budget(epsilon=3))
    batch = Shuffler(ORACLE, minimum=1000, honest=0.5, delta=1e-6).add(ORACLE.encode([1] * 4000)).batch()
    central = batch.central.epsilon(1e-6).upper
    assert central == ORACLE.loss.shuffled(2000).epsilon(1e-6).upper < 0.5
    bounds = batch.estimate(ORACLE.estimator(account)).receipt.bounds
    assert any(text.startswith("local: epsilon 2 ") for text in bounds)
    assert any("2000 of its 4000 reports are honest" in text and "delta 1e-06" in text for text in bounds)
    assert float(account.spent.epsilon) == pytest.approx(2, rel=1e-9)
    assert batch.estimate().receipt.entry is None
    with pytest.raises(InvalidArgument, match="already"):
        batch.estimate(ORACLE.estimator().add(ORACLE.encode([1])))


def test_the_person_counts_as_honest() -> None:
    """What is said is what is counted, also where a share of so few reports is none."""
    batch = Shuffler(ORACLE, minimum=100, honest=0.001).add(ORACLE.encode([1] * 500)).batch()
    assert batch.counted == 1 and "if 1 of its 500 reports" in batch.notes[1]
    assert batch.central.epsilon(0).upper == pytest.approx(2, rel=1e-9)


def test_rappor_can_be_shuffled() -> None:
    rappor = Rappor(width=8, hashes=2, cohorts=2, replaced=0.5, low=0.5, high=0.75)
    batch = Shuffler(rappor, minimum=100).add(rappor.encode(["a"] * 10_000)).batch()
    assert batch.central.epsilon(1e-6).upper < rappor.loss.epsilon(0).upper / 4


def account_in(tmp_path: Path) -> Any:
    ledger = Ledger(tmp_path / "l.db")
    return ledger.open("phones", unit=Unit("person", relation="replace"), budget=Budget(epsilon=30))


def guarantees(release: Release) -> int:
    return sum(text.startswith(("local: epsilon", "shuffled: epsilon")) for text in release.receipt.bounds)


@pytest.mark.parametrize(
    "randomizer",
    [
        HadamardSketch.calibrate(rows=64, columns=64, epsilon=4),
        CountMeanSketch.calibrate(rows=64, columns=64, epsilon=4),
        Rappor(width=16, hashes=2, cohorts=4, replaced=0.1, low=0.1, high=0.9),
    ],
)
def test_strings_of_a_batch_are_asked_about(randomizer: Any, tmp_path: Path) -> None:
    """One charge, both guarantees, as often as one likes, and the shares of the same reports unshuffled."""
    sent = randomizer.encode(["a"] * 1500 + ["b"] * 500)
    batch, paid = (
        Shuffler(randomizer, minimum=100).add(sent).batch(),
        randomizer.estimator(account_in(tmp_path)),
    )
    if isinstance(randomizer, Sketch):
        with pytest.raises(InvalidArgument, match="list strings") as refusal:
            batch.estimate(paid)
        assert "decode(batch" in refusal.value.remedy
        # Refused before anything is counted.
        assert paid.count == 0
    else:
        assert guarantees(batch.estimate(paid)) == 2
    for candidates in (["a", "b"], ["b", "c"]):
        release = decode(batch.into(paid), candidates)
        assert guarantees(release) == 2 and release.receipt.entry is not None and paid.count == 2000
        plain = decode(randomizer.estimator().add(sent), candidates)
        assert release["share"].tolist() == plain["share"].tolist() and guarantees(plain) == 0
    free = decode(batch, ["a"])
    assert guarantees(free) == 2 and free.receipt.entry is None
    paid.add(randomizer.encode(["a"]))
    with pytest.raises(InvalidArgument, match="already"):
        batch.into(paid)


def test_ranges_of_a_batch_are_asked_about(tmp_path: Path) -> None:
    ages = HaarRanges.calibrate(domain=16, epsilon=2)
    sent = ages.encode(np.arange(2000) % 16)
    batch, paid = Shuffler(ages, minimum=100).add(sent).batch(), ages.estimator(account_in(tmp_path))
    release = range_shares(batch.into(paid), [(0, 15), (3, 8)])
    assert guarantees(release) == 2 and release.receipt.entry is not None
    plain = range_shares(ages.estimator().add(sent), [(0, 15), (3, 8)])
    assert release["share"].tolist() == plain["share"].tolist() and guarantees(plain) == 0
    assert guarantees(range_shares(batch, [(0, 3)])) == 2
    for ask in (range_shares, decode):
        with pytest.raises(InvalidArgument, match="estimator or batch"):
            ask(sent, [(0, 3)])


def test_a_batch_does_not_speak_for_other_reports() -> None:
    sketch = HadamardSketch.calibrate(rows=64, columns=64, epsilon=4)
    batch = Shuffler(sketch, minimum=100).add(sketch.encode(["a"] * 100)).batch()
    counted = batch.into(sketch.estimator())
    decode(counted, ["a"])
    assert counted.estimator is not None
    counted.estimator.add(sketch.encode(["b"]))
    with pytest.raises(NotSound, match="Other reports"):
        decode(counted, ["a"])


def test_reports_alike_are_not_the_reports_of_a_batch() -> None:
    """Those of one batch alone have its guarantee, whatever others add up to."""
    sent = ORACLE.encode([1] * 100)
    batch, twin = (Shuffler(ORACLE, minimum=100).add(sent).batch() for _ in range(2))
    filled = ORACLE.estimator().add(sent)
    assert (filled.tally == batch.collected.tally).all()
    for estimator in (filled, twin.into(ORACLE.estimator()).estimator):
        assert estimator is not None
        with pytest.raises(InvalidArgument, match="already"):
            batch.into(estimator)
        with pytest.raises(NotSound, match="Other reports"):
            replace(batch, estimator=estimator).estimate()
    own = ORACLE.estimator()
    assert batch.into(own).into(own).estimate() == batch.estimate(own)
    merged = ORACLE.estimator().merge(own)
    for estimator in (own, merged):
        with pytest.raises(InvalidArgument):
            batch.into(estimator)
    other = KaryResponse.calibrate(domain=4, epsilon=1)
    for estimator in (other.estimator(), other.estimator().add(other.encode([1]))):
        with pytest.raises(InvalidArgument, match="other parameters"):
            batch.into(estimator)


def test_a_shuffler_cannot_be_copied() -> None:
    """Two batches that differ in one report show it."""
    shuffler = Shuffler(ORACLE, minimum=100).add(ORACLE.encode([1] * 100))
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotSound, match="copied"):
            copied(shuffler)
    shuffler._process = -1
    with pytest.raises(NotSound, match="forked"):
        shuffler.batch()
    with pytest.raises(NotSound, match="forked"):
        shuffler.add(ORACLE.encode([1]))


def test_no_report_leaves_twice_or_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two threads one gets the batch, what comes meanwhile waits, and what fails has not left."""
    begun, go_on, batches = Event(), Event(), []
    shuffler = Shuffler(ORACLE, minimum=100).add(ORACLE.encode([0] * 150))

    def slow(size: int) -> Any:
        begun.set()
        assert go_on.wait(600)
        return permutation(size)

    with monkeypatch.context() as patch:
        patch.setattr(module, "permutation", slow)
        leaving = Thread(target=lambda: batches.append(shuffler.batch()))
        leaving.start()
        assert begun.wait(600)
        with pytest.raises(NotSound, match="at least 100"):
            shuffler.batch()
        shuffler.add(ORACLE.encode([1] * 120))
        go_on.set()
        leaving.join()
    with monkeypatch.context() as patch:
        patch.setattr(module, "permutation", lambda size: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            shuffler.batch()
    assert [len(batch.reports) for batch in (*batches, shuffler.batch())] == [150, 120]


def test_as_many_honest_reports_are_named_as_are_counted() -> None:
    batch = Shuffler(ORACLE, minimum=100, honest=0.001).add(ORACLE.encode([1] * 500)).batch()
    assert "if 1 of its 500 reports are honest" in batch.notes[1]
    assert batch.central.epsilon(1e-6).upper <= ORACLE.loss.epsilon(0).upper


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="minimum"):
        Shuffler(ORACLE, minimum=1)
    with pytest.raises(InvalidArgument, match="honest"):
        Shuffler(ORACLE, minimum=100, honest=0)
    with pytest.raises(NotSound, match="replaced"):
        Shuffler(KaryResponse(domain=4, ratio=2, relation="zero_out"), minimum=100)
    other = KaryResponse.calibrate(domain=4, epsilon=1).encode([1])
    for bad in (other, other.to_bytes(), b"x"):
        with pytest.raises(InvalidArgument):
            Shuffler(ORACLE, minimum=100).add(bad)
    assert isinstance(other, Reports)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))])
@pytest.mark.parametrize("given", [False, True], ids=["its own", "into another"])
def test_a_copy_of_a_batch_tells_the_same_once_it_was_asked(way: Any, given: bool) -> None:
    batch = Shuffler(ORACLE, minimum=100).add(ORACLE.encode(np.arange(1000) % 4)).batch()
    batch = batch.into(ORACLE.estimator()) if given else batch
    told = batch.estimate()
    copied = way(batch)
    assert copied.estimate() == told == batch.estimate()
    if given:
        copied.estimator.add(ORACLE.encode([1]))
        with pytest.raises(NotSound, match="Other reports"):
            copied.estimate()
        with pytest.raises(NotSound, match="Other reports"):
            way(copied).estimate()


def test_no_reports_are_no_other_reports() -> None:
    batch = Shuffler(ORACLE, minimum=100).add(ORACLE.encode(np.arange(1000) % 4)).batch()
    counting = ORACLE.estimator()
    batch = batch.into(counting)
    told = batch.estimate()
    counting.merge(ORACLE.estimator())
    counting.add(ORACLE.encode([]))
    counting.fill(ORACLE.encode([]))
    assert batch.estimate() == told
    counting.merge(ORACLE.estimator().add(ORACLE.encode([1])))
    with pytest.raises(NotSound, match="Other reports"):
        batch.estimate()
