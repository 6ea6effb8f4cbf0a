"""Numbers in PostgreSQL's SQL, which raises an error where a number overflows, and where one underflows.

Each template asks first whether its arguments are far from every edge, as they nearly always are, and then
computes at once. Near the edges it computes with both arguments scaled by powers of two, which is exact, to
see whether there is a result: where it is too large it is an infinity, where too small it is 0. No NaN is
ever made: what would be one is NULL.

The planner evaluates functions of constants wherever they stand, also in branches that are never taken. So
each function that may fail has a condition of its own arguments alone in front of it: of constants, that is a
constant too, and the branch is gone.
"""

from __future__ import annotations

import math
import sys

from dalenius.tables.language.dialects.dialect import Templates

INLINE = 4_000
"""Characters up to which arguments are written as often as a template mentions them."""
_SHORT = 24
"""Characters of an argument that is not worth binding: a column, a small number."""


def bound(template: str, *arguments: str) -> str:
    """A template of arguments; long ones are evaluated once, in a subquery that the planner leaves alone."""
    inline = template.format(*arguments)
    if len(inline) <= INLINE:
        return inline
    return once(template, *arguments)


def once(template: str, *arguments: str) -> str:
    """A template of arguments that are evaluated once, but for those that are short.

    No template has a subquery of this name, so that what is bound is seen in its subqueries too.
    """
    names = [each if len(each) <= _SHORT else f"bound.x{i}" for i, each in enumerate(arguments)]
    bindings = [f"{each} AS x{i}" for i, each in enumerate(arguments) if len(each) > _SHORT]
    filled = template.format(*names)
    return f"(SELECT {filled} FROM (SELECT {', '.join(bindings)} OFFSET 0) AS bound)" if bindings else filled


def number(value: float) -> str:
    """A real number in SQL, to the last bit."""
    return f"CAST('{value!r}' AS float8)"


def power_of_two(exponent: int) -> str:
    """A power of two as a real number."""
    return number(math.ldexp(1.0, exponent))


INFINITY, BELOW, ZERO, ONE = number(math.inf), number(-math.inf), number(0.0), number(1.0)
LEAST, MOST = "CAST('-9223372036854775808' AS bigint)", "CAST('9223372036854775807' AS bigint)"
"""Of whole numbers."""
_NEAR = number(9.2e18)
_LOW, _HIGH = number(1e-150), number(1e150)
_SIGNED = f"CASE WHEN ({{0}} < {ZERO}) = ({{1}} < {ZERO}) THEN {INFINITY} ELSE {BELOW} END"


def _whole(sign: str) -> str:
    """A sum, difference or product of whole numbers: first in real numbers, then in decimal ones."""
    near = f"abs(CAST({{0}} AS float8) {sign} CAST({{1}} AS float8)) < {_NEAR}"
    far = f"CAST({{0}} AS numeric) {sign} CAST({{1}} AS numeric) BETWEEN {LEAST} AND {MOST}"
    return f"CASE WHEN {near} THEN {{0}} {sign} {{1}} WHEN {far} THEN {{0}} {sign} {{1}} END"


INTEGER: Templates = {
    "add": _whole("+"),
    "subtract": _whole("-"),
    "multiply": _whole("*"),
    "modulo": "CASE WHEN {1} <> 0 THEN {0} % {1} END",
    "integer_divide": f"CASE WHEN {{1}} = -1 THEN CASE WHEN {{0}} > {LEAST} THEN -({{0}}) END "
    f"WHEN {{1}} <> 0 THEN {{0}} / {{1}} END",
    "negate": f"CASE WHEN {{0}} > {LEAST} THEN -({{0}}) END",
    "abs": f"CASE WHEN {{0}} > {LEAST} THEN abs({{0}}) END",
    "floor": "{0}",
    "ceil": "{0}",
    "trunc": "{0}",
    "sign": "CAST(sign(CAST({0} AS float8)) AS bigint)",
}

_FLOAT_MOST = 3.4028235677973366e38
"""Real numbers from here on are beyond 32 bits, rounded to the nearest."""
_FLOAT_LEAST = 7.006492321624085e-46
"""Half of the least real number of 32 bits: to there, the nearest is 0."""


