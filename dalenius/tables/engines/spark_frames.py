"""Tables of Spark: a DataFrame, or the name of a table; how their types are called; what is refused.

A question is answered in several steps, and all of them must see the same rows. So a DataFrame whose rows may
be others each time they are computed is refused: one with rand(), the time of day, a number by position, a
LIMIT or a sample, or a stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dalenius.errors import InvalidArgument
from dalenius.tables.sources.kinds import check_columns

_KINDS = {
    "boolean": "boolean",
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "real",
    "double": "real",
    "date": "date",
    "timestamp": "moment",
    "timestamp_ntz": "moment",
}
_CHANGING = {
    "CurrentDate", "CurrentTimestamp", "Now", "LocalTimestamp", "CurrentTime", "CurrentBatchTimestamp",
    "First", "Last", "AnyValue", "GlobalLimit", "LocalLimit", "LimitAll", "Offset", "Tail", "Sample",
}  # fmt: skip
"""Names of what Spark takes for a function of the rows, although it is not, or only of their order."""

_SUBQUERIES = {"ScalarSubquery", "ListQuery", "Exists", "LateralSubquery"}


@dataclass(frozen=True)
class Frame:
    """A DataFrame."""

    data: Any

    def read(self) -> Any:
        """The DataFrame itself."""
        return self.data


@dataclass(frozen=True)
class Named:
    """A table or view that a session knows; it is looked up for each question."""

    session: Any
    name: str

    def read(self) -> Any:
        """The table as it is now."""
        return self.session.table(self.name)


def columns_of(data: Any) -> Mapping[str, str]:
    """The names of the columns, each with its type in the words of `Engine.columns`."""
    names = [field.name for field in data.schema.fields]
    check_columns(names)
    if len({name.lower() for name in names}) < len(names):
        raise InvalidArgument(
            "Two columns have the same name.", remedy="Rename one of them, with withColumnRenamed or toDF."
        )
    return {field.name: kind_of(field.dataType.simpleString()) for field in data.schema.fields}


def kind_of(type_name: str) -> str:
    """What `Engine.columns` calls one of Spark's types; decimals without places are whole numbers."""
    plain = type_name.partition(" collate")[0]
    if plain == "string" or plain.startswith(("char(", "varchar(")):
        return "text"
    if plain.startswith("decimal("):
        return "integer" if plain.endswith(",0)") else "real"
    return _KINDS.get(plain, "other")


def check_frame(data: Any) -> None:
    """Refuse what may have other rows each time it is computed. No data is read."""
    plan = data._jdf.queryExecution().analyzed()
    if data.isStreaming or not plan.deterministic() or not _CHANGING.isdisjoint(_names(plan)):
        raise InvalidArgument(
            "The DataFrame may have other rows each time it is computed: it is a stream, or has a random "
            "number, the time of day, a number by position, a LIMIT or a sample in it.",
            remedy="Write it to a table first, and open that table.",
        )


def _names(plan: Any) -> Iterator[str]:
    """The classes of a plan's nodes and of their expressions, those of subqueries included."""
    waiting = [(plan, True)]
    while waiting:
        node, is_plan = waiting.pop()
        name = str(node.getClass().getSimpleName())
        yield name
        waiting += [(child, is_plan) for child in _each(node.children())]
        if is_plan:
            waiting += [(expression, False) for expression in _each(node.expressions())]
        elif name in _SUBQUERIES:
            waiting.append((node.plan(), True))


def _each(items: Any) -> list[Any]:
    return [items.apply(i) for i in range(items.size())]
