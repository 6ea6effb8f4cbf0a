"""Devices that remember: the same response for the same value, secret, and safe from crashes."""

from __future__ import annotations

import json
import os
import pickle
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import BitFlips, Client, HadamardSketch, KaryResponse, PrivUnit, Randomizer, Rappor
from dalenius.local import memo as module
from dalenius.local.memo import Memo
from dalenius.locking import Lock

OPEN = Rappor(width=64, hashes=2, cohorts=8, replaced=0.5, low=0, high=1)
"""Its reports show the permanent response."""
KARY = KaryResponse(domain=2**20, ratio=2)
"""Two responses of one value are the same once in half a million."""
ALIKE: list[tuple[Randomizer, object, object]] = [
    (OPEN, "home", "work"),
    (BitFlips.calibrate(domain=40, epsilon=1, chosen=40), 3, 4),
    (KaryResponse.calibrate(domain=2**20, epsilon=0.1), 3, 4),
    (HadamardSketch.calibrate(rows=1024, columns=1024, epsilon=1), "home", "work"),
]


@pytest.mark.parametrize(("randomizer", "one", "other"), ALIKE, ids=lambda given: type(given).__name__)
def test_the_same_value_has_the_same_response(
    randomizer: Randomizer, one: object, other: object, tmp_path: Path
) -> None:
    """A response drawn again is the same with probability below 1e-6."""
    client = Client(randomizer, tmp_path / "memo")
    first, second = client.report(one), client.report(other)
    assert first != second
    assert client.report(one) == first and client.report(other) == second
    client.close()
    again = Client(randomizer, tmp_path / "memo")
    assert again.report(other) == second and again.report(one) == first
    assert Client(randomizer).report(one) != first
    assert randomizer.estimator().add(first.to_bytes()).count == 1


def test_reports_of_one_permanent_response_differ() -> None:
    """But share it: bits that are 0 for good are seldomer 1, at six standard errors."""
    rappor = Rappor(width=64, hashes=2, cohorts=8, replaced=0.5, low=0.25, high=0.75)
    client = Client(rappor)
    rows = np.concatenate([client.report("v").rows for _ in range(1000)])
    cohorts, bits = rappor.parted(rows)
    assert len(set(cohorts.tolist())) == 1 and len(np.unique(bits, axis=0)) == 1000
    means = bits.mean(axis=0)
    assert np.all(np.minimum(abs(means - 0.25), abs(means - 0.75)) < 6 * 0.5 / 1000**0.5)


