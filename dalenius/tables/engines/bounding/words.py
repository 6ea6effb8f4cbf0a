"""`Words`: what bounding says in the SQL of one engine, beside what its `Dialect` says.

All of it is total on what it is given: whole numbers of 64 bits where nothing else is said, of which sums are
exact. Names of tables and columns are ours, so that nothing needs to be quoted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from dalenius.tables.engines.hashing import Role
from dalenius.tables.language.dialects.dialect import Dialect
from dalenius.tables.rows import KeyPart
from dalenius.tables.schema import as_known, is_unicode


class Words(ABC):
    """The SQL of one engine."""

    barrier: ClassVar[str] = ""
    """Put behind a subquery so that its columns are computed once, where the engine would not see to it."""
    hint: ClassVar[str] = ""
    """Put behind SELECT where rows are joined with `a`, the keys that are asked for."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    @abstractmethod
    def whole(self, sql: str) -> str:
        """A number that is whole, and within 64 bits, as BIGINT."""

    def once(self, columns: Sequence[str]) -> str:
        """Put behind SELECT where no two rows have these columns in common, if that helps the engine."""
        return ""

    def matched(self, first: Sequence[str], second: Sequence[str], kinds: Sequence[str]) -> str:
        """The condition that values of these kinds are the same, one by one, by which the engine joins."""
        return " AND ".join(f"{one} = {other}" for one, other in zip(first, second, strict=True))

    def listed(self, columns: Sequence[tuple[str, Sequence[KeyPart]]]) -> str:
        """A table of columns, of which kind and values are given, as goes behind FROM."""
        shown = [
            [self.dialect.literal(value, as_known(kind)) for value in values] for kind, values in columns
        ]
        rows = [f"({', '.join(row)})" for row in zip(*shown, strict=True)]
        return f"(VALUES {', '.join(rows)})"

    def says(self, text: str) -> bool:
        """Whether a text can be a value in the engine."""
        return is_unicode(text)

    def cut(self, sql: str) -> str:
        """A real number without what is behind its point, within 64 bits, as BIGINT."""
        return self.whole(f"TRUNC({sql})")

    @abstractmethod
    def wide(self, sql: str) -> str:
        """A whole number in a type that holds 120 bits, also through + and *."""

    @abstractmethod
    def total(self, sql: str, over: str = "") -> str:
        """The sum of whole numbers, exact, whatever their number, over a window where one is given."""

    def short_total(self, sql: str, over: str = "") -> str:
        """The same of numbers up to 2^30, as BIGINT; beyond 2^32 of them, any number."""
        return self.whole(self.total(sql, over))

    @abstractmethod
    def quotient(self, above: str, below: str) -> str:
        """⌊above / below⌋ of numbers that are not negative, of BIGINT or both `wide`; below is not 0."""

    @abstractmethod
    def octaves(self, sql: str) -> str:
        """⌈log₂ x⌉ of a whole number of at least 1."""

    @abstractmethod
    def exponent(self, sql: str) -> str:
        """⌊log₂ |x|⌋ of a real number from 2^−127 to 2^127 in size."""

    @abstractmethod
    def real(self, sql: str) -> str:
        """A real number, NULL where it is NaN."""

    @abstractmethod
    def exclusive_or(self, first: str, second: str) -> str:
        """⊕ of whole numbers below 2^32."""

    @abstractmethod
    def shifted(self, sql: str, by: int) -> str:
        """A whole number of at least 0, shifted to the right."""

    @abstractmethod
    def low(self, sql: str, bits: int) -> str:
        """The lowest bits of a whole number; of one below 0, those of its two's complement."""

    @abstractmethod
    def digest(self, salt: bytes, role: Role, spellings: Sequence[str]) -> str:
        """The digest of `hashing` of values that are spelled, as a whole number below 2^32."""

    @abstractmethod
    def spelled(self, sql: str, kind: str) -> str:
        """A value as the hash spells it; `kind` is one of `Engine.columns`."""

    @abstractmethod
    def key(self, sql: str, kind: str) -> str:
        """A grouping column as a value that a `Key` holds when it is fetched."""

    def mixed(self, sql: str) -> str:
        """F of `hashing`: a fixed one-to-one mixing of 32 bits."""
        for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
            sql = self.low(f"({self.exclusive_or(sql, self.shifted(sql, shift))} * {factor})", 32)
        return self.exclusive_or(sql, self.shifted(sql, 15))
