"""Columns of texts: which type each has, told by its first cells, and how its cells are read as that type.

A column has the first of these types that nine in ten of its first cells can be read as: boolean, integer,
real, date, time stamp, else text. Numbers and dates are read in one form for all columns (`forms`). A cell
that cannot be read as its column's type is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument
from dalenius.tables.sources.forms import ABSENT, DATES, ISO, Form, formats, settled
from dalenius.tables.sources.kinds import literal, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

CELLS = 10_000
"""Cells by which the type of a column is told."""
_KINDS = ("BOOLEAN", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP")
_NUMBERS = re.compile(
    r"(TINY|SMALL|BIG|HUGE|UTINY|USMALL|UBIG|UHUGE)?INT(EGER)?[1248]?|UINTEGER|SHORT|LONG|FLOAT[48]?|REAL|DOUBLE|"
    r"(DECIMAL|NUMERIC|DEC)(\(.*\))?",
    re.IGNORECASE,
)
_MOMENTS = re.compile(r"TIMESTAMP(_S|_MS|_NS)?|DATETIME", re.IGNORECASE)
_GROUPS = "[. '\u00a0\u202f]"
"""What stands between groups of three digits where the decimal mark is a comma."""
_WITH_COMMA = f"[+-]?([0-9]{{1,3}}({_GROUPS}[0-9]{{3}})+|[0-9]*)(,[0-9]*)?([eE][+-]?[0-9]+)?"
_DATED = "[0-9]{4}-[0-9]{2}-[0-9]{2}"


def guess(
    connection: DuckDBPyConnection, source: str, columns: Sequence[str], form: Form | None = None
) -> Form:
    """Return a form with a type for each of the columns of what goes behind FROM.

    Args:
        connection: Where it is read.
        source: The columns, of texts.
        columns: The names of those that tell the decimal mark and dates, and types where none is known.
        form: What is known already.
    """
    from duckdb import Error

    known = form or Form()
    tests = _tests(known)
    counted = [
        f"count(*) FILTER (WHERE {test.format(quoted(c))})" for c in columns for test in tests.values()
    ]
    absent = ", ".join(literal(text) for text in (*ABSENT, *known.null))
    there = [f"count(*) FILTER (WHERE trim({quoted(c)}) NOT IN ('', {absent}))" for c in columns]
    first = f"(SELECT * FROM {source} LIMIT {CELLS})"
    row: Sequence[int] = (0,) * (len(counted) + len(there))
    if columns:
        # Where they cannot be read, they are texts.
        with suppress(Error):
            (row,) = connection.execute(f"SELECT {', '.join([*counted, *there])} FROM {first}").fetchall()
    step = len(tests)
    seen = {
        column: _Seen(dict(zip(tests, row[step * i : step * (i + 1)], strict=True)), row[len(counted) + i])
        for i, column in enumerate(columns)
    }
    decimal = known.decimal or _decimal(list(seen.values()))
    dates = known.dates or _dates(list(seen.values()))
    types = {column: each.kind(decimal, dates) for column, each in seen.items()}
    return settled(known, types, decimal, dates)


class _Seen:
    """How many cells of a column pass each test, and how many there are."""

    def __init__(self, counts: Mapping[tuple[str, str], int], there: int) -> None:
        self.counts, self.there = counts, there

    def fits(self, kind: str, form: str = "") -> bool:
        """Whether nine in ten cells pass a test."""
        return self.there > 0 and 10 * self.counts.get((kind, form), 0) >= 9 * self.there

    def kind(self, decimal: str, dates: str) -> str:
        """The first type that fits."""
        forms = {"BIGINT": decimal, "DOUBLE": decimal, "DATE": dates, "TIMESTAMP": dates}
        return next((kind for kind in _KINDS if self.fits(kind, forms.get(kind, ""))), "VARCHAR")


def _tests(form: Form) -> dict[tuple[str, str], str]:
    """What a cell must pass to be of a type, in each form that may be the file's."""
    found = {("BOOLEAN", ""): "regexp_full_match(lower(trim({0})), 'true|false')"}
    for decimal in (form.decimal,) if form.decimal else (".", ","):
        if decimal == ".":
            found["BIGINT", "."] = "regexp_full_match(trim({0}), '[+-]?[0-9]{{1,18}}')"
            found["DOUBLE", "."] = "TRY_CAST(trim({0}) AS DOUBLE) IS NOT NULL"
        else:
            whole = f"[+-]?([0-9]{{1,3}}({_GROUPS}[0-9]{{3}}){{1,5}}|[0-9]{{1,18}})"
            found["BIGINT", ","] = _escaped("regexp_full_match(trim({0}), " + literal(whole) + ")")
            found["DOUBLE", ","] = _escaped(f"TRY_CAST({_number('trim({0})')} AS DOUBLE) IS NOT NULL")
    for dates in (form.dates,) if form.dates else DATES:
        if dates == ISO:
            found["DATE", ISO] = _escaped("regexp_full_match(trim({0}), " + literal(_DATED) + ")")
            found["TIMESTAMP", ISO] = "TRY_CAST(trim({0}) AS TIMESTAMP) IS NOT NULL"
        else:
            # A cheap look first: most cells are no dates.
            shape = re.sub("DD|MM", "[0-9]{1,2}", re.escape(dates).replace("YYYY", "[0-9]{4}"))
            plain = "regexp_full_match(trim({0}), " + literal(shape) + ")"
            timed = "regexp_full_match(trim({0}), " + literal(f"{shape}( [0-9:.]*)?") + ")"
            day = f"try_strptime(trim({{0}}), {literal(formats(dates)[0])})"
            moment = _moment("trim({0})", dates)
            found["DATE", dates] = f"CASE WHEN {_escaped(plain)} THEN {day} END IS NOT NULL"
            found["TIMESTAMP", dates] = f"CASE WHEN {_escaped(timed)} THEN {moment} END IS NOT NULL"
    return found


