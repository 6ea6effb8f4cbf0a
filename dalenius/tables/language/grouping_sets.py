"""ROLLUP, CUBE and GROUPING SETS: the keys of the finest groups, and which of them each set keeps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

from sqlglot import exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language.reading import Node
from dalenius.tables.language.refusals import refuse

Sets = list[tuple[Node, ...]]
_MOST = 64
"""Sets of one question."""


def has_sets(select: exp.Select) -> bool:
    """Whether a SELECT asks for margins."""
    group = select.args.get("group")
    return group is not None and any(map(_is_several, group.expressions))


def grouping_sets(group: Node) -> Sets:
    """The sets of keys that are asked for, each once and the finest first."""
    parts = [_sets(each) for each in group.expressions]
    found: Sets = []
    for choice in product(*parts):
        keys = tuple(dict.fromkeys(key for part in choice for key in part))
        if keys not in found:
            found.append(keys)
        if len(found) > _MOST:
            raise InvalidArgument("There are too many sets of keys.", remedy=f"Ask for at most {_MOST}.")
    return sorted(found, key=len, reverse=True)


def flat(node: Node) -> list[Node]:
    """The keys that a part of GROUP BY names."""
    if isinstance(node, exp.Tuple) or _is_several(node):
        return [key for part in node.expressions for key in flat(part)]
    return [node.unnest()]


def _is_several(node: Node) -> bool:
    return isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets)


def _sets(node: Node) -> Sets:
    """Sets by one part of GROUP BY; a column by itself is in all of them."""
    if isinstance(node, exp.GroupingSets):
        return [each for part in node.expressions for each in _sets(part)]
    if isinstance(node, exp.Rollup | exp.Cube):
        if not node.expressions:
            raise refuse("GROUPING SETS, ROLLUP or CUBE", "WITH ROLLUP")
        parts = [tuple(flat(each)) for each in node.expressions]
        return _united(_starts(parts) if isinstance(node, exp.Rollup) else _subsets(parts))
    return [tuple(flat(node))]


def _starts(parts: Sequence[tuple[Node, ...]]) -> list[tuple[tuple[Node, ...], ...]]:
    return [tuple(parts[:size]) for size in range(len(parts), -1, -1)]


def _subsets(parts: Sequence[tuple[Node, ...]]) -> list[tuple[tuple[Node, ...], ...]]:
    if 2 ** len(parts) > _MOST:
        raise InvalidArgument("There are too many sets of keys.", remedy=f"Ask for at most {_MOST}.")
    sizes = range(len(parts), -1, -1)
    return [choice for size in sizes for choice in combinations(parts, size)]


def _united(several: Sequence[tuple[tuple[Node, ...], ...]]) -> Sets:
    return [tuple(key for part in parts for key in part) for parts in several]
