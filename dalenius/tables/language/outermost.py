"""The outermost SELECT: what is answered, group by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, count

from sqlglot import exp

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.tables.language.aggregating import Grouping
from dalenius.tables.language.basis import basis_of
from dalenius.tables.language.beliefs import is_fixed, unit_part
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.language.expressions import Call, Column, Expression, Literal
from dalenius.tables.language.formulas import AggregateValue, Constant, Formula, KeyColumn, Operation
from dalenius.tables.language.functions import knows
from dalenius.tables.language.intervals import Span
from dalenius.tables.language.lineage import check_known
from dalenius.tables.language.needed import Needed
from dalenius.tables.language.normal_form import with_text
from dalenius.tables.language.printing import Printer
from dalenius.tables.language.public_keys import Given, given_keys, public_keys
from dalenius.tables.language.reading import Node, Reader, only, whole_of
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.relations import Relation
from dalenius.tables.language.spans import span_of
from dalenius.tables.language.unmatched import check_unmatched
from dalenius.tables.language.words import check_types
from dalenius.tables.question import Interval, Output, Question
from dalenius.tables.rows import Key
from dalenius.tables.schema import Schema, as_known

_FAR = Fraction(2) ** 512
_LONGEST = 2_000_000
"""Characters of what an engine is asked to read."""


@dataclass
class Outermost:
    """The outermost SELECT, being read."""

    select: exp.Select
    schema: Schema
    relation: Relation
    grouping: Grouping
    items: Sequence[tuple[str, Node]]
    padded: frozenset[int] = frozenset()
    """See `Scope`."""
    sets: tuple[tuple[int, ...], ...] = ()
    """See `Question`."""

    def question(self, given: Given | None) -> Question:
        """What is asked; `given` lists the groups."""
        outputs = self._outputs()
        having, order = self._having(), self._order(outputs)
        if not self.grouping.aggregates and not self.grouping.keys:
            raise refuse("SELECT of rows")
        check_unmatched(self.padded, self.grouping)
        several = {each.kind for each in self.grouping.aggregates} & {"distinct", "units"}
        if several and any(len(each) < len(self.grouping.keys) for each in self.sets):
            raise refuse("COUNT(DISTINCT …) with ROLLUP, CUBE or GROUPING SETS")
        columns = Needed(self.relation)
        aggregates = tuple(columns.place(each) for each in self.grouping.aggregates)
        columns.fill(self.grouping.keys)
        check_known(self.relation, self.grouping.keys, "GROUP BY")
        names = self._key_names(outputs)
        keys = self._keys(given, names)
        rows = Printer(dialect_of(self.schema.dialect)).rows(
            self.relation,
            self.grouping.keys,
            columns.values,
            columns.distincts,
            all_rows=columns.all_rows or not aggregates,
        )
        _check_length(rows.sql)
        question = Question(
            text="",
            rows=rows,
            key_names=names,
            keys=keys,
            intervals=tuple(_interval(span_of(each, self.relation.facts.fields)) for each in columns.values),
            aggregates=aggregates,
            outputs=outputs,
            rows_per_unit=self.relation.facts.rows_per_unit,
            groups_per_unit=self._groups_per_unit(keys),
            having=having,
            order=order,
            limit=self._number("limit"),
            offset=self._number("offset") or 0,
            value_names=columns.names(),
            never_null=columns.never_null(),
            sets=self.sets,
            basis=basis_of(self.relation, self.grouping.keys, columns.values),
        )
        return with_text(question)

    def _outputs(self) -> tuple[Output, ...]:
        reader = self.grouping.reader()
        found: list[Output] = []
        for name, node in self.items:
            taken = {each.name for each in found}
            others = (f"{name}_{i}" for i in count(1))
            fresh = next(each for each in chain((name,), others) if each not in taken)
            expression = reader.read(node)
            found.append(Output(fresh, self._formula(expression, node), expression.type))
        return tuple(found)

    def _formula(self, expression: Expression, node: Node) -> Formula:
        """An expression over keys and aggregates as a formula."""
        width = len(self.grouping.keys)
        match expression:
            case Column(index, _):
                return KeyColumn(index) if index < width else AggregateValue(index - width)
            case Literal(value, _):
                return Constant(value)
            case Call("coalesce", (Column(index, _) as first, *_), _) if self._is_count(index - width):
                return self._formula(first, node)
            case Call("added_up", (Literal(index, _),), _) if isinstance(index, int):
                return KeyColumn(width + index)
            case Call(name, arguments, _):
                if not knows(name):
                    raise refuse("function outside aggregates that is not known", name)
                return Operation(name, tuple(self._formula(each, node) for each in arguments))

    def _is_count(self, index: int) -> bool:
        """A count is never NULL."""
        return index >= 0 and self.grouping.aggregates[index].kind in (
            "count",
            "count_of",
            "distinct",
            "units",
        )

    def _having(self) -> Formula | None:
        clause = self.select.args.get("having")
        if clause is None:
            return None
        condition = self.grouping.reader().read(clause.this)
        return self._formula(check_types(condition, "boolean", "The condition of HAVING"), clause)

    def _order(self, outputs: Sequence[Output]) -> tuple[tuple[Formula, bool, bool], ...]:
        clause = self.select.args.get("order")
        reader = self.grouping.reader(aliases_first=True)
        found = []
        for each in clause.expressions if clause is not None else ():
            only(each, "this", "desc", "nulls_first")
            by = self._by(each.this, outputs, reader)
            descending = bool(each.args.get("desc"))
            found.append((by, descending, bool(each.args.get("nulls_first"))))
        return tuple(found)

    def _by(self, node: Node, outputs: Sequence[Output], reader: Reader) -> Formula:
        if isinstance(node, exp.Literal) and not node.is_string:
            place = whole_of(node)
            if 1 <= place <= len(outputs):
                return outputs[place - 1].formula
            raise InvalidArgument(
                f"There is no column {place}.", remedy=f"Use a place from 1 to {len(outputs)}."
            )
        return self._formula(reader.read(node), node)

    def _number(self, name: str) -> int | None:
        clause = self.select.args.get(name)
        if clause is None:
            return None
        only(clause, "expression")
        return max(0, whole_of(clause.expression))

    def _key_names(self, outputs: Sequence[Output]) -> tuple[str, ...]:
        """A key is called what the answer calls it, or else by its place."""
        shown = {
            each.formula.index: each.name for each in reversed(outputs) if isinstance(each.formula, KeyColumn)
        }
        fields = self.relation.facts.fields
        own = {
            i: fields[key.index].name for i, key in enumerate(self.grouping.keys) if isinstance(key, Column)
        }
        return tuple(shown.get(i, own.get(i, f"key_{i}")) for i in range(len(self.grouping.keys)))

    def _keys(self, given: Given | None, names: Sequence[str]) -> tuple[Key, ...] | None:
        keys = self.grouping.keys
        if not self.grouping.aggregates:
            # Which values there are is asked: those that could be there are no answer.
            if given is not None:
                raise InvalidArgument(
                    Message("SELECT DISTINCT asks for what ", Argument("keys", "keys="), " would list."),
                    remedy="Ask for COUNT(*) by these columns.",
                )
            self._check_unit(keys)
            return None
        if given is not None:
            return given_keys(given, names, [as_known(key.type) for key in keys])
        found = public_keys(self.relation, keys, self.schema)
        if found is None:
            self._check_unit(keys)
        return found

    def _check_unit(self, keys: Sequence[Expression]) -> None:
        units = self.relation.facts.told
        if units and {unit_part(self.relation, key) for key in keys} >= units:
            raise refuse("GROUP BY the unit in the outermost query")

    def _groups_per_unit(self, keys: Sequence[Key] | None) -> int | None:
        """The most groups that a unit can be in."""
        if all(is_fixed(self.relation, key) for key in self.grouping.keys):
            return 1
        known = [
            each for each in (self.relation.facts.rows_per_unit, None if keys is None else len(keys)) if each
        ]
        return min(known) if known else None


def _interval(span: Span) -> Interval | None:
    """Where values lie, if that says something: ends near the limits of DOUBLE say nothing."""
    ends = span.finite
    if ends is None or max(abs(ends[0]), abs(ends[1])) > _FAR:
        return None
    low, high = (end if abs(end) * _FAR > 1 else Fraction(0) for end in ends)
    return Interval(low, high)


def _check_length(sql: str) -> None:
    if len(sql) > _LONGEST:
        raise InvalidArgument("The query reads too much at once.", remedy="Ask for fewer expressions.")
