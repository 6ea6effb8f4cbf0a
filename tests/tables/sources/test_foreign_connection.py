"""Nothing of a connection that somebody hands in changes what a question means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest
from duckdb import sqltypes

import dalenius as dp
from dalenius.errors import InvalidArgument
from dalenius.tables.bounds import Bounds
from dalenius.tables.sources.foreign_connection import SETTINGS

PATIENT = dp.Unit("patient", column="patient")
QUESTION = """
    SELECT ward, COUNT(*) AS n, SUM(cost) AS s, AVG(abs(cost) / 2 + 1) AS a, COUNT(DISTINCT upper(ward)) AS d
    FROM visits WHERE cost / 2 >= 0 AND length(ward) = 1 AND year(day) = 2024 GROUP BY ward
"""

NEAR = {"n": 8, "s": 60, "a": 0.15, "d": 0.9}
"""How near to each other two answers are: over ten deviations of their noise, less than a macro would do."""


def connected() -> Any:
    made = duckdb.connect(":memory:")
    made.execute(
        "CREATE TABLE visits AS SELECT i % 40 AS patient, ['A', 'B'][1 + i % 2] AS ward, i % 7 AS cost, "
        "DATE '2024-01-01' + CAST(i % 90 AS INTEGER) AS day FROM range(400) AS made (i)"
    )
    return made


def answered(source: Any, folder: Path) -> dict[str, Any]:
    budget = dp.Budget(epsilon=10**4, delta=1e-3)
    options: Any = {"ranges": {"cost": (0, 8)}, "categories": {"ward": ["A", "B"]}}
    visits = dp.table(
        source, table="visits", unit=PATIENT, budget=budget, ledger=folder / "l", name="visits", **options
    )
    release = visits.sql(QUESTION, epsilon=4000, bounds=Bounds(rows=10, pairs=2))
    visits.close()
    return {name: pytest.approx([float(x) for x in release[name]], abs=least) for name, least in NEAR.items()}


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return all(list(first[name].expected) == second[name] for name in NEAR)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return answered(connected(), tmp_path_factory.mktemp("plain"))


def builtins() -> list[tuple[str, str, int]]:
    """Every function that DuckDB has built in, with how many parameters it takes."""
    listed = duckdb.connect(":memory:").execute(
        "SELECT function_name, min(function_type), max(len(parameters)) FROM duckdb_functions() "
        "WHERE internal GROUP BY 1 ORDER BY 1"
    )
    return listed.fetchall()


def test_macros_named_as_all_functions_of_duckdb_change_nothing(
    tmp_path: Path, plain: dict[str, Any]
) -> None:
    source, made = connected(), 0
    for name, kind, most in builtins():
        quoted, rest = '"' + name.replace('"', '""') + '"', "0"
        rest = "TABLE SELECT 0 AS table_name" if "table" in kind else "0"
        for count in range(most + 1) if "table" not in kind else [0]:
            words = ", ".join(f"p{i}" for i in range(count))
            try:
                source.execute(f"CREATE MACRO {quoted}({words}) AS {rest}")
                made += 1
                break
            except duckdb.Error:
                continue
    assert made > 500
    assert source.execute("SELECT abs()").fetchall() == [(0,)]
    assert same(answered(source, tmp_path), plain)


@pytest.mark.parametrize(
    "macro",
    ["sum(x) AS 0", "count(x) AS 0", "abs(x) AS 0", '"+"(x, y) AS 0', '"/"(x, y) AS 0', "upper(x) AS 'z'",
     "length(x) AS 0", "year(x) AS 0", "decode(x) AS 'z'", "encode(x) AS 'z'", "isnan(x) AS true",
     "trunc(x) AS 0", "hash(x) AS 0", "sha256(x) AS 'z'", "current_database() AS 'z'", "min(x) AS 0",
     "current_schema() AS 'z'", "duckdb_columns() AS TABLE SELECT 1", "duckdb_settings() AS TABLE SELECT 1",
     "duckdb_databases() AS TABLE SELECT 1", "row_number() AS 0", "range(x) AS TABLE SELECT 1",
     '">="(x, y) AS false', '"//"(x, y) AS 0', "date_part(x, y) AS 0", "nullif(x, y) AS NULL"],
)  # fmt: skip
def test_a_macro_changes_nothing(macro: str, tmp_path: Path, plain: dict[str, Any]) -> None:
    source = connected()
    source.execute(f"CREATE MACRO {macro}")
    assert same(answered(source, tmp_path), plain)


@pytest.mark.parametrize(
    "said",
    ["SET GLOBAL integer_division = true", "SET GLOBAL default_collation = 'NOCASE'",
     "SET GLOBAL ieee_floating_point_ops = false", "SET GLOBAL default_null_order = 'nulls_first'",
     "SET GLOBAL default_order = 'DESC'", "SET GLOBAL old_implicit_casting = true",
     "SET GLOBAL error_on_division_by_zero = false", "SET GLOBAL arrow_large_buffer_size = true",
     "SET search_path = 'main'", "CREATE SCHEMA other; USE other",
     "CREATE VIEW wards AS SELECT DISTINCT ward FROM visits", "CREATE TYPE patient AS ENUM ('a')",
     "CREATE TEMP MACRO sum(x) AS 0"],
)  # fmt: skip
def test_a_setting_changes_nothing(said: str, tmp_path: Path, plain: dict[str, Any]) -> None:
    source = connected()
    source.execute(said)
    before = source.execute("SELECT name, value FROM duckdb_settings() ORDER BY 1").fetchall()
    assert same(answered(source, tmp_path), plain)
    assert source.execute("SELECT name, value FROM duckdb_settings() ORDER BY 1").fetchall() == before


def test_all_settings_are_known() -> None:
    known = {name for (name,) in duckdb.connect().execute("SELECT name FROM duckdb_settings()").fetchall()}
    assert known >= set(SETTINGS)


def test_a_view_of_the_connection_has_its_own_macros(tmp_path: Path, plain: dict[str, Any]) -> None:
    """It is data as their owner defines them."""
    source = connected()
    source.execute("ALTER TABLE visits RENAME TO stored")
    source.execute("CREATE MACRO twice(x) AS 2 * x")
    source.execute("CREATE VIEW visits AS SELECT patient, ward, twice(cost) // 2 AS cost, day FROM stored")
    assert same(answered(source, tmp_path), plain)


def test_a_python_function_with_a_name_of_duckdb_is_refused(tmp_path: Path, plain: dict[str, Any]) -> None:
    source = connected()
    source.create_function("isnan", lambda x: True, [sqltypes.BIGINT], sqltypes.BOOLEAN)
    with pytest.raises(InvalidArgument, match="called isnan"):
        answered(source, tmp_path)
    source = connected()
    source.create_function("my_own", lambda x: x, [sqltypes.BIGINT], sqltypes.BIGINT)
    assert same(answered(source, tmp_path), plain)


def test_frames_beside_a_connection_are_found(tmp_path: Path) -> None:
    source = connected()
    source.execute("CREATE MACRO decode(x) AS 'z'")
    wards = pyarrow.table({"ward": ["A", "B"], "floor": [1, 2]})
    visits = dp.table(
        source, table="visits", unit=PATIENT, budget=dp.Budget(100, 1e-6), ledger=tmp_path / "l",
        public={"wards": wards}, name="visits",
    )  # fmt: skip
    asked = "SELECT floor, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor"
    assert visits.sql(asked, epsilon=10).columns["floor"] == (1, 2)
