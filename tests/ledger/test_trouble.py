"""What is not a ledger is refused; full disks, lost servers and the like are named, and undo the block."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dalenius.errors import (
    InvalidArgument,
    LedgerCorrupt,
    LedgerError,
    LedgerFull,
    LedgerReadOnly,
    LedgerUnreachable,
    MissingExtra,
    UnknownLedger,
)
from dalenius.ledger import sqlite
from dalenius.ledger.entry import Entry, chained
from dalenius.ledger.sqlite import SqliteStore
from dalenius.ledger.store import Store, open_store

Append = Callable[..., Entry]
Fill = Callable[[Store, int], list[Entry]]
InFork = Callable[[Callable[[], object]], str]
State = Callable[[Store], tuple[Any, ...]]

AS_NOBODY = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other.db"
    text.write_bytes(b"people, 17\n" * 500)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    connection.close()
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(UnknownLedger, match="is not a ledger") as refused:
            SqliteStore(path)
        assert f"{path}" in f"{refused.value}" and path.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.db", "text"]


def test_a_schema_of_something_else_is_refused(served: Any) -> None:
    schema = served.where.rpartition("%3D")[2]
    served.raw(f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.people (name text)")
    with pytest.raises(UnknownLedger, match="other tables"):
        served.open()


@pytest.mark.parametrize("version", [1, 3])
def test_another_version_is_refused(shared: Any, version: int) -> None:
    """In the first, balances held what entries hold now: who reads one of the two charges too little."""
    shared.open().close()
    words = "PRAGMA user_version =" if shared.kind == "sqlite" else "UPDATE ledger SET version ="
    shared.raw(f"{words} {version}")
    with pytest.raises(UnknownLedger, match="another version"):
        shared.open()


def test_an_old_sqlite_is_named(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(LedgerError, match=r"needs 3\.37"):
        file.open()


def test_an_empty_file_and_an_empty_schema_become_ledgers(file: Any, served: Any, fill: Fill) -> None:
    """As a crash may leave them."""
    Path(file.where).touch()
    fill(file.open(), 1)
    served.raw(f"CREATE SCHEMA {served.where.rpartition('%3D')[2]}")
    fill(served.open(), 1)


def test_two_schemas_are_two_ledgers(postgres: Any, append: Append, state: State, fill: Fill) -> None:
    from dalenius.ledger.postgres import PostgresStore

    one, other = PostgresStore(postgres.url()), PostgresStore(postgres.url())
    with one.write(True) as transaction:
        fill(other, 2)
        append(transaction)
    assert len(state(one)[0]) == 1 and len(state(other)[0]) == 2
    one.close()
    other.close()


def test_only_its_owner_reads_the_file(file: Any, fill: Fill) -> None:
    fill(file.open(), 1)
    for suffix in ("", "-wal", "-shm"):
        assert stat.S_IMODE(os.stat(file.where + suffix).st_mode) == 0o600


@pytest.mark.parametrize("name", ["a b", "50%", "what?", "x#y", "Zoë", "file:x"])
def test_any_name_is_a_path(tmp_path: Path, name: str, fill: Fill) -> None:
    store = open_store(tmp_path / name)
    fill(store, 1)
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: Fill
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("people.ledger")
    monkeypatch.chdir("/")
    fill(store, 1)
    store.close()
    assert (tmp_path / "people.ledger").stat().st_size > 0


def test_an_address_that_cannot_be_read_is_refused() -> None:
    for address in (
        ":memory:",
        "postgresql://host/base?nonsense=1",
        "postgresql:///base?options=-csearch_path%3DPeople;drop",
        "postgresql:///base?options=-csearch_path%3D%22a%22",
    ):
        with pytest.raises(InvalidArgument):
            open_store(address)


def test_the_extra_is_named_where_it_is_missing() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from dalenius.ledger.store import open_store\n"
        "open_store('postgresql://host/base')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert MissingExtra.__name__ in done.stderr and "dalenius[postgres]" in done.stderr


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users reach, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(prefix="dalenius-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    command = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=777", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no right to make a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_leaves_the_file_as_it_was(
    small_disk: Path, append: Append, state: State, fill: Fill
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(100_000))
    store = SqliteStore(small_disk / "people.ledger")
    written = 0
    with pytest.raises(LedgerFull, match="nothing was written"):
        for _ in range(10_000):
            with store.write(True) as transaction:
                append(transaction, note="x" * 2000)
            written += 1
    entries, _, balances, _ = state(store)
    assert len(list(chained(entries))) == written > 10 and balances["people"][""] == f"{written}"
    with pytest.raises(LedgerFull):
        SqliteStore(small_disk / "new.ledger")
    ballast.unlink()
    assert fill(store, 1)[0].number == written + 1
    store.close()


def test_a_file_that_may_not_grow_is_left_as_it_was(file: Any, state: State, fill: Fill) -> None:
    """Where no small disk can be made: SQLite's own limit ends in the same error."""
    store = file.open()
    fill(store, 5)
    before = state(store)
    connection, _ = store._pool.take()
    connection.execute("PRAGMA max_page_count = 10")
    store._pool.give(connection)
    with pytest.raises(LedgerFull):
        fill(store, 1000)
    assert state(store) == before


