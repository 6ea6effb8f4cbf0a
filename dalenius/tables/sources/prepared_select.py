"""Whether a SELECT takes rows of one table, one by one, and what its columns are in terms of that table.

A stored copy of a table can stand in for it only in such queries: a row of the answer is then a row of the
table, and what is stored beside that row holds for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    Columns = dict[str, exp.Expr]

SHAPE = "dalenius_shape"
"""The column of a stored copy that holds Σ n(g)² and Σ n(g) of the row's unit."""
_ALLOWED = {"expressions", "from_", "where"}


@dataclass(frozen=True)
class Flat:
    """A SELECT that filters and computes, row by row."""

    table: str
    columns: Mapping[str, str]
    """SQL of each column, over the table."""
    shaped: str
    """The same SELECT with the column `SHAPE` besides."""
    filtered: bool
    """Whether rows of the table may be left out."""

    def expressions(self, prefix: str, count: int) -> tuple[str, ...]:
        """Of the columns `prefix_0`…"""
        return tuple(self.columns[f"{prefix}_{i}"] for i in range(count))


@lru_cache(maxsize=256)
def flatten(sql: str) -> Flat | None:
    """None where rows are joined, grouped, numbered or otherwise not those of one table."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(sql, dialect="duckdb")
    if not isinstance(tree, exp.Select) or tree.find(*_heavy()):
        return None
    found = _walk(tree)
    if found is None:
        return None
    table, columns = found
    said = {name: column.sql(dialect="duckdb") for name, column in columns.items()}
    filtered = tree.find(exp.Where) is not None
    return Flat(table, said, tree.sql(dialect="duckdb"), filtered)


def _heavy() -> tuple[type[exp.Expr], ...]:
    from sqlglot import exp

    return (exp.Join, exp.AggFunc, exp.Window, exp.Unnest, exp.Explode, exp.SetOperation, exp.Exists)


def _walk(select: exp.Select) -> tuple[str, Columns] | None:
    """The table, and each column over it; `select` gets the column `SHAPE` on the way."""
    from sqlglot import exp

    if {name for name, value in select.args.items() if value} - _ALLOWED or not select.args.get("from_"):
        return None
    source = select.args["from_"].this
    inner = [node for node in select.find_all(exp.Subquery) if node.parent_select is select]
    if any(node is not source for node in inner):
        return None
    found = _source(source)
    columns = None if found is None else _columns(select, found[1])
    if found is None or columns is None:
        return None
    if not any(isinstance(shown, exp.Star) for shown in select.expressions):
        select.append("expressions", exp.column(SHAPE))
    return found[0], columns


def _source(source: exp.Expr) -> tuple[str, Columns | None] | None:
    from sqlglot import exp

    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
        return _walk(source.this)
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and not source.db:
        return source.name, None
    return None


def _columns(select: exp.Select, below: Columns | None) -> Columns | None:
    """By name in small letters, as DuckDB does not tell case apart; None where one is not clear."""
    from sqlglot import exp

    columns: Columns = {}
    source = select.args["from_"].this.alias_or_name.lower()
    for shown in select.expressions:
        if isinstance(shown, exp.Star) and below is not None:
            found: Columns = dict(below)
        elif isinstance(shown, exp.Alias | exp.Column) and _clear(shown, source, below):
            found = {shown.alias_or_name.lower(): _over_table(shown.unalias(), below)}
        else:
            return None
        if columns.keys() & found.keys():
            return None
        columns |= found
    return columns


def _clear(shown: exp.Expr, source: str, below: Columns | None) -> bool:
    """Whether its columns are those of the source, and not fields within one of them."""
    from sqlglot import exp

    found = list(shown.find_all(exp.Column))
    named = all(column.table.lower() in ("", source) and not column.db for column in found)
    return named and (below is None or all(column.name.lower() in below for column in found))


def _over_table(expression: exp.Expr, below: Columns | None) -> exp.Expr:
    from sqlglot import exp

    def replaced(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if below is None:
            return exp.column(node.name, quoted=True)
        return below[node.name.lower()].copy()

    return expression.copy().transform(replaced)
