"""The files of a run at rest: who can read them, what is in them, and with what they go on."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dalenius.errors import InvalidArgument, NotSound, UnknownKind
from dalenius.learn.clipping import Flat
from dalenius.learn.private import Private

from .resumable import (
    KEY,
    SAVED,
    STEPS,
    STOPPED,
    arguments,
    begun,
    charges,
    in_memory,
    refused,
    stopped,
    train,
)


def test_files_are_for_their_owner_alone_from_the_start(tmp_path: Path, monkeypatch: Any) -> None:
    modes, save = [], torch.save

    def saved(content: Any, file: Any) -> None:
        modes.append(os.fstat(file.fileno()).st_mode & 0o777)
        save(content, file)

    monkeypatch.setattr(torch, "save", saved)
    mask = os.umask(0)
    try:
        stopped(tmp_path / "run.state")
    finally:
        os.umask(mask)
    assert modes == [0o600]
    found = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.iterdir()}
    assert found == {"run.state": 0o600, "run.state.journal": 0o600}


def test_the_journal_says_steps_attempts_and_seals_and_nothing_else(tmp_path: Path) -> None:
    stopped(tmp_path / "run.state")
    text = (tmp_path / "run.state.journal").read_text()
    lines = [line.split(" ") for line in text.splitlines()]
    assert [line[:3] for line in lines[1:]] == [["used", str(n), "0"] for n in range(SAVED, STOPPED)]
    assert all(len(line) == 5 and len(line[3]) == 32 and len(line[4]) == 16 for line in lines[1:])
    assert KEY.secret.hex() not in text


def test_another_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.state"
    stopped(path)
    refused(path, "another clip", clip=Flat(1))
    refused(path, "another noise_multiplier", noise_multiplier=2)
    refused(path, "another sampling", steps=STEPS + 1)
    refused(path, "another sampling", public_size=61)
    refused(path, "another chunk", chunk=6)
    other = torch.nn.Linear(4, 2)
    refused(path, "another model", model=other, optimizer=torch.optim.Adam(other.parameters()))
    given = arguments()
    refused(path, "another optimizer", **{**given, "optimizer": torch.optim.SGD(given["model"].parameters())})
    Private.resume(path, **arguments()).close()


def test_another_criterion_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "run.state")
    private = Private.resume(tmp_path / "run.state", **arguments())
    with pytest.raises(NotSound, match="are the mean over examples"):
        for x, y in private.loader:
            private.zero_grad()
            torch.nn.functional.cross_entropy(private.model(x), y, reduction="sum").backward()
            private.step()


def test_the_account_is_the_one_that_paid(tmp_path: Path) -> None:
    path, paid = tmp_path / "run.state", in_memory()
    stopped(path, paid=paid)
    refused(path, "charged to people, entry")
    refused(path, "charged to people, entry", account=in_memory())
    private = Private.resume(path, account=paid, **arguments())
    assert charges(paid) == 1 and private.receipt.entry is not None
    stopped(tmp_path / "free.state")
    refused(tmp_path / "free.state", "not charged to an account", account=paid)


def test_a_run_goes_on_in_one_place_only(tmp_path: Path) -> None:
    path = tmp_path / "run.state"
    private = begun()
    train(private, until=SAVED)
    private.save(path)
    refused(path, "goes on elsewhere")
    private.close()
    with pytest.raises(InvalidArgument, match="closed"):
        train(private)
    with pytest.raises(InvalidArgument, match="closed"):
        private.save(path)
    second = Private.resume(path, **arguments())
    refused(path, "goes on elsewhere")
    train(second)


def test_a_state_without_its_journal_is_refused(tmp_path: Path) -> None:
    path, journal = tmp_path / "run.state", tmp_path / "run.state.journal"
    private = begun()
    train(private, until=SAVED)
    private.save(path)
    train(private, until=SAVED + 1)
    private.save(path)
    private.close()
    whole = journal.read_bytes()
    journal.unlink()
    refused(path, "is missing")
    journal.write_bytes(whole[: whole.index(b"\n") + 1])
    journal.chmod(0o600)
    refused(path, "lacks lines")
    journal.write_bytes(b"")
    refused(path, "lacks lines")
    stopped(tmp_path / "other.state")
    changed = bytearray(whole)
    changed[-3] ^= 1
    journal.write_bytes(changed)
    refused(path, "damaged")


def test_a_journal_of_another_run_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        private = Private(**arguments())
        train(private, until=SAVED)
        private.save(tmp_path / name)
        private.close()
    os.replace(tmp_path / "two.journal", tmp_path / "one.journal")
    refused(tmp_path / "one", "that of another run")


def test_a_run_has_one_name_which_no_other_run_has(tmp_path: Path) -> None:
    private, other = begun(), begun()
    with pytest.raises(InvalidArgument, match="has not begun"):
        private.save(tmp_path / "run.state")
    train(private, until=1)
    train(other, until=1)
    private.save(tmp_path / "run.state")
    with pytest.raises(InvalidArgument, match="Save it under the same name"):
        private.save(tmp_path / "second.state")
    private.close()
    with pytest.raises(InvalidArgument, match="another saved run"):
        other.save(tmp_path / "run.state")
    other.save(tmp_path / "other.state")


def test_what_could_not_be_read_back_is_not_saved(tmp_path: Path) -> None:
    given = arguments()
    private = begun(
        **{**given, "optimizer": torch.optim.SGD(given["model"].parameters(), lr=np.float64(0.1))}
    )
    train(private, until=1)
    with pytest.raises(InvalidArgument, match="more than tensors"):
        private.save(tmp_path / "run.state")
    private.optimizer.param_groups[0]["lr"] = 0.1
    private.save(tmp_path / "run.state")
    assert sorted(os.listdir(tmp_path)) == ["run.state", "run.state.journal"]


class _Harm:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.path),))


def test_nothing_in_a_state_is_run(tmp_path: Path) -> None:
    path = tmp_path / "run.state"
    torch.save({"format": "dalenius-run", "facts": _Harm(tmp_path / "harm")}, path)
    path.chmod(0o600)
    with pytest.raises(UnknownKind):
        Private.resume(path, **arguments())
    path.write_bytes(pickle.dumps(_Harm(tmp_path / "harm")))
    with pytest.raises(UnknownKind):
        Private.resume(path, **arguments())
    assert not (tmp_path / "harm").exists()
    with pytest.raises(InvalidArgument, match="no none to resume"):
        Private.resume(tmp_path / "none", **arguments())
