"""A connection of DuckDB that somebody hands in: nothing of its own changes what the engine's SQL means.

Macros, types and tables of its databases are not on the search path of our cursors, on which temporary tables
are and what DuckDB has built in: so every name that the engine prints means what DuckDB has built in,
whichever names there are. Settings that change what SQL gives are set to DuckDB's own for each cursor.
Functions written in Python are kept among those that are built in, where one may be preferred for some types:
a connection on which one has the name of a function of DuckDB is refused.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SETTINGS = (
    "arrow_large_buffer_size", "arrow_lossless_conversion", "arrow_output_list_view",
    "arrow_output_version", "binary_as_string", "default_collation", "default_null_order",
    "default_order", "disable_timestamptz_casts", "error_on_division_by_zero", "ieee_floating_point_ops",
    "integer_division", "legacy_disable_null_type", "max_expression_depth",
    "order_by_non_integer_literal", "preserve_identifier_case", "regex_match_operator_semantics",
    "scalar_subquery_error_on_multiple_rows",
)  # fmt: skip
"""Those that change what a statement gives, or in which form."""
_PATH = "SET search_path = 'temp.main'"
_SETTINGS = f"SELECT name, value FROM duckdb_settings() WHERE name IN {SETTINGS}"
_FUNCTIONS = (
    "SELECT DISTINCT function_name, function_type, parameter_types::VARCHAR "
    "FROM system.main.duckdb_functions() WHERE database_name = 'system'"
)
_LOADED = "SELECT extension_name FROM system.main.duckdb_extensions() WHERE loaded"


def check_functions(connection: DuckDBPyConnection) -> None:
    """Refuse a connection with functions of its own that have names of DuckDB's."""
    import duckdb

    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"}) as plain:
        for (name,) in connection.execute(_LOADED).fetchall():
            # One that is built in cannot be loaded, and is there.
            with suppress(duckdb.Error):
                plain.execute(f"LOAD {name}")
        known = set(plain.execute(_FUNCTIONS).fetchall())
    own = [one for one in connection.execute(_FUNCTIONS).fetchall() if one not in known]
    taken = {str(name) for name, _, _ in known}
    if clash := sorted({str(name) for name, _, _ in own} & taken):
        raise InvalidArgument(
            f"The connection has a function of its own called {clash[0]}, as one of DuckDB is: what is asked "
            "would not mean the same.",
            remedy="Pass a connection without it; removing it would remove that of DuckDB as well.",
        )


def settle(cursor: DuckDBPyConnection) -> None:
    """Let all names and settings of a cursor mean what they do in DuckDB itself."""
    from duckdb import Error

    cursor.execute(_PATH)
    for name, value in cursor.execute(_SETTINGS).fetchall():
        if value != _own_settings()[name]:
            cursor.execute(f"SET SESSION {name} = '{_own_settings()[name]}'")
    # Not listed, and gone from some versions.
    with suppress(Error):
        cursor.execute("SET SESSION old_implicit_casting = false")


@cache
def _own_settings() -> dict[str, str]:
    """DuckDB's own settings."""
    import duckdb

    with duckdb.connect(":memory:") as plain:
        return dict(plain.execute(_SETTINGS).fetchall())
