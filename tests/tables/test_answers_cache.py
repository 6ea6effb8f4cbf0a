"""Released answers are given again, free, as long as the account's chain has the entry that paid."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
from pathlib import Path

import pytest

import dalenius as dp
from dalenius import mechanisms
from dalenius.ledger import Account
from dalenius.release import Release
from dalenius.tables.answers_cache import Answers

COUNT = mechanisms.Laplace(scale=10, sensitivity=1)
KEY = {"question": "SELECT count(*) FROM visits", "epsilon": "1/10", "version": "7"}


def opened(where: Path | None) -> Account:
    ledger = dp.Ledger.memory() if where is None else dp.Ledger(where)
    return ledger.open("visits", unit=dp.Unit("patient"), budget=dp.Budget(1))


def released(account: Account) -> Release:
    return account.spend(COUNT, 100, by="ana")


@pytest.mark.parametrize("kept", ["file", "memory"])
def test_an_answer_is_found_again_and_says_so(tmp_path: Path, kept: str) -> None:
    account = opened(tmp_path / "visits.ledger" if kept == "file" else None)
    answers, release = Answers(account), released(account)
    key = answers.key(**KEY)
    assert answers.find(key) is None
    answers.keep(key, release)
    again = answers.find(key)
    assert again is not None and again.columns == release.columns
    assert again.receipt.entry == release.receipt.entry
    assert again.receipt.postprocessing == ("given again, free: it was released before, by entry 2",)
    assert answers.find(answers.key(**KEY | {"version": "8"})) is None


def test_the_file_is_its_owners_alone_and_holds_no_question(tmp_path: Path) -> None:
    account = opened(tmp_path / "visits.ledger")
    answers = Answers(account)
    answers.keep(answers.key(**KEY), released(account))
    path = tmp_path / "visits.answers"
    assert answers.path == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"SELECT" not in path.read_bytes().replace(b"SELECT count(*) FROM sqlite", b"")


def test_another_process_finds_it_too(tmp_path: Path) -> None:
    account = opened(tmp_path / "visits.ledger")
    Answers(account).keep("k", released(account))
    other = Answers(opened(tmp_path / "visits.ledger"))
    assert other.find("k") is not None


def test_an_answer_that_the_chain_does_not_know_is_not_given(tmp_path: Path) -> None:
    """The ledger was replaced: its answers were paid for elsewhere."""
    account = opened(tmp_path / "visits.ledger")
    Answers(account).keep("k", released(account))
    account.ledger.close()
    for path in tmp_path.glob("visits.ledger*"):
        path.unlink()
    fresh = opened(tmp_path / "visits.ledger")
    assert Answers(fresh).find("k") is None
    released(fresh)
    assert Answers(fresh).find("k") is None, "an entry of that number, and another hash"


def test_accounts_do_not_share_answers(tmp_path: Path) -> None:
    account = opened(tmp_path / "visits.ledger")
    other = account.ledger.open("others", unit=dp.Unit("patient"), budget=dp.Budget(1))
    assert Answers(account).key(**KEY) != Answers(other).key(**KEY)
    Answers(account).keep("k", released(account))
    assert Answers(other).find("k") is None


@pytest.mark.parametrize("content", [b"people, 17\n" * 500, b"", None])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "visits.answers"
    if content is None:
        with sqlite3.connect(path) as file:
            file.execute("CREATE TABLE people (name TEXT)")
        file.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    account = opened(tmp_path / "visits.ledger")
    answers = Answers(account)
    answers.keep("k", released(account))
    if content == b"":
        assert answers.find("k") is not None
    else:
        assert answers.find("k") is None and path.read_bytes() == before


def test_a_broken_answer_is_not_given(tmp_path: Path) -> None:
    account = opened(tmp_path / "visits.ledger")
    answers = Answers(account)
    answers.keep("k", released(account))
    with sqlite3.connect(tmp_path / "visits.answers") as file:
        file.execute("UPDATE answers SET release = '{}'")
    file.close()
    assert answers.find("k") is None


def test_what_cannot_be_kept_is_not_an_error(tmp_path: Path) -> None:
    """The folder is gone, as a full or a read-only disk would have it."""
    account = opened(tmp_path / "visits.ledger")
    answers = Answers(account)
    answers.path = tmp_path / "nowhere" / "visits.answers"
    answers.keep("k", released(account))
    assert answers.find("k") is None


def _keep(folder: str, number: int) -> None:
    account = opened(Path(folder) / "visits.ledger")
    Answers(account).keep(f"k{number}", account.spend(COUNT, 100, by=f"{os.getpid()}"))


def test_several_processes_keep_answers_at_once(tmp_path: Path) -> None:
    opened(tmp_path / "visits.ledger").ledger.close()
    spawn = multiprocessing.get_context("spawn")
    crowd = [spawn.Process(target=_keep, args=(str(tmp_path), n)) for n in range(4)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    answers = Answers(opened(tmp_path / "visits.ledger"))
    assert all(answers.find(f"k{n}") is not None for n in range(4))
