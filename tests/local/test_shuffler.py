"""The shuffler: uniform orders, a minimum, and both guarantees on the receipt."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.ledger import Budget, Ledger
from dalenius.local import KaryResponse, Rappor, Reports, Shuffler
from dalenius.local import shuffler as module
from dalenius.local.shuffler import permutation
from dalenius.privacy.unit import Unit

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


def test_rappor_can_be_shuffled() -> None:
    rappor = Rappor(width=8, hashes=2, cohorts=2, replaced=0.5, low=0.5, high=0.75)
    batch = Shuffler(rappor, minimum=100).add(rappor.encode(["a"] * 10_000)).batch()
    assert batch.central.epsilon(1e-6).upper < rappor.loss.epsilon(0).upper / 4


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
