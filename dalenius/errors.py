"""Every error Dalenius raises, in one tree.

    DaleniusError
    ├── InvalidArgument     an argument is outside what its name allows (also a ValueError)
    │   └── BadExpression   an expression such as "gaussian(4) * 10" cannot be read
    ├── NotSound            no theorem covers what was asked; the remedy names what is sound
    │   └── RelationMismatch   losses for different neighbouring relations were combined
    ├── UnknownKind         a stored description is of a kind or version this library cannot read
    └── MissingExtra        an optional dependency is needed (also an ImportError)

A message says what was asked, why it is refused, and the smallest change that works;
`.remedy` holds that last part. No message ever contains data, only public parameters.
"""

from __future__ import annotations


class DaleniusError(Exception):
    """The root of the tree. `remedy` is the change that would make the call work."""

    def __init__(self, problem: str, *, remedy: str) -> None:
        super().__init__(f"{problem} {remedy}")
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.problem, self.remedy))


def _rebuild(kind: type[DaleniusError], problem: str, remedy: str) -> DaleniusError:
    return kind(problem, remedy=remedy)


class InvalidArgument(DaleniusError, ValueError):
    """An argument is outside what its name allows."""


class BadExpression(InvalidArgument):
    """An expression for a loss cannot be read; the message points at the place."""


class NotSound(DaleniusError):
    """No theorem covers what was asked. The remedy names the sound alternative."""


class RelationMismatch(NotSound):
    """Losses that hold for different neighbouring relations were combined."""


class UnknownKind(DaleniusError):
    """A stored description is of a kind or version that this library cannot read."""


class MissingExtra(DaleniusError, ImportError):
    """An optional dependency is needed: the remedy names the extra to install."""
