"""`PostgresRunner`: SQL in one transaction, with the one temporary table that it has where the role may.

The table is made first. Then the transaction is set to read only, which leaves temporary tables writable and
nothing else, and the shapes of units are put into it. It is gone with the transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dalenius.tables.engines.postgres_server import READ_ONLY, read

if TYPE_CHECKING:
    from psycopg import Cursor

_MAY = """
SELECT has_database_privilege(current_database(), 'TEMP') AND NOT pg_is_in_recovery()
       AND current_setting('transaction_read_only') = 'off', pg_current_snapshot()::text
"""


class PostgresRunner:
    """See `Runner`. `before` and `after` are snapshots of the server, if only our table is between them."""

    def __init__(self, cursor: Cursor[Any]) -> None:
        self._cursor, self._table = cursor, ""
        self.before = self.after = ""

    def prepare(self, source: str, units: int) -> None:
        """Make the table for the shapes of units of these rows, if it may be, and write no more elsewhere."""
        may, self.before = self._cursor.execute(_MAY, prepare=False).fetchall()[0]
        if may:
            self._table = f"pg_temp.dalenius_{uuid4().hex}"
            columns = [f"unit_{i} AS u{i}" for i in range(units)]
            columns += [f"0::bigint AS {name}" for name in ("squares", "held", "groups")]
            made = f"SELECT {', '.join(columns)} FROM {source} AS r WITH NO DATA"
            name = self._table.removeprefix("pg_temp.")
            self._cursor.execute(f"CREATE TEMP TABLE {name} ON COMMIT DROP AS {made}", prepare=False)
            ((said,),) = self._cursor.execute("SELECT pg_current_xact_id()::text", prepare=False).fetchall()
            number = int(said)
            self.after = f"{number + 1}:{number + 1}:" if self.before == f"{number}:{number}:" else ""
        self._cursor.execute(READ_ONLY, prepare=False)

    def fetch(self, sql: str) -> Sequence[Sequence[Any]]:
        """See `Runner`."""
        return read(lambda: self._cursor.execute(sql, prepare=False).fetchall())

    def store(self, sql: str) -> str:
        """See `Runner`: the first time in the table, if there is one."""
        table, self._table = self._table, ""
        if not table:
            return f"({sql})"
        return read(lambda: self._stored(table, sql))

    def _stored(self, table: str, sql: str) -> str:
        # Sorted once, cells and units both come in order; there are too many cells to be hashed in memory.
        self._cursor.execute("SELECT set_config('enable_hashagg', 'off', true)", prepare=False)
        self._cursor.execute(f"INSERT INTO {table} {sql}", prepare=False)
        self._cursor.execute("SELECT set_config('enable_hashagg', 'on', true)", prepare=False)
        return table
