"""The groups that are known without looking at private data: from what the owner declared, from the form of
the query, or from public tables. Where they are not known they are selected privately, at a cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.language.domains import MOST, values_of, worth
from dalenius.tables.language.expressions import (
    Call,
    Column,
    Expression,
    ExpressionType,
    columns_of,
    conjuncts,
    parts_of,
    substitute,
)
from dalenius.tables.language.functions import knows
from dalenius.tables.language.lineage import shifted
from dalenius.tables.language.printing import Printer
from dalenius.tables.language.relations import (
    Distinct,
    Filter,
    JoinPublic,
    JoinUnit,
    PerUnit,
    Project,
    Relation,
    Windowed,
)
from dalenius.tables.rows import Key, KeyPart
from dalenius.tables.schema import Schema, Type, as_known, folded, read_part

_LARGEST = 1_000
"""Parts of a key, beyond which it is not traced to a public table."""
_KEYS = Argument("keys", "keys=")
Given = Sequence[object] | Mapping[str, Sequence[object]]


def given_keys(given: Given, names: Sequence[str], types: Sequence[Type]) -> tuple[Key, ...]:
    """Keys listed by whoever asks: values, tuples of values, or lists of values for each column."""
    if not names:
        raise InvalidArgument(
            Message(_KEYS, " is given, but the query has no GROUP BY."),
            remedy=Message("Leave ", _KEYS, " out."),
        )
    if isinstance(given, Mapping):
        by_name = {folded(str(name)): _several(values) for name, values in given.items()}
        if set(by_name) != {folded(name) for name in names}:
            raise InvalidArgument(
                Message(_KEYS, " does not name the columns of GROUP BY."), remedy=f"Name {', '.join(names)}."
            )
        if math.prod(len(values) for values in by_name.values()) > MOST:
            raise _too_many()
        listed: Iterable[Sequence[object]] = product(*(by_name[folded(name)] for name in names))
    else:
        listed = (each if isinstance(each, tuple | list) else (each,) for each in _several(given))
    keys = dict.fromkeys(_read(each, names, types) for each in listed)
    if len(keys) > MOST:
        raise _too_many()
    return tuple(keys)


def _too_many() -> InvalidArgument:
    return InvalidArgument(f"There are more than {MOST} keys.", remedy="Give fewer keys, or none.")


def _several(given: object) -> Sequence[object]:
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return list(given)
    raise InvalidArgument(
        Message(_KEYS, " is no list of keys."),
        remedy='Give a list of values, such as ["A", "B"], or a list for each column: {"ward": ["A", "B"]}.',
    )


def public_keys(relation: Relation, keys: Sequence[Expression], schema: Schema) -> tuple[Key, ...] | None:
    """The groups that are known, in order; None where they are not."""
    if not keys:
        return ((),)
    blocks = _blocks(relation, keys, schema)
    if blocks is None or math.prod(len(values) for _, values in blocks) > MOST:
        return None
    found = []
    for choice in product(*(values for _, values in blocks)):
        placed = {
            place: part
            for (places, _), parts in zip(blocks, choice, strict=True)
            for place, part in zip(places, parts, strict=True)
        }
        found.append(tuple(placed[i] for i in range(len(keys))))
    return tuple(key for key in found if _possible(relation, keys, key))


Block = tuple[tuple[int, ...], list[Key]]
"""Places of keys that are known together, and what they may be."""


def _blocks(relation: Relation, keys: Sequence[Expression], schema: Schema) -> list[Block] | None:
    tables: dict[int, tuple[Relation, list[tuple[int, Expression]]]] = {}
    blocks: list[Block] = []
    for place, key in enumerate(keys):
        origin = _origin(relation, key) if schema.read is not None else None
        if origin is not None:
            tables.setdefault(id(origin[0]), (origin[0], []))[1].append((place, origin[1]))
            continue
        values = values_of(relation, key)
        if values is None:
            return None
        blocks.append(((place,), [(_typed(value, key),) for value in values]))
    for other, placed in tables.values():
        blocks.append(
            (tuple(place for place, _ in placed), _listed(other, [key for _, key in placed], schema))
        )
    return blocks


def _listed(other: Relation, keys: Sequence[Expression], schema: Schema) -> list[Key]:
    assert schema.read is not None and other.facts.public
    rows = schema.read(Printer(dialect_of(schema.dialect)).distinct(other, keys))
    return [tuple(_typed(row[f"key_{i}"], key) for i, key in enumerate(keys)) for row in rows]


def _origin(relation: Relation, expression: Expression) -> tuple[Relation, Expression] | None:
    """The public relation that an expression is taken from, by an inner join, and the expression over it."""
    if not columns_of(expression) or len(list(islice(parts_of(expression), _LARGEST))) == _LARGEST:
        return None
    match relation:
        case Project(source, expressions):
            return _origin(source, substitute(expression, dict(enumerate(expressions))))
        case Filter(source) | Distinct(source):
            return _origin(source, expression)
        case Windowed(source) if max(columns_of(expression)) < len(source.facts.fields):
            return _origin(source, expression)
        case PerUnit(source, keys) if max(columns_of(expression)) < len(keys):
            return _origin(source, substitute(expression, dict(enumerate(keys))))
        case JoinPublic() | JoinUnit():
            return _joined_origin(relation, expression)
    return None


def _joined_origin(
    relation: JoinPublic | JoinUnit, expression: Expression
) -> tuple[Relation, Expression] | None:
    width, fields = len(relation.source.facts.fields), relation.facts.fields
    if isinstance(relation, JoinPublic) and relation.kind == "inner":
        taken = {i: _partner(relation.condition, i, width, fields[i].type) for i in columns_of(expression)}
        partners = {i: column for i, column in taken.items() if column is not None}
        if len(partners) == len(taken):
            return relation.other, shifted(substitute(expression, partners), -width)
    if max(columns_of(expression)) < width:
        return _origin(relation.source, expression)
    if isinstance(relation, JoinUnit) and relation.kind == "inner" and min(columns_of(expression)) >= width:
        return _origin(relation.other, shifted(expression, -width))
    return None


def _partner(condition: Expression, place: int, width: int, type_: ExpressionType) -> Column | None:
    """The column of the public relation that a column is, or is set equal to."""
    if place >= width:
        return Column(place, type_)
    for each in conjuncts(condition):
        match each:
            case Call("equal", (Column(a, _), Column(b, _) as other), _) if a == place and b >= width:
                return other
            case Call("equal", (Column(b, _) as other, Column(a, _)), _) if a == place and b >= width:
                return other
    return None


def _possible(relation: Relation, keys: Sequence[Expression], key: Key) -> bool:
    """Whether a group can have rows, by those conditions of WHERE that read keys only."""
    if not isinstance(relation, Filter):
        return True
    places = {each.index: part for each, part in zip(keys, key, strict=True) if isinstance(each, Column)}
    for each in conjuncts(relation.condition):
        readable = all(knows(part.name) for part in parts_of(each) if isinstance(part, Call))
        if (
            columns_of(each)
            and columns_of(each) <= set(places)
            and readable
            and worth(each, places) is not True
        ):
            return False
    return True


def _typed(value: object, key: Expression) -> KeyPart:
    return read_part(value, as_known(key.type), "a key")


def _read(parts: Sequence[object], names: Sequence[str], types: Sequence[Type]) -> Key:
    if len(parts) != len(names):
        raise InvalidArgument(
            Message("A key of ", _KEYS, f" has {len(parts)} values for {len(names)} columns."),
            remedy=f"Give tuples of values of {', '.join(names)}.",
        )
    return tuple(read_part(part, type_, name) for part, type_, name in zip(parts, types, names, strict=True))
