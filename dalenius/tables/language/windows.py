"""Window functions in SQL, read into our own."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language.aggregating import fold_of, read_aggregate
from dalenius.tables.language.expressions import Expression
from dalenius.tables.language.reading import Node, Reader, only, shown, whole_of
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.relations import Over

_RANKS: dict[type[Node], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist",
    exp.Ntile: "ntile",
}


_PLACES: dict[type[Node], str] = {
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
    exp.LastValue: "last_value",
    exp.NthValue: "nth_value",
}


_MOST_ROWS = 1_000_000


def read_window(reader: Reader, node: exp.Window) -> Over:
    """A window function."""
    only(node, "this", "partition_by", "order", "spec")
    partition = tuple(reader.read(each) for each in node.args.get("partition_by") or ())
    order = tuple(_ordered(reader, each) for each in _listed(node.args.get("order")))
    kind, argument, offset = _function(reader, node.this)
    return Over(kind, argument, partition, order, _frame(node.args.get("spec"), kind), offset)


def _listed(order: Node | None) -> Sequence[Node]:
    return order.expressions if order is not None else ()


def _ordered(reader: Reader, node: Node) -> tuple[Expression, bool, bool]:
    only(node, "this", "desc", "nulls_first")
    return reader.read(node.this), bool(node.args.get("desc")), bool(node.args.get("nulls_first"))


def _function(reader: Reader, node: Node) -> tuple[str, Expression | None, int]:
    if type(node) in _RANKS:
        only(node, "this")
        return _RANKS[type(node)], None, _small(node.this) if isinstance(node, exp.Ntile) else 1
    if type(node) in _PLACES:
        only(node, "this", "offset")
        return _PLACES[type(node)], reader.read(node.this), _small(node.args.get("offset"))
    aggregate = read_aggregate(reader, node)
    if aggregate is None or aggregate.kind == "distinct":
        raise refuse("function that is not known", shown(node))
    fold = fold_of(aggregate)
    return fold.kind, fold.argument, 1


def _small(node: Node | None) -> int:
    found = 1 if node is None else whole_of(node)
    if not 1 <= found <= _MOST_ROWS:
        raise InvalidArgument("A number of rows is out of reach.", remedy=f"Use one from 1 to {_MOST_ROWS}.")
    return found


def _frame(spec: Node | None, kind: str) -> tuple[str, str] | None:
    if spec is None:
        return None
    only(spec, "kind", "start", "start_side", "end", "end_side")
    ends = [_end(spec.args.get(each), spec.args.get(f"{each}_side")) for each in ("start", "end")]
    words = str(spec.args.get("kind")).upper()
    if words == "RANGE" and ends == ["UNBOUNDED PRECEDING", "CURRENT ROW"] and kind not in _PLACES.values():
        return None
    if words != "ROWS" and ends != ["UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"]:
        raise refuse("window frame by RANGE, GROUPS or an expression")
    return ends[0], ends[1]


def _end(bound: object, side: object) -> str:
    if isinstance(bound, str) or bound is None:
        word = (bound or "CURRENT ROW").upper()
        return word if word == "CURRENT ROW" else f"{word} {str(side).upper()}"
    if isinstance(bound, exp.Literal) and not bound.is_string and str(bound.this).isdecimal():
        return f"{min(whole_of(bound), _MOST_ROWS)} {str(side).upper()}"
    raise refuse("window frame by RANGE, GROUPS or an expression")
