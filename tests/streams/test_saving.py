"""A counter survives a crash: nothing that was given is given otherwise, and no state is set back."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dalenius.errors import InvalidArgument, NotSound
from dalenius.ledger import Budget, Ledger
from dalenius.privacy.unit import Unit
from dalenius.streams import ContinualSum, DecayedSum, EndlessSum, TreeSum, WindowSum, load, saving
from dalenius.streams.counter import Counter
from dalenius.streams.tree_noise import TreeBlocks

KINDS = [
    ContinualSum.designed(horizon=9000, scale=5),
    ContinualSum.designed(horizon=50, scale=5, categories=3),
    TreeSum(scale=6),
    TreeSum(scale=6, law="laplace", estimator="plain"),
    EndlessSum.designed(epoch=8, scale=5),
    WindowSum(window=10, scale=8),
    DecayedSum.designed(horizon=64, decay=0.9, scale=5),
]


def copied(folder: Path) -> Path:
    """Both files under another name, as nobody should: nothing tells which of the two went on."""
    shutil.copy(folder / "state", folder / "copy")
    shutil.copy(folder / "state.lock", folder / "copy.lock")
    return folder / "copy"


def kept(folder: Path, numbers: int = 3) -> Counter:
    counter = TreeSum(scale=6).start()
    counter.extend(np.ones(numbers, np.int64))
    counter.save(folder / "state")
    return counter


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda m: m.kind)
def test_a_loaded_counter_goes_on_as_the_other_would_have(mechanism: ContinualSum, tmp_path: Path) -> None:
    counter = mechanism.start()
    counter.extend(np.ones(20, np.int64))
    counter.save(tmp_path / "state")
    given = counter.value()
    copy = copied(tmp_path)
    counter.add(1)
    later = counter.series([1, 0, 1])
    again = load(copy)
    assert again.steps == 20 and again.value() == given
    again.add(1)
    assert again.series([1, 0, 1]) == later


def test_noise_beyond_a_block_is_drawn_again(tmp_path: Path) -> None:
    counter = KINDS[0].start()
    counter.extend(np.ones(8500, np.int64))
    counter.save(tmp_path / "state")
    assert load(copied(tmp_path)).value() == counter.value()


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
        "events", unit=Unit("person", column="who"), budget=Budget(epsilon=9, delta=1e-5)
    )
    counter = TreeSum(scale=6, most=2, separation=3).start(account)
    counter.add(1, unit="ana")
    counter.save(tmp_path / "state")
    again = load(copied(tmp_path), account)
    assert again._participants.seen == {"ana": (0, 1)}
    assert again.value().receipt.entry.number == counter.value().receipt.entry.number
    assert again.value().receipt.unit == counter.value().receipt.unit


def test_sums_of_any_size_come_back(tmp_path: Path) -> None:
    counter = TreeSum(scale=10**4, largest=2**31).start()
    counter._tally.restore([2**63])
    counter.add(1)
    counter.save(tmp_path / "state")
    assert load(copied(tmp_path)).value() == counter.value()
    assert abs(counter.value().high - 2**63) < 10**6


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text('{"kind": "stream"}')
    (tmp_path / "other.lock").touch()
    for name in ("other", "other.lock"):
        (tmp_path / name).chmod(0o600)
    with pytest.raises(InvalidArgument):
        load(tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_another_name_is_no_other_counter(link: Callable[[Path, Path], None], tmp_path: Path) -> None:
    counter = kept(tmp_path)
    link(tmp_path / "alias", tmp_path / "state")
    shutil.copy(tmp_path / "state.lock", tmp_path / "alias.lock")
    with pytest.raises(NotSound):
        load(tmp_path / "alias")
    with pytest.raises(NotSound):
        TreeSum(scale=6).start().save(tmp_path / "alias")
    counter.add(1)
    counter.value()
    assert json.loads((tmp_path / "state").read_text())["steps"] == 4


def test_a_link_goes_on_where_it_points(tmp_path: Path) -> None:
    counter = kept(tmp_path)
    (tmp_path / "alias").symlink_to(tmp_path / "state")
    counter._keeper.close()
    again = load(tmp_path / "alias")
    again.add(1)
    again.value()
    assert (tmp_path / "alias").is_symlink()
    assert json.loads((tmp_path / "state").read_text())["steps"] == 4


@pytest.mark.parametrize("replaced", [False, True])
def test_without_its_lock_nothing_goes_on(replaced: bool, tmp_path: Path) -> None:
    counter = kept(tmp_path)
    given = counter.value()
    text = (tmp_path / "state.lock").read_text()
    (tmp_path / "state.lock").unlink()
    if replaced:
        (tmp_path / "state.lock").write_text(text)
        (tmp_path / "state.lock").chmod(0o600)
        assert load(tmp_path / "state").steps == 3
    else:
        with pytest.raises(NotSound):
            load(tmp_path / "state")
    assert counter.value() == given
    counter.add(1)
    with pytest.raises(NotSound):
        counter.value()
    with pytest.raises(NotSound):
        counter.series([1])
    assert json.loads((tmp_path / "state").read_text())["steps"] == 3


def test_an_older_state_is_refused(tmp_path: Path) -> None:
    counter = kept(tmp_path)
    older = (tmp_path / "state").read_text()
    counter.add(1)
    counter.value()
    newest = (tmp_path / "state").read_text()
    counter._keeper.close()
    (tmp_path / "state").write_text(older)
    with pytest.raises(NotSound, match="older than the last value"):
        load(tmp_path / "state")
    (tmp_path / "state").write_text(newest)
    assert load(tmp_path / "state").steps == 4


def test_a_state_of_another_counter_is_refused(tmp_path: Path) -> None:
    first = kept(tmp_path)
    text = (tmp_path / "state").read_text()
    first.close()
    (tmp_path / "state").unlink()
    kept(tmp_path, 1).close()
    (tmp_path / "state").write_text(text)
    with pytest.raises(NotSound, match="not that of its counter"):
        load(tmp_path / "state")


@pytest.mark.parametrize("steps", [5, 4096, 5000])
def test_noise_that_is_drawn_otherwise_is_noticed(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = kept(tmp_path, 2)
    counter.extend(np.ones(steps - 2, np.int64))
    counter.value()
    counter._keeper.close()
    drawn = TreeBlocks.next

    def other(self: TreeBlocks) -> np.ndarray:
        found = drawn(self)
        found[0, 0] += self.blocks == 1
        return found

    with monkeypatch.context() as patched:
        patched.setattr(TreeBlocks, "next", other)
        with pytest.raises(NotSound, match="other noise"):
            load(tmp_path / "state")
    assert load(tmp_path / "state").steps == steps


def test_killed_before_the_step_is_noted_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = kept(tmp_path)
    counter.add(1)
    monkeypatch.setattr(saving.Lock, "note", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        counter.value()
    counter._keeper.close()
    assert load(tmp_path / "state").steps == 4


def test_what_a_killed_write_left_is_removed(tmp_path: Path) -> None:
    kept(tmp_path)._keeper.close()
    (tmp_path / ".state.abcd_123.part").write_text("secret")
    (tmp_path / ".state.more.abcd_123.part").write_text("of another")
    load(tmp_path / "state")
    names = sorted(os.listdir(tmp_path))
    assert names == [".state.more.abcd_123.part", "state", "state.lock"]


def test_no_state_is_saved_over(tmp_path: Path) -> None:
    """The process of the other has ended, and its file is all that is left of it."""
    ran = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "state"), "after"], capture_output=True)
    assert ran.returncode == 9
    before = [(tmp_path / name).read_bytes() for name in ("state", "state.lock")]
    other = TreeSum(scale=6).start()
    other.add(1)
    with pytest.raises(NotSound, match="another counter") as refusal:
        other.save(tmp_path / "state")
    assert "streams.load" in refusal.value.remedy
    assert [(tmp_path / name).read_bytes() for name in ("state", "state.lock")] == before
    assert load(tmp_path / "state").steps == 12
    other.save(tmp_path / "free")
    (tmp_path / "text").write_text("something else")
    with pytest.raises(NotSound):
        TreeSum(scale=6).start().save(tmp_path / "text")
    assert sorted(os.listdir(tmp_path)) == ["free", "free.lock", "state", "state.lock", "text"]


def test_a_closed_counter_gives_its_file_up_and_nothing_else(tmp_path: Path) -> None:
    counter = kept(tmp_path)
    given = counter.value()
    counter.close()
    counter.close()
    again = load(tmp_path / "state")
    assert again.value() == given
    for asked in (counter.value, lambda: counter.add(1), lambda: counter.series([1])):
        with pytest.raises(InvalidArgument, match="closed"):
            asked()
    with pytest.raises(InvalidArgument, match="closed"):
        counter.save(tmp_path / "other")
    again.add(1)
    assert again.value() != given and counter.steps == 3


@pytest.mark.parametrize("loaded", [False, True])
def test_a_counter_that_is_gone_has_given_its_file_up(loaded: bool, tmp_path: Path) -> None:
    counter = kept(tmp_path)
    if loaded:
        counter.close()
        counter = load(tmp_path / "state")
    counter.add(1)
    given = counter.value()
    with pytest.raises(NotSound):
        load(tmp_path / "state")
    del counter
    gc.collect()
    assert load(tmp_path / "state").value() == given
