"""`Facts` of one table and `Profile` of an account: what is declared, found and learned of its data, as JSON.

An account keeps its profile in the chain of its ledger (`Account.profile`), so that two analysts get one plan
and nobody has to repeat what the owner said. The JSON has a kind and a version of its own: what is written is
read for ever.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from dalenius.display import harmless
from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers
from dalenius.tables.bounds import Bounds
from dalenius.tables.learned import Learned
from dalenius.tables.rows import KeyPart
from dalenius.tables.schema import End, folded
from dalenius.tables.sources.forms import ISO, WINDOWS, Form

KIND, VERSION = "table_profile", 1


@dataclass(frozen=True)
class Facts:
    """What is known of one table without looking at it again."""

    form: Form = field(default_factory=Form)
    """How its texts are read."""
    found: Form = field(default_factory=Form)
    """What of the form was found by looking at the data when the account was opened: assumed to be public."""
    ranges: Mapping[str, tuple[End, End]] = field(default_factory=dict)
    categories: Mapping[str, Sequence[KeyPart]] = field(default_factory=dict)
    rows_per_unit: int | None = None
    public_size: int | None = None
    bounds: Bounds | None = None
    learned: Learned | None = None

    def over(self, other: Facts) -> Facts:
        """Return these facts with what they do not say taken from others."""
        return Facts(
            self.form.over(other.form),
            self.found.over(other.found).less(self.form.less(self.found)),
            {**other.ranges, **self.ranges},
            {**other.categories, **self.categories},
            self.rows_per_unit or other.rows_per_unit,
            other.public_size if self.public_size is None else self.public_size,
            _over(self.bounds, other.bounds),
            self.learned or other.learned,
        )

    @property
    def nothing(self) -> bool:
        """Whether nothing is said."""
        return self == Facts()

    def lines(self, names: Sequence[str] | None = None) -> list[tuple[str, str]]:
        """Return what is kept, each line with its name; only of some columns where they are named."""

        def asked(column: str) -> bool:
            return names is None or column in names

        stated = _only(self.form.less(self.found), asked)
        said = [("declared", text) for text in _worded(stated)]
        said += [
            ("declared", f"{name} from {low} to {high}")
            for name, (low, high) in self.ranges.items()
            if asked(name)
        ]
        said += [
            ("declared", f"{name} is one of {len(values)} values")
            for name, values in self.categories.items()
            if asked(name)
        ]
        if self.rows_per_unit is not None:
            said.append(("declared", f"at most {self.rows_per_unit} rows of a unit"))
        if self.public_size is not None and names is None:
            said.append(("declared", f"{self.public_size} units in all"))
        if self.bounds is not None:
            said += [("declared", text) for text in _bounds(self.bounds)]
        # What is as everywhere goes without saying.
        plain = replace(
            self.found,
            encoding=None if self.found.encoding == "utf-8" else self.found.encoding,
            decimal=None if self.found.decimal == "." else self.found.decimal,
            dates=None if self.found.dates == ISO else self.found.dates,
        )
        assumed = _worded(_only(plain, asked))
        if assumed:
            said.append(("assumed", f"{FOUND}: {', '.join(assumed)}"))
        return said

    def plain(self) -> dict[str, Any]:
        """Return the facts as JSON values, without what they do not say."""
        fields: dict[str, Any] = {
            "form": self.form.plain(),
            "found": self.found.plain(),
            "ranges": {name: [_written(end) for end in ends] for name, ends in self.ranges.items()},
            "categories": {
                name: [_written(part) for part in parts] for name, parts in self.categories.items()
            },
            "rows_per_unit": self.rows_per_unit,
            "public_size": self.public_size,
            "bounds": None if self.bounds is None else _plain_bounds(self.bounds),
            "learned": None if self.learned is None else self.learned.plain(),
        }
        return {name: value for name, value in fields.items() if value not in (None, {})}

    @staticmethod
    def read(plain: Mapping[str, Any]) -> Facts:
        """Return the facts that `plain` gave."""
        ranges = {name: tuple(map(_read, ends)) for name, ends in plain.get("ranges", {}).items()}
        bounds, learned = plain.get("bounds"), plain.get("learned")
        known: Any = {
            "ranges": ranges,
            "categories": {n: tuple(map(_read, parts)) for n, parts in plain.get("categories", {}).items()},
        }
        return Facts(
            form=Form.read(plain.get("form", {})),
            found=Form.read(plain.get("found", {})),
            rows_per_unit=plain.get("rows_per_unit"),
            public_size=plain.get("public_size"),
            bounds=None if bounds is None else _read_bounds(bounds),
            learned=None if learned is None else Learned.read(learned),
            **known,
        )


FOUND = "read as was found when the account was opened, which is taken to be public"


@dataclass(frozen=True)
class Profile:
    """What an account keeps about its tables, by their names."""

    tables: Mapping[str, Facts] = field(default_factory=dict)

    def of(self, name: str) -> Facts:
        """Return what is known of a table."""
        return next((facts for known, facts in self.tables.items() if folded(known) == folded(name)), Facts())

    def noting(self, name: str, facts: Facts) -> Profile:
        """Return the profile with what is known of one table replaced."""
        others = {known: kept for known, kept in self.tables.items() if folded(known) != folded(name)}
        return Profile(others if facts.nothing else {**others, name: facts})

    def to_json(self) -> str | None:
        """Return the profile as an account keeps it; None where there is nothing to keep."""
        tables = {name: facts.plain() for name, facts in self.tables.items() if not facts.nothing}
        if not tables:
            return None
        whole = {"kind": KIND, "version": VERSION, "tables": tables}
        return json.dumps(whole, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | None) -> Profile:
        """Return the profile in a text; refused where a later version wrote it."""
        if text is None:
            return Profile()
        plain = json.loads(text)
        if (plain.get("kind"), plain.get("version")) != (KIND, VERSION):
            raise InvalidArgument(
                "The account keeps a profile that this version of Dalenius does not know.",
                remedy="Use the version that wrote it, or a later one.",
            )
        return Profile({name: Facts.read(facts) for name, facts in plain["tables"].items()})


@dataclass(frozen=True)
class Profiled:
    """What an account keeps about one table, to be looked at."""

    table: str
    entity: str
    facts: Facts

    def lines(self) -> list[tuple[str, str]]:
        """Return all that is kept, each line with its name."""
        known = self.facts.learned
        return self.facts.lines() + ([] if known is None else known.lines(self.entity))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; the keys are stable."""
        return {"table": self.table, **self.facts.plain()}

    def __str__(self) -> str:
        said = [("table", self.table), *(self.lines() or [("profile", "nothing is kept yet")])]
        return "\n".join(f"{f'{name}:':<12}{harmless(text)}" for name, text in said)


