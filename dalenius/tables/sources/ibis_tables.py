"""Tables of Ibis: the table of a database, or the rows in memory, that one stands for.

Of a database that has an engine here the table itself is opened, by the connection that Ibis has. What Ibis
would compute from tables (a filter, a join) is refused: a row of it may belong to several units, and Dalenius
would not know. The same is asked in SQL, or in Python, where it does.
"""

from __future__ import annotations

from typing import Any

from dalenius.errors import InvalidArgument
from dalenius.tables.sources.kinds import quoted

_KNOWN = ("duckdb", "postgres", "pyspark")


def is_ibis(source: object) -> bool:
    """Whether a source is a table of Ibis; nothing is imported to know it."""
    return type(source).__module__.startswith("ibis.expr.")


def behind(source: Any) -> tuple[Any, str | None]:
    """What a table of Ibis stands for: a source of another kind, and which of its tables."""
    operation = source.op()
    kind = type(operation).__name__
    if kind == "InMemoryTable":
        return operation.data.to_pyarrow(operation.schema), None
    if kind != "DatabaseTable":
        raise InvalidArgument(
            "Ibis would compute this from other tables; whose rows it has is not known then.",
            remedy="Open the table itself, con.table(…), and ask for the rest in SQL or in Python.",
        )
    backend, place = operation.source, operation.namespace
    if backend.name not in _KNOWN:
        raise InvalidArgument(
            f"Tables of {backend.name} are not read where they are.",
            remedy="Use DuckDB, PostgreSQL or Spark, or export the table to Parquet.",
        )
    names = [each for each in (place.catalog, place.database) if each]
    if backend.name == "duckdb" and names:
        raise InvalidArgument(
            "A table in another schema of DuckDB is not looked for.",
            remedy="Connect to the file itself, or make a view of the table in the main schema.",
        )
    if backend.name == "postgres":
        return backend.con, ".".join(quoted(name) for name in (*names, operation.name))
    where = backend._session if backend.name == "pyspark" else backend.con
    return where, ".".join([*names, operation.name])
