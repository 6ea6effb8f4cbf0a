"""A counter survives a crash: nothing that was given is given otherwise, and no state is set back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dalenius.errors import InvalidArgument, NotSound
from dalenius.ledger import Budget, Ledger
from dalenius.privacy.unit import Unit
from dalenius.streams import ContinualSum, DecayedSum, TreeSum, WindowSum, load

KINDS = [
    ContinualSum.designed(horizon=9000, scale=5),
    ContinualSum.designed(horizon=50, scale=5, categories=3),
    TreeSum(scale=6),
    TreeSum(scale=6, law="laplace", estimator="plain"),
    WindowSum(window=10, scale=8),
    DecayedSum.designed(horizon=64, decay=0.9, scale=5),
]


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda m: m.kind)
def test_a_loaded_counter_goes_on_as_the_other_would_have(mechanism: ContinualSum, tmp_path: Path) -> None:
    counter = mechanism.start()
    counter.extend(np.ones(20, np.int64))
    counter.save(tmp_path / "state")
    text = (tmp_path / "state").read_text()
    given = counter.value()
    counter.add(1)
    later = counter.series([1, 0, 1])
    copy = tmp_path / "copy"
    copy.write_text(text)
    again = load(copy)
    assert again.steps == 20 and again.value() == given
    again.add(1)
    assert again.series([1, 0, 1]) == later


def test_noise_beyond_a_block_is_drawn_again(tmp_path: Path) -> None:
    counter = KINDS[0].start()
    counter.extend(np.ones(8500, np.int64))
    counter.save(tmp_path / "state")
    (tmp_path / "copy").write_text((tmp_path / "state").read_text())
    assert load(tmp_path / "copy").value() == counter.value()


CHILD = """
import os, sys
import numpy as np
from dalenius.streams import TreeSum, saving
counter = TreeSum(scale=6).start()
counter.extend(np.ones(5, np.int64))
counter.save(sys.argv[1])
counter.extend(np.ones(7, np.int64))
write, when = saving.Keeper.write, sys.argv[2]
def killed(self, counter):
    if when == "before":
        os._exit(9)
    write(self, counter)
    print(counter._last[0, 0], flush=True)
    os._exit(9)
saving.Keeper.write = killed
counter.value()
"""


@pytest.mark.parametrize(("when", "steps"), [("before", 5), ("after", 12)])
def test_killed_around_a_save_it_goes_on_from_what_was_given(when: str, steps: int, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "state"), when], capture_output=True, text=True
    )
    assert ran.returncode == 9
    counter = load(tmp_path / "state")
    assert counter.steps == steps
    if when == "after":
        assert counter.value().value == int(ran.stdout)
    counter.add(1)
    assert counter.steps == steps + 1


def test_what_is_given_is_on_disk_before(tmp_path: Path) -> None:
    counter = TreeSum(scale=6).start()
    counter.add(1)
    counter.save(tmp_path / "state")
    counter.add(1)
    assert json.loads((tmp_path / "state").read_text())["steps"] == 1
    counter.value()
    assert json.loads((tmp_path / "state").read_text())["steps"] == 2


def test_the_file_is_secret_and_for_one_counter(tmp_path: Path) -> None:
    path = tmp_path / "state"
    counter = TreeSum(scale=6).start()
    counter.add(1)
    counter.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert "secret" in path.read_text()
    with pytest.raises(NotSound):
        load(path)
    with pytest.raises(InvalidArgument):
        counter.save(path)
    assert sorted(os.listdir(tmp_path)) == ["state", "state.lock"]


def test_participants_and_receipts_come_back(tmp_path: Path) -> None:
    account = Ledger(tmp_path / "ledger").open(
        "events", unit=Unit("person"), budget=Budget(epsilon=9, delta=1e-5)
    )
    counter = TreeSum(scale=6, most=2, separation=3).start(account)
    counter.add(1, unit="ana")
    counter.save(tmp_path / "state")
    (tmp_path / "copy").write_text((tmp_path / "state").read_text())
    again = load(tmp_path / "copy")
    assert again._participants.seen == {"ana": (0, 1)}
    assert again.value().receipt.entry.number == counter.value().receipt.entry.number
    assert again.value().receipt.unit == counter.value().receipt.unit


def test_sums_of_any_size_come_back(tmp_path: Path) -> None:
    counter = TreeSum(scale=10**4, largest=2**31).start()
    counter._tally.restore([2**63])
    counter.add(1)
    counter.save(tmp_path / "state")
    (tmp_path / "copy").write_text((tmp_path / "state").read_text())
    assert load(tmp_path / "copy").value() == counter.value()
    assert abs(counter.value().high - 2**63) < 10**6


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text('{"kind": "stream"}')
    with pytest.raises(InvalidArgument):
        load(tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
