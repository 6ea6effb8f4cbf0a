"""Devices that remember: the same response for the same value, secret, and safe from crashes."""

from __future__ import annotations

import os
import pickle
import stat
from pathlib import Path

import numpy as np
import pytest

from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import BitFlips, Client, HadamardSketch, KaryResponse, Randomizer, Rappor
from dalenius.local import memo as module
from dalenius.local.memo import Memo

OPEN = Rappor(width=64, hashes=2, cohorts=8, replaced=0.5, low=0, high=1)
"""Its reports show the permanent response."""
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
    client = Client(OPEN, path)
    client.report("a very private site")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert "private site" not in path.read_text() and "a very" not in repr(client)
    with pytest.raises(NotSound, match="copied"):
        pickle.dumps(client)


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
        assert path.read_bytes() == kept and not path.with_name("memo.new").exists()
        assert client.report("home") == first
    # Half a file of a crash is in nobody's way.
    path.with_name("memo.new").write_bytes(b"{")
    second = client.report("work")
    assert Client(OPEN, path).report("work") == second


def test_memos_of_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "memo"
    Client(OPEN, path).report("home")
    with pytest.raises(InvalidArgument, match="other parameters"):
        Client(KaryResponse(domain=5, ratio=2), path)
    for bad in ("", "{}", "[1]", '{"format": "x", "version": 1, "whose": "", "kept": {}}', '{"kept": 3}'):
        path.write_text(bad)
        with pytest.raises(InvalidArgument, match="memo"):
            Client(OPEN, path)


def test_a_memo_does_not_go_on_in_a_forked_process() -> None:
    memo = Memo(b"x")
    memo.recall("a", lambda: [1])
    memo._process = -1
    with pytest.raises(NotSound, match="copied"):
        memo.recall("a", lambda: [1])
