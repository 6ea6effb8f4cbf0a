"""Rounded sums of filtered Gaussians: against another recursion in balls, of the same real numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dalenius.noise.buffered as buffered
from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.streams import BufferedToeplitz
from dalenius.noise.buffered import FURTHER, Buffers, Running
from dalenius.noise.filtered import real
from dalenius.noise.lazy import ball
from dalenius.noise.stream import StreamKey

DECAYS = (Fraction("0.5"), Fraction("0.9"), Fraction("0.99"))
SCALES = (Fraction("0.2"), Fraction("0.15"), Fraction("0.05"))


def reference(running: Running, steps: int, column: int, bits: int) -> list[int]:
    """By y_t = N_t − Σω_j p_j and p_j ← θ_j p_j + y_t, N with so many bits of its place: no eigenvalues."""
    found, total = [], arb(0)
    with workprec(4000):
        held = [arb(0)] * len(DECAYS)
        for step in range(steps):
            block, row = divmod(step, running.steps)
            cell = int(running.cells(block)[row, column])
            stream, known = running.key.stream(FURTHER, step, column), int(running.places(block)[row, column])
            for _ in range(bits // 64 - 1):
                known = known << 64 | stream.integer(64)
            number = real(cell, arb(2 * known + 1, 1) / arb(2) ** (bits + 1), running.law).mid()
            y = number - sum((ball(w) * p for w, p in zip(SCALES, held, strict=True)), arb(0))
            held = [ball(d) * p + y for d, p in zip(DECAYS, held, strict=True)]
            total = total + y if running.buffers.summed else y
            place = total * arb(2) ** (running.shift - running.fine) + arb(1) / 2
            found.append(int(place.floor().unique_fmpz()))
    return found


@pytest.mark.parametrize("summed", [True, False])
def test_rounding_is_that_of_real_numbers(summed: bool) -> None:
    running = Running(Buffers(DECAYS, SCALES, summed), Fraction(7, 3), StreamKey.fresh(), 2, shift=3)
    drawn = running.next()
    for column in range(2):
        assert drawn[:200, column].tolist() == reference(running, 200, column, 64)


@pytest.mark.parametrize("summed", [True, False])
def test_coarse_cells_are_settled_by_their_places(summed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # Cells of a quarter of the scale say next to nothing: every number is left to balls, with further bits.
    monkeypatch.setattr(buffered, "FINE", 2)
    monkeypatch.setattr(buffered, "LEAST", 16)
    monkeypatch.setattr(buffered, "BLOCK", 16)
    running = Running(Buffers(DECAYS, SCALES, summed), Fraction(4), StreamKey.fresh())
    drawn = running.next()
    assert running.settled >= 10
    assert drawn[:, 0].tolist() == reference(running, 16, 0, 256)


def test_a_margin_holds_what_floats_and_cells_leave_open() -> None:
    running = Running(Buffers(DECAYS, SCALES), Fraction(3), StreamKey.fresh())
    running.next()
    with workprec(300):
        exact = running._summed(running.steps - 1, 0, 64)
        sums = zip(running.gains, running._held[:, 0], strict=True)
        computed = sum((arb(float(g)) * arb(float(u)) for g, u in sums), arb(0))
        off = float(abs(exact - computed).upper())
    assert 0 < off <= running._margin(running.steps)


def test_a_margin_holds_all_cells_at_their_worst() -> None:
    """Every N off by half a cell, with the sign of its coefficient."""
    for summed in (True, False):
        running = Running(Buffers(DECAYS, SCALES, summed), Fraction(3), StreamKey.fresh())
        decoder = BufferedToeplitz(running.steps, DECAYS, SCALES).decoder_coefficients()
        weights = decoder if summed else np.diff(decoder, prepend=0)
        assert running._margin(running.steps) >= 0.5 * np.abs(weights).sum()


def test_blocks_go_on_where_the_last_one_ended() -> None:
    key, buffers = StreamKey.fresh(), Buffers(DECAYS, SCALES)
    running = Running(buffers, Fraction(5), key)
    first, second = running.next(), running.next()
    assert running._exact(running.steps + 3, 0) == second[3, 0]
    assert running._exact(running.steps - 1, 0) == first[-1, 0]


@pytest.mark.parametrize("summed", [True, False])
@pytest.mark.parametrize("width", [1, 3])
def test_a_sum_is_settled_from_the_start_of_its_block(
    summed: bool, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from the first step on in balls; the latter is not needed, however late the step is."""
    monkeypatch.setattr(buffered, "BLOCK", 64)
    running = Running(Buffers(DECAYS, SCALES, summed), Fraction(7, 3), StreamKey.fresh(), width, shift=3)
    for block in range(6):
        found = running.next()
        for row in (0, 1, 30, running.steps - 1):
            exact = [running._exact(block * running.steps + row, column) for column in range(width)]
            assert exact == found[row].tolist()
    # With no use of floats at all, fixed point decides every number, and as real numbers do.
    again = Running(Buffers(DECAYS, SCALES, summed), Fraction(7, 3), running.key, width, shift=3)
    monkeypatch.setattr(again, "_margin", lambda steps: 1e300)
    monkeypatch.setattr(again, "_exact", lambda step, column: pytest.fail("made from the first step on"))
    for _ in range(5):
        again.next()
    assert again.next().tolist() == found.tolist() and again.settled == 6 * again.steps * width


@pytest.mark.parametrize("summed", [True, False])
def test_fixed_point_holds_the_state_within_its_bound(summed: bool) -> None:
    """Against the recursion in balls, with all bits of each place that are drawn."""
    running = Running(Buffers(DECAYS, SCALES, summed), Fraction(3), StreamKey.fresh(), 64)
    for _ in range(3):
        running.next()
    with workprec(400):
        poles = running.buffers.poles(300)
        for column in (0, 63):
            held = [arb(0)] * len(poles)
            for drawn in running._numbers(3 * running.steps - 1, column, 128):
                held = [m * u + drawn for m, u in zip(poles, held, strict=True)]
            for exact, kept, off in zip(held, running._kept.held[:, column], running._kept.off, strict=True):
                gap = abs(exact * 2**40 - int(kept))
                assert gap <= off and off < 2**12 * 64


@pytest.mark.parametrize(
    ("decays", "scales"),
    [(("0.5", "0.5"), ("0.1", "0.1")), (("1",), ("0.1",)), (("0.5",), ("1.1",)), (("0.5",), ("0",))],
)
def test_filters_that_are_none_are_refused(decays: tuple[str, ...], scales: tuple[str, ...]) -> None:
    with pytest.raises(InvalidArgument):
        Buffers(tuple(map(Fraction, decays)), tuple(map(Fraction, scales)))
