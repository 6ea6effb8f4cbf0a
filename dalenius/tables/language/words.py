"""Texts, dates and conversions, read into our expressions: more handlers for `reading`."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language import conversions, patterns
from dalenius.tables.language.expressions import (
    PARTS,
    WINDOWS,
    Expression,
    ExpressionType,
    as_type,
    call,
    literal,
)
from dalenius.tables.language.phrases import PARTS_OF, day_of, named, text
from dalenius.tables.language.reading import HANDLERS, Node, Reader, only, text_of
from dalenius.tables.language.refusals import refuse

_FORMAT = re.compile(r"(%[YmdHMSyjaAbBpIuwUWVGf%]|[^%])*")
_LONGEST = 100
_ALIASES = {
    "dow": "dayofweek",
    "weekday": "dayofweek",
    "doy": "dayofyear",
    "dayofmonth": "day",
    "weekofyear": "week",
    "dayofweekiso": "isodow",
    "dayofweek_iso": "isodow",
}


def part_named(name: str) -> str:
    """The name under which we know a part of a date."""
    lowered = name.lower().removesuffix("s")
    return _ALIASES.get(lowered, lowered)


def _joined(reader: Reader, node: Node) -> Expression:
    """a || b, which is NULL where one of them is."""
    only(node, "this", "expression")
    return call("concat", text(reader.read(node.this)), text(reader.read(node.expression)))


def _concat(reader: Reader, node: Node) -> Expression:
    """concat(a, b, …), which passes over NULL."""
    only(node, "expressions")
    parts = [call("coalesce", text(reader.read(each)), literal("")) for each in node.expressions]
    found = parts[0]
    for each in parts[1:]:
        found = call("concat", found, each)
    return found


def _trim(reader: Reader, node: Node) -> Expression:
    only(node, "this", "position")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
    return call(name, reader.read(node.this))


def _replace(reader: Reader, node: Node) -> Expression:
    only(node, "this", "expression", "replacement")
    old, new = text_of(node.expression), text_of(node.args["replacement"])
    if max(len(old), len(new)) > _LONGEST:
        raise refuse("clause that is not known", f"replace with more than {_LONGEST} characters")
    return call("replace", reader.read(node.this), literal(old), literal(new))


def _substring(reader: Reader, node: Node) -> Expression:
    only(node, "this", "start", "length")
    bounds = [reader.read(node.args[each]) for each in ("start", "length") if node.args.get(each) is not None]
    return call("substring", reader.read(node.this), *bounds)


def _date_trunc(reader: Reader, node: Node) -> Expression:
    only(node, "this", "unit")
    unit = node.args["unit"]
    window = part_named(unit.name)
    if window not in WINDOWS:
        raise refuse("function that is not known", f"date_trunc to {window}")
    return call("date_trunc", literal(window), day_of(reader.read(node.this)))


def extracted(part: str, when: Expression) -> Expression:
    """A part of a date."""
    name = part_named(part)
    if name in PARTS_OF:
        return PARTS_OF[name](day_of(when))
    if name == "epoch":
        return call("epoch", day_of(when))
    if name not in PARTS:
        raise refuse("function that is not known", f"extract {name}")
    return call("extract", literal(name), day_of(when))


def _extract(reader: Reader, node: Node) -> Expression:
    only(node, "this", "expression")
    return extracted(node.this.name, reader.read(node.expression))


def _part(name: str) -> Callable[[Reader, Node], Expression]:
    def handler(reader: Reader, node: Node) -> Expression:
        only(node, "this")
        return extracted(name, reader.read(node.this))

    return handler


def _date_diff(reader: Reader, node: Node) -> Expression:
    only(node, "this", "expression", "unit")
    part = part_named(node.args["unit"].name)
    if part not in WINDOWS:
        raise refuse("function that is not known", f"date_diff in {part}")
    start, end = day_of(reader.read(node.expression)), day_of(reader.read(node.this))
    return call("date_diff", literal(part), start, end)


def _strftime(reader: Reader, node: Node) -> Expression:
    only(node, "this", "format")
    form = text_of(node.args["format"])
    if len(form) > _LONGEST or not _FORMAT.fullmatch(form):
        raise refuse("function that is not known", "strftime with this format")
    return call("strftime", reader.read(node.this), literal(form))


def _named(name: str) -> Callable[[Reader, Node], Expression]:
    def handler(reader: Reader, node: Node) -> Expression:
        only(node, "this")
        return call(name, day_of(reader.read(node.this)))

    return handler


def _sum(name: str) -> Callable[[Reader, Node], Expression]:
    """a + b and a − b, of numbers, or of a date and days or an interval."""

    def handler(reader: Reader, node: Node) -> Expression:
        only(node, "this", "expression")
        if isinstance(node.expression, exp.Interval | exp.ToDays):
            sign = -1 if name == "subtract" else 1
            return _moved(reader, reader.read(node.this), node.expression, sign)
        a, b = reader.read(node.this), reader.read(node.expression)
        if name == "subtract" and a.type == b.type == "date":
            return call("date_diff", literal("day"), b, a)
        if a.type == "date" and b.type == "integer":
            return call("date_add", literal("day"), a, call("negate", b) if name == "subtract" else b)
        return call(name, a, b)

    return handler


def _moved(reader: Reader, when: Expression, interval: Node, sign: int) -> Expression:
    """A date plus so many days, months and so on: a literal, or a whole number of each row."""
    if isinstance(interval, exp.Interval):
        only(interval, "this", "unit")
        part, size = part_named(interval.unit.name if interval.unit else "day"), interval.this
    else:
        only(interval, "this")
        part, size = "day", interval.this
    steps: Expression | None = None
    if isinstance(size, exp.Literal) and re.fullmatch(r"-?\d{1,12}", size.name):
        steps = literal(sign * int(size.name))
    elif isinstance(size, exp.Expr) and not (isinstance(size, exp.Literal) and size.is_string):
        read = reader.read(size)
        steps = (call("negate", read) if sign < 0 else read) if read.type == "integer" else None
    if part not in WINDOWS or steps is None or when.type not in ("date", "moment"):
        raise refuse(
            "function that is not known", "an interval that is not a date and a whole number of units"
        )
    if when.type == "date" and part in ("second", "minute", "hour"):
        when = as_type(when, "moment")
    return call("date_add", literal(part), when, steps)


def _date_add(reader: Reader, node: Node) -> Expression:
    """date_add(d, INTERVAL …)."""
    only(node, "this", "expression")
    if not isinstance(node.expression, exp.Interval):
        raise refuse("function that is not known", "date_add of something that is not an INTERVAL")
    return _moved(reader, day_of(reader.read(node.this)), node.expression, 1)


def _anonymous(reader: Reader, node: Node) -> Expression:
    """Functions that sqlglot has no name for."""
    name, given = str(node.this).lower(), node.expressions
    if name in ("date_part", "datepart") and len(given) == 2:
        return extracted(text_of(given[0]), reader.read(given[1]))
    if name in ("prefix", "suffix") and len(given) == 2:
        found = "starts_with" if name == "prefix" else "ends_with"
        return call(found, *(reader.read(each) for each in given))
    if name == "isodow" and len(given) == 1:
        return extracted(name, reader.read(given[0]))
    return named(reader, node)


def check_types(expression: Expression, wanted: ExpressionType, what: str) -> Expression:
    """Refuse an expression of another type."""
    if expression.type not in (wanted, "null"):
        raise InvalidArgument(f"{what} must be {wanted}.", remedy="Write a comparison, such as x > 0.")
    return expression


_MORE: dict[type[Node], Callable[[Reader, Node], Expression]] = {
    exp.DPipe: _joined,
    exp.Concat: _concat,
    exp.Trim: _trim,
    exp.Replace: _replace,
    exp.Substring: _substring,
    exp.TimestampTrunc: _date_trunc,
    exp.DateTrunc: _date_trunc,
    exp.Extract: _extract,
    exp.DateDiff: _date_diff,
    exp.DateAdd: _date_add,
    exp.TimeToStr: _strftime,
    exp.Dayname: _named("dayname"),
    exp.Monthname: _named("monthname"),
    exp.TimeToUnix: _named("epoch"),
    exp.Add: _sum("add"),
    exp.Sub: _sum("subtract"),
    exp.Anonymous: _anonymous,
    **{
        kind: _part(name)
        for kind, name in {
            exp.Year: "year", exp.Quarter: "quarter", exp.Month: "month", exp.Week: "week",
            exp.WeekOfYear: "week", exp.Day: "day", exp.DayOfMonth: "day", exp.DayOfWeek: "dayofweek",
            exp.DayOfWeekIso: "isodow", exp.DayOfYear: "dayofyear", exp.Hour: "hour",
            exp.Minute: "minute", exp.Second: "second",
        }.items()
    },
}  # fmt: skip
HANDLERS.update(_MORE)
REGISTERED = (conversions.__name__, patterns.__name__)
"""Modules whose handlers are there as soon as this one is."""
