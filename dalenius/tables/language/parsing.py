"""`ask`: from SQL to a `Question`.

    >>> from dalenius.privacy.unit import Unit
    >>> from dalenius.tables.schema import Private, Schema
    >>> visits = Private("visits", {"patient_id": "integer", "ward": "text"}, Unit("patient", "patient_id"))
    >>> question = ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", Schema((visits,)))
    >>> [output.name for output in question.outputs], question.keys is None
    (['ward', 'n'], True)

The outermost SELECT is what is answered privately; everything below it is done within units.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from functools import partial

from sqlglot import ParseError, TokenError, exp, parse, tokenize

from dalenius.errors import InvalidArgument, Unsupported
from dalenius.tables.language.aggregating import Grouping, has_aggregate
from dalenius.tables.language.beliefs import is_part
from dalenius.tables.language.grouped_windows import apart
from dalenius.tables.language.grouping_sets import has_sets
from dalenius.tables.language.modes import has_mode, mode_question
from dalenius.tables.language.outer import answer_below, is_distinct, is_windowed, outer_question
from dalenius.tables.language.outermost import Outermost
from dalenius.tables.language.public_keys import Given
from dalenius.tables.language.queries import Environment, read_from
from dalenius.tables.language.reading import Reader, only
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.select_lists import aliases_of, items_of, key_nodes, key_sets
from dalenius.tables.question import Question
from dalenius.tables.schema import Schema, folded, is_unicode

# What sqlglot has to say of statements it cannot parse, we say ourselves, in an error.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_LONGEST = 200_000
"""Characters of a query, and a tenth of those of what is read."""
_MIXED = (
    "GROUP BY without the unit",
    "SELECT DISTINCT without the unit",
    "LIMIT in a subquery",
    "combining",
    "GROUPING SETS",
)
"""How refusals begin of what is no relation of rows that belong to units each."""
_CLAUSES = (
    "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_",
)  # fmt: skip


def ask(sql: str, schema: Schema, *, keys: Given | None = None, dialect: str = "duckdb") -> Question:
    """The question that a query asks. No data is read, but for public tables that list the groups."""
    try:
        return question_of(parsed(sql, dialect, names_in(schema)), schema, keys)
    except RecursionError:
        raise InvalidArgument(
            "The query is nested too deeply.", remedy="Write it with fewer parentheses and subqueries."
        ) from None


def parsed(sql: str, dialect: str = "duckdb", names: Collection[str] = ()) -> exp.Select:
    """The one SELECT that a text holds; `names` are those of columns, which must be quoted if reserved."""
    if not isinstance(sql, str) or len(sql) > _LONGEST or not is_unicode(sql):
        raise InvalidArgument(
            "The query is no text of whole characters, or too long.",
            remedy=f"Send at most {_LONGEST} characters, and no lone surrogates.",
        )
    try:
        statements = [each for each in parse(sql, dialect=dialect) if each is not None]
    except (ParseError, TokenError) as error:
        remedy = "Mend it there; a query reads like SELECT ward, COUNT(*) FROM visits GROUP BY ward."
        words = reserved(sql, names, dialect)
        if words:
            quoted = " and ".join(f'"{word}"' for word in words)
            remedy = f"{' and '.join(words)} cannot stand alone as a name: write {quoted}, in double quotes."
        raise InvalidArgument(_place(error), remedy=remedy) from None
    if len(statements) != 1:
        raise refuse("statement other than one SELECT")
    if "~" in sql and any(token.text in ("~", "!~") for token in tokenize(sql, read=dialect)):
        raise refuse("clause that is not known", "~, which says either part or whole of a text")
    statement = statements[0].unnest() if isinstance(statements[0], exp.Subquery) else statements[0]
    if isinstance(statement, exp.SetOperation):
        raise refuse("UNION ALL of answers")
    if not isinstance(statement, exp.Select):
        raise refuse("statement other than one SELECT")
    return statement


def names_in(schema: Schema) -> set[str]:
    """The names of all columns and tables."""
    return {name for table in schema.tables for name in (table.name, *table.columns)}


def reserved(sql: str, names: Collection[str], dialect: str) -> list[str]:
    """The names that a query uses without quotes and that are words of SQL."""
    bare = {folded(word) for word in re.findall(r"\w+", re.sub(r"\"[^\"]*\"|'[^']*'", " ", sql))}
    return sorted(name for name in names if folded(name) in bare and not _is_name(name, dialect))


def _is_name(word: str, dialect: str) -> bool:
    """Whether a word is read as the name of a column wherever one may stand."""
    text = f"SELECT {word}, AVG({word}) FROM t WHERE {word} > 3 GROUP BY {word} ORDER BY {word}, x"
    try:
        (statement,) = parse(text, dialect=dialect)
    except (ParseError, TokenError, ValueError):
        return False
    return (
        statement is not None
        and len([each for each in statement.find_all(exp.Column) if each.name == word]) == 5
    )


def question_of(
    select: exp.Select, schema: Schema, given: Given | None = None, *, below: bool = False
) -> Question:
    """The question that a parsed SELECT asks: of private tables, or of an answer to another SELECT.

    `below` says that it is the answer which another SELECT reads.
    """
    read = partial(question_of, schema=schema, given=given, below=below)
    if has_mode(select):
        answer, outer = apart(select)
        return outer_question(answer, outer, schema, partial(mode_question, read=read))
    if is_windowed(select):
        return outer_question(*apart(select), schema, read)
    inner = answer_below(select)
    if inner is None:
        return _question(select, schema, given, below=below)
    try:
        return _question(select, schema, given, below=below)
    except Unsupported as error:
        refused = error
    # What is below is perhaps no relation of rows that belong to units each, but an answer.
    try:
        return outer_question(inner, select, schema, partial(read, below=True))
    except Unsupported as error:
        units = error.problem.startswith(("GROUP BY the unit", "GROUP BY without the unit"))
        raise (error if refused.problem.startswith(_MIXED) and not units else refused) from None


def _question(select: exp.Select, schema: Schema, given: Given | None, *, below: bool) -> Question:
    """The question that a SELECT of private tables asks."""
    if select.args.get("qualify") or select.args.get("windows"):
        raise refuse("window in a grouped or outermost SELECT")
    only(select, *_CLAUSES, "distinct")
    relation, scope = read_from(select, Environment(schema).opened(select), outermost=True)
    if relation.facts.public:
        raise refuse("query without a private table")
    items = items_of(select, scope)
    aggregated = any(has_aggregate(node) for _, node in items)
    distinct = is_distinct(select, grouped=aggregated)
    if not select.args.get("group") and not aggregated and not distinct:
        raise refuse("SELECT of rows")
    rows = Reader(scope, aliases_of(select))
    sets = key_sets(select, scope) if has_sets(select) else ()
    nodes = [node for _, node in items] if distinct else [*sets[0]] if sets else key_nodes(select, scope)
    nodes += [node for each in sets for node in each]
    keys = list(dict.fromkeys(rows.read(node) for node in nodes))
    if below and any(is_part(relation, key) for key in keys):
        # Groups of a part of the unit are rarely large enough to be shown: units were meant.
        raise refuse("GROUP BY without the unit in a subquery")
    grouping = Grouping(rows, keys, fields=relation.facts.fields)
    kept = tuple(tuple(dict.fromkeys(keys.index(rows.read(node)) for node in each)) for each in sets)
    return Outermost(select, schema, relation, grouping, items, scope.padded, kept).question(given)


def _place(error: ParseError | TokenError) -> str:
    details = getattr(error, "errors", None) or [{}]
    line, column = details[0].get("line"), details[0].get("col")
    where = f" at line {line}, column {column}" if line else ""
    return f"The query cannot be read{where}."
