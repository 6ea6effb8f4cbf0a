"""What bounding says in Spark's SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from dalenius.tables.engines.bounding.words import Words
from dalenius.tables.engines.hashing import Role
from dalenius.tables.rows import KeyPart
from dalenius.tables.schema import as_known

_DECIMAL = "DECIMAL(38, 0)"
_PART = 22
"""Binary digits of a part of a number."""
_EXPONENTS, _FRACTION = 11, 52
"""Binary digits of a DOUBLE."""


class SparkWords(Words):
    """Spark's SQL. Sums are of decimals, or of two halves that 64 bits hold."""

    hint: ClassVar[str] = " /*+ BROADCAST(a) */"

    def whole(self, sql: str) -> str:
        """See `Words`."""
        return f"CAST({sql} AS BIGINT)"

    def wide(self, sql: str) -> str:
        """See `Words`."""
        return f"CAST({sql} AS {_DECIMAL})"

    def cut(self, sql: str) -> str:
        """See `Words`: a cast does so."""
        return self.whole(sql)

    def matched(self, first: Sequence[str], second: Sequence[str], kinds: Sequence[str]) -> str:
        """See `Words`: texts by a number, which Spark finds in half the time, and then told to be the same.

        Behind COALESCE, so that Spark neither joins by that too nor tests keys for NULL once more.
        """
        if any(kind != "text" for kind in kinds):
            return super().matched(first, second, kinds)
        same = [f"{one} = {other}" for one, other in zip(first, second, strict=True)]
        number = f"xxhash64({', '.join(first)}) = xxhash64({', '.join(second)})"
        return f"{number} AND COALESCE({' AND '.join(same)}, FALSE)"

    def listed(self, columns: Sequence[tuple[str, Sequence[KeyPart]]]) -> str:
        """See `Words`: as one text, and not as an expression for each cell, all of which Spark would plan."""
        rows = list(zip(*(map(_written, values) for _, values in columns), strict=True))
        held = f"explode(from_json({self.dialect.text(json.dumps(rows))}, 'ARRAY<ARRAY<STRING>>'))"
        types = [self.dialect.types[as_known(kind)] for kind, _ in columns]
        shown = ", ".join(f"CAST(each[{i}] AS {name}) AS c{i}" for i, name in enumerate(types))
        return f"(SELECT {shown} FROM (SELECT {held} AS each))"

    def total(self, sql: str, over: str = "") -> str:
        """See `Words`: of each number in three parts, of which 2^40 add up to less than 2^63."""
        if _DECIMAL in sql:
            return f"SUM({sql}){over}"
        shifts = [0, _PART, 2 * _PART]
        parts = [f"(shiftright({sql}, {shift}) & {(1 << _PART) - 1}L)" for shift in shifts[:-1]]
        parts.append(f"shiftright({sql}, {shifts[-1]})")
        sums = [
            f"CAST(SUM({part}){over} AS DECIMAL(20, 0)) * {1 << shift}BD"
            for part, shift in zip(parts, shifts, strict=True)
        ]
        return f"({' + '.join(sums)})"

    def quotient(self, above: str, below: str) -> str:
        """See `Words`: DIV has no more than 64 bits, and / is rounded unless it comes out even."""
        if _DECIMAL not in above:
            return f"({above} DIV {below})"
        return f"CAST(({above} - {above} % {below}) / {below} AS {_DECIMAL})"

    def octaves(self, sql: str) -> str:
        """See `Words`: the binary digits of x − 1."""
        return f"CASE WHEN {sql} = 1 THEN 0 ELSE length(bin({sql} - 1)) END"

    def exponent(self, sql: str) -> str:
        """See `Words`: a logarithm, put right by comparing with powers of two, which are exact."""
        near = f"floor(log2(abs({sql})))"
        power = f"pow(2D, CAST({near} AS DOUBLE))"
        below, above = f"{power} > abs({sql})", f"{power} * 2D <= abs({sql})"
        return f"({near} + CASE WHEN {below} THEN -1 WHEN {above} THEN 1 ELSE 0 END)"

    def real(self, sql: str) -> str:
        """See `Words`."""
        return f"nanvl({sql}, CAST(NULL AS DOUBLE))"

    def exclusive_or(self, first: str, second: str) -> str:
        """See `Words`."""
        return f"({first} ^ {second})"

    def shifted(self, sql: str, by: int) -> str:
        """See `Words`."""
        return f"shiftright({sql}, {by})"

    def low(self, sql: str, bits: int) -> str:
        """See `Words`."""
        return f"({sql} & {(1 << bits) - 1}L)"

    def digest(self, salt: bytes, role: Role, spellings: Sequence[str]) -> str:
        """See `Words`."""
        said = ", ".join([f"'{salt.hex()}{role}'", *spellings])
        return f"CAST(conv(left(sha2(CAST(concat({said}) AS BINARY), 256), 8), 16, 10) AS BIGINT)"

    def spelled(self, sql: str, kind: str) -> str:
        """See `Words`."""
        letter, text = _text(sql, kind)
        return (
            f"CASE WHEN {sql} IS NULL THEN 'n0:' ELSE "
            f"concat('{letter}', octet_length({text}), ':', {text}) END"
        )

    def key(self, sql: str, kind: str) -> str:
        """See `Words`."""
        return sql


def _written(value: KeyPart) -> str:
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def _text(sql: str, kind: str) -> tuple[str, str]:
    if kind == "boolean":
        return "b", f"CASE WHEN {sql} THEN '1' ELSE '0' END"
    if kind == "integer":
        return "i", f"CAST({sql} AS STRING)"
    if kind == "real":
        return "r", bits(f"CAST({sql} AS DOUBLE)")
    if kind == "date":
        return "d", f"CAST(unix_date({sql}) AS STRING)"
    if kind == "moment":
        return "m", f"CAST(unix_micros(CAST({sql} AS TIMESTAMP)) AS STRING)"
    return "t", f"CAST({sql} AS STRING)"


def bits(sql: str) -> str:
    """The 64 binary digits of a DOUBLE, with one NaN and no −0: out of its hexadecimal form, 0x1.8p-3."""
    said = f"format_string('%a', abs({sql}))"
    fraction = f"conv(rpad(split_part(split_part({said}, 'p', 1), '.', 2), {_FRACTION // 4}, '0'), 16, 2)"
    power = f"CAST(split_part({said}, 'p', 2) AS BIGINT) + 1023L"
    power = f"CASE WHEN startswith({said}, '0x0') THEN 0L ELSE {power} END"
    finite = (
        f"concat(CASE WHEN {sql} < 0 THEN '1' ELSE '0' END, lpad(bin({power}), {_EXPONENTS}, '0'), "
        f"lpad({fraction}, {_FRACTION}, '0'))"
    )
    ones, zeros = "1" * _EXPONENTS, "0" * (_FRACTION - 1)
    return (
        f"CASE WHEN isnan({sql}) THEN '0{ones}1{zeros}' WHEN {sql} = double('inf') THEN '0{ones}0{zeros}' "
        f"WHEN {sql} = double('-inf') THEN '1{ones}0{zeros}' ELSE {finite} END"
    )
