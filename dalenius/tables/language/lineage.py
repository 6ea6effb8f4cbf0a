"""The nodes of `relations`, made one from another: what each may do, and what is known of it afterwards.

Facts are found from the facts of the node below and the expressions of this one, and from nothing else. A
column that is defined anew has the facts of its new expression: calling it what the unit is called does not
make it the unit (OpenDP #2949), and calling the unit something else does not unmake it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.tables.language.beliefs import (
    declared,
    field_of,
    fold_field,
    is_fixed,
    over_field,
    typed_columns,
    unit_part,
    unit_types,
    united,
)
from dalenius.tables.language.expressions import (
    Call,
    Column,
    Expression,
    call,
    columns_of,
    conjuncts,
    literal,
    not_known,
)
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.relations import (
    Distinct,
    Facts,
    Field,
    Filter,
    Fold,
    JoinKind,
    JoinPublic,
    JoinUnit,
    Over,
    PerUnit,
    Project,
    PublicScan,
    Relation,
    Scan,
    UnionAll,
    Windowed,
)
from dalenius.tables.language.spans import narrowed
from dalenius.tables.schema import Private, Public

_COMPARED = ("boolean", "integer", "text", "date")
"""Types of units of which two tables have one form that tells all of them apart."""
_HEAVIEST = 2_000
_WIDEST = 5_000
"""Nodes of a query and columns of a relation, beyond which it is refused before it takes long."""


def scan(table: Private | Public) -> Scan | PublicScan:
    """All rows of a table."""
    if isinstance(table, Public):
        fields = tuple(Field(name, type_) for name, type_ in typed_columns(table))
        return PublicScan(table, Facts(fields, public=True))
    fields = tuple(declared(table, name, type_) for name, type_ in typed_columns(table))
    rows = 1 if table.units == 0 else table.rows_per_unit
    numbered = table.unit.missing == "each row"
    unit = replace(table.unit, column=None, missing="left out")
    facts = Facts(fields, False, unit_types(table), unit, rows_per_unit=rows, numbered=numbered)
    return Scan(table, facts)


def project(source: Relation, names: Sequence[str], expressions: Sequence[Expression]) -> Project:
    """New columns."""
    fields = tuple(
        field_of(source, expression, name) for name, expression in zip(names, expressions, strict=True)
    )
    return Project(source, tuple(expressions), _above(source, fields=fields))


def keep(source: Relation, condition: Expression) -> Filter:
    """The rows for which the condition is true, which says something of their columns."""
    fields = narrowed(source.facts.fields, condition)
    return Filter(source, condition, _above(source, fields=fields))


def join_public(source: Relation, other: Relation, condition: Expression, kind: JoinKind) -> JoinPublic:
    """Rows of `source` beside rows of a public relation."""
    if not other.facts.public:
        raise refuse("JOIN of private tables without the unit")
    matched = tuple(sorted(_matched(condition, len(source.facts.fields))))
    # Aggregates without keys are one row, which no row is found beside twice.
    single = isinstance(other, PerUnit) and not other.keys
    once = source.facts.each_row and not single
    if once and not matched:
        raise refuse("combining rows where each row is a unit")
    added = [
        replace(field, fixed=False, nullable=field.nullable or kind == "left") for field in other.facts.fields
    ]
    fields = (*source.facts.fields, *added)
    if kind == "inner":
        fields = narrowed(fields, condition)
    alone = isinstance(other, PerUnit) and set(matched) >= set(range(len(other.keys)))
    rows = source.facts.rows_per_unit if once or alone else None
    facts = _above(source, other, fields=fields, rows_per_unit=rows)
    return JoinPublic(source, other, condition, kind, facts, once, matched if once else ())


def join_unit(source: Relation, other: Relation, condition: Expression, kind: JoinKind) -> JoinUnit:
    """Rows of `source` beside rows of another private relation, of the same unit."""
    _check_alike(source, other)
    equated = {each: _equated(source, other, each) for each in conjuncts(condition)}
    if set(equated.values()) - {None} != source.facts.told:
        raise refuse("JOIN of private tables without the unit")
    # The hidden columns are compared in any case, and whole: a column is not, where it does not fit its type.
    rest = [each for each, part in equated.items() if part is None]
    condition = call("and", *rest) if len(rest) > 1 else next(iter(rest), literal(True))
    added = [_beside(field, kind) for field in other.facts.fields]
    rows = _product(source.facts.rows_per_unit, other.facts.rows_per_unit)
    facts = _above(source, other, fields=(*source.facts.fields, *added), rows_per_unit=rows)
    return JoinUnit(source, other, condition, kind, facts)


def union_all(sources: Sequence[Relation]) -> UnionAll:
    """The rows of all, which must have like columns."""
    first = sources[0]
    for other in sources[1:]:
        _check_alike(first, other)
    fields = tuple(
        united([source.facts.fields[i] for source in sources]) for i in range(len(first.facts.fields))
    )
    rows = _total([source.facts.rows_per_unit for source in sources])
    return UnionAll(tuple(sources), _above(*sources, fields=fields, rows_per_unit=rows))


def distinct(source: Relation) -> Distinct:
    """Each row of a unit once: the columns must tell units apart."""
    columns = [Column(i, field.type) for i, field in enumerate(source.facts.fields)]
    _check_whole_unit(source, columns, "SELECT DISTINCT without the unit")
    check_known(source, columns, "SELECT DISTINCT")
    return Distinct(source, _above(source))


def per_unit(
    source: Relation, keys: Sequence[Expression], names: Sequence[str], folds: Sequence[Fold]
) -> PerUnit:
    """Aggregates within each unit: the keys must tell units apart. Folds come without names."""
    _check_whole_unit(source, keys, "GROUP BY without the unit in a subquery")
    check_known(source, keys, "GROUP BY")
    check_known(source, _told_apart(folds), "MIN, MAX or COUNT(DISTINCT …)")
    grouped = [field_of(source, key, name) for key, name in zip(keys, names, strict=True)]
    alone = all(is_fixed(source, key) for key in keys)
    folded = [fold_field(source, fold, fixed=alone) for fold in folds]
    rows = 1 if alone and not source.facts.public else source.facts.rows_per_unit
    return PerUnit(
        source,
        tuple(keys),
        tuple(folds),
        _above(source, fields=(*grouped, *folded), rows_per_unit=rows),
    )


def windowed(source: Relation, functions: Sequence[Over]) -> Windowed:
    """Functions over rows of one unit: each partition must tell units apart."""
    for function in functions:
        _check_whole_unit(source, function.partition, "window not partitioned by the unit")
        ordered = [by for by, _, _ in function.order]
        check_known(source, [*function.partition, *ordered, *_told_apart([function])], "A window")
    added = [over_field(source, function) for function in functions]
    return Windowed(source, tuple(functions), _above(source, fields=(*source.facts.fields, *added)))


def _above(*sources: Relation, **facts: Any) -> Facts:
    """The facts of a node above others: those of the first but for what is given."""
    found = replace(sources[0].facts, weight=1 + sum(source.facts.weight for source in sources), **facts)
    if found.weight > _HEAVIEST or len(found.fields) > _WIDEST:
        raise InvalidArgument(
            "The query has too many parts or columns.",
            remedy="Use fewer subqueries, and select fewer columns.",
        )
    return found


def _check_whole_unit(source: Relation, expressions: Sequence[Expression], clause: str) -> None:
    if source.facts.public:
        return
    if source.facts.each_row:
        raise refuse("combining rows where each row is a unit")
    if {unit_part(source, each) for each in expressions} >= source.facts.told:
        return
    raise refuse(clause)


def check_known(source: Relation, expressions: Sequence[Expression], what: str) -> None:
    """That values are told apart only where their type is known; the unit is told apart by hidden columns."""
    if any(each.type == "other" and unit_part(source, each) is None for each in expressions):
        raise not_known(what)


def _told_apart(folds: Sequence[Fold | Over]) -> list[Expression]:
    """What is compared by aggregates."""
    compared = [fold.argument for fold in folds if fold.kind in ("distinct", "min", "max")]
    return [each for each in compared if each is not None]


def _check_alike(source: Relation, other: Relation) -> None:
    """That both have the same unit; where each row is a unit, nothing may be put together."""
    one, two = source.facts, other.facts
    if one.each_row or two.each_row:
        raise refuse("combining rows where each row is a unit")
    if one.numbered or two.numbered:
        raise InvalidArgument(
            Message(
                "Tables are not put together where rows without an id are their own units (",
                Argument("unit.missing", 'missing="each row"', ("each row",)),
                ").",
            ),
            remedy="Ask one table at a time, or open the table with a unit that leaves such rows out.",
        )
    if (one.unit, one.unit_types, one.public) != (two.unit, two.unit_types, two.public):
        raise refuse("tables with different units together", f"{_unit(one)} and {_unit(two)}")
    if one.unit_types and one.unit_types[0] not in _COMPARED:
        raise InvalidArgument(
            f"Two tables cannot be put together by a unit of type {one.unit_types[0]}: what tells two of its "
            "values apart may be lost in one of them.",
            remedy="Make the column of the unit BIGINT or VARCHAR in the source of both tables.",
        )


def _unit(facts: Facts) -> str:
    """The unit in words."""
    if facts.unit is None:
        return "nobody"
    window = f" in each {facts.unit.window}" if facts.unit.window else ""
    return f"{facts.unit.entity}{window}, {facts.unit.relation}, by {' and '.join(facts.unit_types)}"


def _equated(source: Relation, other: Relation, condition: Expression) -> int | None:
    """The column of the unit that a condition sets equal on both sides."""
    width = len(source.facts.fields)
    if not isinstance(condition, Call) or condition.name != "equal":
        return None
    for a, b in (condition.arguments, condition.arguments[::-1]):
        if columns_of(a) and max(columns_of(a)) < width <= min(columns_of(b), default=-1):
            part = unit_part(source, a)
            return part if part == unit_part(other, shifted(b, -width)) else None
    return None


def shifted(expression: Expression, by: int) -> Expression:
    """The expression with its columns at other places."""
    match expression:
        case Column(index, type_):
            return Column(index + by, type_)
        case Call(name, arguments, type_):
            return Call(name, tuple(shifted(each, by) for each in arguments), type_)
    return expression


def _matched(condition: Expression, width: int) -> set[int]:
    """The columns of the second relation that must equal something of the first."""
    found: set[int] = set()
    for each in conjuncts(condition):
        if isinstance(each, Call) and each.name == "equal":
            for a, b in (each.arguments, each.arguments[::-1]):
                if isinstance(b, Column) and b.index >= width and max(columns_of(a), default=width) < width:
                    found.add(b.index - width)
    return found


def _beside(field: Field, kind: JoinKind) -> Field:
    if kind == "inner":
        return field
    return replace(field, nullable=True, part=None, fixed=False)


def _product(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a * b, a)


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
