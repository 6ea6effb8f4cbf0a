"""Tables of Ibis are the tables of their database; what Ibis would compute is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument

ibis = pytest.importorskip("ibis")
pyarrow = pytest.importorskip("pyarrow")
# Of Ibis itself, which calls what newer versions of DuckDB have other names for.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
UNIT, BUDGET = dp.Unit("patient", column="patient"), dp.Budget(epsilon=100, delta=1e-6)
QUERY = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def rows() -> Any:
    return pyarrow.table({"patient": list(range(400)), "ward": ["A", "B"] * 200})


def stored() -> Any:
    """A connection of Ibis to DuckDB with the table in it."""
    connection = ibis.duckdb.connect()
    connection.con.register("given", rows())
    connection.raw_sql("CREATE TABLE visits AS SELECT * FROM given")
    return connection


def asked(source: Any, folder: Path) -> dict[str, int]:
    visits = dp.table(
        source, name="visits", unit=UNIT, budget=BUDGET, ledger=folder / "a.ledger", account="a"
    )
    found = visits.sql(QUERY, epsilon=50, keys=["A", "B"])
    return dict(found.to_polars().select("ward", "n").iter_rows())


def test_a_table_of_duckdb(tmp_path: Path) -> None:
    connection = stored()
    assert asked(connection.table("visits"), tmp_path) == pytest.approx({"A": 200, "B": 200}, abs=5)


def test_a_table_in_memory(tmp_path: Path) -> None:
    assert asked(ibis.memtable(rows()), tmp_path) == pytest.approx({"A": 200, "B": 200}, abs=5)


def test_what_ibis_would_compute_is_refused(tmp_path: Path) -> None:
    table = stored().table("visits")
    for made in (table.filter(table.patient > 3), table.limit(3), table.mutate(patient=1)):
        with pytest.raises(InvalidArgument, match="whose rows"):
            asked(made, tmp_path)


def test_a_database_without_an_engine_here_is_refused(tmp_path: Path) -> None:
    connection = ibis.sqlite.connect(tmp_path / "a.sqlite")
    connection.raw_sql("CREATE TABLE visits (patient INTEGER, ward TEXT)")
    with pytest.raises(InvalidArgument, match="sqlite"):
        asked(connection.table("visits"), tmp_path)


def test_addresses_are_refused_without_repeating_them(tmp_path: Path) -> None:
    for address in ("s3://key:secret@bucket/visits.parquet", "https://me:secret@host/visits.csv"):
        with pytest.raises(InvalidArgument) as refused:
            asked(address, tmp_path)
        assert "secret" not in str(refused.value) and "engines.md" in refused.value.remedy
