"""An entry as YAML. The few kinds of values it has need no library, and are always written the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def to_yaml(statement: Mapping[str, Any]) -> str:
    """The entry as YAML, as the registry stores it: texts are quoted, or in blocks where they have lines."""
    return "\n".join(_block(statement, "")) + "\n"


def _block(value: Any, indent: str) -> list[str]:
    lines = []
    for key, item in value.items() if isinstance(value, Mapping) else ((None, item) for item in value):
        head = f"{indent}-" if key is None else f"{indent}{key}:"
        if isinstance(item, Mapping | list) and item:
            lines += [head, *_block(item, indent + "  ")]
        elif isinstance(item, str) and _plain_lines(item):
            lines += [f"{head} |-", *(f"{indent}  {line}".rstrip() for line in item.split("\n"))]
        else:
            lines.append(f"{head} {_scalar(item)}")
    return lines


def _plain_lines(text: str) -> bool:
    """Whether a text of several lines can stand in a block as it is."""
    lines = text.split("\n")
    usual = all(line.isprintable() and line == line.rstrip() for line in lines)
    return len(lines) > 1 and usual and bool(lines[-1]) and bool(lines[0]) and not lines[0].startswith(" ")


def _scalar(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return "[]" if isinstance(value, list) else "{}"
    if isinstance(value, float):
        # YAML 1.1 reads 1e-06 as a text; with a point it is a number.
        return re.sub(r"^(-?\d+)e", r"\1.0e", repr(value))
    if isinstance(value, str):
        return '"' + "".join(_letter(letter) for letter in value) + '"'
    return json.dumps(value)


def _letter(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
