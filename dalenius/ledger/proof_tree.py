"""A hash tree over everything that decides a charge, whose root every entry states.

The tree maps keys to short values. A node with few keys is a leaf and lists them; any other node is a branch
and lists the hashes of its children, one for each next hexadecimal digit of the keys. A node's hash is
SHA-256 of its text, so the root's hash fixes every value, and also that a key is absent. Keys are never
removed. Which nodes are leaves depends on the keys alone, not on their order, so the same map always has the
same root.

Theorem. Let `root` be the hash of the tree of a map. Whoever makes `value` return another answer than the
map's, with any stored nodes, has found two texts with one SHA-256.
Proof. By induction along the path: a node that is accepted has the hash that its parent lists, so without a
collision it is the node of the map's tree; the last one lists the key's value, or proves that there is none.
∎

Looking a value up, or changing one, reads and writes one node for each factor of 16 in the number of keys.
(R. Merkle, "A digital signature based on a conventional encryption function", CRYPTO 1987.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256

FEW = 8
"""Keys that a leaf lists at most."""
_LEAF, _BRANCH = "leaf", "branch"

Read = Callable[[str], str | None]
"""The text of the node at a path, the digits that all its keys begin with; None where none is stored."""


class Mismatch(Exception):
    """A stored node is not the one that the root fixes. Never leaves the ledger."""


@lru_cache(maxsize=32)
def digest(text: str) -> str:
    """Return SHA-256 of a text, in hexadecimal digits."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


EMPTY = digest(_LEAF)
"""The root of a map without keys."""


@lru_cache(maxsize=4096)
def key(account: str, scope: str) -> str:
    """Return the key of one scope of an account; the length keeps two pairs from having one text."""
    return digest(f"{len(account)} {account} {scope}")


def value(read: Read, root: str, wanted: str) -> str | None:
    """Return the value of a key, or None where the map has none; refuse nodes that are not the root's."""
    path, expected = "", root
    while True:
        kind, lines = _node(read, path, expected)
        if kind == _LEAF:
            return lines.get(wanted)
        digit = wanted[len(path)]
        if digit not in lines:
            return None
        path, expected = path + digit, lines[digit]


def changed(read: Read, root: str, values: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the root after values are set, and the texts of the nodes that differ, by path."""
    fresh: dict[str, str] = {}

    def seen(path: str) -> str | None:
        return fresh[path] if path in fresh else read(path)

    for name, text in values.items():
        root = _put(seen, fresh, root, name, text)
    return root, fresh


def _put(read: Read, fresh: dict[str, str], root: str, name: str, text: str) -> str:
    above: list[tuple[str, dict[str, str]]] = []
    path, expected = "", root
    while True:
        kind, lines = _node(read, path, expected)
        if kind == _LEAF:
            break
        above.append((path, dict(lines)))
        path += name[len(path)]
        if path[-1] not in lines:
            lines = {}
            break
        expected = lines[path[-1]]
    known = _planted(fresh, path, {**lines, name: text})
    for place, children in reversed(above):
        children[name[len(place)]] = known
        known = _written(fresh, place, _BRANCH, children)
    return known


def _planted(fresh: dict[str, str], path: str, lines: dict[str, str]) -> str:
    """Write a leaf, or where it would list too much a branch with its children; the hash."""
    if len(lines) <= FEW:
        return _written(fresh, path, _LEAF, lines)
    groups: dict[str, dict[str, str]] = {}
    for name, text in lines.items():
        groups.setdefault(name[len(path)], {})[name] = text
    children = {digit: _planted(fresh, path + digit, group) for digit, group in groups.items()}
    return _written(fresh, path, _BRANCH, children)


def _written(fresh: dict[str, str], path: str, kind: str, lines: Mapping[str, str]) -> str:
    text = "\n".join([kind, *(f"{name} {lines[name]}" for name in sorted(lines))])
    fresh[path] = text
    return digest(text)


def _node(read: Read, path: str, expected: str) -> tuple[str, Mapping[str, str]]:
    text = read(path)
    if text is None and expected == EMPTY:
        text = _LEAF
    if text is None or digest(text) != expected:
        raise Mismatch
    return _parsed(text)


@lru_cache(maxsize=16)
def _parsed(text: str) -> tuple[str, Mapping[str, str]]:
    kind, *rows = text.split("\n")
    return kind, {name: listed for name, _, listed in (row.partition(" ") for row in rows)}
