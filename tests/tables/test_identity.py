"""The same data have one account in a ledger and are not public as well, whatever they are called."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument

PATIENT = dp.Unit("patient", column="patient")
BUDGET = dp.Budget(epsilon=10, delta=1e-6)
COUNT = "SELECT COUNT(*) AS n FROM visits"
DATA = pyarrow.table({"patient": [i % 50 for i in range(200)], "ward": ["ABC"[i % 3] for i in range(200)]})
WARDS = pyarrow.table({"ward": ["A", "B", "C"], "floor": [1, 2, 3]})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with visits, by several names, and wards."""
    here = tmp_path / "data"
    here.mkdir()
    pyarrow.parquet.write_table(DATA, here / "visits.parquet")
    pyarrow.parquet.write_table(WARDS, here / "wards.parquet")
    pyarrow.csv.write_csv(DATA, here / "visits.csv")
    (here / "soft.parquet").symlink_to(here / "visits.parquet")
    os.link(here / "visits.parquet", here / "hard.parquet")
    os.link(here / "visits.csv", here / "hard.csv")
    (tmp_path / "other").symlink_to(here, target_is_directory=True)
    (here / "sub").mkdir()
    (here / "sub" / "soft.parquet").symlink_to(here / "hard.parquet")
    with duckdb.connect(str(here / "hospital.duckdb")) as made:
        made.register("given", DATA)
        made.register("floors", WARDS)
        made.execute("CREATE TABLE visits AS FROM given; CREATE TABLE wards AS FROM floors")
    os.link(here / "hospital.duckdb", here / "clinic.duckdb")
    monkeypatch.chdir(here)
    return here


def asked(source: Any, **options: Any) -> Any:
    """A table that was charged, under an account of its own."""
    made = dp.table(
        source, **{"unit": PATIENT, "budget": BUDGET, "name": "visits", "ledger": "all.ledger"} | options
    )
    made.sql(COUNT, epsilon=1)
    return made


