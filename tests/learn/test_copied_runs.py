"""Of a saved run's copies one goes on: the ledger that paid knows which, and refuses the others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dalenius.errors import NotSound
from dalenius.learn.private import Private
from tests.learn.resumable import SAVED, STOPPED, arguments, charges, people, refused, train, weights

FILES = ("run.state", "run.state.journal")


def put(source: Path, target: Path) -> Path:
    """Copy a state with its journal, as a backup does."""
    target.mkdir(exist_ok=True)
    for name in FILES:
        shutil.copy(source / name, target / name)
    return target / FILES[0]


def test_a_state_that_is_put_back_with_its_journal_is_refused(tmp_path: Path) -> None:
    account, path = people(tmp_path), tmp_path / FILES[0]
    private = Private(**arguments(), account=account)
    train(private, until=SAVED)
    private.save(path)
    put(tmp_path, tmp_path / "backup")
    train(private, until=STOPPED)
    private.close()
    put(tmp_path, tmp_path / "newest")
    put(tmp_path / "backup", tmp_path)
    refused(path, "copy of its state", account=account)
    # The newest journal has what noise was used for: the run goes on as it was, at no further cost.
    put(tmp_path / "newest", tmp_path)
    again, before = Private.resume(path, **arguments(), account=account), charges(account)
    train(again, until=STOPPED)
    assert weights(again) == weights(private) and charges(account) == before


def test_of_two_copies_of_a_run_one_goes_on(tmp_path: Path) -> None:
    account, path = people(tmp_path), tmp_path / FILES[0]
    private = Private(**arguments(), account=account)
    train(private, until=SAVED)
    private.save(path)
    copy = Private.resume(put(tmp_path, tmp_path / "copy"), **arguments(), account=account)
    train(private, until=SAVED + 1)
    with pytest.raises(NotSound, match="copy of its state"):
        train(copy, until=SAVED + 1)
    assert copy.steps == SAVED
    train(private, until=SAVED + 2)
    assert account.ledger.verify() == len(account.entries())
