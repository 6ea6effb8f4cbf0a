"""Which relation of the database a name means, and whether it can be read: asked before anything is charged.

named(cursor, "ward.visits")        as it is spelled, or else in lower case
named(cursor, '"Old.One"."Visits"')     quoted as in SQL
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dalenius.errors import InvalidArgument
from dalenius.tables.engines.postgres_types import COLUMNS, Column, Relation, quoted
from dalenius.tables.schema import is_unicode
from dalenius.tables.sources.servers import parts

if TYPE_CHECKING:
    from psycopg import Cursor

OLDEST = 13
_NAMED = """
SELECT n.nspname::text, c.relname::text, pg_catalog.has_schema_privilege(n.oid, 'USAGE'),
       EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND c.relname = {0} AND {1}
"""
_FIND = """
SELECT n.nspname::text, c.relname::text, c.oid::bigint,
       c.relkind IN ('r', 'm') AND NOT c.relhassubclass AND NOT c.relrowsecurity AND c.relpersistence <> 't'
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass({0})
"""


def named(cursor: Cursor[Any], table: str) -> Relation:
    """The relation that a name means on the session's own path; refused where there is none to read."""
    if not is_unicode(table) or "\0" in table:
        raise InvalidArgument(
            "The name of a table has a character that no name has.", remedy="Check how it is spelled."
        )
    for schema, name in _ways(cursor, table):
        where = "pg_catalog.pg_table_is_visible(c.oid)"
        if schema is not None:
            where = f"n.nspname = {_literal(cursor, schema)}"
        row = cursor.execute(_NAMED.format(_literal(cursor, name), where), prepare=False).fetchone()
        if row is not None:
            return _readable(cursor, table, *row)
    raise InvalidArgument(
        f"There is no table {table} in the database.",
        remedy="Check its name; one of another schema is written as ward.visits, and one with dots or quotes "
        'in its name as in SQL, "Old.One"."Visits".',
    )


def relation(cursor: Cursor[Any], name: str) -> Relation | None:
    """The relation of a name in SQL as it is now, with the columns that may be read."""
    row = cursor.execute(_FIND.format(_literal(cursor, name)), prepare=False).fetchone()
    if row is None:
        return None
    schema, own, oid, lasting = row
    listed = cursor.execute(COLUMNS.format(oid), prepare=False).fetchall()
    return Relation(schema, own, oid, lasting, tuple(Column(*each) for each in listed))


def check_reading(cursor: Cursor[Any], name: str, found: Relation) -> None:
    """Refuse what cannot be read at all, such as a view of tables that its role may not read. No row is."""
    try:
        cursor.execute(f"SELECT FROM {found.sql} LIMIT 0", prepare=False)
    except Exception:
        raise InvalidArgument(
            f"The table {name} cannot be read; nothing was charged.",
            remedy=f"See in psql, as the same role, why SELECT FROM {found.sql} LIMIT 0 fails.",
        ) from None


def check_server(cursor: Cursor[Any]) -> None:
    """Refuse servers that are too old, and databases whose texts are not Unicode."""
    if cursor.connection.info.server_version < OLDEST * 10_000:
        raise InvalidArgument(
            f"The server is older than PostgreSQL {OLDEST}.", remedy="Use one of a later version."
        )
    row = cursor.execute("SHOW server_encoding", prepare=False).fetchone()
    if row is None or row[0] != "UTF8":
        raise InvalidArgument(
            "The database does not keep its texts in UTF-8, by which they are told apart here.",
            remedy="Use a database whose encoding is UTF8.",
        )


def _ways(cursor: Cursor[Any], table: str) -> Iterator[tuple[str | None, str]]:
    """What a name may mean: a schema, or none, and a name in it."""
    split = parts(table)
    if len(split) == 3 and split[0] == cursor.connection.info.dbname:
        split = split[1:]
    ways: list[tuple[str | None, str]] = [(None, table)]
    if len(split) <= 2:
        ways.insert(0, (split[0] if split[1:] else None, split[-1]))
    yield from ways
    if '"' not in table:
        yield from ((schema and schema.lower(), name.lower()) for schema, name in ways)


def _readable(cursor: Cursor[Any], table: str, schema: str, name: str, seen: bool, columns: bool) -> Relation:
    sql = f"{quoted(schema)}.{quoted(name)}"
    if not columns:
        raise InvalidArgument(f"The table {table} has no columns.", remedy="Name another.")
    found = relation(cursor, sql) if seen else None
    if found is None or not found.columns:
        usage = "" if seen else f"GRANT USAGE ON SCHEMA {quoted(schema)} and "
        raise InvalidArgument(
            f"The role may not read the table {table}.",
            remedy=f"Let it, by {usage}GRANT SELECT ON {sql} to that role.",
        )
    check_reading(cursor, table, found)
    return found


def _literal(cursor: Cursor[Any], text: str) -> str:
    """A text in SQL: no cursor takes parameters in the way of all others."""
    from psycopg.sql import Literal

    return Literal(text).as_string(cursor)
