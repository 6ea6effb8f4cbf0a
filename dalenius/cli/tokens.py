"""The words of an expression, each with its place, and errors that point at one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dalenius.errors import BadExpression

Sort = Literal["number", "name", "mark", "end"]

LONGEST = 20_000
"""Longer text is refused before it is read."""
_PATTERN = re.compile(
    r"(?P<number>(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>[-+*/().,=\[\]?])"
)


@dataclass(frozen=True)
class Token:
    """One word and where it starts."""

    sort: Sort
    text: str
    start: int


def tokens(text: str) -> tuple[Token, ...]:
    """All words of `text`, closed by an end token."""
    if len(text) > LONGEST:
        raise BadExpression(
            f"The expression is longer than {LONGEST} characters.", remedy="Shorten it, or pass JSON."
        )
    found: list[Token] = []
    place = 0
    while True:
        place += len(text[place:]) - len(text[place:].lstrip())
        if place >= len(text):
            return (*found, Token("end", "", len(text.rstrip())))
        match = _PATTERN.match(text, place)
        if match is None:
            raise pointed(text, place, f"{text[place]!r} has no meaning here.", "Remove it.")
        sort: Sort = "number" if match["number"] else "name" if match["name"] else "mark"
        found.append(Token(sort, match[0], place))
        place = match.end()


def pointed(text: str, place: int, problem: str, remedy: str) -> BadExpression:
    """An error that shows the line with a caret under the place."""
    start = text.rfind("\n", 0, place) + 1
    line = text[start:].split("\n", 1)[0]
    # Only a window of a long line is shown, so that the caret stays beneath its place on a terminal.
    left = max(0, place - start - 60)
    window = line[left : left + 100].replace("\t", " ")
    return BadExpression(f"{problem}\n  {window}\n  {' ' * (place - start - left)}^", remedy=remedy)


def suggestion(name: str, known: Iterable[str]) -> str:
    """The known name nearest to `name`, else all of them."""
    options = sorted(known)
    close = difflib.get_close_matches(name.lower(), options, n=1, cutoff=0.5)
    return f"Did you mean {close[0]}?" if close else f"Known: {', '.join(options)}."
