"""The names that are to be seen at some place of a query, and the columns they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language.expressions import Expression
from dalenius.tables.schema import folded


@dataclass(frozen=True)
class Entry:
    """A column that a query may name: by itself unless `hidden`, and after its table's name."""

    table: str
    name: str
    expression: Expression
    hidden: bool = False


@dataclass(frozen=True)
class Scope:
    """The columns that are to be seen at some place of a query."""

    entries: tuple[Entry, ...]
    marks: Mapping[exp.Expr, Expression] = field(default_factory=dict)
    """What IN and EXISTS of subqueries, by their nodes, have been read as."""
    padded: frozenset[int] = frozenset()
    """Places of the columns that are NULL in rows of a public table without a match, which are left out."""

    def find(self, name: str, table: str = "") -> Expression | None:
        """The column of that name; None where there is none."""
        found = [
            entry
            for entry in self.entries
            if folded(entry.name) == folded(name)
            and (folded(entry.table) == folded(table) if table else not entry.hidden)
        ]
        if len({entry.expression for entry in found}) > 1:
            written = {f"{entry.table}.{entry.name}" for entry in found if entry.table}
            remedy = f"Write {' or '.join(sorted(written))}." if len(written) > 1 else "Rename one with AS."
            raise InvalidArgument(f"There are two columns {name}.", remedy=remedy)
        return found[0].expression if found else None

    def require(self, name: str, table: str = "") -> Expression:
        """The column of that name; refused where there is none."""
        found = self.find(name, table)
        if found is None:
            known = ", ".join(dict.fromkeys(entry.name for entry in self.entries))
            shown = f"{table}.{name}" if table else name
            raise InvalidArgument(f"There is no column {shown}.", remedy=f"Name one of these: {known}.")
        return found