def _escaped(test: str) -> str:
    """With braces as `format` wants them, but for the place of the column."""
    return test.replace("{", "{{").replace("}", "}}").replace("{{0}}", "{0}")


def _decimal(seen: Sequence[_Seen]) -> str:
    comma = sum(each.fits("DOUBLE", ",") and not each.fits("DOUBLE", ".") for each in seen)
    point = sum(
        each.fits("DOUBLE", ".") and not each.fits("BIGINT", ".") and not each.fits("BIGINT", ",")
        for each in seen
    )
    return "," if comma > point else "."


def _dates(seen: Sequence[_Seen]) -> str:
    """The form by which most columns are dates; of two by which as many are, that of more cells, or none."""
    open_ = [each for each in seen if not each.fits("DATE", ISO) and not each.fits("TIMESTAMP", ISO)]
    votes = {
        dates: (
            sum(each.fits("TIMESTAMP", dates) for each in open_),
            sum(each.counts.get(("TIMESTAMP", dates), 0) for each in open_ if each.fits("TIMESTAMP", dates)),
        )
        for dates in DATES[1:]
    }
    most = max(votes.values())
    best = [dates for dates, vote in votes.items() if vote == most]
    return best[0] if most[0] and len(best) == 1 else ISO


def _number(text: str) -> str:
    """SQL for a number with a decimal comma as one with a point; NULL where it is none."""
    bare = f"translate({text}, {literal('. ' + chr(39) + chr(0xA0) + chr(0x202F))}, '')"
    plain = f"replace({bare}, ',', '.')"
    return f"CASE WHEN regexp_full_match({text}, {literal(_WITH_COMMA)}) THEN {plain} END"


def _moment(text: str, dates: str) -> str:
    return f"try_strptime({text}, [{', '.join(literal(each) for each in formats(dates))}])"


def cell(column: str, kind: str, form: Form | None = None) -> str:
    """SQL for a column of texts as its type, under the same name; an empty text is NULL."""
    # A cast alone would be done by a scan of CSV, here or by a query, and that leaves out lines it does not
    # fit.
    known = form or Form()
    text = f"nullif(concat({column}), '')"
    if known.null:
        text = f"CASE WHEN {text} NOT IN ({', '.join(map(literal, known.null))}) THEN {text} END"
    if kind == "VARCHAR":
        return f"{text} AS {column}"
    plain = f"trim({text})"
    if known.decimal == "," and _NUMBERS.fullmatch(kind):
        plain = _number(plain)
    elif known.dates not in (None, ISO) and (kind.upper() == "DATE" or _MOMENTS.fullmatch(kind)):
        plain = _moment(plain, str(known.dates))
    return f"TRY_CAST({plain} AS {kind}) AS {column}"


def check_types(name: str, names: Sequence[str], types: Mapping[str, str]) -> None:
    """Refuse types of columns that are not there, and what is no type."""
    unknown = sorted(set(types) - set(names))
    if unknown:
        raise InvalidArgument(
            f"There is no column {unknown[0]} in {name}.", remedy=f"Columns are {', '.join(names)}."
        )
    for column, kind in types.items():
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*(\(\d+(,\s*\d+)?\))?", kind):
            raise InvalidArgument(
                f"{kind} is no type for {column}.", remedy="Use a type of DuckDB, such as BIGINT or VARCHAR."
            )
