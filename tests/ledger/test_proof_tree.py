"""The tree answers as a plain dict does, its root depends on the map alone, and no other node is accepted."""

from __future__ import annotations

import random
from hashlib import sha256

import pytest

from dalenius.ledger.proof_tree import EMPTY, FEW, Mismatch, changed, key, value


def made(count: int, seed: int) -> dict[str, str]:
    chance = random.Random(seed)
    return {key("people", f"scope {chance.random()}"): f"{chance.random()}" for _ in range(count)}


def planted(values: dict[str, str], order: list[str]) -> tuple[str, dict[str, str]]:
    nodes: dict[str, str] = {}
    root = EMPTY
    for name in order:
        root, fresh = changed(nodes.get, root, {name: values[name]})
        nodes |= fresh
    return root, nodes


def by_definition(values: dict[str, str], depth: int = 0) -> str:
    """The root as it is defined, without any of the code."""
    if len(values) <= FEW:
        lines = ["leaf", *(f"{name} {values[name]}" for name in sorted(values))]
    else:
        lines = ["branch"]
        for digit in "0123456789abcdef":
            part = {name: text for name, text in values.items() if name[depth] == digit}
            if part:
                lines.append(f"{digit} {by_definition(part, depth + 1)}")
    return sha256("\n".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("count", [0, 1, 8, 9, 40, 300])
def test_the_root_is_that_of_the_map_in_any_order(count: int) -> None:
    values = made(count, count)
    for seed in range(3):
        order = list(values)
        random.Random(seed).shuffle(order)
        root, nodes = planted(values, order)
        assert root == by_definition(values)
        assert {name: value(nodes.get, root, name) for name in values} == values
        assert all(value(nodes.get, root, other) is None for other in made(50, count + 1000))


def test_a_value_is_replaced_and_the_rest_stays() -> None:
    values = made(100, 1)
    root, nodes = planted(values, list(values))
    some = dict.fromkeys(list(values)[::7], "another")
    root, fresh = changed(nodes.get, root, some)
    assert root == by_definition(values | some) and len(fresh) < len(nodes)
    found = {name: value((nodes | fresh).get, root, name) for name in values}
    assert found == values | some


def test_any_other_node_on_the_path_of_a_key_is_refused() -> None:
    """Removed, changed, swapped with another, or as it was before: for every node and every key."""
    values = made(60, 2)
    order = list(values)
    _, before = planted(values, order[:-20])
    root, nodes = planted(values, order)
    for path in nodes:
        for other in (None, nodes[path] + " ", "leaf", before.get(path), nodes[max(nodes)]):
            if other == nodes[path]:
                continue
            spoilt: dict[str, str | None] = {**nodes, path: other}
            for name, text in values.items():
                if name.startswith(path):
                    with pytest.raises(Mismatch):
                        value(spoilt.get, root, name)
                    with pytest.raises(Mismatch):
                        changed(spoilt.get, root, {name: "new"})
                else:
                    assert value(spoilt.get, root, name) == text


def test_two_scopes_never_have_one_key() -> None:
    pairs = [("a", "b c"), ("a b", "c"), ("a b c", ""), ("", "a b c"), ("1 a", "b"), ("1", "a b")]
    assert len({key(*pair) for pair in pairs}) == len(pairs)