def _over(first: Bounds | None, second: Bounds | None) -> Bounds | None:
    if first is None or second is None:
        return first or second
    picked = {
        name: getattr(second, name) if getattr(first, name) is None else getattr(first, name)
        for name in ("rows", "groups", "pairs")
    }
    return Bounds(**picked, ranges={**second.ranges, **first.ranges})


def _only(form: Form, asked: Any) -> Form:
    return replace(form, types={name: kind for name, kind in form.types.items() if asked(name)})


def _worded(form: Form) -> list[str]:
    named = "windows-1252" if form.encoding == WINDOWS else form.encoding
    return replace(form, encoding=named).lines()


def _bounds(bounds: Bounds) -> list[str]:
    named = [("rows", bounds.limit), ("groups", bounds.groups), ("values", bounds.pairs)]
    said = [f"at most {float(most):g} {name} of a unit count" for name, most in named if most is not None]
    return said + [f"{name} held within {ends[0]} to {ends[1]}" for name, ends in bounds.ranges.items()]


def _plain_bounds(bounds: Bounds) -> dict[str, Any]:
    exact = {name: [str(numbers.exact(end, name)) for end in ends] for name, ends in bounds.ranges.items()}
    limit = None if bounds.limit is None else str(bounds.limit)
    return {"rows": limit, "groups": bounds.groups, "pairs": bounds.pairs, "ranges": exact}


def _read_bounds(plain: Mapping[str, Any]) -> Bounds:
    rows = plain["rows"]
    ranges = {name: (Fraction(low), Fraction(high)) for name, (low, high) in plain["ranges"].items()}
    return Bounds(None if rows is None else Fraction(rows), plain["groups"], plain["pairs"], ranges)


def _written(part: End | KeyPart) -> Any:
    """A value in JSON: dates and moments as objects that say what they are."""
    if isinstance(part, datetime):
        return {"moment": part.isoformat()}
    return {"date": part.isoformat()} if isinstance(part, date) else part


def _read(plain: Any) -> Any:
    if isinstance(plain, dict):
        return (
            datetime.fromisoformat(plain["moment"])
            if "moment" in plain
            else date.fromisoformat(plain["date"])
        )
    return plain
