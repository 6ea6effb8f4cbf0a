"""Noise is used for one thing only, whatever is broken off and resumed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import DaleniusError
from dalenius.learn.attempts import SEAL, Attempts, sealed
from dalenius.learn.journal import Journal, Line
from dalenius.noise import ciphers, tags
from dalenius.noise.stream import StreamKey

KEY = StreamKey(bytes(32), tainted=True)
LINES = [Line("used", 7, 0, b"a" * 16), Line("again", 7, 1), Line("used", 7, 1, b"b" * 16)]


def written(folder: Path) -> Path:
    journal = Journal.create(folder / "run", b"key")
    for line in LINES:
        journal.write(line)
    journal.close()
    return folder / "run.journal"


def test_lines_come_back(tmp_path: Path) -> None:
    written(tmp_path)
    journal, lines = Journal.open(tmp_path / "run", b"key", least=4)
    assert lines == LINES and journal.count == 4


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_line_that_was_never_finished_is_cut_off_and_the_next_follows(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = written(Path(name))
        whole = path.read_bytes()
        last = whole[:-1].rindex(b"\n") + 1
        path.write_bytes(whole[: data.draw(st.integers(last, len(whole) - 1))])
        journal, lines = Journal.open(Path(name) / "run", b"key", least=1)
        assert lines == LINES[:-1]
        journal.write(LINES[-1])
        journal.close()
        assert path.read_bytes() == whole


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_other_damage_is_refused(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = written(Path(name))
        whole = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(whole) - 2))
        whole[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(whole)
        with pytest.raises(DaleniusError):
            Journal.open(Path(name) / "run", b"key", least=4)


def test_a_line_left_out_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(DaleniusError, match="damaged"):
        Journal.open(tmp_path / "run", b"key", least=1)


def test_a_journal_whose_run_ended_before_its_first_state_is_replaced(tmp_path: Path) -> None:
    Journal.create(tmp_path / "run", b"key").close()
    journal = Journal.create(tmp_path / "run", b"other")
    journal.write(LINES[0])
    journal.close()
    journal, lines = Journal.open(tmp_path / "run", b"other", least=2)
    journal.close()
    assert lines == LINES[:1]
    with pytest.raises(DaleniusError, match="another saved run"):
        Journal.create(tmp_path / "run", b"key")


def test_once_a_step_is_made_anew_all_later_ones_are_without_a_look(tmp_path: Path) -> None:
    attempts = Attempts()
    attempts.keep(tmp_path / "run", KEY)
    for step in range(4):
        assert attempts.use(step, lambda: b"the same")
        attempts.done(step)
    attempts.close()
    for first in (True, False):
        attempts = Attempts.resumed(tmp_path / "run", KEY, lines=1, steps=0)
        assert not attempts.lost(0) and attempts.use(0, lambda: b"the same")
        attempts.done(0)
        if first:
            assert not attempts.use(1, lambda: b"another") and attempts.lost(1)
            attempts.again(1)
        assert not attempts.lost(1) and attempts.now(1) == 1
        assert attempts.lost(2) and attempts.lost(3) and not attempts.lost(4)
        attempts.close()
        # Which attempt is to be made is on disk, although it was not.
        assert "again 1 1" in (tmp_path / "run.journal").read_text()


def test_a_step_that_was_broken_off_before_the_first_save_is_made_anew(tmp_path: Path) -> None:
    attempts = Attempts()
    assert attempts.use(0, lambda: b"") and attempts.lost(0)
    attempts.keep(tmp_path / "run", KEY)
    attempts.close()
    attempts = Attempts.resumed(tmp_path / "run", KEY, lines=1, steps=0)
    assert attempts.lost(0)
    attempts.close()


MOVES = st.sampled_from(["step", "step", "step", "change", "save", "stop", "break"])


@settings(max_examples=40, deadline=None)
@given(st.lists(MOVES, max_size=40))
def test_no_noise_meets_two_sums_and_every_further_attempt_is_paid_for(moves: list[str]) -> None:
    """A run of which a sum is all sums before it and the data at hand, which change now and then."""
    used: dict[tuple[int, int], object] = {}
    paid: set[tuple[int, int]] = set()
    with tempfile.TemporaryDirectory() as name:
        state = Path(name) / "run"
        attempts, data, way, saved = Attempts(), 0, [], None
        for move in moves:
            if move == "change":
                data += 1
            elif move == "save":
                saved = (list(way), attempts.keep(state, KEY))
                state.touch()
            elif move == "stop" and saved is not None:
                attempts.close()
                way = list(saved[0])
                attempts = Attempts.resumed(state, KEY, lines=saved[1], steps=len(way))
            elif move in ("step", "break"):
                step = len(way)
                if attempts.lost(step):
                    attempts.again(step)
                    paid.add((step, attempts.now(step)))
                place = (step, attempts.now(step))
                # A sum does not depend on data where the batch is empty.
                total = (tuple(way), data if step % 3 else 0, place)
                if attempts.use(step, lambda total=total: repr(total).encode()):
                    assert used.setdefault(place, total) == total
                    assert place[1] == 0 or place in paid
                    if move == "step":
                        way.append(total)
                        attempts.done(step)
        assert attempts.more <= len(paid)
        attempts.close()


def seal_of(*sums: torch.Tensor, public: bytes = b"plan", weight: float = 1.0, attempt: int = 0) -> bytes:
    return sealed(KEY.stream(SEAL, 3, attempt), public, [torch.full((3000,), weight)], sums)


def test_a_seal_tells_every_bit_of_the_sums_the_plan_and_the_weights() -> None:
    sums = [torch.arange(5.0), torch.ones(2, 3), torch.zeros(0)]
    first = seal_of(*sums)
    assert first == seal_of(*[one.clone() for one in sums]) and len(first) == 16
    changed = sums[1].clone()
    changed[1, 2] = torch.nextafter(changed[1, 2], torch.tensor(2.0))
    others = {
        seal_of(sums[0], changed, sums[2]),
        seal_of(sums[1], sums[0], sums[2]),
        seal_of(*sums, public=b"plan "),
        seal_of(*sums, weight=1.5),
        seal_of(*sums, attempt=1),
    }
    assert len(others) == 5 and first not in others


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_sums_of_any_type_and_layout_have_a_seal(dtype: torch.dtype) -> None:
    given = torch.randn(2, 3, 4, 5).to(dtype)
    laid = given.clone(memory_format=torch.channels_last)
    assert seal_of(given) == seal_of(laid) != seal_of(given + 1)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_seal_of_another_machine_is_held_against_one_of_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    """With cryptography and without: a run that goes on there is not charged again for the same sums."""

    def use(attempts: Attempts, amount: float) -> bool:
        kind, sums = attempts.kind(0), torch.full((5,), amount)
        return attempts.use(0, lambda: sealed(KEY.stream(SEAL, 0), b"plan", [], [sums], kind))

    state = tmp_path / "run.state"
    monkeypatch.setattr(ciphers, "COMPILED", compiled)
    attempts = Attempts()
    lines = attempts.keep(state, KEY)
    assert attempts.kind(0) == (tags.GALOIS if compiled else tags.BLAKE)
    assert use(attempts, 1.0)
    attempts.close()
    monkeypatch.setattr(ciphers, "COMPILED", not compiled)
    again = Attempts.resumed(state, KEY, lines=lines, steps=0)
    assert again.kind(0) == (tags.GALOIS if compiled else tags.BLAKE) and again.kind(1) != again.kind(0)
    assert use(again, 1.0) and not again.lost(0)
    assert not use(again, 2.0) and again.lost(0)
    again.close()