def _sum(sign: str) -> str:
    safe, other = number(8e307), "<>" if sign == "-" else "<> -"
    half = f"{{0}} * {number(0.5)} {sign} {{1}} * {number(0.5)}"
    return (
        f"CASE WHEN abs({{0}}) < {safe} AND abs({{1}}) < {safe} THEN {{0}} {sign} {{1}} "
        f"WHEN abs({{0}}) < {ONE} OR abs({{1}}) < {ONE} THEN {{0}} {sign} {{1}} "
        f"WHEN abs({{0}}) = {INFINITY} OR abs({{1}}) = {INFINITY} "
        f"THEN CASE WHEN {{0}} {other} {{1}} THEN {{0}} {sign} {{1}} END "
        f"WHEN abs({half}) < {power_of_two(1023)} THEN {{0}} {sign} {{1}} "
        f"WHEN {{1}} IS NOT NULL THEN CASE WHEN {{0}} > {ZERO} THEN {INFINITY} "
        f"WHEN {{0}} < {ZERO} THEN {BELOW} END END"
    )


def _product() -> str:
    down = f"({{0}} * {power_of_two(-512)}) * ({{1}} * {power_of_two(-512)})"
    up = f"({{0}} * {power_of_two(511)}) * ({{1}} * {power_of_two(511)})"
    tiny = power_of_two(-540)
    return (
        f"CASE WHEN abs({{0}}) BETWEEN {_LOW} AND {_HIGH} AND abs({{1}}) BETWEEN {_LOW} AND {_HIGH} "
        f"THEN {{0}} * {{1}} "
        f"WHEN {{0}} = {ZERO} AND abs({{1}}) < {INFINITY} OR {{1}} = {ZERO} AND abs({{0}}) < {INFINITY} "
        f"THEN {ZERO} "
        f"WHEN abs({{0}}) = {INFINITY} OR abs({{1}}) = {INFINITY} "
        f"THEN CASE WHEN {{0}} <> {ZERO} AND {{1}} <> {ZERO} THEN {{0}} * {{1}} END "
        f"WHEN abs({{0}}) >= {ONE} AND abs({{1}}) >= {ONE} "
        f"THEN CASE WHEN abs({down}) < {ONE} THEN {{0}} * {{1}} ELSE {_SIGNED} END "
        f"WHEN abs({{0}}) < {ONE} AND abs({{1}}) < {ONE} "
        f"THEN CASE WHEN abs({{0}}) < {tiny} AND abs({{1}}) < {tiny} THEN {ZERO} "
        f"WHEN abs({up}) > {power_of_two(-53)} THEN {{0}} * {{1}} ELSE {ZERO} END "
        f"ELSE {{0}} * {{1}} END"
    )


def _quotient() -> str:
    down = f"({{0}} * {power_of_two(-256)}) / ({{1}} * {power_of_two(511)})"
    up = f"({{0}} * {power_of_two(511)}) / ({{1}} * {power_of_two(-256)})"
    return (
        f"CASE WHEN abs({{0}}) BETWEEN {_LOW} AND {_HIGH} AND abs({{1}}) BETWEEN {_LOW} AND {_HIGH} "
        f"THEN {{0}} / {{1}} "
        f"WHEN {{1}} = {ZERO} THEN NULL WHEN {{0}} = {ZERO} AND {{1}} <> {ZERO} THEN {ZERO} "
        f"WHEN abs({{0}}) = {INFINITY} THEN CASE WHEN abs({{1}}) < {INFINITY} THEN {_SIGNED} END "
        f"WHEN abs({{1}}) = {INFINITY} THEN CASE WHEN {{0}} IS NOT NULL THEN {ZERO} END "
        f"WHEN abs({{1}}) < {ONE} THEN CASE WHEN abs({{0}}) < {power_of_two(-60)} THEN {{0}} / {{1}} "
        f"WHEN abs({{0}}) >= {power_of_two(500)} AND abs({{1}}) < {power_of_two(-530)} THEN {_SIGNED} "
        f"WHEN abs({down}) < {power_of_two(257)} THEN {{0}} / {{1}} "
        f"WHEN {{0}} IS NOT NULL THEN {_SIGNED} END "
        f"WHEN abs({{0}}) >= {power_of_two(60)} THEN {{0}} / {{1}} "
        f"WHEN abs({{0}}) < {power_of_two(-540)} AND abs({{1}}) >= {power_of_two(540)} THEN {ZERO} "
        f"WHEN abs({up}) > {power_of_two(-308)} THEN {{0}} / {{1}} "
        f"WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {ZERO} END"
    )


