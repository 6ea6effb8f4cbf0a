"""Running sums without an end: their law across epochs, what one unit can move, their error, their memory."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from dalenius import audit
from dalenius.errors import InvalidArgument
from dalenius.losses import Gaussian
from dalenius.losses.streams import BufferedToeplitz
from dalenius.noise.stream import StreamKey
from dalenius.streams import ContinualSum, EndlessSum, TreeSum, load

ALARM = 1e-7
SMALL = EndlessSum.designed(epoch=16, scale=50)


def within(mechanism: EndlessSum) -> BufferedToeplitz:
    return BufferedToeplitz(mechanism.epoch, mechanism.decays, mechanism.scales)


def totals(mechanism: EndlessSum, epochs: int) -> np.ndarray:
    """The covariance of T_0, …, T_{epochs − 1}, node by node of a tree of four."""
    nodes, (_, weight) = mechanism.totals.nodes, mechanism.totals.nodes.shares(2)[1]
    single, double = (math.sqrt(nodes.variance(h) + 1 / 12) for h in (0, 1))
    joined = np.array([(1 - weight) * single, (1 - weight) * single, 0, weight * double])
    rows = np.array([np.zeros(4), [single, 0, 0, 0], joined, joined + np.array([0, 0, single, 0])])[:epochs]
    return rows @ rows.T


def covariance(mechanism: EndlessSum, epochs: int) -> np.ndarray:
    decoder = within(mechanism).decoder() * float(mechanism.scale)
    one = decoder @ decoder.T + np.eye(mechanism.epoch) / 12
    found = np.kron(np.eye(epochs), one)
    return found + np.kron(totals(mechanism, epochs), np.ones((mechanism.epoch, mechanism.epoch)))


def test_the_law_of_noise_across_epochs() -> None:
    """Whitened by the covariance that is claimed, all entries are standard and apart, at 1e-7 for all."""
    draws = SMALL.sample([0] * 64, 4000)
    exact = covariance(SMALL, 4)
    white = np.linalg.solve(np.linalg.cholesky(exact), draws.T)
    each = (white**2).sum(axis=1)
    assert chi2.ppf(ALARM / 64, 4000) < each.min() and each.max() < chi2.isf(ALARM / 64, 4000)
    apart = white @ white.T / math.sqrt(4000)
    assert np.abs(apart[~np.eye(64, dtype=bool)]).max() < 6.5


def test_stated_variances_are_those_of_the_law() -> None:
    steps = np.arange(1, 65)
    stated, _ = SMALL._spread(steps)
    assert stated == pytest.approx(np.diag(covariance(SMALL, 4)), rel=1e-3)


@pytest.mark.parametrize("shared", ["running", "totals"])
def test_the_law_fails_where_noise_is_used_twice(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = EndlessSum.running
    if shared == "running":
        monkeypatch.setattr(EndlessSum, "running", lambda self, key, _, width: honest(self, key, 0, width))
    else:
        monkeypatch.setattr("dalenius.streams.endless.EndlessBlocks._turn", lambda self, epoch: None)
    with pytest.raises(AssertionError):
        test_the_law_of_noise_across_epochs()


def test_noise_is_that_of_the_epoch_and_of_all_totals_before() -> None:
    """Number by number, beyond what is drawn of the tree at a time: 64 totals of as many streams."""
    mechanism, key = EndlessSum.designed(epoch=2, scale=5), StreamKey.fresh()
    blocks, tree = mechanism.blocks(key, 64), mechanism.totals.blocks(key, 64)
    past = np.concatenate([np.zeros((1, 64), np.int64), tree.next(), tree.next()])
    for epoch in range(100):
        own = mechanism.running(key, epoch, 64).next()[:2]
        assert (blocks.next() == own + past[epoch]).all()


def moved(mechanism: EndlessSum, steps: np.ndarray) -> float:
    """How far apart streams are that differ by these numbers, in deviations: by the whole linear map."""
    table = steps.reshape(-1, mechanism.epoch)
    encoder = within(mechanism).encoder()
    square = sum(float(np.sum((encoder @ row) ** 2)) for row in table) / float(mechanism.scale) ** 2
    sums, level = table.sum(axis=1), 0
    while len(sums):
        square += float(np.sum(sums**2)) / float(mechanism.totals._scale_of(level)) ** 2
        sums, level = sums[: len(sums) // 2 * 2].reshape(-1, 2).sum(axis=1), level + 1
    return math.sqrt(square)


@pytest.mark.parametrize(
    ("epoch", "most", "separation"), [(4, 1, 1), (4, 2, 1), (4, 2, 3), (8, 3, 2), (2, 3, 3)]
)
def test_no_unit_moves_a_stream_by_more_than_was_charged(epoch: int, most: int, separation: int) -> None:
    """All patterns of a unit in 16 steps, within epochs and across them."""
    mechanism = EndlessSum.designed(epoch=epoch, scale=10, most=most, separation=separation)
    worst = 0.0
    for pattern in itertools.combinations(range(16), most):
        if most == 1 or min(np.diff(pattern)) >= separation:
            steps = np.zeros(16)
            steps[list(pattern)] = 1
            worst = max(worst, moved(mechanism, steps))
    claimed = mechanism.sensitivity.upper / 10
    assert mechanism.sensitivity.lower / 10 <= worst <= claimed
    assert worst > 0.75 * claimed
    epsilon = Gaussian(Fraction(1 / worst)).epsilon(1e-6).lower
    assert epsilon <= mechanism.loss.epsilon(1e-6).upper


def test_one_step_costs_the_norm_of_a_column() -> None:
    """As `ContinualSum` has it by another way; several steps as a Toeplitz matrix cut after an epoch."""
    for epoch in (4, 64, 1024):
        mechanism = EndlessSum.designed(epoch=epoch, scale=10)
        alone = within(mechanism).sensitivity().upper
        ratio = float(mechanism.scale / mechanism.total_scale)
        assert mechanism.sensitivity.upper == pytest.approx(math.hypot(alone, ratio), rel=1e-12)
        assert ratio**2 / mechanism.sensitivity.upper**2 == pytest.approx(0.2, rel=1e-6)
    several = EndlessSum.designed(epoch=16, scale=10, most=4, separation=5)
    low, high = within(several).coefficients()
    column = np.zeros(31)
    for times in range(4):
        column[5 * times : 5 * times + 16] += (low + high) / 2
    ratio = 4 * float(several.scale / several.total_scale)
    assert several.sensitivity.upper == pytest.approx(math.hypot(np.linalg.norm(column), ratio), rel=1e-9)


AUDITED = [EndlessSum.designed(epoch=4, scale=3), EndlessSum.designed(epoch=2, scale=2, most=3, separation=3)]


@pytest.mark.parametrize("mechanism", AUDITED, ids=lambda m: f"{m.epoch}")
def test_the_audit_of_all_outputs_passes(mechanism: EndlessSum, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight steps, so two epochs or more."""
    monkeypatch.setattr("dalenius.streams.continual.AUDITED", 8)
    found = audit(mechanism, trials=40_000, confidence=1 - ALARM)
    assert found.holds and found.epsilon_lower > 0, str(found)


