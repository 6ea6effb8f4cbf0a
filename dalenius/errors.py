"""Every error Dalenius raises, in one tree.

    DaleniusError
    ├── InvalidArgument     an argument is outside what its name allows (also a ValueError)
    │   ├── BadExpression   an expression such as "gaussian(4) * 10" cannot be read
    │   └── Unsupported     a clause of a query is refused; the remedy is a rewrite that works
    ├── NotSound            no theorem covers what was asked; the remedy names what is sound
    │   └── RelationMismatch   losses for different neighbouring relations were combined
    ├── UnknownKind         a stored description is of a kind or version this library cannot read
    ├── MissingExtra        an optional dependency is needed (also an ImportError)
    ├── QueryFailed         data could not be read; nothing is said about them
    └── LedgerError         the ledger refuses; nothing is released, and at most too much was charged
        ├── BudgetExceeded      the account, or an allowance in it, has too little left
        ├── ReservationLost     what was to be committed had been forfeited or committed before
        ├── ClockWentBack       the clock is far behind the newest entry; its owner may correct the time
        ├── LedgerLocked        another writer kept the ledger for too long
        ├── LedgerReadOnly      the ledger may be read, not written
        ├── LedgerFull          the disk is full
        ├── LedgerUnreachable   the database server does not answer
        ├── LedgerCorrupt       the chain of entries is broken; the message says where
        │   └── LedgerTampered      what decides a charge is not what the chain says
        ├── LedgerBehind        the ledger lacks entries that its anchor says were there
        └── UnknownLedger       this is not a ledger, or one of a later version (also an UnknownKind)

A message says what was asked, why it is refused, and the smallest change that works;
`.remedy` holds that last part. No message ever contains data, only public parameters.

A message that names an argument of the library is a `Message`: it reads as Python writes the argument, and
keeps it as data, so that a command line can name its own option instead.

    >>> message = Message("Pass ", Argument.of("table", "visits"), ".")
    >>> message
    'Pass table="visits".'
    >>> message.spelled(lambda argument: f"--{argument.name} {argument.values[0]}")
    'Pass --table visits.'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Argument:
    """An argument of the library that a message names.

    `name` is the argument, with a field of it after a dot (`bounds.rows`); `python` is how a call in Python
    writes it; `values` are what it is to be, as texts, none where only the name matters.
    """

    name: str
    python: str
    values: tuple[str, ...] = ()

    @staticmethod
    def of(name: str, value: object = None) -> Argument:
        """Return an argument that takes one value, or just its name."""
        if value is None:
            return Argument(name, f"{name}=")
        return Argument(
            name, f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}", (f"{value}",)
        )


class Message(str):
    """A text of a message, made of texts and of arguments that stand in it as data."""

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Self:
        """Join the parts, arguments as Python writes them."""
        made = super().__new__(
            cls, "".join(part.python if isinstance(part, Argument) else part for part in parts)
        )
        inner = (part.parts if isinstance(part, Message) else (part,) for part in parts)
        made.parts = tuple(part for group in inner for part in group)
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.parts

    def spelled(self, spell: Callable[[Argument], str]) -> str:
        """Return the text with every argument as `spell` writes it."""
        return "".join(spell(part) if isinstance(part, Argument) else part for part in self.parts)


def spelled(text: str, spell: Callable[[Argument], str]) -> str:
    """Return a text with the arguments that it names as `spell` writes them."""
    return text.spelled(spell) if isinstance(text, Message) else text


class DaleniusError(Exception):
    """The root of the tree. `remedy` is the change that would make the call work."""

    def __init__(self, problem: str, *, remedy: str) -> None:
        super().__init__(f"{problem} {remedy}")
        self.problem = problem
        self.remedy = remedy

    def spelled(self, spell: Callable[[Argument], str]) -> DaleniusError:
        """Return the same error with the arguments that it names as `spell` writes them."""
        made = _rebuild(type(self), spelled(self.problem, spell), spelled(self.remedy, spell))
        vars(made).update(
            (name, value) for name, value in vars(self).items() if name not in ("problem", "remedy")
        )
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.problem, self.remedy))


def _rebuild(kind: type[DaleniusError], problem: str, remedy: str) -> DaleniusError:
    return kind(problem, remedy=remedy)


class InvalidArgument(DaleniusError, ValueError):
    """An argument is outside what its name allows."""


class BadExpression(InvalidArgument):
    """An expression for a loss cannot be read; the message points at the place."""


class Unsupported(InvalidArgument):
    """A clause of a query is refused: the message says why, the remedy how to ask for the same thing."""


class NotSound(DaleniusError):
    """No theorem covers what was asked. The remedy names the sound alternative."""


class RelationMismatch(NotSound):
    """Losses that hold for different neighbouring relations were combined."""


class UnknownKind(DaleniusError):
    """A stored description is of a kind or version that this library cannot read."""


class MissingExtra(DaleniusError, ImportError):
    """An optional dependency is needed: the remedy names the extra to install."""


class QueryFailed(DaleniusError):
    """Data could not be read, for whatever reason: the message is always one, as reasons tell of data."""

    def __init__(
        self,
        problem: str = "The data could not be read to the end; nothing is released.",
        *,
        remedy: str = "Ask whoever keeps the data to check the source, the memory and the disk.",
    ) -> None:
        super().__init__(problem, remedy=remedy)


class LedgerError(DaleniusError):
    """The ledger refuses. Nothing is released; at most too much was charged, never too little."""


class BudgetExceeded(LedgerError):
    """The account, or an allowance in it, has too little left. The remedy names the most that fits.

    `needed` and `left` are ε at the account's δ; `largest` is the largest loss that would be accepted.
    """

    def __init__(
        self,
        problem: str,
        *,
        remedy: str,
        needed: float | None = None,
        left: float | None = None,
        largest: object = None,
    ) -> None:
        super().__init__(problem, remedy=remedy)
        self.needed, self.left, self.largest = needed, left, largest

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.problem, self.remedy), self.__dict__)


class ReservationLost(LedgerError):
    """What was to be committed is not reserved any more: it was forfeited or committed before."""


class ClockWentBack(LedgerError):
    """The clock shows a time before the newest entry, by more than clocks differ."""


class LedgerLocked(LedgerError):
    """Another writer kept the ledger for longer than the timeout."""


class LedgerReadOnly(LedgerError):
    """The ledger may be read and not written."""


class LedgerFull(LedgerError):
    """The disk that holds the ledger is full."""


class LedgerUnreachable(LedgerError):
    """The server that holds the ledger does not answer, or not to this user."""


class LedgerCorrupt(LedgerError):
    """The chain of entries is broken, or what is derived from it is wrong; the message says where."""


class LedgerTampered(LedgerCorrupt):
    """What decides a charge was changed after it was written; nothing was charged.

    The budget, a total, an allowance or the entry that states it is not what the chain of entries says.
    """

    def __init__(
        self,
        problem: str,
        *,
        remedy: str = "Run dalenius ledger verify to find what was changed, then restore the ledger from a "
        "backup and compare it with an anchor.",
    ) -> None:
        super().__init__(problem, remedy=remedy)


class LedgerBehind(LedgerError):
    """The ledger lacks entries that its anchor says were there: it was cut short or restored."""


class UnknownLedger(LedgerError, UnknownKind):
    """A file or schema is not a ledger, or one that a later version of Dalenius wrote."""