def test_values_of_no_bucket_have_one_response() -> None:
    flips = BitFlips.calibrate(domain=1000, epsilon=1, chosen=8)
    client = Client(flips)
    drawn = set((client.report(0).rows[0] // 2).tolist())
    others = [value for value in range(50) if value not in drawn]
    assert len({client.report(value).to_bytes() for value in others}) == 1


def test_a_memo_is_secret(tmp_path: Path) -> None:
    path = tmp_path / "memo"
    client = Client(KaryResponse(domain=10**6, ratio=2), path)
    client.report(123456)
    for kept in (path, tmp_path / "memo.lock"):
        assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    read = np.array([123456], np.int64)
    assert not {"value", read.tobytes().hex(), "123456"} & set(re.findall(r"\w+", path.read_text()))
    assert "123456" not in repr(client)
    with pytest.raises(NotSound, match="copied"):
        pickle.dumps(client)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_memo_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "memo"
    with Client(OPEN, path) as client:
        first = client.report("home")
    path.chmod(mode)
    with pytest.raises(NotSound, match="by others"):
        Client(OPEN, path)
    path.chmod(0o600)
    assert Client(OPEN, path).report("home") == first


def test_a_crash_never_leaves_a_report_without_its_memo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is given before it is written; what was written before stays as it was."""
    path = tmp_path / "memo"
    client = Client(OPEN, path)
    first, kept = client.report("home"), path.read_bytes()

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(module.os, step, fails)
            with pytest.raises(OSError, match="space"):
                client.report("work")
        assert path.read_bytes() == kept and sorted(os.listdir(tmp_path)) == ["memo", "memo.lock"]
        assert client.report("home") == first
    # Half a file of a crash is in nobody's way, and does not stay.
    half = tmp_path / ".memo.abc.part"
    half.write_bytes(b"{")
    second = client.report("work")
    client.close()
    assert Client(OPEN, path).report("work") == second and not half.exists()


@pytest.mark.parametrize("before", [0, 1])
def test_killed_before_it_is_noted_a_response_goes_on(
    before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not given, so it may be; those before it are as they were."""
    path, noted = tmp_path / "memo", Lock.note
    with Client(KARY, path) as client:
        sent = [client.report(value) for value in range(before)]
        with monkeypatch.context() as patch:
            patch.setattr(Lock, "note", lambda self, key, steps: 1 / 0 if steps else noted(self, key, steps))
            with pytest.raises(ZeroDivisionError):
                client.report(7)
    with Client(KARY, path) as client:
        assert [client.report(value) for value in range(before)] == sent
        last = client.report(7)
    assert Client(KARY, path).report(7) == last


def test_one_client_has_a_file(tmp_path: Path) -> None:
    """Two would each draw a response of a value, and one of them would be lost."""
    path = tmp_path / "memo"
    (tmp_path / "alias").symlink_to(path)
    first = Client(KARY, path)
    for same in (path, tmp_path / "alias", str(path)):
        with pytest.raises(NotSound, match="Another memo"):
            Client(KARY, same)
    sent = first.report(3)
    first.close()
    first.close()
    with pytest.raises(InvalidArgument, match="closed"):
        first.report(3)
    second = Client(KARY, path)
    assert second.report(3) == sent
    # A client that is gone has given it up.
    del second
    assert Client(KARY, path).report(3) == sent


OTHER = """
import sys, time
from dalenius.errors import NotSound
from dalenius.local import Client, KaryResponse
try:
    client = Client(KaryResponse(domain=2**20, ratio=2), sys.argv[1])
except NotSound:
    sys.exit("refused")
print(client.report(3).rows[0, 0], flush=True)
time.sleep(float(sys.argv[2]))
"""


def test_two_processes_never_give_two_responses(tmp_path: Path) -> None:
    path = tmp_path / "memo"

    def begun(seconds: float) -> subprocess.Popen[str]:
        line = [sys.executable, "-c", OTHER, str(path), str(seconds)]
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    with begun(3600) as holder:
        assert holder.stdout is not None
        sent = int(holder.stdout.readline())
        with pytest.raises(NotSound, match="Another memo"):
            Client(KARY, path)
        with begun(0) as late:
            assert "refused" in late.communicate()[1] and late.returncode == 1
        holder.kill()
    # The lock of a process that was killed is gone with it.
    assert Client(KARY, path).report(3).rows[0, 0] == sent
    assert sorted(os.listdir(tmp_path)) == ["memo", "memo.lock"]


def test_an_older_memo_a_lost_one_and_a_second_name_are_refused(tmp_path: Path) -> None:
    path, lock = tmp_path / "memo", tmp_path / "memo.lock"
    with Client(KARY, path) as client:
        client.report(1)
        older = path.read_bytes()
        client.report(2)
        newest, noted = path.read_bytes(), lock.read_bytes()
    path.write_bytes(older)
    with pytest.raises(NotSound, match="older than the last"):
        Client(KARY, path)
    path.unlink()
    with pytest.raises(NotSound, match="memo is gone"):
        Client(KARY, path)
    path.write_bytes(newest)
    path.chmod(0o600)
    os.link(path, tmp_path / "second")
    with pytest.raises(NotSound, match="second name"):
        Client(KARY, path)
    (tmp_path / "second").unlink()
    lock.unlink()
    with pytest.raises(NotSound, match="lock file of this memo is gone"):
        Client(KARY, path)
    lock.write_bytes(noted.replace(noted[:4], b"0000"))
    lock.chmod(0o600)
    with pytest.raises(NotSound, match="not that of its memo"):
        Client(KARY, path)
    lock.write_bytes(noted)
    with Client(KARY, path) as client:
        lock.unlink()
        with pytest.raises(NotSound, match="removed, replaced"):
            client.report(3)
    # Without both, a device begins anew.
    path.unlink()
    Client(KARY, path).report(1)


def test_memos_of_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "memo"
    with Client(KARY, path, survey="usage") as client:
        first = client.report(3)
    for randomizer, survey in ((KaryResponse(domain=5, ratio=2), "usage"), (KARY, "crashes"), (KARY, "")):
        with pytest.raises(InvalidArgument, match="another survey"):
            Client(randomizer, path, survey=survey)
    assert Client(KARY, path, survey="usage").report(3) == first
    with pytest.raises(InvalidArgument, match="survey"):
        Client(KARY, survey=b"usage")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="randomizer"):
        Client("x")  # type: ignore[arg-type]


def test_memos_that_are_damaged_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "memo"
    with Client(KARY, path) as client:
        client.report(3)
    whole = json.loads(path.read_text())
    [(name, _)] = whole["kept"].items()
    texts = ["", "{}", "[1]", '{"kept": 3}', "[" * 10**5, "\xff"]
    for part in (
        {"version": 1},
        {"format": "x"},
        {"key": "00"},
        {"key": 3},
        {"kept": [1]},
        *({"kept": {name: row}} for row in (3, [True], ["3"], [0.5], [None])),
    ):
        texts.append(json.dumps(whole | part))
    for text in texts:
        path.write_text(text)
        with pytest.raises(InvalidArgument, match="not a memo"):
            Client(KARY, path)
    for row in ([2**20], [-1], [1, 2], []):
        path.write_text(json.dumps(whole | {"kept": {name: row}}))
        with Client(KARY, path) as client, pytest.raises(InvalidArgument, match="damaged"):
            client.report(3)


def test_folders_are_said_to_be_wrong(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="folder"):
        Client(KARY, tmp_path / "missing" / "memo")
    with pytest.raises(InvalidArgument, match="this is none"):
        Client(KARY, tmp_path)


def test_nothing_is_kept_from_a_seed(tmp_path: Path) -> None:
    """What anybody may know hides nothing, and a file has no mark of it."""
    path, short = tmp_path / "memo", Client(KARY)
    with Client(KARY, path) as client:
        with noise.seeded(b"for a test"):
            with pytest.raises(NotSound, match="seed"):
                client.report(3)
            assert json.loads(path.read_text())["kept"] == {}
            short.report(3)
        with pytest.raises(NotSound, match="seed"):
            short.report(3)
        client.report(3)


def test_one_vector_has_one_key() -> None:
    """By what is used of it: signs of zero, and lengths beyond the radius, are not."""
    vectors = PrivUnit.calibrate(dimension=2, epsilon=1)
    client = Client(vectors)
    first = client.report([0.0, 1.0])
    for same in ([-0.0, 1.0], [0, 2.0], [0.0, 3], [np.nan, 1.0]):
        assert client.report(same) == first
    for other in ([0.0, -1.0], [0.0, 0.5], [1e-5, 1.0]):
        assert client.report(other) != first
    for odd in ([1, 0, 0, 1], [], [[0.0, 1.0]]):
        assert client.report(odd) == client.report([0, 0])
    assert client.report(None) == client.report([None, None]) == client.report([0, 0]) == client.report(0.5)


def test_a_memo_does_not_go_on_in_a_forked_process() -> None:
    memo = Memo(b"x")
    memo.recall("a", lambda: [1], size=1, below=2)
    memo._process = -1
    with pytest.raises(NotSound, match="copied"):
        memo.recall("a", lambda: [1], size=1, below=2)


def test_closing_waits_for_the_answer_that_is_drawn(tmp_path: Path) -> None:
    """Else the next memo gets the lock's number, and both answer for one value."""
    path, begun, go_on = tmp_path / "memo", Event(), Event()
    memo, given = Memo(b"x", path), []

    def draw() -> list[int]:
        begun.set()
        assert go_on.wait(600)
        return [1]

    def answer() -> None:
        given.append(memo.recall("a", draw, size=1, below=9))

    def close() -> None:
        memo.close()
        given.append(Memo(b"x", path).recall("a", lambda: [2], size=1, below=9))

    answering, closing = Thread(target=answer), Thread(target=close)
    answering.start()
    assert begun.wait(600)
    closing.start()
    closing.join(0.2)
    waits = closing.is_alive()
    go_on.set()
    answering.join()
    closing.join()
    assert waits and given == [[1], [1]]


def test_a_memo_closed_while_it_draws_gives_nothing(tmp_path: Path) -> None:
    """Its file is given up only when nothing more is written to it."""
    path, opened = tmp_path / "memo", []
    memo = Memo(b"x", path)
    memo.recall("a", lambda: [0], size=1, below=9)

    def draw() -> list[int]:
        memo.close()
        with pytest.raises(NotSound, match="Another memo"):
            opened.append(Memo(b"x", path))
        return [1]

    with pytest.raises(InvalidArgument, match="closed"):
        memo.recall("b", draw, size=1, below=9)
    again = Memo(b"x", path)
    assert not opened and again.recall("b", lambda: [2], size=1, below=9) == [2]
    assert again.recall("a", lambda: [3], size=1, below=9) == [0]


@pytest.mark.parametrize("key", ["a", "b"])
def test_an_answer_is_not_asked_for_within_another(key: str) -> None:
    memo = Memo(b"x")

    def draw() -> list[int]:
        return memo.recall(key, lambda: [2], size=1, below=9)

    with pytest.raises(NotSound, match="middle of an answer"):
        memo.recall("a", draw, size=1, below=9)
    assert memo.recall("a", lambda: [1], size=1, below=9) == [1]


WRITES: list[Callable[[Lock], None]] = [lambda lock: lock.note(b"x", 1), lambda lock: lock.replace("x")]


@pytest.mark.parametrize("write", WRITES)
def test_a_lock_that_was_given_up_writes_nothing(write: Callable[[Lock], None], tmp_path: Path) -> None:
    """Also where its number is that of the next lock, which closing it again does not close."""
    first = Lock.taken(tmp_path / "state", module.OWNER, new=True)
    number = first._held
    first.close()
    second = Lock.taken(tmp_path / "state", module.OWNER, new=True)
    assert second._held == number
    with pytest.raises(NotSound, match="given up"):
        write(first)
    first.close()
    assert second.unused and not second.path.exists()
    second.close()
