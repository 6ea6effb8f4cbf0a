"""One account protects windows of time by one column, whatever its data are in and however it is opened."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import ibis
import polars
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument
from dalenius.tables.window_column import time_of

WEEKS = dp.Unit("patient", column="patient", window="week")
BUDGET = dp.Budget(epsilon=100, delta=1e-6)
COUNT = "SELECT COUNT(*) AS n FROM visits"
DATA = pyarrow.table(
    {
        "patient": [i % 50 for i in range(200)],
        "admitted": [date(2024, 1, 1) + timedelta(days=i) for i in range(200)],
        "billed": [date(2024, 1, 1) + timedelta(days=7 * i) for i in range(200)],
    }
)


def connection(_: Path) -> Any:
    made = duckdb.connect(":memory:")
    made.register("given", DATA)
    made.execute("CREATE TABLE visits AS FROM given")
    return made


def pattern(folder: Path) -> str:
    pyarrow.parquet.write_table(DATA.slice(0, 90), folder / "visits-1.parquet")
    pyarrow.parquet.write_table(DATA.slice(90), folder / "visits-2.parquet")
    return str(folder / "visits-*.parquet")


def parquet(folder: Path) -> Path:
    pyarrow.parquet.write_table(DATA, folder / "visits.parquet")
    return folder / "visits.parquet"


def database(folder: Path) -> Path:
    with duckdb.connect(str(folder / "visits.duckdb")) as made:
        made.register("given", DATA)
        made.execute("CREATE TABLE visits AS FROM given")
    return folder / "visits.duckdb"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda _: DATA.to_pandas(date_as_object=False),
    "polars": lambda _: polars.from_arrow(DATA),
    "arrow": lambda _: DATA,
    "ibis": lambda _: ibis.memtable(DATA),
    "pattern": pattern,
    "connection": connection,
    "file": parquet,
    "database": database,
}


def opened(source: Any, ledger: Any, time: str | None, **options: Any) -> Any:
    return dp.table(source, **{"unit": WEEKS, "ledger": ledger, "name": "visits"} | options, time=time)


def by_the_same_words(source: Any, where: Path) -> tuple[Any, Callable[[str | None], Any]]:
    return opened(source, where, "admitted", budget=BUDGET), lambda time: opened(
        source, where, time, budget=BUDGET
    )


def without_a_budget(source: Any, where: Path) -> tuple[Any, Callable[[str | None], Any]]:
    return opened(source, where, "admitted", budget=BUDGET), lambda time: opened(source, where, time)


def without_a_unit(source: Any, where: Path) -> tuple[Any, Callable[[str | None], Any]]:
    return opened(source, where, "admitted", budget=BUDGET), lambda time: opened(
        source, where, time, unit=None
    )


def by_its_name(source: Any, where: Path) -> tuple[Any, Callable[[str | None], Any]]:
    return opened(source, where, "admitted", budget=BUDGET, account="weeks"), lambda time: opened(
        source, where, time, account="weeks"
    )


def as_an_account(source: Any, where: Path) -> tuple[Any, Callable[[str | None], Any]]:
    first = opened(source, where, "admitted", budget=BUDGET)
    return first, lambda time: opened(source, None, time, account=first.account)


def opened_by_hand(source: Any, where: Path) -> tuple[Any, Callable[[str | None], Any]]:
    account = dp.Ledger(where).open("hand", unit=WEEKS, budget=BUDGET)
    return opened(source, None, "admitted", account=account), lambda time: opened(
        source, None, time, account=dp.Ledger(where).account("hand")
    )


def opened_by_hand_on_a_source(source: Any, where: Path) -> tuple[Any, Callable[[str | None], Any]]:
    account = dp.Ledger(where).open("hand", unit=WEEKS, budget=BUDGET, source="all that we have")
    return opened(source, None, "admitted", account=account), lambda time: opened(
        source, None, time, account=account
    )


WAYS = (
    by_the_same_words,
    without_a_budget,
    without_a_unit,
    by_its_name,
    as_an_account,
    opened_by_hand,
    opened_by_hand_on_a_source,
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SOURCES)
def test_a_second_column_is_refused(kind: str, way: Any, tmp_path: Path) -> None:
    first, again = way(SOURCES[kind](tmp_path), tmp_path / "weeks.ledger")
    first.sql(COUNT, epsilon=1)
    before = [entry.event for entry in first.account.entries()]
    with pytest.raises(InvalidArgument, match="time by admitted") as refused:
        again("billed").sql(COUNT, epsilon=1)
    assert "admitted" in refused.value.remedy
    assert [entry.event for entry in first.account.entries()] == before
    for time in ("admitted", "ADMITTED", None):
        assert again(time).sql(f"{COUNT} WHERE patient < 40", epsilon=1)
    assert first.account.ledger.verify(costs=True) == len(list(first.account.ledger.entries()))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["arrow", "pattern", "connection", "file"])
def test_of_two_that_are_opened_before_either_is_charged_the_second_is_refused(
    kind: str, way: Any, tmp_path: Path
) -> None:
    source, where = SOURCES[kind](tmp_path), tmp_path / "weeks.ledger"
    if way is as_an_account:
        pytest.skip("An account that a table has opened was charged.")
    first, again = way(source, where)
    if way in (by_the_same_words, opened_by_hand, opened_by_hand_on_a_source):
        second = again("billed")
    else:
        second = opened(source, where, "billed", budget=BUDGET, account=first.account.name)
    assert first.explain(COUNT, epsilon=1) and second.explain(COUNT, epsilon=1)
    first.sql(COUNT, epsilon=1)
    with pytest.raises(InvalidArgument):
        second.sql(COUNT, epsilon=1)
    assert [entry.event for entry in first.account.entries()].count("reserve") == 1


def test_an_account_opened_by_hand_is_settled_by_a_charge_only(tmp_path: Path) -> None:
    account = dp.Ledger(tmp_path / "l").open("hand", unit=WEEKS, budget=BUDGET)
    by_admitted = opened(DATA, None, "admitted", account=account)
    by_admitted.explain(COUNT, epsilon=1)
    assert time_of(account) is None
    by_billed = opened(DATA, None, "billed", account=account)
    by_billed.sql(COUNT, epsilon=1)
    assert time_of(account) == "billed"
    assert [entry.event for entry in account.entries()] == ["open", "record", "reserve", "commit"]
    with pytest.raises(InvalidArgument):
        by_admitted.sql(COUNT, epsilon=1)
    assert [entry.event for entry in account.entries()].count("reserve") == 1


def test_terms_without_a_column_that_are_on_disk_still_open(tmp_path: Path) -> None:
    """As tables of frames and patterns wrote them before the column was part of their terms."""
    dp.Ledger(tmp_path / "l").open("visits", unit=WEEKS, budget=BUDGET)
    for source in (DATA, pattern(tmp_path)):
        assert opened(source, tmp_path / "l", "billed", budget=BUDGET).sql(COUNT, epsilon=1)
        with pytest.raises(InvalidArgument, match="time by billed"):
            opened(source, tmp_path / "l", "admitted", budget=BUDGET)


def test_the_first_column_that_was_noted_counts(tmp_path: Path) -> None:
    """Two processes that settle the column at once: what comes later into the chain does not."""
    from dalenius.tables import window_column

    account = dp.Ledger(tmp_path / "l").open("hand", unit=WEEKS, budget=BUDGET)
    really, calls = window_column.time_of, []

    def late(asked: Any) -> str | None:
        calls.append(asked)
        if len(calls) == 1:
            window_column.settle_time(dp.Ledger(tmp_path / "l").account("hand"), "billed")
            return None
        return really(asked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_column, "time_of", late)
        with pytest.raises(InvalidArgument, match="time by billed"):
            window_column.settle_time(account, "admitted")
    assert time_of(account) == "billed"


def test_two_accounts_of_frames_may_have_windows_by_the_same_column(tmp_path: Path) -> None:
    for name in ("wards", "labs"):
        made = opened(DATA, tmp_path / "l", "admitted", budget=BUDGET, account=name)
        assert made.sql(COUNT, epsilon=1)


def test_units_without_windows_have_no_column(tmp_path: Path) -> None:
    patient = dp.Unit("patient", column="patient")
    made = opened(DATA, tmp_path / "l", None, unit=patient, budget=BUDGET)
    made.sql(COUNT, epsilon=1)
    assert [entry.event for entry in made.account.entries()] == ["open", "reserve", "commit"]
    assert made.account.terms.source is None and time_of(made.account) is None