NAMES = [
    "visit[s].parquet", "visits.parque?", "visits*.parquet", "[v]isits.parquet", "?isits.parquet",
    "vis*s.parquet", "./visit[s].parquet", "../data/visit[s].parquet", "../other/visit[s].parquet",
    "../*/visits.parquet", "**/visits.parquet", "../**/hard.parquet", "*.parquet", "[!w]*.parquet",
    "soft.parquet", "sof[t].parquet", "hard.parquet", "har?.parquet", "sub/soft.parquet", "sub/*.parquet",
    "../other/visits.parquet", "../other/hard.parquet", "../data/../data/visits.parquet",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("absolute", [False, True])
def test_a_file_has_no_second_account_by_another_name(name: str, absolute: bool, folder: Path) -> None:
    source = os.path.join(folder, name) if absolute else name
    if "*.parquet" in name and len({path.name for path in folder.glob("*.parquet")} - {"wards.parquet"}) > 3:
        pytest.fail("The folder has other files.")
    (folder / "wards.parquet").unlink()
    asked("visits.parquet", account="first")
    with pytest.raises(InvalidArgument, match="already"):
        asked(source, account="second")
    assert [account.name for account in dp.Ledger("all.ledger").accounts()] == ["first"]
    assert asked(Path(source), account=dp.Ledger("all.ledger").account("first"), budget=None, ledger=None)


@pytest.mark.parametrize("name", NAMES)
def test_nor_has_a_file_whose_pattern_has_an_account(name: str, folder: Path) -> None:
    (folder / "wards.parquet").unlink()
    asked(name, account="first")
    for second in ("visits.parquet", "hard.parquet", "*.parquet", str(folder / "visit[s].parquet")):
        with pytest.raises(InvalidArgument, match="already"):
            asked(second, account="second")
    assert asked(name, account="first")


def test_a_pattern_is_found_again_when_it_has_more_files(folder: Path) -> None:
    asked("visits*.parquet")
    pyarrow.parquet.write_table(DATA, folder / "visits-2.parquet")
    assert asked("./visits*.parquet") and asked(str(folder / "visits*.parquet"))
    (account,) = dp.Ledger("all.ledger").accounts()
    assert account.terms.source == "visits*.parquet"


def test_two_that_wait_for_their_first_charge_have_one_account(folder: Path) -> None:
    tables = [
        dp.table(source, unit=PATIENT, budget=BUDGET, name="visits", ledger="all.ledger", account=account)
        for source, account in (("visits.parquet", "first"), ("visit[s].parquet", "second"))
    ]
    tables[0].sql(COUNT, epsilon=1)
    with pytest.raises(InvalidArgument, match="already"):
        tables[1].sql(COUNT, epsilon=1)


@pytest.mark.parametrize("source", ["visit[s].parquet", "visit[[]s].parquet", "v*s?.parquet"])
@pytest.mark.parametrize("how", ["private", "public"])
def test_a_file_whose_name_would_be_taken_for_a_pattern_is_refused(
    source: str, how: str, folder: Path
) -> None:
    pyarrow.parquet.write_table(DATA, folder / "visit[s].parquet")
    with pytest.raises(InvalidArgument, match="by which patterns are told"):
        asked(source) if how == "private" else asked("visits.parquet", public={"keys": source})


@pytest.mark.parametrize("other", ["clinic.duckdb", "hospital.duckdb", "connection", "linked connection"])
def test_a_database_has_one_account(other: str, folder: Path) -> None:
    asked("hospital.duckdb", table="visits", account="first").close()
    source: Any = other
    if "connection" in other:
        source = duckdb.connect("clinic.duckdb" if "linked" in other else "hospital.duckdb", read_only=True)
    with pytest.raises(InvalidArgument, match="already"):
        asked(source, table="visits", account="second")


def test_a_copy_is_other_data(folder: Path) -> None:
    """Nothing is compared by what it holds: that would tell of private data."""
    (folder / "copy.parquet").write_bytes((folder / "visits.parquet").read_bytes())
    asked("visits.parquet", account="first")
    assert asked("copy.parquet", account="second")


# Public tables.

FRAME = DATA.to_pandas()
POLARS = polars.from_arrow(DATA)
SHARING: dict[str, tuple[Any, Callable[[], Any]]] = {
    "the frame itself": (FRAME, lambda: FRAME),
    "its rows": (FRAME, lambda: FRAME[:]),
    "some rows": (FRAME, lambda: FRAME.iloc[20:60]),
    "a column": (FRAME, lambda: FRAME[["patient"]]),
    "renamed": (FRAME, lambda: FRAME.rename(columns={"patient": "p"})),
    "a shallow copy": (FRAME, lambda: FRAME.copy(deep=False)),
    "the Arrow table": (DATA, lambda: DATA),
    "an Arrow slice": (DATA, lambda: DATA.slice(30)),
    "an Arrow column": (DATA, lambda: DATA.select(["ward"])),
    "another Arrow table of it": (DATA, lambda: pyarrow.table({"w": DATA["ward"]})),
    "polars of Arrow": (DATA, lambda: polars.from_arrow(DATA).select("patient")),
    "pandas of Arrow": (DATA, lambda: DATA.select(["ward"]).to_pandas(types_mapper=pandas.ArrowDtype)),
    "polars itself": (POLARS, lambda: POLARS),
    "a polars clone": (POLARS, lambda: POLARS.clone()),
    "a polars column": (POLARS, lambda: POLARS.select(pid="patient")),
}


@pytest.mark.parametrize("kind", SHARING)
def test_a_frame_is_not_public_as_well(kind: str, folder: Path) -> None:
    private, public = SHARING[kind]
    with pytest.raises(InvalidArgument, match="same data"):
        asked(private, public={"keys": public()})
    assert not (folder / "all.ledger").exists()
    assert asked(private, public={"wards": WARDS})


@pytest.mark.parametrize("name", NAMES)
def test_a_private_file_is_not_public_as_well(name: str, folder: Path) -> None:
    with pytest.raises(InvalidArgument, match="same data"):
        asked("visits.parquet", public={"keys": name})
    with pytest.raises(InvalidArgument, match="same data"):
        asked(DATA, private={"more": "hard.parquet"}, public={"keys": str(folder / name)})
    assert not (folder / "all.ledger").exists()


def test_what_everybody_may_see_is_public(folder: Path) -> None:
    joined = "SELECT floor, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor"
    for source in ("visits.parquet", "visits.csv", DATA):
        made = asked(source, public={"wards": "wards.parquet"}, account=str(type(source)) + str(source)[:9])
        assert made.sql(joined, epsilon=1).columns["floor"] == (1, 2, 3)
    made = asked("hospital.duckdb", table="visits", public=["wards"])
    assert made.sql(joined, epsilon=1).columns["floor"] == (1, 2, 3)


@pytest.mark.parametrize("name", ["visits.csv", "hard.csv", "*.csv", "har[d].csv"])
def test_a_private_csv_is_not_public_as_well(name: str, folder: Path) -> None:
    with pytest.raises(InvalidArgument, match="same data"):
        asked("visits.csv", public={"keys": name})


@pytest.mark.parametrize(
    "options",
    [
        {"name": "v", "table": "visits", "public": ["visits"]},
        {"name": "v", "table": "visits", "public": ["VISITS"]},
        {"table": "visits", "private": ["wards"], "name": "v", "public": ["visits"]},
    ],
    ids=range(3),
)
@pytest.mark.parametrize("connected", [False, True])
def test_a_private_table_of_a_database_is_not_public_as_well(
    options: dict[str, Any], connected: bool, folder: Path
) -> None:
    source: Any = duckdb.connect("hospital.duckdb", read_only=True) if connected else "hospital.duckdb"
    with pytest.raises(InvalidArgument, match="same data"):
        dp.table(source, unit=PATIENT, budget=BUDGET, ledger="all.ledger", **options)


def test_a_file_of_a_database_is_not_public_as_well(folder: Path) -> None:
    with duckdb.connect("one.duckdb") as made:
        made.register("given", DATA)
        made.execute("CREATE TABLE visits AS FROM given")
    os.link("one.duckdb", "same.duckdb")
    with pytest.raises(InvalidArgument):
        asked("one.duckdb", public={"keys": "same.duckdb"})
