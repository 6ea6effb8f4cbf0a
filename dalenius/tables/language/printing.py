"""Relations as one SELECT. Hidden columns are called u0, u1, …, all others by their place: c0, c1, …

No name of the query is printed, only those of the source's tables and columns, quoted; so nothing that a
query calls a column can change what is read. Columns that nothing needs are left out.

Within a unit, sums of real numbers are taken in whole steps, so that they are the same in whatever order the
engine meets the rows: a sum that is rounded may differ in its last digit when another unit comes or goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from dalenius.tables.language.dialects.dialect import Dialect
from dalenius.tables.language.expressions import Expression, ExpressionType, columns_of
from dalenius.tables.language.folding import folded_sql, names_of, over_steps, units_of
from dalenius.tables.language.relations import (
    Distinct,
    Filter,
    JoinPublic,
    JoinUnit,
    PerUnit,
    Project,
    PublicScan,
    Relation,
    Scan,
    UnionAll,
    Windowed,
)
from dalenius.tables.rows import KeyPart, Rows
from dalenius.tables.schema import folded

_ANY: dict[ExpressionType, KeyPart] = {
    "boolean": False, "integer": 0, "real": 0.0, "text": "", "date": date(2000, 1, 1),
    "moment": datetime(2000, 1, 1),
}  # fmt: skip
"""What stands for the identity of a row that has none; a row that has this one has no number."""


@dataclass(frozen=True)
class Printer:
    """Relations in the SQL of one engine."""

    dialect: Dialect

    def rows(
        self,
        relation: Relation,
        keys: Sequence[Expression],
        values: Sequence[Expression],
        distincts: Sequence[Expression],
        *,
        all_rows: bool,
    ) -> Rows:
        """The rows that an engine is to read; without `all_rows`, those that have a value only."""
        needed = frozenset().union(*(columns_of(each) for each in (*keys, *values, *distincts)))
        names, canonical = names_of(relation), self.dialect.canonical
        reals = [self.dialect.as_real(canonical(each, names), each.type) for each in values]
        columns = [f"u{i} AS unit_{i}" for i in range(relation.facts.units)]
        columns += [f"{canonical(each, names)} AS key_{i}" for i, each in enumerate(keys)]
        columns += [f"{real} AS value_{i}" for i, real in enumerate(reals)]
        columns += [f"{canonical(each, names)} AS distinct_{i}" for i, each in enumerate(distincts)]
        sql = f"SELECT {', '.join(columns) or '1 AS present'} FROM ({self.relation(relation, needed)}) AS t"
        if not all_rows:
            present = [f"value_{i} IS NOT NULL" for i in range(len(values))]
            present += [f"distinct_{i} IS NOT NULL" for i in range(len(distincts))]
            sql = f"SELECT * FROM ({sql}) AS t WHERE {' OR '.join(present)}"
        return Rows(sql, relation.facts.units, len(keys), len(values), len(distincts))

    def distinct(self, relation: Relation, expressions: Sequence[Expression]) -> str:
        """The different values of expressions over a public relation, in order."""
        names = names_of(relation)
        needed = frozenset().union(*(columns_of(each) for each in expressions))
        columns = [f"{self.dialect.canonical(each, names)} AS key_{i}" for i, each in enumerate(expressions)]
        order = ", ".join(f"key_{i} NULLS LAST" for i in range(len(expressions)))
        below = self.relation(relation, needed)
        return f"SELECT DISTINCT {', '.join(columns)} FROM ({below}) AS t ORDER BY {order}"

    def relation(self, relation: Relation, needed: frozenset[int]) -> str:
        """The relation with its hidden columns and the columns that are needed."""
        match relation:
            case Scan() | PublicScan():
                return self._scan(relation, needed)
            case Project(source, expressions):
                names = names_of(source)
                below = frozenset().union(*(columns_of(expressions[i]) for i in needed))
                columns = [f"{self.dialect.canonical(expressions[i], names)} AS c{i}" for i in sorted(needed)]
                return _select(relation, columns, f"({self.relation(source, below)}) AS t")
            case Filter(source, condition):
                rows = self.relation(source, needed | columns_of(condition))
                columns = [f"c{i}" for i in sorted(needed)]
                where = self.dialect.sql_of(condition, names_of(source))
                return _select(relation, columns, f"({rows}) AS t WHERE {where}")
            case JoinPublic() | JoinUnit():
                return self._join(relation, needed)
            case UnionAll(sources):
                return " UNION ALL ".join(self._branch(source, needed) for source in sources)
            case Distinct(source):
                return self._distinct(source)
            case PerUnit():
                return self._per_unit(relation, needed)
            case Windowed():
                return self._windowed(relation, needed)

    def _scan(self, relation: Scan | PublicScan, needed: frozenset[int]) -> str:
        table, names, dialect = relation.table, list(relation.table.columns), self.dialect
        columns = []
        if isinstance(relation, Scan) and relation.table.unit.column is not None:
            unit, private = relation.table.unit, relation.table
            column = dialect.quoted(_own(names, unit.column))
            identity = self._identified(column, relation.facts.unit_types[0])
            if unit.missing == "each row":
                columns += self._numbered(identity, relation.facts.unit_types[0])
            else:
                columns.append(f"{identity} AS u0")
            if unit.window is not None:
                time = dialect.read(dialect.quoted(_own(names, private.time)), "moment")
                columns.append(f"{dialect.begin(unit.window, time)} AS u1")
        for i in sorted(needed):
            columns.append(f"{dialect.read(dialect.quoted(names[i]), relation.facts.fields[i].type)} AS c{i}")
        return f"SELECT {', '.join(columns) or '1 AS present'} FROM {dialect.quoted(table.name)}"

    def _identified(self, column: str, type_: ExpressionType) -> str:
        """The unit as it is, whole; texts are read, so that no collation makes one of two units."""
        return self.dialect.read(column, "text") if type_ == "text" else column

    def _numbered(self, identity: str, type_: ExpressionType) -> list[str]:
        """The unit where a row without an identity is one: any value in its place, and the row's number.

        No two rows of a scan have one number. The engine must evaluate it once (`DuckdbEngine.load`).
        """
        place = self.dialect.literal(_ANY[type_], type_)
        numbered = f"CASE WHEN {identity} IS NULL THEN row_number() OVER () ELSE 0 END"
        return [f"COALESCE({identity}, {place}) AS u0", f"{numbered} AS u1"]

    def _join(self, relation: JoinPublic | JoinUnit, needed: frozenset[int]) -> str:
        width = len(relation.source.facts.fields)
        read_here = needed | columns_of(relation.condition)
        left = frozenset(i for i in read_here if i < width)
        right = frozenset(i - width for i in read_here if i >= width)
        names = {i: f"l.c{i}" if i < width else f"r.c{i - width}" for i in read_here}
        columns = [f"{side} AS u{i}" for i, side in enumerate(units_of(relation, "l."))]
        columns += [f"{names[i]} AS c{i}" for i in sorted(needed)]
        conditions = [self.dialect.sql_of(relation.condition, names)]
        if isinstance(relation, JoinUnit):
            types = relation.facts.unit_types
            conditions = [*(self._same_unit(i, type_) for i, type_ in enumerate(types)), *conditions]
        if isinstance(relation, JoinPublic) and relation.once:
            other = self._alone(relation, right | set(relation.matched))
        else:
            other = self.relation(relation.other, right)
        verb = "JOIN" if relation.kind == "inner" else "LEFT JOIN"
        below = self.relation(relation.source, left)
        shown = ", ".join(columns) or "1 AS present"
        return f"SELECT {shown} FROM ({below}) AS l {verb} ({other}) AS r ON {' AND '.join(conditions)}"

    def _same_unit(self, index: int, type_: ExpressionType) -> str:
        left, right = (self.dialect.identity(f"{side}.u{index}", type_) for side in "lr")
        return f"{left} = {right}"

    def _alone(self, relation: JoinPublic, needed: frozenset[int]) -> str:
        """The public rows that are alone in the columns which are matched."""
        alike = ", ".join(f"c{i}" for i in relation.matched)
        columns = ", ".join(f"c{i}" for i in sorted(needed))
        below = self.relation(relation.other, needed)
        counted = f"SELECT {columns}, COUNT(*) OVER (PARTITION BY {alike}) AS alike FROM ({below}) AS t"
        return f"SELECT {columns} FROM ({counted}) AS t WHERE alike = 1"

    def _branch(self, source: Relation, needed: frozenset[int]) -> str:
        types = source.facts.unit_types
        units = [f"{self.dialect.identity(f'u{i}', type_)} AS u{i}" for i, type_ in enumerate(types)]
        columns = [*units, *(f"c{i}" for i in sorted(needed))]
        return f"SELECT {', '.join(columns) or '1 AS present'} FROM ({self.relation(source, needed)}) AS t"

    def _distinct(self, source: Relation) -> str:
        fields = source.facts.fields
        below = self.relation(source, frozenset(range(len(fields))))
        columns = [f"c{i}" for i in range(len(fields))]
        return _select(source, columns, f"({below}) AS t", verb="SELECT DISTINCT")

    def _per_unit(self, relation: PerUnit, needed: frozenset[int]) -> str:
        source, names = relation.source, names_of(relation.source)
        below = frozenset().union(*(columns_of(each) for each in relation.keys))
        below = below.union(
            *(columns_of(fold.argument) for fold in relation.folds if fold.argument is not None)
        )
        keys = [self.dialect.canonical(key, names) for key in relation.keys]
        columns = [f"{key} AS c{i}" for i, key in enumerate(keys)]
        columns += [
            f"{folded_sql(self.dialect, source, fold, '')} AS c{len(keys) + i}"
            for i, fold in enumerate(relation.folds)
        ]
        grouped = ", ".join([*units_of(relation), *keys])
        sql = _select(relation, columns, f"({self.relation(source, below)}) AS t")
        return f"{sql} GROUP BY {grouped}" if grouped else sql

    def _windowed(self, relation: Windowed, needed: frozenset[int]) -> str:
        source = relation.source
        width = len(source.facts.fields)
        below = self.relation(source, frozenset(range(width)))
        kept = [f"c{i}" for i in sorted(needed) if i < width]
        steps = {
            i: over_steps(self.dialect, source, relation.functions[i - width])
            for i in sorted(needed)
            if i >= width
        }
        if all(last == "{0}" for _, last in steps.values()):
            taken = [f"{first} AS c{i}" for i, (first, _) in steps.items()]
            return _select(relation, [*kept, *taken], f"({below}) AS t")
        taken = [f"{first} AS g{i}" for i, (first, _) in steps.items()]
        made = [f"{last.format(f'g{i}')} AS c{i}" for i, (_, last) in steps.items()]
        gathered = _select(relation, [*kept, *taken], f"({below}) AS t")
        return _select(relation, [*kept, *made], f"({gathered}) AS t")


def _select(relation: Relation, columns: Sequence[str], source: str, *, verb: str = "SELECT") -> str:
    return f"{verb} {', '.join([*units_of(relation), *columns]) or '1 AS present'} FROM {source}"


def _own(names: Sequence[str], name: str | None) -> str:
    return next(each for each in names if name is not None and folded(each) == folded(name))
