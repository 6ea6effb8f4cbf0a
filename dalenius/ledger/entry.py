"""`Entry`: one line of a ledger, and the chain of hashes that ties each line to all before it.

The body of an entry is canonical JSON (sorted keys, no spaces, UTF-8) of everything but its hash; the hash is
SHA-256 of the body's bytes. The body holds the hash of the entry before, so one hash fixes the whole history:
a changed bit, a removed or a reordered entry breaks the chain at that place. Numbers are integers or texts,
never floats, so that a body reads the same everywhere and for ever.

    >>> noon = "2026-01-31T12:00:00.000000Z"
    >>> first = Entry.following(None, account="people", event="open", at=noon, fields={})
    >>> second = Entry.following(first.head, account="people", event="record", at=noon, fields={"by": "ana"})
    >>> second.number, second.previous == first.hash, Entry.read(second.body, second.hash) == second
    (2, True, True)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from json import encoder
from types import MappingProxyType
from typing import Any, NamedTuple

from dalenius.errors import InvalidArgument, LedgerTampered, UnknownLedger

EVENTS = ("open", "reserve", "commit", "forfeit", "record", "allow", "accept", "clock", "grant", "profile")
NOTHING = "0" * 64
"""What stands for the hash of the entry before the first."""

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_HEX = "0123456789abcdef"
_DEEPEST = 32
_PLAIN = {str, int, bool, type(None)}
_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class Head(NamedTuple):
    """The newest entry of a chain, as much of it as the next one needs."""

    number: int
    hash: str
    at: str
    state: str | None = None
    """The root of the tree over all that decides a charge; None where an earlier version wrote the entry."""

    @classmethod
    def read(cls, body: str, hash: str, *, number: int) -> Head:
        """From a stored entry, checked against its hash, without reading all of it."""
        stated = _stated(body, hash, f"Entry {number}")
        if stated.get("number") != number or not _matches(_MOMENT, stated.get("at")):
            raise _broken(f"Entry {number} is not one that Dalenius writes there.")
        return cls(number, hash, stated["at"], _state(stated.get("fields")))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a ledger, valid by construction; equal when the hashes are."""

    number: int = field(compare=False)
    account: str = field(compare=False)
    event: str = field(compare=False)
    fields: Mapping[str, Any] = field(compare=False)
    """What the event says, as JSON values; a copy of what was passed."""
    at: str = field(compare=False)
    """When, in UTC: 2026-01-31T12:00:00.000000Z."""
    previous: str = field(compare=False)
    body: str = field(init=False, compare=False, repr=False)
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        if type(self.number) is not int or self.number < 1:
            raise _wrong("number", "Count from 1.")
        if type(self.account) is not str or self.account == "":
            raise _wrong("account", "Pass its name.")
        if self.event not in EVENTS:
            raise _wrong("event", f"Use one of {', '.join(EVENTS)}.")
        if not _matches(_MOMENT, self.at):
            raise _wrong("at", "Write it as 2026-01-31T12:00:00.000000Z.")
        if type(self.previous) is not str or len(self.previous) != 64 or self.previous.strip(_HEX):
            raise _wrong("previous", "Pass 64 hexadecimal digits.")
        fields = _copied(self.fields, _DEEPEST)
        if not isinstance(fields, dict):
            raise _wrong("fields", "Pass a dict.")
        stated = self.__dict__
        stated["fields"] = fields
        body, text = _canonical(stated)
        stated["body"], stated["hash"] = text, sha256(body).hexdigest()
        stated["fields"] = MappingProxyType(fields)

    @property
    def head(self) -> Head:
        """What the next entry is made from."""
        return Head(self.number, self.hash, self.at, _state(self.fields))

    @classmethod
    def following(
        cls, head: Head | None, *, account: str, event: str, at: str, fields: Mapping[str, Any]
    ) -> Entry:
        """The entry after `head`; the first one where it is None."""
        number, previous = (1, NOTHING) if head is None else (head.number + 1, head.hash)
        return cls(number=number, account=account, event=event, at=at, fields=fields, previous=previous)

    @classmethod
    def read(cls, body: str, hash: str, *, number: int | None = None) -> Entry:
        """From what was stored; refused where the hash is not the body's. `number` is where it was found."""
        place = "An entry" if number is None else f"Entry {number}"
        stated = _stated(body, hash, place)
        if stated.get("event", "open") not in EVENTS:
            raise UnknownLedger(
                f"{place} is of an event this version does not know.",
                remedy="Open the ledger with the version of Dalenius that wrote it, or a later one.",
            )
        try:
            entry = cls(**stated)
        except (ValueError, TypeError):
            raise _broken(f"{place} is not one that Dalenius writes.") from None
        if entry.body != body or number not in (None, entry.number):
            raise _broken(f"{place} is not one that Dalenius writes there.")
        return entry

    def follows(self, head: Head | None) -> bool:
        """Return whether this entry may come next after `head`: in number, hash and time.

        Only an entry that corrects the time may state an earlier one.
        """
        if head is None:
            return self.number == 1 and self.previous == NOTHING
        in_time = self.at >= head.at or self.event == "clock"
        return self.number == head.number + 1 and self.previous == head.hash and in_time