_BITS = "CAST(CAST('x' || encode(float8send(abs({0})), 'hex') AS bit(64)) AS bigint)"
_EXACT = 2**53


def _remainder() -> str:
    """That of real numbers, exact: of whole numbers at once, else of the whole parts of their IEEE forms."""
    whole = " AND ".join(f"{each} = trunc({each}) AND abs({each}) < {_EXACT}" for each in ("{0}", "{1}"))
    bits = f"SELECT {_BITS.format('{0}')} AS b0, {_BITS.format('{1}')} AS b1 OFFSET 0"
    parts = ", ".join(
        f"(b{i} & 4503599627370495) + CASE WHEN b{i} >> 52 > 0 THEN 4503599627370496 ELSE 0 END AS m{i}, "
        f"CAST(greatest(b{i} >> 52, 1) - 1075 AS integer) AS e{i}"
        for i in (0, 1)
    )
    left = "CAST((CAST(m0 AS numeric) * power(CAST(2 AS numeric), e0 - e1)) % m1 AS bigint)"
    exact = (
        f"(SELECT CASE WHEN {{0}} < {ZERO} THEN {number(-1.0)} ELSE {ONE} END * CAST({left} AS float8) * "
        f"power({number(2.0)}, CAST(e1 AS float8)) "
        f"FROM (SELECT {parts} FROM ({bits}) AS bits OFFSET 0) AS parts)"
    )
    return (
        f"CASE WHEN {{1}} = {ZERO} OR abs({{0}}) = {INFINITY} THEN NULL "
        f"WHEN abs({{0}}) < abs({{1}}) THEN {{0}} "
        f"WHEN {whole} THEN CAST(CAST({{0}} AS bigint) % CAST({{1}} AS bigint) AS float8) "
        f"WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {exact} END"
    )


def _power() -> str:
    odd = f"{{1}} = trunc({{1}}) AND abs({{1}}) < {power_of_two(53)} AND CAST({{1}} AS bigint) % 2 <> 0"
    logarithm = "{1} * ln(abs({0}))"
    far = f"CASE WHEN (abs({{0}}) > {ONE}) = ({{1}} > {ZERO}) THEN {INFINITY} ELSE {ZERO} END"
    turned = f"CASE WHEN {{0}} < {ZERO} AND {odd} THEN {BELOW} ELSE {INFINITY} END"
    held = f"CASE WHEN abs({{1}}) BETWEEN {number(1e-300)} AND {number(1e300)} AND {{0}} <> {ZERO} "
    return (
        f"CASE WHEN {{0}} = {ONE} OR {{1}} = {ZERO} "
        f"THEN CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {ONE} END "
        f"WHEN {{0}} = {ZERO} THEN CASE WHEN {{1}} > {ZERO} THEN {ZERO} "
        f"WHEN {{1}} < {ZERO} THEN {INFINITY} END "
        f"WHEN abs({{1}}) = {INFINITY} THEN CASE WHEN {{0}} = {number(-1.0)} THEN {ONE} "
        f"WHEN {{0}} IS NOT NULL THEN {far} END "
        f"WHEN abs({{0}}) = {INFINITY} THEN CASE WHEN {{1}} > {ZERO} THEN {turned} "
        f"WHEN {{1}} < {ZERO} THEN {ZERO} END "
        f"WHEN {{0}} < {ZERO} AND {{1}} <> trunc({{1}}) THEN NULL "
        f"WHEN abs({{1}}) < {number(1e-300)} THEN CASE WHEN {{0}} IS NOT NULL THEN {ONE} END "
        f"WHEN abs({{1}}) > {number(1e300)} THEN CASE WHEN {{0}} = {number(-1.0)} THEN {ONE} "
        f"WHEN {{0}} IS NOT NULL THEN {far} END "
        f"WHEN {held} THEN {logarithm} END < {number(-745.13)} THEN {ZERO} "
        f"WHEN {held} THEN {logarithm} END < {number(709.7827128933)} THEN power({{0}}, {{1}}) "
        f"WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {turned} END"
    )


