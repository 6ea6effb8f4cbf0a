"""The worst values of `language.nasty` that PostgreSQL has, too, and what reads them in both engines."""

from __future__ import annotations

from typing import Any

import psycopg
from language.nasty import COLUMNS, connection

from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.language.expressions import Expression

DUCKDB, POSTGRES = dialect_of("duckdb"), dialect_of("postgres")
NAMES = [f"c{i}" for i in range(len(COLUMNS))]
_DATA = """
CREATE TYPE mood AS ENUM ('', 'sad', '1e999');
CREATE TABLE nasty (line int, i bigint, h numeric(39), x float8, d numeric(38, 10), t text, e mood, b boolean,
                    day date, m timestamp, z timestamptz, blob bytea, span interval);
INSERT INTO nasty VALUES
 (0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 (1, 0, 0, 0, 0, '', '', TRUE, '0001-01-01', '0001-01-01', '0001-01-01', '', INTERVAL '0 day'),
 (2, -9223372036854775808, -170141183460469231731687303715884105727, '-inf',
  -9999999999999999999999999999.9999999999, 'NaN', 'sad', FALSE, '-infinity', '-infinity', '-infinity',
  '\\x00ff', INTERVAL '-2147483648 months'),
 (3, 9223372036854775807, 170141183460469231731687303715884105727, 'inf',
  9999999999999999999999999999.9999999999, '99999-01-01', '1e999', TRUE, 'infinity', 'infinity', 'infinity',
  'abc', INTERVAL '178000000 years'),
 (4, -1, 18446744073709551615, 'nan', 0.0000000001, '2024-02-30', 'sad', NULL, '5874897-12-31',
  '294276-12-31 23:59:59.999999', '290000-01-01', 'e', INTERVAL '1 month'),
 (5, 1, 1, '-0.0', 1, '9223372036854775808', '', FALSE, '9999-12-31', '9999-12-31 23:59:59.999999',
  '9999-12-31', 'x', INTERVAL '30 days'),
 (6, 7, -7, 1.7976931348623157e308, -0.5, 'İß🙂é%_\\', '', TRUE, '2024-02-29', '2024-02-29 12:34:56.789',
  '2024-02-29 23:59:59.999', 'y', INTERVAL '-1 microsecond'),
 (7, 2147483648, 4294967296, 5e-324, 2.5, '2024-01-01 00:00:00 Europe/Nowhere', 'sad', TRUE,
  '4713-01-01 BC', '0044-03-15 BC', '1970-01-01', 'z', INTERVAL '5 days'),
 (8, -3, 3, -2.5, 3.5, ' 12 ', 'sad', FALSE, '0001-01-02', '1969-12-31 23:59:59', '1969-12-31', 'q', NULL),
 (9, 100000, 12, 1e19, 12, repeat('a', 70000), 'sad', TRUE, '1582-10-10', '1582-10-10', '1582-10-10',
  'q', NULL);
"""
SETTINGS = "SET timezone = 'UTC'; SET search_path = pg_catalog; SET extra_float_digits = 1; SET jit = off"


def create(server: psycopg.Connection[Any]) -> None:
    """The table `nasty`."""
    server.execute("SET timezone = 'UTC'")
    server.execute(_DATA)


def reading(dialect: Any, *, shown: dict[str, str]) -> str:
    """The columns as relations have them."""
    return ", ".join(
        f"{dialect.read(shown.get(name, dialect.quoted(name)), type_)} AS c{i}"
        for i, (name, type_) in enumerate(COLUMNS.items())
    )


SHOWN = {"e": "CAST(e AS text)", "z": "(z AT TIME ZONE 'UTC')"}


def found_by_postgres(server: psycopg.Connection[Any], expression: Expression, suffix: str = "") -> list[Any]:
    """What PostgreSQL finds in each row."""
    sql = POSTGRES.canonical(expression, NAMES)
    source = f"SELECT line, {reading(POSTGRES, shown=SHOWN)} FROM public.nasty"
    rows = server.execute(f"SELECT {sql} {suffix} FROM ({source}) AS t ORDER BY line").fetchall()
    return [row[0] for row in rows]


def found_by_duckdb(expression: Expression) -> list[Any]:
    """What DuckDB finds in each row, in the order of the table."""
    sql = DUCKDB.canonical(expression, NAMES)
    source = f"SELECT {reading(DUCKDB, shown={})} FROM nasty"
    return [row[0] for row in connection().cursor().execute(f"SELECT {sql} FROM ({source})").fetchall()]
