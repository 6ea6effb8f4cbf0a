"""SQL expressions, as sqlglot parses them, read into our own.

Everything is refused that is not listed here: a node that is not known, and also an option of a known node
that is not known, so that nothing a later parser adds can pass unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import ErrorLevel, exp

from dalenius.errors import InvalidArgument, Unsupported
from dalenius.tables.language.expressions import NULL, Expression, Literal, call, case, literal
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.scopes import Scope
from dalenius.tables.schema import folded

Node = exp.Expr
Special = Callable[[Node], Expression | None]
_MOST = 100_000
"""Nodes of one SELECT, names of its list written out each time they are used."""
_LONGEST = 18
"""Digits of a whole number that 64 bits hold, whatever they are."""
_HARMLESS = {
    "big_int", "safe", "typed", "coalesce", "ignore_nulls", "date_part_boundary", "over", "nested",
    "is_string",
}  # fmt: skip
"""Options of sqlglot's nodes that change nothing here."""


@dataclass
class Reader:
    """Reads expressions over the columns of a scope."""

    scope: Scope
    aliases: Mapping[str, Node] = field(default_factory=dict)
    """What names of the SELECT list stand for, where no column has the name."""
    special: Special | None = None
    """Reads a node in its own way, before anything else; None where it has none."""
    _within: tuple[str, ...] = ()
    _reads: int = 0

    def read(self, node: Node) -> Expression:
        """The expression that a node stands for."""
        self._reads += 1
        if self._reads > _MOST:
            raise InvalidArgument("A SELECT is too long.", remedy="Use fewer expressions, or a subquery.")
        if self.special is not None and (found := self.special(node)) is not None:
            return found
        if self.scope.marks and (mark := self.scope.marks.get(node)) is not None:
            return mark
        if type(node) not in HANDLERS:
            raise unknown(node)
        return HANDLERS[type(node)](self, node)

    def attempt(self, node: Node) -> Expression | None:
        """The expression, or None where it cannot be read."""
        try:
            return self.read(node)
        except InvalidArgument:
            return None

    def aliased(self, name: str) -> Expression | None:
        """What a name of the SELECT list stands for, where it is one; a name never stands for itself."""
        key = folded(name)
        if key not in self.aliases or key in self._within:
            return None
        within, self._within = self._within, (*self._within, key)
        try:
            return self.read(self.aliases[key])
        finally:
            self._within = within


def only(node: Node, *names: str) -> None:
    """Refuse a node that has anything but these."""
    for name, value in node.args.items():
        if name not in names and name not in _HARMLESS and value not in (None, False, []):
            raise refuse("clause that is not known", shown(node))


def unknown(node: Node) -> Unsupported:
    """Why a node is refused that no handler reads."""
    if isinstance(node, _SUBQUERIES):
        return refuse("subquery inside an expression")
    if isinstance(node, exp.Window):
        return refuse("window in a grouped or outermost SELECT")
    if isinstance(node, _VOLATILE) or _called(node) in _VOLATILE_NAMES:
        return refuse("function that is not a function of its arguments", shown(node))
    if isinstance(node, _REGULAR):
        return refuse("regular expression", shown(node))
    if isinstance(node, exp.AggFunc):
        return refuse("aggregate inside an aggregate", shown(node))
    if isinstance(node, exp.Func):
        return refuse("function that is not known", shown(node))
    return refuse("clause that is not known", shown(node))


def text_of(node: Node | None) -> str:
    """A text that is written in the query."""
    if isinstance(node, exp.Literal) and node.is_string:
        return _printable(str(node.this))
    raise refuse("pattern or format that is not a literal")


def _printable(text: str) -> str:
    """A text that can be written in SQL."""
    if "\0" in text:
        raise InvalidArgument("A text of the query holds the character NUL.", remedy="Leave NUL out.")
    return text


def whole_of(node: Node | None) -> int:
    """A whole number that is written in the query."""
    sign = -1 if isinstance(node, exp.Neg) else 1
    node = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdecimal():
        raise refuse("pattern or format that is not a literal")
    digits = str(node.this).lstrip("0") or "0"
    if len(digits) > _LONGEST:
        raise InvalidArgument(
            "A whole number of the query is too long.", remedy=f"Write at most {_LONGEST} digits."
        )
    return sign * int(digits)


def _called(node: Node) -> str:
    return folded(str(node.this)) if isinstance(node, exp.Anonymous) else ""


