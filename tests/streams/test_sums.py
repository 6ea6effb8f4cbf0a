"""Running sums with correlated noise: error factors, laws, coverage, bounds of units, the audit."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, chi2

from dalenius import audit
from dalenius.errors import InvalidArgument, NotSound
from dalenius.ledger import Budget, Ledger
from dalenius.losses.streams import BinaryTree, SquareRoot
from dalenius.mechanisms.mechanism import Mechanism
from dalenius.privacy.unit import Unit
from dalenius.streams import (
    ContinualSum,
    DecayedSum,
    EndlessSum,
    HeavyHitters,
    PanPrivateCount,
    RateAlarm,
    TreeSum,
    WindowSum,
)
from dalenius.streams.continual import Continual
from dalenius.streams.sums import design
from dalenius.streams.windows import covered

ALARM = 1e-7
ALPHA = Fraction(1, 20)
SMALL = ContinualSum.designed(horizon=64, scale=5)
KINDS: list[Continual] = [
    SMALL,
    TreeSum(horizon=64, scale=9, estimator="plain"),
    TreeSum(horizon=64, scale=9),
    TreeSum(horizon=50, scale=9, law="laplace"),
    TreeSum(scale=6),
    TreeSum(scale=6, law="laplace", estimator="plain"),
    TreeSum(horizon=64, scale=9, estimator="full"),
    EndlessSum.designed(epoch=16, scale=9),
    WindowSum(window=10, scale=8),
    WindowSum(window=7, scale=8, law="laplace"),
    DecayedSum.designed(horizon=64, decay=0.9, scale=5),
]


# The square root 3.265 and 5.464, and the lower bound ‖A‖*/n of 2.90 and 5.10; a tree of 1,000 steps has ten
# levels and at most nine digits, one of a million twenty and nineteen.
@pytest.mark.parametrize(
    ("horizon", "root", "tree", "least"), [(10**3, 3.265, 90**0.5, 2.90), (10**6, 5.464, 380**0.5, 5.10)]
)
def test_the_factor_is_that_of_the_square_root(horizon: int, root: float, tree: float, least: float) -> None:
    mechanism = ContinualSum.designed(horizon=horizon, scale=100)
    assert least < mechanism.factor < 1.002 * root
    assert SquareRoot(horizon).errors().largest == pytest.approx(root, abs=6e-4)
    assert BinaryTree(horizon, "plain").errors().largest == pytest.approx(tree)


def test_buffers_are_few() -> None:
    assert [len(design(n, None)[0]) for n in (16, 10**3, 10**6)] == [2, 4, 6]


def _truth(mechanism: Continual, stream: list[int]) -> np.ndarray:
    values = np.array(stream, float)
    if isinstance(mechanism, WindowSum):
        return np.array([values[max(0, t - mechanism.window) : t].sum() for t in range(1, len(values) + 1)])
    if isinstance(mechanism, DecayedSum):
        rate = float(mechanism.decay)
        return np.array([sum(rate**k * values[t - k] for k in range(t + 1)) for t in range(len(values))])
    return np.cumsum(values)


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda m: f"{m.kind}-{getattr(m, 'law', '')}")
def test_error_bars_cover_and_are_not_wide(mechanism: Continual) -> None:
    draws, length = 4000, mechanism.horizon or 64
    rng = np.random.default_rng(7)
    stream = rng.integers(-1, 2, length).tolist()
    off = np.abs(mechanism.sample(stream, draws) - _truth(mechanism, stream))
    reach = mechanism.reach(np.arange(1, length + 1), ALPHA)
    misses = (off > reach).sum(axis=0)
    assert misses.max() <= binom.isf(ALARM / length, draws, 0.05)
    slack = 1.0 if isinstance(mechanism, DecayedSum | ContinualSum) else 8.0
    assert np.all(reach <= 1.2 * 1.96 * np.sqrt((off**2).mean(axis=0)) + slack)


def _covariance_test(draws: np.ndarray, covariance: np.ndarray) -> None:
    """Whitened, all entries are standard: their squares are chi-square, all of them and each by itself."""
    white = np.linalg.solve(np.linalg.cholesky(covariance), draws.T)
    many = white.size
    assert chi2.ppf(ALARM, many) < (white**2).sum() < chi2.isf(ALARM, many)
    each = (white**2).sum(axis=1)
    n = white.shape[1]
    assert chi2.ppf(ALARM / len(each), n) < each.min() and each.max() < chi2.isf(ALARM / len(each), n)
    cross = (white[1:] * white[:-1]).sum(axis=1) / math.sqrt(n)
    assert np.abs(cross).max() < 6


def test_the_law_of_filtered_noise() -> None:
    mechanism = ContinualSum.designed(horizon=64, scale=50)
    decoder = mechanism.encoder.decoder()
    _covariance_test(mechanism.sample([0] * 64, 4000), 2500 * decoder @ decoder.T + np.eye(64) / 12)


def test_the_law_of_tree_noise() -> None:
    for estimator in ("plain", "online", "full"):
        mechanism = TreeSum(horizon=16, scale=50, estimator=estimator)
        decoder = BinaryTree(16, estimator).decoder()
        covariance = (2500 + 1 / 12) * decoder @ decoder.T + np.eye(16) / 12 * (estimator != "plain")
        _covariance_test(mechanism.sample([0] * 16, 4000), covariance)


def test_the_law_of_decayed_noise() -> None:
    mechanism = DecayedSum.designed(horizon=48, decay=Fraction(9, 10), scale=50)
    single = np.linalg.inv(mechanism.encoder.encoder())
    lag = np.subtract.outer(np.arange(48), np.arange(48))
    fade = np.where(lag >= 0, 0.9 ** np.maximum(lag, 0), 0.0)
    decoder = fade @ single
    _covariance_test(mechanism.sample([0] * 48, 4000), 2500 * decoder @ decoder.T)


@pytest.mark.parametrize("window", [1, 2, 3, 7, 10, 64, 100])
def test_windows_are_covered_once(window: int) -> None:
    levels = window.bit_length()
    seen = {end: [] for end in range(1, 300)}
    for h, which, node in covered(np.arange(1, 300), window, levels):
        for end, place in zip((which + 1).tolist(), node.tolist(), strict=True):
            seen[end] += range(place << h, (place + 1) << h)
    for end, steps in seen.items():
        assert sorted(steps) == list(range(max(0, end - window), end))


def test_long_windows_cross_blocks() -> None:
    mechanism = WindowSum(window=5000, scale=Fraction(1, 100))
    values = mechanism.start().series(np.ones(9000, np.int64))["value"]
    assert values.tolist() == np.minimum(np.arange(1, 9001), 5000).tolist()


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda m: f"{m.kind}-{getattr(m, 'law', '')}")
def test_json_reads_back(mechanism: Continual) -> None:
    again = Mechanism.from_json(mechanism.to_json())
    assert again == mechanism and again.loss == mechanism.loss


@pytest.mark.parametrize(
    "mechanism",
    [
        ContinualSum.designed(horizon=8, scale=3),
        ContinualSum.designed(horizon=8, scale=9, separation=3, most=2),
        TreeSum(horizon=8, scale=6, law="laplace"),
        TreeSum(horizon=8, scale=6),
        TreeSum(scale=1, law="laplace", estimator="plain"),
        WindowSum(window=3, scale=3),
        DecayedSum.designed(horizon=8, decay=0.8, scale=3),
    ],
    ids=lambda m: f"{m.kind}-{getattr(m, 'law', '')}",
)
def test_the_audit_of_all_outputs_passes(mechanism: Continual) -> None:
    found = audit(mechanism, trials=40_000, confidence=1 - ALARM)
    assert found.holds, str(found)
    assert found.epsilon_lower > 0


def test_the_audit_catches_noise_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = ContinualSum.designed(horizon=8, scale=3)
    honest = ContinualSum.blocks
    halved = ContinualSum.designed(horizon=8, scale=1)
    monkeypatch.setattr(ContinualSum, "blocks", lambda self, key, width: honest(halved, key, width))
    assert audit(mechanism, trials=60_000, confidence=1 - ALARM).violated


def _norm(mechanism: Continual, difference: np.ndarray) -> float:
    """How far apart two streams are in what Gaussian noise of scale 1 is added to."""
    if isinstance(mechanism, TreeSum):
        return float(np.linalg.norm(BinaryTree(mechanism.horizon).encoder() @ difference))
    return float(np.linalg.norm(mechanism.encoder.encoder() @ difference))


@pytest.mark.parametrize(
    "mechanism",
    [
        ContinualSum.designed(horizon=7, scale=10, most=2, separation=2),
        ContinualSum.designed(horizon=7, scale=10, most=3, separation=1),
        TreeSum(horizon=7, scale=10, most=2, separation=3),
        DecayedSum.designed(horizon=7, decay=0.7, scale=10, most=2, separation=2),
    ],
    ids=lambda m: f"{m.kind}-{m.most}-{m.separation}",
)
def test_no_unit_moves_a_stream_by_more_than_was_charged(mechanism: Continual) -> None:
    """All ways in which one unit may send numbers, among others that are there anyway."""
    worst = 0.0
    for sent in itertools.product((0, 1), repeat=7):
        kept = []
        for present in (True, False):
            counter = mechanism.start()
            steps = []
            counter._take = lambda rows, steps=steps, c=counter: (
                steps.append(int(rows[0, 0])),
                setattr(c, "_steps", c._steps + 1),
            )
            for there in sent:
                mine = [9, 9] if there and present else []
                counter.add(np.array([1, *mine], np.int64), unit=[7, *([3] * len(mine))])
            kept.append(steps)
        worst = max(worst, _norm(mechanism, np.subtract(*kept).astype(float)))
    charged = mechanism.loss.epsilon(Fraction(1, 10**6)).upper
    from dalenius.losses import Gaussian

    assert worst > 0
    assert Gaussian(10 / worst).epsilon(Fraction(1, 10**6)).lower <= charged * (1 + 1e-9)


def test_what_one_unit_sends_too_much_is_dropped() -> None:
    mechanism = ContinualSum.designed(horizon=10, scale=Fraction(1, 1000), most=2, separation=2)
    counter = mechanism.start()
    for step in range(6):
        counter.add(np.array([1, 1]), unit=["ana", f"other {step}"])
    # Ana counts at steps 0 and 2 only; the others once each.
    assert counter.value().value == 2 + 6
    with pytest.raises(InvalidArgument):
        counter.add(1)


def test_a_value_is_given_twice_the_same_and_batches_are_sums() -> None:
    counter = SMALL.start()
    with pytest.raises(InvalidArgument):
        counter.value()
    counter.add([5, -5, 1, 1])
    assert counter.value() == counter.value() and counter.steps == 1
    sharp = ContinualSum.designed(horizon=9, scale=Fraction(1, 1000), largest=3)
    counter = sharp.start()
    counter.add(np.array([10, 2, 0], np.uint8))
    counter.add(np.empty(0, np.int64))
    counter.add(2)
    assert (counter.value().value, counter.steps) == (3 + 2 + 2, 3)


def test_histograms_count_each_category() -> None:
    mechanism = ContinualSum.designed(horizon=9, scale=Fraction(1, 1000), categories=3)
    counter = mechanism.start()
    counter.add([0, 2, 2, 7, -1])
    assert counter.value()["value"].tolist() == [1, 0, 2]
    assert counter.series([1, 1]).columns["category"] == (0, 1, 2, 0, 1, 2)


def test_what_is_no_category_counts_in_none() -> None:
    counter = ContinualSum.designed(horizon=10, scale=Fraction(1, 1000), categories=3).start()
    counter.add([None, "0", 0.5, float("nan"), [0], 10**5000, True, 2.0])
    assert counter.value()["value"].tolist() == [0, 1, 1]


def test_the_end_of_a_stream_and_wrong_types_are_refused() -> None:
    counter = ContinualSum.designed(horizon=2, scale=3).start()
    counter.add(1)
    counter.add(1)
    with pytest.raises(NotSound):
        counter.add(1)
    with pytest.raises(InvalidArgument, match="by their type"):
        SMALL.start().add(np.array([1.5]))
    huge = ContinualSum.designed(horizon=2, scale=Fraction(1, 1000), largest=5).start()
    huge.add([2**70, -1])
    assert huge.value().value == 4
    with pytest.raises(NotSound):
        TreeSum(horizon=4, scale=1, estimator="full").start()


def test_sums_beyond_64_bits_stay_exact() -> None:
    counter = TreeSum(scale=10**4, largest=2**31).start()
    counter._tally.restore([2**63])
    counter.add(2**31)
    assert abs(counter.value().value - 2**63 - 2**31) < 10**6


def test_events_are_not_charged_as_people(tmp_path: Path) -> None:
    """An account whose units a column tells apart is not charged for what hides single events."""
    account = Ledger(tmp_path / "ledger").open(
        "people", unit=Unit("person", column="id"), budget=Budget(epsilon=9, delta=1e-5)
    )
    alone = ContinualSum.designed(horizon=8, scale=9)
    for mechanism in (
        alone,
        PanPrivateCount(horizon=8, state_scale=9, output_scale=9),
        HeavyHitters(epsilon=1, delta=1e-6),
        RateAlarm.calibrate(limit=0.01, window=5, epsilon=1),
    ):
        with pytest.raises(NotSound):
            mechanism.start(account)
    assert float(account.spent) == 0
    counter = ContinualSum.designed(horizon=8, scale=9, most=1).start(account)
    counter.add(1, unit="ana")
    assert counter.value().receipt.unit == account.unit_for(alone.loss)


def test_an_account_pays_once(tmp_path: Path) -> None:
    account = Ledger(tmp_path / "ledger").open(
        "events", unit=Unit("event"), budget=Budget(epsilon=2, delta=1e-5)
    )
    mechanism = ContinualSum.calibrate(horizon=64, epsilon=1, delta=1e-6)
    counter = mechanism.start(account)
    counter.add(1)
    first = counter.value()
    counter.add(1)
    assert first.receipt.entry == counter.value().receipt.entry is not None
    assert "event level" in " ".join(first.receipt.bounds)
    assert 0.9 < float(account.spent) <= 1


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_calibration_keeps_its_promise_and_no_less(delta: float) -> None:
    for mechanism in (
        TreeSum.calibrate(horizon=100, epsilon=1, delta=delta),
        TreeSum.calibrate(epsilon=1, delta=delta),
        WindowSum.calibrate(window=24, epsilon=1, delta=delta, most=2),
    ):
        assert 0.99 < mechanism.loss.epsilon(delta or 0).upper <= 1
