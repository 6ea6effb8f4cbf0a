"""Of a counter's copies one goes on: the ledger that paid knows which, and refuses the others."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from dalenius.errors import InvalidArgument, NotSound
from dalenius.ledger import Account, Budget, Ledger
from dalenius.privacy.unit import Unit
from dalenius.streams import ContinualSum, TreeSum, load
from dalenius.streams.counter import Counter

FILES = ("state", "state.lock")


def people(folder: Path) -> Account:
    """Open an account of its own ledger."""
    return Ledger(folder / "ledger").open("people", unit=Unit("row"), budget=Budget(epsilon=99, delta=1e-5))


def saved(folder: Path, account: Account) -> Counter:
    """Start a counter, save it and give one value."""
    counter = ContinualSum.designed(horizon=100, scale=40).start(account)
    counter.extend(np.ones(3, np.int64))
    counter.save(folder / "state")
    counter.value()
    return counter


def put(source: Path, target: Path) -> None:
    """Copy both files, as a backup does."""
    target.mkdir(exist_ok=True)
    target.chmod(0o700)
    for name in FILES:
        shutil.copy(source / name, target / name)


def test_a_backup_that_is_put_back_with_its_lock_is_refused(tmp_path: Path) -> None:
    account = people(tmp_path)
    counter = saved(tmp_path, account)
    put(tmp_path, tmp_path / "backup")
    counter.add(1)
    given = counter.value()
    counter.close()
    put(tmp_path, tmp_path / "newest")
    put(tmp_path / "backup", tmp_path)
    with pytest.raises(NotSound, match="copy of its state"):
        load(tmp_path / "state", account)
    put(tmp_path / "newest", tmp_path)
    assert load(tmp_path / "state", account).value() == given


def test_of_two_copies_one_goes_on(tmp_path: Path) -> None:
    """Whichever is first; what the other would have given next never leaves, also when it is loaded again."""
    account = people(tmp_path)
    counter = saved(tmp_path, account)
    put(tmp_path, tmp_path / "copy")
    copy = load(tmp_path / "copy" / "state", account)
    assert copy.value() == counter.value()
    copy.add(1)
    copy.value()
    counter.add(0)
    for _ in range(2):
        with pytest.raises(NotSound, match="copy of its state"):
            counter.value()
    counter.close()
    with pytest.raises(NotSound, match="copy of its state"):
        load(tmp_path / "state", account)
    copy.add(1)
    copy.value()


def test_killed_before_the_ledger_notes_it_a_value_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not given. A copy from before it is refused once the state went on."""
    account = people(tmp_path)
    counter = saved(tmp_path, account)
    put(tmp_path, tmp_path / "copy")
    counter.add(1)
    with monkeypatch.context() as patch:
        patch.setattr(type(account.ledger.store), "write", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            counter.value()
    counter.close()
    again = load(tmp_path / "state", account)
    assert again.steps == 4
    with pytest.raises(NotSound, match="copy of its state"):
        load(tmp_path / "copy" / "state", account)
    again.add(1)
    again.value()


def test_a_charged_counter_is_loaded_with_its_account(tmp_path: Path) -> None:
    account = people(tmp_path)
    saved(tmp_path, account).close()
    other = Ledger(tmp_path / "other").open("people", unit=Unit("row"), budget=Budget(epsilon=9, delta=1e-5))
    for wrong in (None, other):
        with pytest.raises(InvalidArgument, match="paid by people"):
            load(tmp_path / "state", wrong)
    free = TreeSum(scale=6).start()
    free.save(tmp_path / "free")
    free.close()
    with pytest.raises(InvalidArgument, match="No account paid"):
        load(tmp_path / "free", account)


def test_notes_leave_the_ledger_whole(tmp_path: Path) -> None:
    account = people(tmp_path)
    counter = saved(tmp_path, account)
    for _ in range(5):
        counter.add(1)
        counter.value()
    before = account.spent
    assert account.ledger.verify() == len(account.entries()) and account.spent == before


def test_a_note_of_another_process_is_seen(tmp_path: Path) -> None:
    """Notes change without an entry, so nothing that a store remembers of them may be used."""
    account = people(tmp_path)
    counter = saved(tmp_path, account)
    put(tmp_path, tmp_path / "copy")
    elsewhere = Ledger(tmp_path / "ledger").account("people")
    copy = load(tmp_path / "copy" / "state", elsewhere)
    counter.add(1)
    counter.value()
    copy.add(0)
    with pytest.raises(NotSound, match="copy of its state"):
        copy.value()
