"""The worst values of `language.nasty`, line by line, as PostgreSQL and Spark have them."""

from __future__ import annotations

POSTGRES = """
SET timezone = 'UTC';
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
_MANY, _FEW = (f"CAST('{sign}{'9' * 38}' AS DECIMAL(38, 0))" for sign in ("", "-"))
_MOST, _LEAST = (f"CAST('{sign}{'9' * 28}.{'9' * 10}' AS DECIMAL(38, 10))" for sign in ("", "-"))
_LATE, _EARLY = (f"date_add(DATE '2024-01-01', {days})" for days in (10**9, -(10**9)))
_LONG_AGO, _FAR_OFF = (f"timestamp_micros({micros}L)" for micros in (-(2**63), 2**63 - 1))
_LAST = "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
_COLUMNS: dict[str, tuple[str, ...]] = {
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
SPARK_TYPES = {"line": "INT"} | {name.partition(" ")[0]: name.partition(" ")[2] for name in _COLUMNS}
SPARK = [
    [
        f"{line}",
        *(f"CAST({cells[line]} AS {name.partition(' ')[2]})" for name, cells in _COLUMNS.items()),
    ]
    for line in range(10)
]
