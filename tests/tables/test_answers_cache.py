"""Released answers are given again, free, as long as the account's chain has the entry that paid."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dalenius as dp
from dalenius import mechanisms
from dalenius.ledger import Account
from dalenius.release import Release
from dalenius.tables.answers_cache import Answers, seal

COUNT = mechanisms.Laplace(scale=10, sensitivity=1)
KEY = {"question": "SELECT count(*) FROM visits", "epsilon": "1/10", "version": "7"}


def opened(where: Path | None) -> Account:
    ledger = dp.Ledger.memory() if where is None else dp.Ledger(where)
    return ledger.open("visits", unit=dp.Unit("patient"), budget=dp.Budget(1))


def released(account: Account, key: str = "k") -> Release:
    """An answer to what has this key, committed with its seal."""
    with account.reserve(COUNT.loss, by="ana") as reservation:
        release = COUNT.release(100, unit=account.unit)
        return reservation.commit(release, digest=seal(key, release))


def rewritten(where: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Every answer of a file, changed by somebody who can write to it."""
    with sqlite3.connect(where) as file:
        for key, text in file.execute("SELECT key, release FROM answers").fetchall():
            plain = json.loads(text)
            change(plain)
            file.execute("UPDATE answers SET release = ? WHERE key = ?", (json.dumps(plain), key))
    file.close()


@pytest.mark.parametrize("kept", ["file", "memory"])
def test_an_answer_is_found_again_and_says_so(tmp_path: Path, kept: str) -> None:
    account = opened(tmp_path / "visits.ledger" if kept == "file" else None)
    answers = Answers(account)
    key = answers.key(**KEY)
    release = released(account, key)
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
    key = answers.key(**KEY)
    answers.keep(key, released(account, key))
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


def zero_part(plain: dict[str, Any]) -> None:
    plain["confidence"] = "1/0"


BROKEN = ["{}", "[]", "[" * 100_000, "nothing", '{"kind":"release","version":1}', zero_part]


