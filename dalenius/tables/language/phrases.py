"""Functions of texts and dates that are made of others, read into our expressions: handlers for `reading`.

Each is total because what it is made of is: only `position` and `split_part` are functions of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from dalenius.tables.language.expressions import Expression, Literal, call, case, literal
from dalenius.tables.language.reading import HANDLERS, Node, Reader, only, text_of, unknown, whole_of
from dalenius.tables.language.refusals import refuse

_WIDEST = 1_000
"""Characters to which a text is filled up."""
_MOST_TIMES = 100
"""How often a text is repeated."""
_FORMAT = re.compile(r"(%[YmdHMSyjbBpIf%]|[^%])*")
_LONGEST = 100


def text(value: Expression) -> Expression:
    """The value as a text."""
    return value if value.type == "text" else call("cast_text", value)


def day_of(value: Expression) -> Expression:
    """A date, also where it is written as a text."""
    return call("cast_date", value) if value.type == "text" else value


def _edge(reader: Reader, node: Node) -> tuple[Expression, Expression]:
    only(node, "this", "expression")
    return reader.read(node.this), literal(whole_of(node.expression))


def _left(reader: Reader, node: Node) -> Expression:
    """left(s, n): the first n characters; below 0, all but the last −n."""
    value, size = _edge(reader, node)
    return call("substring", value, literal(1), _from_end(value, size) if _below(size) else size)


def _right(reader: Reader, node: Node) -> Expression:
    """right(s, n): the last n characters; below 0, all but the first −n."""
    value, size = _edge(reader, node)
    start = call("negate", size) if _below(size) else _from_end(value, call("negate", size))
    return call("substring", value, call("add", start, literal(1)))


def _below(size: Expression) -> bool:
    return isinstance(size, Literal) and isinstance(size.value, int) and size.value < 0


def _from_end(value: Expression, negative: Expression) -> Expression:
    """How many characters there are but for so many at the end; none below 0."""
    return call("greatest", call("add", call("length", value), negative), literal(0))


def _pad(reader: Reader, node: Node) -> Expression:
    """lpad and rpad: to n characters, whatever is there already cut off at its end."""
    only(node, "this", "expression", "fill_pattern", "is_left")
    value, size, fill = reader.read(node.this), whole_of(node.expression), " "
    if node.args.get("fill_pattern") is not None:
        fill = text_of(node.args["fill_pattern"])
    if not fill or not 0 <= size <= _WIDEST:
        raise refuse("function that is not known", f"filling up but to 0 … {_WIDEST} characters with some")
    filling = literal((fill * (size // len(fill) + 1))[:size])
    missing = call("greatest", call("subtract", literal(size), call("length", value)), literal(0))
    added = call("substring", filling, literal(1), missing)
    kept = call("substring", value, literal(1), literal(size))
    return call("concat", added, kept) if node.args.get("is_left") else call("concat", kept, added)


def _repeat(reader: Reader, node: Node) -> Expression:
    only(node, "this", "times")
    value, times = reader.read(node.this), whole_of(node.args["times"])
    if times > _MOST_TIMES:
        raise refuse("function that is not known", f"repeat of more than {_MOST_TIMES} times")
    if times <= 0:
        return call("substring", value, literal(1), literal(0))
    whole = value
    for _ in range(times - 1):
        whole = call("concat", whole, value)
    return whole


def _concat_ws(reader: Reader, node: Node) -> Expression:
    """concat_ws(s, a, b, …), which passes over NULL."""
    only(node, "expressions")
    between = text_of(node.expressions[0])
    joined: Expression = literal("")
    for each in node.expressions[1:]:
        value = text(reader.read(each))
        part = case([(call("is_null", value), literal(""))], call("concat", literal(between), value))
        joined = call("concat", joined, part)
    return call("substring", joined, literal(len(between) + 1))


def _position(reader: Reader, node: Node) -> Expression:
    only(node, "this", "substr")
    return call("position", reader.read(node.this), reader.read(node.args["substr"]))


def _split_part(reader: Reader, node: Node) -> Expression:
    only(node, "this", "delimiter", "part_index")
    between, place = text_of(node.args["delimiter"]), whole_of(node.args["part_index"])
    if not between or len(between) > _LONGEST or not 1 <= place <= _MOST_TIMES:
        raise refuse(
            "function that is not known", f"split_part but by some text, and parts 1 … {_MOST_TIMES}"
        )
    return call("split_part", reader.read(node.this), literal(between), literal(place))


def _last_day(reader: Reader, node: Node) -> Expression:
    only(node, "this")
    day = day_of(reader.read(node.this))
    day = day if day.type == "date" else call("cast_date", day)
    start = call("date_add", literal("month"), call("date_trunc", literal("month"), day), literal(1))
    return call("date_add", literal("day"), start, literal(-1))


def _make_date(reader: Reader, node: Node) -> Expression:
    """make_date(y, m, d), NULL where there is no such day."""
    only(node, "year", "month", "day")
    written: Expression = literal("")
    for name, size, most in (("year", 4, 9999), ("month", 2, 12), ("day", 2, 31)):
        number = reader.read(node.args[name])
        whole = number if number.type == "integer" else call("cast_integer", number)
        within = call(
            "and", call("greater_equal", whole, literal(1)), call("less_equal", whole, literal(most))
        )
        digits = call("cast_text", call("add", case([(within, whole)]), literal(10**size)))
        part = call("substring", digits, literal(2))
        written = part if size == 4 else call("concat", call("concat", written, literal("-")), part)
    return call("cast_date", written)


def _scaled(factor: float) -> Callable[[Reader, Node], Expression]:
    def handler(reader: Reader, node: Node) -> Expression:
        only(node, "this")
        return call("multiply", reader.read(node.this), literal(factor))

    return handler


def _cot(reader: Reader, node: Node) -> Expression:
    only(node, "this")
    return call("divide", literal(1.0), call("tan", reader.read(node.this)))


def _atan2(reader: Reader, node: Node) -> Expression:
    only(node, "this", "expression")
    return call("atan2", reader.read(node.this), reader.read(node.expression))


def _strptime(value: Expression, form: str) -> Expression:
    if len(form) > _LONGEST or not _FORMAT.fullmatch(form):
        raise refuse("function that is not known", "strptime with this format")
    return call("strptime", value, literal(form))


def _str_to_time(reader: Reader, node: Node) -> Expression:
    only(node, "this", "format")
    return _strptime(reader.read(node.this), text_of(node.args["format"]))


def _year(day: Expression) -> Expression:
    return call("extract", literal("year"), day)


PARTS_OF: Mapping[str, Callable[[Expression], Expression]] = {
    "decade": lambda day: call("integer_divide", _year(day), literal(10)),
    "century": lambda day: call("integer_divide", call("add", _year(day), literal(99)), literal(100)),
    "millennium": lambda day: call("integer_divide", call("add", _year(day), literal(999)), literal(1000)),
    "yearweek": lambda day: call(
        "add",
        call("multiply", call("extract", literal("isoyear"), day), literal(100)),
        call("extract", literal("week"), day),
    ),
}
"""Parts of a date that are functions of other parts."""


def named(reader: Reader, node: Node) -> Expression:
    """A function that sqlglot has no name for."""
    name, given = str(node.this).lower(), [reader.read(each) for each in node.expressions[:1]]
    if name in PARTS_OF and len(node.expressions) == 1:
        return PARTS_OF[name](day_of(given[0]))
    if name == "isoyear" and len(node.expressions) == 1:
        return call("extract", literal("isoyear"), day_of(given[0]))
    if name == "try_strptime" and len(node.expressions) == 2:
        return _strptime(given[0], text_of(node.expressions[1]))
    if name == "isfinite" and len(given) == len(node.expressions) == 1 and given[0].type == "real":
        return call("less_equal", call("abs", given[0]), literal(1.7976931348623157e308))
    raise unknown(node)


_MORE: dict[type[Node], Callable[[Reader, Node], Expression]] = {
    exp.Left: _left,
    exp.Right: _right,
    exp.Pad: _pad,
    exp.Repeat: _repeat,
    exp.ConcatWs: _concat_ws,
    exp.StrPosition: _position,
    exp.SplitPart: _split_part,
    exp.LastDay: _last_day,
    exp.DateFromParts: _make_date,
    exp.Degrees: _scaled(57.29577951308232),
    exp.Radians: _scaled(0.017453292519943295),
    exp.Cot: _cot,
    exp.Atan2: _atan2,
    exp.StrToTime: _str_to_time,
}
HANDLERS.update(_MORE)
