"""PostgreSQL's types in the words of `Engine.columns`, and how the engine shows a table to its queries.

A column is shown in one of a few types, whatever its own is, by what loses nothing: whole numbers as bigint
or numeric, real ones as float8 or numeric, texts as text compared by its bytes (uuid and enumerated types
too; char(n) without the blanks at its end), a time stamp with a zone as its moment in UTC. Domains are what
they are made of. Of all else (times, intervals, arrays, ranges, bytes, json, composites…) it is known only
whether a value is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_KINDS = {
    "bool": "boolean", "int2": "integer", "int4": "integer", "int8": "integer", "numeric": "real",
    "float4": "real", "float8": "real", "text": "text", "varchar": "text", "bpchar": "text", "name": "text",
    "citext": "text", "uuid": "text", "date": "date", "timestamp": "moment", "timestamptz": "moment",
}  # fmt: skip
_SHOWN = {
    "bool": "CAST({0} AS boolean)",
    "numeric": "CAST({0} AS numeric)",
    "float4": "CAST({0} AS float8)",
    "float8": "CAST({0} AS float8)",
    "date": "CAST({0} AS date)",
    "timestamp": "CAST({0} AS timestamp)",
    "timestamptz": "timezone('UTC', CAST({0} AS timestamptz))",
    "int2": "CAST({0} AS bigint)",
    "int4": "CAST({0} AS bigint)",
    "int8": "CAST({0} AS bigint)",
}
_TEXT = '(CAST({0} AS text) COLLATE "C")'
_OIDS = {
    16: "boolean", 20: "integer", 21: "integer", 23: "integer", 700: "real", 701: "real", 25: "text",
    1043: "text", 1082: "date", 1114: "moment",
}  # fmt: skip
BIGINT, NUMERIC = 20, 1700
COLUMNS = """
WITH RECURSIVE base AS (
    SELECT attnum, attname, atttypid AS type, atttypmod AS modifier FROM pg_catalog.pg_attribute
    WHERE attrelid = {0} AND attnum > 0 AND NOT attisdropped
      AND pg_catalog.has_column_privilege(attrelid, attnum, 'SELECT')
  UNION ALL
    SELECT attnum, attname, typbasetype, CASE WHEN typtypmod >= 0 THEN typtypmod ELSE modifier END
    FROM base JOIN pg_catalog.pg_type ON pg_type.oid = type WHERE typtype = 'd')
SELECT attname::text, typname::text, typtype::text, modifier, pg_type.oid::bigint
FROM base JOIN pg_catalog.pg_type ON pg_type.oid = type WHERE typtype <> 'd' ORDER BY attnum
"""
"""The columns of a relation that may be read, domains made what they are of."""


@dataclass(frozen=True)
class Column:
    """A column as the catalogue has it."""

    name: str
    type: str
    sort: str
    """The catalogue's letter: e for enumerated, b for those that are built in or like them."""
    modifier: int
    oid: int

    @property
    def kind(self) -> str:
        """What `Engine.columns` calls it: numbers without places are whole."""
        if self.sort == "e":
            return "text"
        if self.type == "numeric" and self.modifier >= 4 and self._places <= 0:
            return "integer"
        return _KINDS.get(self.type, "other") if self.sort == "b" else "other"

    @property
    def _places(self) -> int:
        return (((self.modifier - 4) & 0x7FF) ^ 0x400) - 0x400

    def shown(self) -> str:
        """The column in SQL as queries see it, under its own name."""
        name = quoted(self.name)
        if self.kind == "other":
            return name
        return f"{_SHOWN.get(self.type, _TEXT).format(name)} AS {name}"


@dataclass(frozen=True)
class Relation:
    """A table or view in the database, and its columns when it was opened."""

    schema: str
    name: str
    oid: int
    lasting: bool
    """Whether it is a table whose rows only a transaction of this server changes."""
    columns: tuple[Column, ...]

    @property
    def sql(self) -> str:
        """Its name in SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def shown(self) -> str:
        """A SELECT of its columns as queries see them."""
        return (
            f"SELECT {', '.join(column.shown() for column in self.columns) or '1 AS present'} FROM {self.sql}"
        )


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def kinds_of(types: Mapping[str, int]) -> Mapping[str, str]:
    """The kinds of a query's columns by name, of the numbers that their types have."""
    return {name: "integer" if oid == NUMERIC else _OIDS.get(oid, "other") for name, oid in types.items()}
