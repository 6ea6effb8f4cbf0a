"""How engines write what a question reads: one module for each, and `dialect_of` to find it by name."""

from __future__ import annotations

from importlib import import_module

from dalenius.tables.language.dialects.dialect import Dialect

_KNOWN = {"duckdb": "Duckdb", "postgres": "Postgres", "spark": "Spark"}


def dialect_of(name: str) -> Dialect:
    """The dialect that sqlglot has the same name for."""
    found: Dialect = getattr(import_module(f"{__name__}.{name}"), _KNOWN[name])()
    return found