def test_a_full_disk_of_the_server_undoes_the_block(
    postgres: Any, served: Any, small_disk: Path, append: Append, state: State, fill: Fill
) -> None:
    store = served.open()
    fill(store, 5)
    before = state(store)
    space = small_disk / "space"
    space.mkdir()
    shutil.chown(space, "postgres", "postgres")
    import psycopg

    with psycopg.connect(postgres.url(), autocommit=True) as server:
        server.execute(f"CREATE TABLESPACE tiny LOCATION '{space}'")
    served.raw("ALTER TABLE entries SET TABLESPACE tiny")
    with pytest.raises(LedgerFull, match="nothing was written"), store.write(True) as transaction:
        for _ in range(2000):
            append(transaction, note="".join(map(str, range(2000))))
    assert state(store) == before
    fill(store, 1)
    served.raw("ALTER TABLE entries SET TABLESPACE pg_default")
    with psycopg.connect(postgres.url(), autocommit=True) as server:
        server.execute("CHECKPOINT")
        server.execute("DROP TABLESPACE tiny")


@AS_NOBODY
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_file_that_may_only_be_read(folder: Path, state: State, fill: Fill, in_fork: InFork) -> None:
    path = folder / "people.ledger"
    store = SqliteStore(path)
    fill(store, 2)
    store.close()
    folder.chmod(0o777)
    path.chmod(0o444)

    def as_nobody() -> str:
        os.setuid(65534)
        reader = SqliteStore(path)
        seen = len(state(reader)[0])
        try:
            fill(reader, 1)
        except LedgerReadOnly as error:
            return f"{seen} {error.remedy}"
        return "written"

    def new() -> None:
        os.setuid(65534)
        SqliteStore(folder / "new.ledger")

    assert in_fork(as_nobody).startswith("2 Give this user the right to write")
    folder.chmod(0o755)
    assert in_fork(new) == "LedgerReadOnly"
    assert not (folder / "new.ledger").exists()


def test_a_user_who_may_only_read(postgres: Any, served: Any, state: State, fill: Fill) -> None:
    from dalenius.ledger.postgres import PostgresStore

    fill(served.open(), 2)
    schema = served.where.rpartition("%3D")[2]
    served.raw(
        "CREATE ROLE bookkeeper LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO bookkeeper",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO bookkeeper",
    )
    for address in (
        served.where.replace("dalenius@", "bookkeeper@"),
        served.where + "%20-cdefault_transaction_read_only%3Don",
    ):
        bookkeeper = PostgresStore(address)
        assert len(state(bookkeeper)[0]) == 2
        with pytest.raises(LedgerReadOnly):
            fill(bookkeeper, 1)
        bookkeeper.close()
    with pytest.raises(LedgerReadOnly):
        PostgresStore(postgres.url().replace("dalenius@", "bookkeeper@"))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "people.ledger", tmp_path):
        with pytest.raises(LedgerError, match="cannot be opened"):
            SqliteStore(path)