def chained(entries: Iterable[Entry], head: Head | None = None) -> Iterator[Entry]:
    """The entries, one by one, each checked to follow the one before; the first follows `head`."""
    for entry in entries:
        if not entry.follows(head):
            expected = 1 if head is None else head.number + 1
            raise _broken(f"The chain breaks at entry {expected}: what is stored there does not follow.")
        head = entry.head
        yield entry


def _stated(body: str, hash: str, place: str) -> dict[str, Any]:
    """What a body states, once its hash is found to be its own."""
    if sha256(body.encode("utf-8", "surrogatepass")).hexdigest() != hash:
        raise _broken(f"{place} was changed after it was written: its hash is not that of its text.")
    try:
        stated = json.loads(body)
    except (ValueError, RecursionError):
        stated = None
    if not isinstance(stated, dict):
        raise _broken(f"{place} is not one that Dalenius writes.")
    return stated


def _state(fields: object) -> str | None:
    found = fields.get("state") if isinstance(fields, Mapping) else None
    return found if isinstance(found, str) else None


def _broken(problem: str) -> LedgerTampered:
    return LedgerTampered(problem)


def _wrong(name: str, remedy: str) -> InvalidArgument:
    return InvalidArgument(f"The {name} of an entry is not one.", remedy=remedy)


def _matches(pattern: re.Pattern[str], text: object) -> bool:
    return isinstance(text, str) and pattern.fullmatch(text) is not None


def _copied(value: object, depth: int) -> Any:
    """A copy of plain JSON values; a float, or anything else that JSON does not keep as it is, is refused."""
    if type(value) in _PLAIN:
        return value
    if depth and isinstance(value, dict) and set(map(type, value)) <= {str}:
        copy: dict[str, Any] = dict(value)
        for key, inner in copy.items():
            if type(inner) not in _PLAIN:
                copy[key] = _copied(inner, depth - 1)
        return copy
    if depth and isinstance(value, list | tuple):
        return [_copied(inner, depth - 1) for inner in value]
    raise InvalidArgument(
        f"An entry cannot hold a {type(value).__name__} there.",
        remedy="Use texts, integers, booleans, None, lists and dicts; write a fraction as a text.",
    )


def _writer() -> Callable[[object], str]:
    """`_JSON.encode`, whose inner encoder, where it is the fast one, is made once and not for every text."""
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return _JSON.encode
    quoted = encoder.encode_basestring
    pieces = make(None, _JSON.default, quoted, None, ":", ",", True, False, False)
    return lambda stated: "".join(pieces(stated, 0))


_encoded = _writer()


def _canonical(stated: dict[str, Any]) -> tuple[bytes, str]:
    try:
        text = _encoded(stated)
        return text.encode(), text
    except ValueError:
        raise InvalidArgument(
            "An entry holds a text that is not Unicode, or an integer too long to print.",
            remedy="Remove lone surrogates, and write long numbers in hexadecimal.",
        ) from None
