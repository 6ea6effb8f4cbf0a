"""Whole numbers for units, keys and values: what numpy sorts and counts in their place.

Two values have one code exactly where SQL says that they are the same: NULL is NULL, NaN is NaN, −0 is 0, and
text is its bytes, whatever collation it has: one that makes a code of two spellings would make one unit of
two, or show a spelling that depends on everyone's rows. No hash stands for a value. Codes differ from run to
run, and nothing that leaves does.

    Offset      an integer column whose values lie close together: value − least
    Listed      all else: a temporary table of the distinct values and their numbers, joined with the rows
                (DuckDB keeps dictionaries of Parquet through such a join, which makes it cheap)

A code has a `size`, which its numbers are below; and in SQL, where rows are `r`, a `number`, a `join` that
goes behind FROM, and a `condition` that says which rows have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.tables.engines import hashing
from dalenius.tables.engines.hashing import Digests, Role
from dalenius.tables.engines.types import INTEGERS, key_of, kind_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Codes = NDArray[np.intp]
SPAN = 1 << 26
"""How far apart the values of an `Offset` may be: tables of that length are kept by unit."""


@dataclass(frozen=True)
class Offset:
    """Codes by subtraction."""

    column: str
    least: int
    size: int

    @property
    def number(self) -> str:
        """SQL for a row's code."""
        return (
            f"CAST({self.column} - CAST('{self.least}' AS HUGEINT) AS UBIGINT)" if self._far else self._near
        )

    @property
    def _far(self) -> bool:
        return max(abs(self.least), abs(self.least + self.size)) >= 2**62

    @property
    def _near(self) -> str:
        return f"CAST(CAST({self.column} AS BIGINT) - {self.least} AS UBIGINT)"

    @property
    def condition(self) -> str:
        """Rows that were not there when the ends were looked up are nobody's."""
        return f"{self.column} BETWEEN {self.least} AND {self.least + self.size - 1}"

    join: str = ""

    def digests(self, cursor: DuckDBPyConnection, salt: bytes, role: Role, codes: Codes) -> Digests:
        """Those of the values that have these codes."""
        value = f"code + CAST('{self.least}' AS HUGEINT)"
        cursor.register("dalenius_codes", {"code": codes.astype(np.int64)})
        try:
            sql = hashing.digest(salt, role, [hashing.spelled(f"({value})", "integer")])
            found = cursor.execute(f"SELECT code, {sql} AS digest FROM dalenius_codes").fetchnumpy()
        finally:
            cursor.unregister("dalenius_codes")
        return _at(codes, np.asarray(found["code"]), np.asarray(found["digest"]))


@dataclass(frozen=True)
class Listed:
    """Codes by a table."""

    table: str
    columns: tuple[str, ...]
    """SQL of the columns in the rows; `c0`… in the table."""
    kinds: tuple[str, ...]
    size: int
    outer: bool = False
    """Whether rows whose value is NULL stay, with the code `size`."""

    @property
    def number(self) -> str:
        """SQL for a row's code."""
        return f"coalesce({self.table}.code, {self.size})" if self.outer else f"{self.table}.code"

    @property
    def join(self) -> str:
        """SQL that goes behind FROM."""
        if not self.columns:
            return f" CROSS JOIN {self.table}"
        same = " AND ".join(
            f"({column}) IS NOT DISTINCT FROM {self.table}.c{i}" for i, column in enumerate(self.columns)
        )
        return f"{' LEFT' if self.outer else ''} JOIN {self.table} ON {same}"

    condition: str = ""

    def digests(self, cursor: DuckDBPyConnection, salt: bytes, role: Role, codes: Codes) -> Digests:
        """Those of the values that have these codes."""
        spellings = [hashing.spelled(f"c{i}", kind) for i, kind in enumerate(self.kinds)]
        sql = f"SELECT code, {hashing.digest(salt, role, spellings)} AS digest FROM {self.table}"
        found = cursor.execute(sql).fetchnumpy()
        return _at(codes, np.asarray(found["code"]), np.asarray(found["digest"]))

    @staticmethod
    def make(
        cursor: DuckDBPyConnection,
        table: str,
        source: str,
        columns: Sequence[str],
        kinds: Sequence[str],
        *,
        condition: str = "",
        outer: bool = False,
    ) -> Listed:
        """Read the distinct values of some columns of the rows."""
        named = ", ".join(f"{column} AS c{i}" for i, column in enumerate(columns)) or "1 AS c0"
        where = f" WHERE {condition}" if condition else ""
        number = "CAST(row_number() OVER () - 1 AS UBIGINT) AS code"
        distinct = f"SELECT DISTINCT {named} FROM {source} AS r{where}"
        cursor.execute(f"CREATE TEMP TABLE {table} AS SELECT {number}, * FROM ({distinct})")
        ((size,),) = cursor.execute(f"SELECT count(*) FROM {table}").fetchall()
        return Listed(table, tuple(columns), tuple(kinds), size, outer)


Code = Offset | Listed


def unit_code(cursor: DuckDBPyConnection, source: str, types: Sequence[str]) -> Code:
    """Codes of units whose columns have these types: by subtraction where that will do."""
    condition = " AND ".join(f"r.unit_{i} IS NOT NULL" for i in range(len(types)))
    if len(types) == 1 and types[0] in INTEGERS:
        ends = cursor.execute(f"SELECT min(unit_0), max(unit_0) FROM {source}").fetchall()
        least, most = ends[0]
        if least is None or most - least < SPAN:
            return Offset("r.unit_0", least or 0, 1 if least is None else most - least + 1)
    columns = [_unit(f"r.unit_{i}", name) for i, name in enumerate(types)]
    kinds = [kind_of(name) for name in types]
    return Listed.make(cursor, "dalenius_units", source, columns, kinds, condition=condition)


def exact(column: str, type_name: str) -> str:
    """SQL for a column whose texts are told apart by their bytes; all else as it is."""
    return f'({column} COLLATE "binary")' if type_name == "VARCHAR" else column


def exact_key(column: str, type_name: str) -> str:
    """SQL for a grouping column as a value that a `Key` holds, told apart by its bytes where it is text."""
    plain = key_of(column, type_name)
    return exact(plain, "VARCHAR" if kind_of(type_name) in ("text", "other") else type_name)


def _unit(column: str, type_name: str) -> str:
    if kind_of(type_name) == "other" and "VARCHAR" in type_name:
        raise InvalidArgument(
            "A unit cannot be told by a nested value with texts in it.",
            remedy="Name the unit by a column of texts or numbers.",
        )
    return exact(column, type_name)


def _at(codes: Codes, found: NDArray[np.int64], digests: Digests) -> Digests:
    table = np.zeros(int(max(found.max(initial=0), codes.max(initial=0))) + 1, np.uint32)
    table[found] = digests
    return table[codes]