@pytest.mark.parametrize("broken", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_answer_is_not_given(tmp_path: Path, broken: Any) -> None:
    account = opened(tmp_path / "visits.ledger")
    answers = Answers(account)
    answers.keep("k", released(account))
    if callable(broken):
        rewritten(tmp_path / "visits.answers", broken)
    else:
        with sqlite3.connect(tmp_path / "visits.answers") as file:
            file.execute("UPDATE answers SET release = ?", (broken,))
        file.close()
    assert answers.find("k") is None


def other_cells(plain: dict[str, Any]) -> None:
    plain["columns"][0]["cells"] = [424242]


def other_mechanism(plain: dict[str, Any]) -> None:
    plain["receipt"]["mechanism"] = "no noise at all"


def other_note(plain: dict[str, Any]) -> None:
    plain["receipt"]["postprocessing"] = ["checked by the statistician"]


def cheaper(plain: dict[str, Any]) -> None:
    plain["receipt"]["loss"] = json.loads(mechanisms.Laplace(scale=100, sensitivity=1).loss.to_json())


def surer(plain: dict[str, Any]) -> None:
    plain["confidence"] = "0.99"


FORGED = [other_cells, other_mechanism, other_note, cheaper, surer]


@pytest.mark.parametrize("forge", FORGED)
def test_an_answer_that_was_changed_is_not_given(tmp_path: Path, forge: Any) -> None:
    account = opened(tmp_path / "visits.ledger")
    answers = Answers(account)
    answers.keep("k", released(account))
    rewritten(tmp_path / "visits.answers", forge)
    assert answers.find("k") is None


def test_an_answer_counts_by_its_own_entry_and_for_its_own_question_only(tmp_path: Path) -> None:
    account = opened(tmp_path / "visits.ledger")
    answers = Answers(account)
    release = released(account)
    answers.keep("k", release)
    answers.keep("other", release)
    assert answers.find("other") is None
    released(account, "other")
    for entry in account.entries():

        def cite(plain: dict[str, Any], entry: Any = entry) -> None:
            plain["receipt"]["entry"] |= {"number": entry.number, "hash": entry.hash}

        rewritten(tmp_path / "visits.answers", cite)
        assert (answers.find("k") is not None) == (entry.number == 2)


def test_what_a_receipt_says_of_its_entry_is_read_from_the_chain(tmp_path: Path) -> None:
    account = opened(tmp_path / "visits.ledger")
    answers, release = Answers(account), released(account)
    answers.keep("k", release)

    def richer(plain: dict[str, Any]) -> None:
        plain["receipt"]["entry"] |= {"left": "100 % of everything", "hash": "00", "signature": "00"}

    rewritten(tmp_path / "visits.answers", richer)
    again = answers.find("k")
    assert again is not None and again.receipt.entry == release.receipt.entry


def test_a_charge_that_was_forfeited_or_has_no_digest_vouches_for_nothing(tmp_path: Path) -> None:
    """As the entries of earlier versions have none."""
    account = opened(tmp_path / "visits.ledger")
    answers = Answers(account)
    answers.keep("k", account.spend(COUNT, 100, by="ana"))
    assert answers.find("k") is None
    with account.reserve(COUNT.loss, by="ana") as reservation:
        answers.keep("k", COUNT.release(100, unit=account.unit).charged(reservation.line()))
    assert answers.find("k") is None


def test_a_sealed_commit_is_verified_like_any_other(tmp_path: Path) -> None:
    account = opened(tmp_path / "visits.ledger")
    release = released(account)
    commit = account.entries()[-1]
    said = {name: commit.fields[name] for name in ("reservation", "digest")}
    assert said == {"reservation": 2, "digest": seal("k", release)}
    assert account.ledger.verify() == 3


def test_what_cannot_be_kept_is_not_an_error(tmp_path: Path) -> None:
    """The folder is gone, as a full or a read-only disk would have it."""
    account = opened(tmp_path / "visits.ledger")
    answers = Answers(account)
    answers.path = tmp_path / "nowhere" / "visits.answers"
    answers.keep("k", released(account))
    assert answers.find("k") is None


def _keep(folder: str, number: int) -> None:
    account = opened(Path(folder) / "visits.ledger")
    Answers(account).keep(f"k{number}", released(account, f"k{number}"))


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


# Which data an answer is about.


def asked_of(source: Path, **options: Any) -> Release:
    """How many rows there are, from the answers beside one ledger."""
    given = {
        "name": "t",
        "unit": dp.Unit("patient", column="id"),
        "budget": dp.Budget(epsilon=20, delta=1e-6),
    }
    with dp.table(str(source), **given | {"ledger": source.parent / "all.ledger"} | options) as table:
        return table.sql("SELECT COUNT(*) AS n FROM t", epsilon=2)


def again(release: Release) -> bool:
    return any("given again" in note for note in release.receipt.postprocessing)


def parquet(path: Path, rows: int) -> Path:
    duckdb.sql(f"COPY (SELECT range AS id, 1 AS w FROM range({rows})) TO '{path}'")
    return path


def test_another_table_of_one_file_is_other_data(tmp_path: Path) -> None:
    path = tmp_path / "h.duckdb"
    with duckdb.connect(path) as file:
        file.execute("CREATE TABLE a AS SELECT range AS id FROM range(1000)")
        file.execute("CREATE TABLE b AS SELECT range AS id FROM range(50)")
    assert asked_of(path, table="a").value > 500 > asked_of(path, table="b").value
    assert again(asked_of(path, table="a"))


def test_rows_that_duckdb_has_yet_to_write_into_its_file_are_new_data(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    with duckdb.connect(path) as file:
        file.execute("CREATE TABLE t AS SELECT range AS id FROM range(1000)")
    assert asked_of(path).value < 2000
    with duckdb.connect(path) as file:
        file.execute("PRAGMA disable_checkpoint_on_shutdown")
        file.execute("INSERT INTO t SELECT range + 5000 FROM range(4000)")
    assert path.with_name("w.duckdb.wal").exists()
    assert asked_of(path).value > 2000


def test_which_file_has_which_name_matters(tmp_path: Path) -> None:
    visits, few, many = (parquet(tmp_path / f"{n}.parquet", n) for n in (1000, 1, 900))
    with duckdb.connect() as memory:
        for path, values in ((few, "(1, 0)"), (many, "(1, 0), (1, 1)")):
            memory.execute(f"COPY (SELECT * FROM (VALUES {values}) AS made(w, z)) TO '{path}'")

    def joined(**public: Path) -> float:
        given = {"unit": dp.Unit("patient", column="id"), "budget": dp.Budget(epsilon=20, delta=1e-6)}
        tables = {name: str(path) for name, path in public.items()}
        with dp.table(str(visits), name="t", public=tables, **given) as table:
            query = "SELECT COUNT(*) AS n FROM t JOIN a ON t.w = a.w"
            return float(table.sql(query, epsilon=2, bounds=dp.tables.Bounds(rows=2)).value)

    assert joined(a=few, b=many) < 1500 < joined(b=few, a=many)


def test_how_cells_of_a_csv_are_read_matters(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id,x\n" + "".join(f"{i},{i % 5}\n" for i in range(1000)))
    assert not again(asked_of(path, types={"x": "DOUBLE"}))
    assert not again(asked_of(path, types={"x": "BIGINT"}))
    assert again(asked_of(path, types={"x": "BIGINT"}))


def test_data_that_change_while_they_are_read_are_not_kept(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", 1000)
    given = {"unit": dp.Unit("patient", column="id"), "budget": dp.Budget(epsilon=20, delta=1e-6)}
    with dp.table(str(path), **given) as table:
        engine = table._engine
        seen = ["before"]

        class Changing:
            def __getattr__(self, name: str) -> Any:
                return getattr(engine, name)

            def load(self, rows: Any) -> Any:
                seen.append("after")
                return engine.load(rows)

            def version(self) -> str:
                return seen[-1]

        table._engine = Changing()
        query = "SELECT COUNT(*) AS n FROM t"
        assert not again(table.sql(query, epsilon=2))
        seen[:] = ["before"]
        assert not again(table.sql(query, epsilon=2)), "what was read then is not known"
        table._engine = engine
        assert [again(table.sql(query, epsilon=2)) for _ in range(2)] == [False, True]