def test_the_audit_catches_noise_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalenius.streams.continual.AUDITED", 8)
    mechanism, quieter = (EndlessSum.designed(epoch=4, scale=scale) for scale in (3, 1))
    honest = EndlessSum.blocks
    monkeypatch.setattr(EndlessSum, "blocks", lambda self, key, width: honest(quieter, key, width))
    assert audit(mechanism, trials=40_000, confidence=1 - ALARM).violated


@pytest.mark.parametrize("mechanism", AUDITED, ids=lambda m: f"{m.epoch}")
def test_the_best_combination_of_outputs_tells_no_more(mechanism: EndlessSum) -> None:
    """By least squares with the covariance of other draws: how many deviations a unit shows; at 1e-7."""
    many, length = 10_000, 16
    steps = np.zeros(length, np.int64)
    steps[list(range(0, length, mechanism.separation))[: mechanism.most or 1]] = 1
    shift = np.cumsum(steps)
    weights = np.linalg.solve(np.cov(mechanism.sample([0] * length, many).T), shift)
    without, there = (mechanism.sample(stream, many) @ weights for stream in ([0] * length, steps))
    seen = (there.mean() - without.mean()) / without.std()
    slack = 5.4 * math.sqrt(2 / many)
    assert seen - slack <= mechanism.sensitivity.upper / float(mechanism.scale)
    assert seen + slack >= 0.8 * moved(mechanism, steps.astype(float))