def shown(node: Node) -> str:
    """A part of a query, for a message."""
    text = node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE)
    return text if len(text) <= 60 else text[:57] + "..."


def _column(reader: Reader, node: Node) -> Expression:
    only(node, "this", "table")
    assert isinstance(node, exp.Column)
    found = reader.scope.find(node.name, node.table)
    if found is None and not node.table:
        found = reader.aliased(node.name)
    return found if found is not None else reader.scope.require(node.name, node.table)


def _literal(reader: Reader, node: Node) -> Expression:
    only(node, "this")
    text = str(node.this)
    if node.args.get("is_string"):
        return literal(_printable(text))
    if text.isdecimal() and len(text.lstrip("0")) <= _LONGEST + 1 and int(text.lstrip("0") or "0") < 2**63:
        return literal(int(text.lstrip("0") or "0"))
    try:
        return literal(float(text))
    except ValueError:
        raise refuse("clause that is not known", text) from None


def _simple(name: str, *arguments: str) -> Callable[[Reader, Node], Expression]:
    """A function whose arguments are those of the node, in this order."""

    def handler(reader: Reader, node: Node) -> Expression:
        only(node, *arguments)
        given = [node.args[each] for each in arguments if node.args.get(each) is not None]
        return call(name, *(reader.read(each) for each in given))

    return handler


def _sequence(name: str) -> Callable[[Reader, Node], Expression]:
    """A function of `this` and of more expressions."""

    def handler(reader: Reader, node: Node) -> Expression:
        only(node, "this", "expressions")
        return call(name, *(reader.read(each) for each in (node.this, *node.expressions)))

    return handler


def _connected(name: str) -> Callable[[Reader, Node], Expression]:
    """A AND B AND C, without going one level deeper for each."""

    def handler(reader: Reader, node: Node) -> Expression:
        only(node, "this", "expression")
        assert isinstance(node, exp.Connector)
        return call(name, *(reader.read(each) for each in node.flatten()))

    return handler


def _is(reader: Reader, node: Node) -> Expression:
    only(node, "this", "expression")
    value = reader.read(node.this)
    if isinstance(node.expression, exp.Null):
        return call("is_null", value)
    if isinstance(node.expression, exp.Boolean):
        wanted = literal(bool(node.expression.this))
        return call("coalesce", call("equal", value, wanted), literal(False))
    raise unknown(node)


def _same(reader: Reader, node: Node) -> Expression:
    """a IS NOT DISTINCT FROM b."""
    return call("not", _simple("is_distinct", "this", "expression")(reader, node))


def _in(reader: Reader, node: Node) -> Expression:
    if node.args.get("query") is not None:
        raise refuse("subquery inside an expression")
    only(node, "this", "expressions")
    value = reader.read(node.this)
    options = [call("equal", value, reader.read(each)) for each in node.expressions]
    return options[0] if len(options) == 1 else call("or", *options)


def _between(reader: Reader, node: Node) -> Expression:
    only(node, "this", "low", "high")
    value = reader.read(node.this)
    low = call("greater_equal", value, reader.read(node.args["low"]))
    return call("and", low, call("less_equal", value, reader.read(node.args["high"])))


def _like(name: str) -> Callable[[Reader, Node], Expression]:
    def handler(reader: Reader, node: Node) -> Expression:
        only(node, "this", "expression", "negate")
        found = call(name, reader.read(node.this), literal(text_of(node.expression)))
        return call("not", found) if node.args.get("negate") else found

    return handler


def _case(reader: Reader, node: Node) -> Expression:
    only(node, "this", "ifs", "default")
    value = reader.read(node.this) if node.this else None
    branches = []
    for each in node.args["ifs"]:
        when = reader.read(each.this)
        branches.append(
            (when if value is None else call("equal", value, when), reader.read(each.args["true"]))
        )
    default = node.args.get("default")
    return case(branches, NULL if default is None else reader.read(default))


def _if(reader: Reader, node: Node) -> Expression:
    only(node, "this", "true", "false")
    otherwise = node.args.get("false")
    branch = reader.read(node.this), reader.read(node.args["true"])
    return case([branch], NULL if otherwise is None else reader.read(otherwise))


def _paren(reader: Reader, node: Node) -> Expression:
    only(node, "this")
    return reader.read(node.this)


