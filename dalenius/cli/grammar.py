"""The grammar of expressions: from text to a tree, by recursive descent.

    sum     = product {"+" product}
    product = part {"*" part}
    part    = (call | "(" sum ")") {"." name "(" [argument] ")"}  |  number  |  "[" items "]"  |  name
    call    = name "(" [argument {"," argument}] ")"
    argument = [name "="] sum
    number  = ["-"] decimal ["/" decimal]  |  "?"

Numbers are exact: 0.1 is one tenth and 256/60000 is that fraction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from dalenius.cli.tokens import Token, pointed, tokens
from dalenius.errors import BadExpression

Part = TypeVar("Part")

DEEPEST = 50
"""Brackets nested deeper are refused."""
LONGEST_NUMBER, LARGEST_EXPONENT = 100, 400
"""Numbers beyond these are refused: an exact 1e999999999 would fill the memory."""


@dataclass(frozen=True)
class Node:
    """A part of the tree; `place` is where it starts in the text."""

    place: int


@dataclass(frozen=True)
class Number(Node):
    """An exact number, or None for the unknown `?`."""

    value: Fraction | None


@dataclass(frozen=True)
class Word(Node):
    """A bare name, such as replace in relation=replace."""

    text: str


@dataclass(frozen=True)
class Items(Node):
    """A list in square brackets."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Argument(Node):
    """One argument of a call, with its name if one is given."""

    name: str | None
    value: Node


@dataclass(frozen=True)
class Call(Node):
    """name(arguments), on a loss if `subject` is one: a method."""

    name: str
    arguments: tuple[Argument, ...]
    subject: Node | None = None


@dataclass(frozen=True)
class Joined(Node):
    """Two parts joined by + or *."""

    mark: str
    left: Node
    right: Node


class Parser:
    """Reads one text. `tree` is the whole of it."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.index, self.depth = text, tokens(text), 0, 0

    def tree(self) -> Node:
        """The tree of the whole text."""
        whole = self._sum()
        if self._here.sort != "end":
            raise self._error(f"{self._here.text!r} was not expected here.", "Join losses by + or *.")
        return whole

    def number(self) -> Fraction:
        """The whole text as one number."""
        found = self._number()
        if found.value is None or self._here.sort != "end":
            raise self._error("Only one number belongs here.", "Write one, such as 1e-5 or 1/3.")
        return found.value

    @property
    def _here(self) -> Token:
        return self.tokens[self.index]

    def _sum(self) -> Node:
        return self._chain("+", self._product)

    def _product(self) -> Node:
        return self._chain("*", self._part)

    def _chain(self, mark: str, part: Callable[[], Node]) -> Node:
        left = part()
        while self._taken(mark):
            left = Joined(left.place, mark, left, part())
        return left

    def _part(self) -> Node:
        here = self._here
        if here.sort == "number" or here.text in ("-", "?"):
            return self._number()
        if here.text == "[":
            return Items(here.start, self._bracketed("[", "]", self._sum))
        if here.text == "(":
            return self._methods(self._grouped())
        if here.sort != "name":
            raise self._error("A loss or a number belongs here.", "Write one, such as gaussian(4).")
        name = self._advance()
        return self._methods(self._call(name)) if self._here.text == "(" else Word(name.start, name.text)

    def _grouped(self) -> Node:
        inside = self._bracketed("(", ")", self._sum)
        if len(inside) != 1:
            raise self._error("One loss belongs in brackets.", "Join losses by +.")
        return inside[0]

    def _methods(self, subject: Node) -> Node:
        while self._taken("."):
            if self._here.sort != "name":
                raise self._error("The name of a method belongs here.", "Write .poisson(q) or .group(k).")
            subject = self._call(self._advance(), subject)
        return subject

    def _call(self, name: Token, subject: Node | None = None) -> Call:
        return Call(name.start, name.text, self._bracketed("(", ")", self._argument), subject)

    def _argument(self) -> Argument:
        here = self._here
        if here.sort != "name" or self.tokens[self.index + 1].text != "=":
            return Argument(here.start, None, self._sum())
        self.index += 2
        return Argument(here.start, here.text, self._sum())

    def _bracketed(self, opening: str, closing: str, part: Callable[[], Part]) -> tuple[Part, ...]:
        if not self._taken(opening):
            raise self._error(f"An opening {opening} belongs here.", "Add it.")
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._error(f"Brackets are nested deeper than {DEEPEST}.", "Remove some.")
        parts: list[Part] = []
        while self._here.text != closing and (not parts or self._taken(",")):
            parts.append(part())
        if not self._taken(closing):
            raise self._error(f"A comma or a closing {closing} belongs here.", "Add it.")
        self.depth -= 1
        return tuple(parts)

    def _number(self) -> Number:
        place = self._here.start
        if self._taken("?"):
            return Number(place, None)
        sign = -1 if self._taken("-") else 1
        above = self._decimal()
        if not self._taken("/"):
            return Number(place, sign * above)
        if not (below := self._decimal()):
            raise self._error("A number is divided by zero.", "Write another divisor.", back=1)
        return Number(place, sign * above / below)

    def _decimal(self) -> Fraction:
        if self._here.sort != "number":
            raise self._error("A number belongs here.", "Write one, such as 0.01 or 256/60000.")
        exponent = self._here.text.lower().partition("e")[2]
        if len(self._here.text) > LONGEST_NUMBER or abs(int(exponent or 0)) > LARGEST_EXPONENT:
            raise self._error("This number is too long or too large.", "Write a shorter one.")
        return Fraction(self._advance().text)

    def _advance(self) -> Token:
        self.index += 1
        return self.tokens[self.index - 1]

    def _taken(self, mark: str) -> bool:
        found = self._here.sort == "mark" and self._here.text == mark
        self.index += found
        return found

    def _error(self, problem: str, remedy: str, *, back: int = 0) -> BadExpression:
        return pointed(self.text, self.tokens[self.index - back].start, problem, remedy)