@pytest.mark.parametrize("change", ["move", "replace"])
def test_a_file_that_is_moved_or_replaced_while_open_is_not_written(
    file: Any, change: str, fill: Fill
) -> None:
    store, path = file.open(), Path(file.where)
    fill(store, 2)
    copy = path.with_name("copy")
    source = sqlite3.connect(path)
    target = sqlite3.connect(copy)
    source.backup(target)
    target.close()
    source.close()
    if change == "move":
        path.rename(path.with_name("moved"))
    else:
        copy.replace(path)
    with pytest.raises(LedgerError, match="moved or replaced"):
        fill(store, 1)


def test_a_damaged_file_is_called_so(file: Any, state: State, fill: Fill) -> None:
    store = file.open()
    fill(store, 500)
    store.close()
    path = Path(file.where)
    content = bytearray(path.read_bytes())
    content[4096 * 8 :] = bytes(len(content) - 4096 * 8)
    path.write_bytes(content)
    with pytest.raises(LedgerCorrupt):
        state(file.open())


def test_bytes_that_are_no_text_are_found(file: Any, fill: Fill) -> None:
    store = file.open()
    fill(store, 1)
    file.raw("UPDATE balances SET text = CAST(x'ff' AS TEXT)")
    with pytest.raises(LedgerCorrupt), store.read() as held:
        held.balance("people", "")


def test_a_server_that_went_away_and_came_back(
    postgres: Any, served: Any, append: Append, state: State, fill: Fill
) -> None:
    """It is stopped as by a crash: what was durable is there, and the block it fell into is not."""
    store = served.open(timeout=5)
    with store.write(True) as transaction:
        append(transaction)
    before = state(store)
    with pytest.raises(LedgerUnreachable), store.write(True) as transaction:
        append(transaction)
        postgres.stop(signal.SIGQUIT)
        append(transaction)
    for use in (lambda: state(store), lambda: fill(store, 1), served.open):
        with pytest.raises(LedgerUnreachable, match="does not answer") as gone:
            use()
        assert "postgresql://" not in f"{gone.value}" and gone.value.__cause__ is None
    postgres.start()
    assert state(store) == before
    assert fill(store, 1)[0].number == 2


def test_a_server_that_goes_away_at_the_commit_leaves_it_open_whether_it_was_made(
    postgres: Any, served: Any, append: Append, fill: Fill
) -> None:
    store = served.open()

    def hook(step: str) -> None:
        if step == "before commit":
            postgres.stop(signal.SIGQUIT)

    store.on_step = hook
    with pytest.raises(LedgerUnreachable, match="made or not"), store.write(True) as transaction:
        append(transaction)
    store.on_step = None
    postgres.start()
    fill(store, 1)


def test_no_driver_text_is_passed_on(served: Any, fill: Fill) -> None:
    """A dropped table stands for whatever a database may complain of."""
    store = served.open()
    served.raw("DROP TABLE balances")
    with pytest.raises(UnknownLedger) as refused:
        fill(store, 1)
    assert "balances" not in f"{refused.value}" and refused.value.__suppress_context__


def test_what_a_file_is_is_read_at_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one that another process is making is taken for something else."""
    place, seen = tmp_path / "new.ledger", []

    class Watched(sqlite.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if "sqlite_master" in sql:
                other = sqlite3.connect(place, timeout=0, isolation_level=None)
                try:
                    other.execute("BEGIN EXCLUSIVE")
                    seen.append("another can change it")
                except sqlite3.OperationalError:
                    seen.append("nobody can change it")
                other.close()
            return super().execute(sql, *values)

    monkeypatch.setattr(sqlite, "Connection", Watched)
    sqlite.SqliteStore(place)
    assert set(seen) == {"nobody can change it"}
