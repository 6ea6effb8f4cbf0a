"""`Askable`: how a question begins in Python, `table.where(…)`, `table.group_by(…)` and the like."""

from __future__ import annotations

from abc import ABC, abstractmethod

from dalenius.tables.builder import Agg, Query


class Askable(ABC):
    """Something with rows to ask about. Every method begins a `Query`, which has the same ones and more."""

    @property
    @abstractmethod
    def query(self) -> Query:
        """A question in the making, about all rows."""

    def where(self, condition: str) -> Query:
        """A question about the rows for which a condition is true."""
        return self.query.where(condition)

    def select(self, *columns: str, **expressions: str) -> Query:
        """A question about these columns, or expressions, only."""
        return self.query.select(*columns, **expressions)

    def with_columns(self, **expressions: str) -> Query:
        """A question about more columns, which are made of those there are."""
        return self.query.with_columns(**expressions)

    def group_by(self, *keys: str) -> Query:
        """A question about groups by these columns or expressions."""
        return self.query.group_by(*keys)

    def agg(self, *aggregates: Agg) -> Query:
        """A question about all rows together."""
        return self.query.agg(*aggregates)