def _log(reader: Reader, node: Node) -> Expression:
    """log(x) is to the base 10; with two arguments the base comes first."""
    only(node, "this", "expression")
    if node.args.get("expression") is None:
        return call("log10", reader.read(node.this))
    base, value = reader.read(node.this), reader.read(node.expression)
    named = {10: "log10", 2: "log2"}
    if isinstance(base, Literal) and base.value in named:
        return call(named[int(str(base.value))], value)
    return call("divide", call("ln", value), call("ln", base))


def _round(reader: Reader, node: Node) -> Expression:
    only(node, "this", "decimals")
    digits = node.args.get("decimals")
    places = [] if digits is None else [literal(whole_of(digits))]
    return call("round", reader.read(node.this), *places)


def _width_bucket(reader: Reader, node: Node) -> Expression:
    """The number of the bin: 0 below the first, n + 1 from the end of the last."""
    only(node, "this", "min_value", "max_value", "num_buckets")
    value, count = reader.read(node.this), literal(whole_of(node.args["num_buckets"]))
    low, high = reader.read(node.args["min_value"]), reader.read(node.args["max_value"])
    place = call("divide", call("multiply", call("subtract", value, low), count), call("subtract", high, low))
    inner = call("least", call("cast_integer", call("floor", place)), call("subtract", count, literal(1)))
    below, above = call("less", value, low), call("greater_equal", value, high)
    bins = [(call("is_null", value), NULL), (below, literal(0)), (above, call("add", count, literal(1)))]
    return case(bins, call("greatest", call("add", inner, literal(1)), literal(1)))


HANDLERS: dict[type[Node], Callable[[Reader, Node], Expression]] = {
    exp.Paren: _paren,
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda reader, node: literal(bool(node.this)),
    exp.Null: lambda reader, node: NULL,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like("like"),
    exp.ILike: _like("ilike"),
    exp.Case: _case,
    exp.If: _if,
    exp.And: _connected("and"),
    exp.Or: _connected("or"),
    exp.Not: _simple("not", "this"),
    exp.NullSafeNEQ: _simple("is_distinct", "this", "expression"),
    exp.NullSafeEQ: _same,
    exp.Coalesce: _sequence("coalesce"),
    exp.Greatest: _sequence("greatest"),
    exp.Least: _sequence("least"),
    exp.Log: _log,
    exp.Round: _round,
    exp.WidthBucket: _width_bucket,
    **{
        kind: _simple(name, "this", "expression")
        for kind, name in {
            exp.EQ: "equal", exp.NEQ: "not_equal", exp.GT: "greater", exp.GTE: "greater_equal",
            exp.LT: "less", exp.LTE: "less_equal", exp.Mul: "multiply", exp.Div: "divide",
            exp.IntDiv: "integer_divide", exp.Mod: "modulo", exp.Pow: "power", exp.Nullif: "nullif",
            exp.StartsWith: "starts_with", exp.EndsWith: "ends_with", exp.Contains: "contains",
        }.items()
    },
    **{
        kind: _simple(name, "this")
        for kind, name in {
            exp.Neg: "negate", exp.Abs: "abs", exp.Sign: "sign", exp.Floor: "floor", exp.Ceil: "ceil",
            exp.Trunc: "trunc", exp.Sqrt: "sqrt", exp.Cbrt: "cbrt", exp.Ln: "ln", exp.Exp: "exp",
            exp.Sin: "sin", exp.Cos: "cos", exp.Tan: "tan", exp.Atan: "atan", exp.Asin: "asin",
            exp.Acos: "acos", exp.Pi: "pi",
            exp.Lower: "lower", exp.Upper: "upper", exp.Length: "length", exp.IsNan: "is_nan",
        }.items()
    },
}  # fmt: skip
"""How each kind of node is read; `words` adds texts, dates and conversions."""

_SUBQUERIES = (exp.Subquery, exp.Query, exp.Exists, exp.Any, exp.All)
_VOLATILE = (
    exp.Rand, exp.Randn, exp.Uuid, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentUser,
    exp.CurrentDatetime, exp.SessionUser,
)  # fmt: skip
_VOLATILE_NAMES = {
    "now", "get_current_timestamp", "get_current_time", "transaction_timestamp", "current_localtimestamp",
    "nextval", "currval", "setseed", "uuidv4", "uuidv7", "txid_current", "current_setting", "getenv",
    "getvariable", "current_schema", "current_database", "version", "pg_typeof", "stats", "rowid",
}  # fmt: skip
_REGULAR = (exp.RegexpILike, exp.RegexpExtractAll, exp.RegexpSplit, exp.Glob)
