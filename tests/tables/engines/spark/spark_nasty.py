"""The worst values of every type, in Spark: row by row what `language.nasty` has in DuckDB."""

from __future__ import annotations

from typing import Any

_MANY, _FEW = (f"CAST('{sign}{'9' * 38}' AS DECIMAL(38, 0))" for sign in ("", "-"))
_MOST, _LEAST = (f"CAST('{sign}{'9' * 28}.{'9' * 10}' AS DECIMAL(38, 10))" for sign in ("", "-"))
_LATE, _EARLY = (f"date_add(DATE '2024-01-01', {days})" for days in (10**9, -(10**9)))
_LONG_AGO, _FAR_OFF = (f"timestamp_micros({micros}L)" for micros in (-(2**63), 2**63 - 1))
_LAST = "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
COLUMNS: dict[str, tuple[str, ...]] = {
    "i BIGINT": (
        "NULL", "0", "-9223372036854775808L", "9223372036854775807L", "-1", "1", "7", "2147483648", "-3",
        "100000",
    ),
    "h DECIMAL(38, 0)": (
        "NULL", "0", _FEW, _MANY, "18446744073709551615", "1", "-7", "4294967296", "3", "12",
    ),
    "x DOUBLE": (
        "NULL", "0", "'-inf'", "'inf'", "'nan'", "'-0.0'", "1.7976931348623157e308D", "'5e-324'", "-2.5D",
        "1e19D",
    ),
    "d DECIMAL(38, 10)": (
        "NULL", "0", _LEAST, _MOST, "0.0000000001BD", "1", "-0.5BD", "2.5BD", "3.5BD", "12",
    ),
    "t STRING": (
        "NULL", "''", "'NaN'", "'99999-01-01'", "'2024-02-30'", "'9223372036854775808'", "'İß🙂é%_\\\\'",
        "'2024-01-01 00:00:00 Europe/Nowhere'", "' 12 '", "repeat('a', 70000)",
    ),
    "e STRING": ("NULL", "''", "'sad'", "'1e999'", "'sad'", "''", "''", "'sad'", "'sad'", "'sad'"),
    "b BOOLEAN": ("NULL", "TRUE", "FALSE", "TRUE", "NULL", "FALSE", "TRUE", "TRUE", "FALSE", "TRUE"),
    "day DATE": (
        "NULL", "DATE '0001-01-01'", _EARLY, _LATE, "DATE '9999-12-31' + 1", "DATE '9999-12-31'",
        "DATE '2024-02-29'", "DATE '0001-01-01' - 1", "DATE '0001-01-02'", "DATE '1582-10-10'",
    ),
    "m TIMESTAMP_NTZ": (
        "NULL", "TIMESTAMP_NTZ '0001-01-01 00:00:00'", _LONG_AGO, _FAR_OFF, f"{_LAST} + INTERVAL '1' HOUR",
        _LAST, "TIMESTAMP_NTZ '2024-02-29 12:34:56.789'",
        "TIMESTAMP_NTZ '0001-01-01 00:00:00' - INTERVAL '1' DAY", "TIMESTAMP_NTZ '1969-12-31 23:59:59'",
        "TIMESTAMP_NTZ '1582-10-10 00:00:00'",
    ),
    "z TIMESTAMP": (
        "NULL", "TIMESTAMP '0001-01-01 00:00:00Z'", _LONG_AGO, _FAR_OFF,
        "TIMESTAMP '9999-12-31 00:00:00Z' + INTERVAL '1' DAY", "TIMESTAMP '9999-12-31 00:00:00Z'",
        "TIMESTAMP '2024-02-29 23:59:59.999Z'", "TIMESTAMP '1970-01-01 00:00:00Z'",
        "TIMESTAMP '1969-12-31 00:00:00Z'", "TIMESTAMP '1582-10-10 00:00:00Z'",
    ),
    "blob BINARY": ("NULL", "X''", "X'00FF'", "X'61'", "X'65'", "X'78'", "X'79'", "X'7a'", "X'71'", "X'71'"),
    "span INTERVAL DAY": (
        "NULL", *(f"INTERVAL '{days}' DAY" for days in (0, -106751991, 106751991, 1, 30, -1, 5)), "NULL",
        "NULL",
    ),
}  # fmt: skip


def nasty(spark: Any) -> Any:
    """The table as a DataFrame, with the number of each row."""
    lines = []
    for row in range(10):
        cells = (f"CAST({cells[row]} AS {name.partition(' ')[2]})" for name, cells in COLUMNS.items())
        named = (f"{cell} AS {name.partition(' ')[0]}" for cell, name in zip(cells, COLUMNS, strict=True))
        lines.append(f"SELECT {row} AS number, {', '.join(named)}")
    return spark.sql(" UNION ALL ".join(lines))
