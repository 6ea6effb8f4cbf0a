"""Reports that no device makes, and states that no reports add up to: both are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from deployed import DEPLOYED
from measures import LISTED, VECTORS
from oracles import SMALL

from dalenius.errors import InvalidArgument
from dalenius.local import (
    BitFlips,
    DuchiResponse,
    Estimator,
    HybridResponse,
    PrivUnit,
    Randomizer,
    Reports,
    Shuffler,
    SubsetSelection,
)
from dalenius.local.estimator import HEAD, MAGIC, MOST_REPORTS, VERSION
from dalenius.local.tallies import total

EVERY: list[Randomizer] = [*SMALL, *DEPLOYED, *LISTED, *VECTORS]
FLIPS = BitFlips.calibrate(domain=1000, epsilon=1, chosen=64)
SETS = SubsetSelection.calibrate(domain=50, epsilon=1)
CUBE = PrivUnit.calibrate(dimension=100, epsilon=4)
WIDE = PrivUnit.calibrate(dimension=1000, epsilon=1)


def named(one: Randomizer) -> str:
    return f"{type(one).__name__}-{one.bits}"


def too_long() -> np.ndarray:
    rows = np.full((1, 100), 2**15)
    rows[0] += 2**10 + 2
    return rows


FORGED = [
    (FLIPS, np.full((1, 64), 15)),
    (FLIPS, np.r_[3, np.arange(0, 126, 2)][None]),
    (SETS, np.ones((1, 50), int)),
    (SETS, np.zeros((1, 50), int)),
    (CUBE, np.r_[2**16 - 1, np.full(99, 2**15)][None]),
    (CUBE, np.r_[2**15 - 31 * 2**10 - 1, np.full(99, 2**15)][None]),
    (CUBE, too_long()),
    (CUBE, np.full((1, 100), 2**15 + 2**10 - 2)),
    (WIDE, np.r_[2**15 + 31 * 2**10 + 1, np.full(999, 2**15)][None]),
    (WIDE, np.r_[2**15 - 31 * 2**10 - 1, np.full(999, 2**15)][None]),
]


@pytest.mark.parametrize(("one", "rows"), FORGED, ids=lambda value: getattr(type(value), "__name__", ""))
def test_what_no_device_makes_is_refused(one: Randomizer, rows: np.ndarray) -> None:
    """By estimators and shufflers, as bytes too, all or none; and the remedy works."""
    values = np.zeros((20, one.dimension)) if isinstance(one, PrivUnit) else [5] * 20
    honest = one.encode(values)
    reports = honest + Reports(one.format, rows)
    estimator, shuffler = one.estimator(), Shuffler(one, minimum=100)
    for sent in (reports, reports.to_bytes()):
        for server in (estimator, shuffler):
            with pytest.raises(InvalidArgument, match="no device makes"):
                server.add(sent)
    assert estimator.count == 0 and not estimator.tally.any()
    kept = reports.take(np.flatnonzero(one.possible(reports.rows)))
    assert kept == honest and estimator.add(kept).count == 20


@pytest.mark.parametrize("one", EVERY, ids=named)
def test_what_devices_make_is_possible_and_adds_up(one: Randomizer) -> None:
    first, second = one.worst_case()
    reports = one.encode([first] * 300 + [second] * 200)
    assert one.possible(reports.rows).all() and one.possible(reports.rows).shape == (500,)
    tally = one.estimator().add(reports).tally
    assert one.adds_up(tally, 500)
    assert one.adds_up(np.zeros(one.cells, np.int64), 0)


def test_a_part_that_is_never_drawn_has_no_reports() -> None:
    """They would count for more than any true one, and make every interval wider."""
    bits, both = (HybridResponse.calibrate(lower=0, upper=1, epsilon=each) for each in (0.5, 1))
    duchi = DuchiResponse.calibrate(lower=0, upper=1, epsilon=0.5)
    assert bits.blend == 0 and bits.points.tolist() == duchi.points.tolist() and bits.cells == 2
    with pytest.raises(InvalidArgument):
        bits.estimator().add(Reports(bits.format, np.array([[2]])))
    assert both.encode([0.5] * 200).rows.max() > 1
    pieces = HybridResponse(lower=0, upper=1, ratio=2, steps=4, width=3, blend=1)
    assert pieces.points.tolist() == pieces.parts[1][1].points.tolist()


def test_sums_of_vectors_are_no_longer_than_their_reports() -> None:
    """The mean is at the most length, or beyond."""
    for one in (CUBE, WIDE):
        most = math.isqrt(10**12 * one.lengths[1] // one.dimension)
        for each, fits in ((most, True), (most + 1, False), (-most - 1, False)):
            assert one.adds_up(np.full(one.dimension, each), 10**6) == fits
    assert not CUBE.adds_up(np.full(100, 31 << 10) * 10**12, 10**12)


def state(one: Randomizer, tally: np.ndarray, count: int) -> bytes:
    return HEAD.pack(MAGIC, VERSION, one.format.fingerprint, count) + tally.astype("<i8").tobytes()


@pytest.mark.parametrize("one", EVERY, ids=named)
def test_states_that_do_not_add_up_are_refused(one: Randomizer) -> None:
    tally = one.estimator().add(one.encode([one.worst_case()[0]] * 10)).tally
    assert Estimator.from_bytes(state(one, tally, 10), one).count == 10
    most = 2**63 - 1
    for place, value in ((0, most), (-1, most), (0, -most - 1), (-1, -(2**40)), (0, 2**40)):
        broken = tally.copy()
        broken[place] = value
        with pytest.raises(InvalidArgument, match="add up"):
            Estimator.from_bytes(state(one, broken, 10), one)
    with pytest.raises(InvalidArgument, match="add up"):
        Estimator.from_bytes(state(one, np.full(one.cells, 2**62), 10), one)
    with pytest.raises(InvalidArgument, match="1e12"):
        Estimator.from_bytes(state(one, tally, 2**64 - 1), one)


def test_states_off_by_one_report_are_refused() -> None:
    """Where each report is counted as often, a tally is of no other number of them."""
    for one in EVERY:
        tally = one.estimator().add(one.encode([one.worst_case()[0]] * 10)).tally
        if isinstance(one, PrivUnit) or type(one).__name__ in ("UnaryEncoding", "LocalHashing"):
            continue
        for count in (9, 11):
            with pytest.raises(InvalidArgument, match="add up"):
                Estimator.from_bytes(state(one, tally, count), one)


def test_no_sum_overflows() -> None:
    one = SMALL[0]
    full = np.zeros(one.cells, np.int64)
    full[0] = MOST_REPORTS
    estimator = Estimator.from_bytes(state(one, full, MOST_REPORTS), one)
    assert estimator.estimate()["share"].max() > 0.9
    with pytest.raises(InvalidArgument, match="1e12"):
        estimator.add(one.encode([1]))
    with pytest.raises(InvalidArgument, match="1e12"):
        estimator.merge(one.estimator().add(one.encode([1])))
    assert estimator.count == MOST_REPORTS
    assert total(np.full(1 << 12, 2**57)) == 2**69 and total(np.array([-1, -(2**40)])) == -(2**40) - 1
    with pytest.raises(InvalidArgument, match="bytes"):
        Estimator.from_bytes("DLNE", one)
