"""DuckDB's words: its own engine needs none, but with these it tries what the other engines run."""

from __future__ import annotations

from collections.abc import Sequence

from dalenius.tables.engines import hashing
from dalenius.tables.engines.bounding.words import Words
from dalenius.tables.engines.hashing import Role


class DuckdbWords(Words):
    """See `Words`."""

    def whole(self, sql: str) -> str:
        """See `Words`."""
        return f"CAST({sql} AS BIGINT)"

    def wide(self, sql: str) -> str:
        """See `Words`."""
        return f"CAST({sql} AS HUGEINT)"

    def total(self, sql: str, over: str = "") -> str:
        """See `Words`."""
        return f"SUM({sql}){over}"

    def quotient(self, above: str, below: str) -> str:
        """See `Words`."""
        return f"({above} // {below})"

    def octaves(self, sql: str) -> str:
        """See `Words`: the binary digits of x − 1."""
        return f"LENGTH(LTRIM(BIN({sql} - 1), '0'))"

    def exponent(self, sql: str) -> str:
        """See `Words`."""
        bits = f"CAST(CAST({sql} AS DOUBLE) AS BIT)::VARCHAR"
        return f"(CAST(CAST(substr({bits}, 2, 11) AS BIT) AS INTEGER) - 1023)"

    def real(self, sql: str) -> str:
        """See `Words`."""
        return f"CASE WHEN NOT isnan({sql}) THEN {sql} END"

    def exclusive_or(self, first: str, second: str) -> str:
        """See `Words`."""
        return f"xor({first}, {second})"

    def shifted(self, sql: str, by: int) -> str:
        """See `Words`."""
        return f"({sql} >> {by})"

    def low(self, sql: str, bits: int) -> str:
        """See `Words`."""
        return f"({sql} & {(1 << bits) - 1})"

    def digest(self, salt: bytes, role: Role, spellings: Sequence[str]) -> str:
        """See `Words`."""
        return f"CAST({hashing.digest(salt, role, list(spellings))} AS BIGINT)"

    def spelled(self, sql: str, kind: str) -> str:
        """See `Words`."""
        return hashing.spelled(sql, kind)

    def key(self, sql: str, kind: str) -> str:
        """See `Words`."""
        return sql
