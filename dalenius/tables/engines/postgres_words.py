"""What bounding says in PostgreSQL's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import ClassVar

from dalenius.tables.engines.bounding.words import Words
from dalenius.tables.engines.hashing import Role
from dalenius.tables.language.dialects.postgres import Postgres
from dalenius.tables.language.dialects.postgres_dates import MICROSECONDS
from dalenius.tables.rows import KeyPart
from dalenius.tables.schema import as_known

_NAN = "01111111111110" + "0" * 50
"""The digits of the one NaN that is spelled."""
_ABOVE_POWERS = f"{{{','.join(str((1 << power) + 1) for power in range(63))}}}"


class PostgresWords(Words):
    """PostgreSQL's SQL. Whole numbers are bigint, wide ones numeric, and so are sums."""

    barrier: ClassVar[str] = " OFFSET 0"

    def __init__(self) -> None:
        super().__init__(Postgres())

    def whole(self, sql: str) -> str:
        """See `Words`."""
        return f"CAST({sql} AS bigint)"

    def wide(self, sql: str) -> str:
        """See `Words`."""
        return f"CAST({sql} AS numeric)"

    def once(self, columns: Sequence[str]) -> str:
        """See `Words`: what is known to be unique is put into a table of hashes, and rows are not sorted."""
        return f" DISTINCT ON ({', '.join(columns)})"

    def listed(self, columns: Sequence[tuple[str, Sequence[KeyPart]]]) -> str:
        """See `Words`: as arrays, which take a twentieth of the memory that VALUES do."""
        shown = [
            f"CAST({_array(values)} AS {self.dialect.types[as_known(kind)]}[])" for kind, values in columns
        ]
        return f"unnest({', '.join(shown)})"

    def total(self, sql: str, over: str = "") -> str:
        """See `Words`."""
        return f"SUM({sql}){over}"

    def short_total(self, sql: str, over: str = "") -> str:
        """See `Words`: sums of integer are bigint, and faster than those of bigint, which are numeric."""
        return f"SUM(CAST({sql} AS integer)){over}"

    def says(self, text: str) -> bool:
        """See `Words`: no text has the character 0."""
        return "\0" not in text and super().says(text)

    def quotient(self, above: str, below: str) -> str:
        """See `Words`."""
        return f"div({above}, {below})" if "AS numeric)" in above + below else f"(({above}) / ({below}))"

    def octaves(self, sql: str) -> str:
        """See `Words`: how many powers of two are below it."""
        return f"width_bucket({self.whole(sql)}, CAST('{_ABOVE_POWERS}' AS bigint[]))"

    def exponent(self, sql: str) -> str:
        """See `Words`."""
        form = f"float8send(abs({sql}))"
        return f"((get_byte({form}, 0) << 4) + (get_byte({form}, 1) >> 4) - 1023)"

    def real(self, sql: str) -> str:
        """See `Words`."""
        return f"NULLIF({sql}, 'NaN')"

    def exclusive_or(self, first: str, second: str) -> str:
        """See `Words`."""
        return f"({first} # {second})"

    def shifted(self, sql: str, by: int) -> str:
        """See `Words`."""
        return f"(({sql}) >> {by})"

    def low(self, sql: str, bits: int) -> str:
        """See `Words`."""
        return f"(({sql}) & CAST({(1 << bits) - 1} AS bigint))"

    def digest(self, salt: bytes, role: Role, spellings: Sequence[str]) -> str:
        """See `Words`."""
        said = " || ".join([f"'{salt.hex()}{role}'", *(f"({spelling})" for spelling in spellings)])
        digits = f"substr(encode(sha256(convert_to({said}, 'UTF8')), 'hex'), 1, 8)"
        return f"CAST(CAST('x' || {digits} AS bit(32)) AS bigint)"

    def spelled(self, sql: str, kind: str) -> str:
        """See `Words`. Dates and moments without end, which no file has, are spelled by their words."""
        letter, text = self._text(sql, kind)
        return (
            f"CASE WHEN {sql} IS NULL THEN 'n0:' ELSE '{letter}' || octet_length({text}) || ':' || {text} END"
        )

    def key(self, sql: str, kind: str) -> str:
        """See `Words`."""
        return self.dialect.read(sql, "real") if kind == "real" else sql

    def _text(self, sql: str, kind: str) -> tuple[str, str]:
        if kind == "boolean":
            return "b", f"CASE WHEN {sql} THEN '1' ELSE '0' END"
        if kind == "integer":
            return "i", f"CAST(trim_scale({sql}) AS text)"
        if kind == "real":
            form = f"float8send({self.dialect.read(sql, 'real')})"
            digits = f"CAST(CAST('x' || encode({form}, 'hex') AS bit(64)) AS text)"
            return "r", f"CASE WHEN {sql} = 'NaN' THEN '{_NAN}' ELSE {digits} END"
        if kind == "date":
            days = f"CAST({sql} - DATE '1970-01-01' AS text)"
            return "d", f"CASE WHEN isfinite({sql}) THEN {days} ELSE CAST({sql} AS text) END"
        if kind == "moment":
            count = f"CAST({MICROSECONDS.format(sql)} AS text)"
            return "m", f"CASE WHEN isfinite({sql}) THEN {count} ELSE CAST({sql} AS text) END"
        return "t", f"CAST({sql} AS text)"


def _array(values: Sequence[KeyPart]) -> str:
    held = ",".join(map(_element, values)).replace("'", "''")
    return f"'{{{held}}}'"


def _element(value: KeyPart) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return f'"{value}"' if isinstance(value, date) else str(value)