def rounded(sql: str) -> str:
    """A real number to the nearest whole one, halves away from zero."""
    two = f"trunc(({{0}} - trunc({{0}})) * {number(2.0)})"
    return bound(f"CASE WHEN abs({{0}}) < {power_of_two(52)} THEN trunc({{0}}) + {two} ELSE {{0}} END", sql)


def rounded_to(sql: str, digits: int) -> str:
    """A real number to so many places behind the point, or before it."""
    step = number(float(10 ** abs(digits)))
    if digits >= 0:
        most = number(math.nextafter(sys.float_info.max / float(10**digits), 0.0))
        inner = rounded(f"({{0}} * {step})") if digits else rounded("{0}")
        return bound(f"CASE WHEN abs({{0}}) <= {most} THEN ({inner}) / {step} ELSE {{0}} END", sql)
    least = number(0.25 * float(10**-digits))
    inner = rounded(f"({{0}} / {step})")
    product = bound(REAL["multiply"], f"({inner})", step)
    near = f"CASE WHEN abs({{0}}) < {least} THEN {ZERO}"
    most = number(_most(float(10**-digits)))
    return bound(f"{near} WHEN abs({{0}}) <= {most} THEN {product} ELSE {{0}} END", sql)


def _most(step: float) -> float:
    """The largest real number that is finite when it is rounded to multiples of a step."""
    low, high = sys.float_info.max / 2, sys.float_info.max
    while low < high:
        middle = max(low + (high - low) / 2, math.nextafter(low, math.inf))
        whole = math.floor(middle / step)
        up = math.floor((middle / step - whole) * 2)
        low, high = (low, math.nextafter(middle, 0.0)) if math.isinf((whole + up) * step) else (middle, high)
    return low


_LOG2 = f"ln({{0}}) / {number(math.log(2.0))}"
_FINITE = f"CASE WHEN abs({{0}}) < {INFINITY} THEN"
REAL: Templates = {
    "add": _sum("+"),
    "subtract": _sum("-"),
    "multiply": _product(),
    "divide": _quotient(),
    "modulo": _remainder(),
    "negate": "(-({0}))",
    "abs": "abs({0})",
    "sign": "CAST(sign({0}) AS bigint)",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "trunc": "trunc({0})",
    "sqrt": f"CASE WHEN {{0}} >= {ZERO} THEN sqrt({{0}}) END",
    "cbrt": "cbrt({0})",
    "ln": f"CASE WHEN {{0}} > {ZERO} THEN ln({{0}}) END",
    "log10": f"CASE WHEN {{0}} > {ZERO} THEN log10({{0}}) END",
    "log2": f"CASE WHEN {{0}} = {INFINITY} THEN {INFINITY} WHEN {{0}} > {ZERO} THEN CASE "
    f"WHEN abs({_LOG2}) < {number(1000.0)} AND power({number(2.0)}, round({_LOG2})) = {{0}} "
    f"THEN round({_LOG2}) ELSE {_LOG2} END END",
    "exp": f"CASE WHEN {{0}} > {number(709.782712893384)} THEN {INFINITY} "
    f"WHEN {{0}} < {number(-745.13)} THEN {ZERO} ELSE exp({{0}}) END",
    "power": _power(),
    "sin": f"{_FINITE} sin({{0}}) END",
    "cos": f"{_FINITE} cos({{0}}) END",
    "tan": f"{_FINITE} tan({{0}}) END",
    "atan": "atan({0})",
    "asin": f"CASE WHEN abs({{0}}) <= {ONE} THEN asin({{0}}) END",
    "acos": f"CASE WHEN abs({{0}}) <= {ONE} THEN acos({{0}}) END",
    "atan2": "atan2({0}, {1})",
    "to_float": f"CASE WHEN abs({{0}}) = {INFINITY} THEN {{0}} WHEN abs({{0}}) < {number(_FLOAT_MOST)} THEN "
    f"CASE WHEN abs({{0}}) > {number(_FLOAT_LEAST)} THEN CAST(CAST({{0}} AS float4) AS float8) "
    f"ELSE {ZERO} END END",
    "is_nan": "CASE WHEN {0} IS NOT NULL THEN FALSE END",
    "pi": "pi()",
}