def test_the_error_is_far_below_that_of_a_tree_without_an_end() -> None:
    """Over that of one Gaussian release; a known number of steps has 3.27 at 10³ and 5.47 at 10⁶."""
    endless, known = EndlessSum.designed(scale=100), ContinualSum.designed(horizon=10**3, scale=100)
    found = [endless.factor(10**k) for k in (3, 6, 7, 9)]
    assert found == pytest.approx([4.74, 6.12, 8.76, 24.95], abs=0.01)
    assert known.factor < found[0] < 1.5 * known.factor
    tree = TreeSum(scale=1)
    assert found[1] < 0.2 * math.sqrt(tree.spread(np.array([2**20 - 1]))[0][0])


def test_the_factor_is_the_largest_so_far() -> None:
    for small, last in ((SMALL, 5000), (EndlessSum.designed(epoch=2, scale=50), 700)):
        every = np.sqrt(small._spread(np.arange(1, last + 1))[0]) * small.sensitivity.upper / 50
        found = [small.factor(steps) for steps in range(1, last + 1)]
        assert found == pytest.approx(np.maximum.accumulate(every).tolist(), rel=1e-9)


def test_sums_go_on_over_epochs() -> None:
    """With next to no noise they are exact, in series, in batches, and by category."""
    mechanism = EndlessSum.designed(epoch=8, scale=Fraction(1, 10**4))
    values = mechanism.start().series(np.ones(5000, np.int64))["value"]
    assert values.tolist() == list(range(1, 5001))
    counter = EndlessSum.designed(epoch=2, scale=Fraction(1, 10**4), categories=3).start()
    for _ in range(9):
        counter.add([0, 2, 2, 7])
    assert counter.value()["value"].tolist() == [9, 0, 18]
    assert "any number of steps" in counter.value().receipt.bounds[0]


def test_a_loaded_counter_draws_no_fresh_noise(tmp_path: Path) -> None:
    """In the middle of an epoch, at its end, and after several: the same values, and the same ones after."""
    for steps in (5, 16, 17, 70):
        (folder := tmp_path / str(steps)).mkdir()
        counter = SMALL.start()
        counter.extend(np.ones(steps, np.int64))
        counter.save(folder / "state")
        given, text = counter.value(), (folder / "state").read_text()
        counter._keeper.close()
        again = load(folder / "state")
        assert again.value() == given and again.steps == steps
        assert (folder / "state").read_text() == text
        later = SMALL.blocks(again._key, 1)
        noise = np.concatenate([later.next() for _ in range(8)])[: steps + 20, 0]
        assert again.series([0] * 20)["value"].tolist() == (noise[steps:] + steps).tolist()


def test_the_memory_grows_with_the_logarithm() -> None:
    """That of 2^9 epochs, in bytes, is that of the buffers and 8 for each level."""
    blocks = EndlessSum.designed(epoch=2, scale=5).blocks(StreamKey.fresh(), 1)
    sizes = {}
    for epoch in range(2**9):
        blocks.next()
        sizes[epoch + 1] = blocks.size
    assert sizes[2**9] <= sizes[1] + 8 * 10


def test_calibration_keeps_its_promise_and_no_less() -> None:
    for more in ({}, {"most": 5, "separation": 3}, {"categories": 4, "epoch": 64}, {"largest": 100}):
        mechanism = EndlessSum.calibrate(epsilon=1, delta=1e-6, **more)
        assert 0.999 < mechanism.loss.epsilon(1e-6).upper <= 1


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"epoch": 3}, "power of two"),
        ({"epoch": 2**24}, "epoch"),
        ({"scale": 2**40}, "at most 2"),
        ({"most": 10**5}, "most"),
        ({"separation": 2}, "separation"),
    ],
)
def test_bad_parameters_are_refused(bad: dict[str, int], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        EndlessSum.designed(**{"epoch": 8, "scale": 5} | bad)
