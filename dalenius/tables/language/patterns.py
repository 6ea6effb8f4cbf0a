r"""Regular expressions, read into our expressions: handlers for `reading`.

DuckDB matches with RE2, whose time is linear in the text and which never fails once a pattern is compiled: it
neither backtracks nor grows its memory beyond a fixed bound. So a match is a total function of the one text.
A pattern must be written in the query, and is compiled by DuckDB when the query is read: what it does not
take is refused before anything is charged. A replacement may not refer to groups of the pattern. PostgreSQL
and Spark match by backtracking, in a time that the text can make as long as it likes, or fail: there, a
regular expression is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from sqlglot import exp

from dalenius.tables.language.expressions import Expression, call, literal
from dalenius.tables.language.reading import HANDLERS, Node, Reader, only, text_of, whole_of
from dalenius.tables.language.refusals import refuse

if TYPE_CHECKING:
    import duckdb

_LONGEST = 1_000
_MOST_GROUPS = 9


def _pattern(node: Node | None, flags: str = "") -> Expression:
    """A pattern that RE2 takes."""
    written = text_of(node)
    if len(written) > _LONGEST or not _compiles(written, flags):
        raise refuse("regular expression", "this pattern")
    return literal(written)


@cache
def _compiler() -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect()


def _compiles(pattern: str, flags: str) -> bool:
    import duckdb

    try:
        _compiler().cursor().execute("SELECT regexp_matches('', ?, ?)", [pattern, flags.replace("g", "")])
    except duckdb.Error:
        return False
    return True


def _flags(node: Node | None, known: str = "cis") -> str:
    """Options: whether case matters, whether a point is a new line too, and `g` to replace each match."""
    flags = "" if node is None else text_of(node)
    if set(flags) - set(known) or len(flags) > len(known):
        raise refuse("regular expression", f"options other than {known}")
    return flags


def _matched(name: str) -> Callable[[Reader, Node], Expression]:
    def handler(reader: Reader, node: Node) -> Expression:
        only(node, "this", "expression", "flag", "options")
        flags = _flags(node.args.get("flag") or node.args.get("options"))
        return call(name, reader.read(node.this), _pattern(node.expression, flags), literal(flags))

    return handler


def _extracted(reader: Reader, node: Node) -> Expression:
    only(node, "this", "expression", "group", "parameters", "null_if_pos_overflow")
    flags, group = _flags(node.args.get("parameters")), node.args.get("group")
    place = 0 if group is None else whole_of(group)
    if not 0 <= place <= _MOST_GROUPS:
        raise refuse("regular expression", f"group {place}")
    pattern = _pattern(node.expression, flags)
    return call("regexp_extract", reader.read(node.this), pattern, literal(place), literal(flags))


def _replaced(reader: Reader, node: Node) -> Expression:
    only(node, "this", "expression", "replacement", "modifiers", "single_replace")
    flags, new = _flags(node.args.get("modifiers"), "cgis"), text_of(node.args["replacement"])
    if "\\" in new or len(new) > _MOST_GROUPS * 10:
        raise refuse("regular expression", "a replacement with \\, or a long one")
    pattern = _pattern(node.expression, flags)
    return call("regexp_replace", reader.read(node.this), pattern, literal(new), literal(flags))


_MORE: dict[type[Node], Callable[[Reader, Node], Expression]] = {
    exp.RegexpLike: _matched("regexp_matches"),
    exp.RegexpFullMatch: _matched("regexp_full_match"),
    exp.SimilarTo: _matched("regexp_full_match"),
    exp.RegexpExtract: _extracted,
    exp.RegexpReplace: _replaced,
}
HANDLERS.update(_MORE)
