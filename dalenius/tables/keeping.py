"""`Keeper`: one table's schema under what its account keeps, and what is kept where it is opened or charged.

What is found of a file when an account is opened is kept with the account from its first charge on, in the
terms of one that a table opens, else by an entry of its own: so no later row changes how the file is read.
What an analyst passes to `dp.table` counts for that table before what the account keeps; where it is what
opens the account, it is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dalenius.errors import LedgerReadOnly
from dalenius.ledger import Account
from dalenius.tables.engines.engine import Engine
from dalenius.tables.facts import Facts, Profile
from dalenius.tables.question import Question
from dalenius.tables.schema import Private, Schema, folded
from dalenius.tables.sources.forms import Form
from dalenius.tables.unopened import Unopened

Declared = Mapping[str, Facts]
"""What is passed to `dp.table` of each private table, by name."""
Build = Callable[[Profile], Schema]


class Keeper:
    """What is known of the tables of one `dp.table`, by what was passed and what the account keeps."""

    def __init__(self, engine: Engine, account: Account, said: Declared, build: Build) -> None:
        self._engine, self._account, self._said, self._build = engine, account, said, build
        self._turn = threading.Lock()
        self._text: str | None = None
        self._state: State | None = None
        if isinstance(account, Unopened) and account.waiting:
            account.propose(self._with_found(Profile(dict(said))).to_json())

    def state(self) -> State:
        """Return the schema and facts under what the account keeps now."""
        if isinstance(self._account, Unopened):
            # Somebody else may have opened it, and declared or learned something.
            self._account.look()
        text = self._account.profile
        with self._turn:
            if self._state is None or text != self._text:
                kept = Profile.from_json(text)
                tables = {name: facts.over(kept.of(name)) for name, facts in self._said.items()}
                refit(self._engine, {name: facts.form for name, facts in tables.items()})
                schema = self._build(Profile(tables))
                self._text, self._state = text, State(schema, tables)
            return self._state

    def settle(self) -> None:
        """Keep what was found of the files, before something is charged, where the account does not yet."""
        account = self._account
        if isinstance(account, Unopened) and account.waiting:
            return
        kept = Profile.from_json(account.profile)
        settled = self._with_found(kept)
        if settled.to_json() != kept.to_json():
            # A role that may only charge leaves it to the owner.
            try:
                account.ledger.account(account.name).note_profile(settled.to_json() or "")
            except LedgerReadOnly:
                return
            with self._turn:
                self._state = None

    def noting(self, change: Callable[[Profile], Profile], *, by: str) -> None:
        """Keep a changed profile with the account, what was found of its files included."""
        # That of an account that is not open yet is the proposed one, which says what was found already.
        kept = Profile.from_json(self._account.profile)
        text = self._with_found(change(kept)).to_json()
        if text is not None:
            self._account.note_profile(text, by=by)

    def _with_found(self, profile: Profile) -> Profile:
        """A profile with what was found of files that it says nothing of."""
        for source in getattr(self._engine, "sources", ()):
            name, found = getattr(source, "name", None), getattr(source, "found", None)
            own = next((each for each in self._said if folded(each) == folded(str(name))), None)
            if own is None or not isinstance(found, Form):
                continue
            known = profile.of(own)
            fresh = found.less(known.form)
            if fresh != Form():
                facts = replace(known, form=known.form.over(fresh), found=known.found.over(fresh))
                profile = profile.noting(own, facts)
        return profile


@dataclass(frozen=True)
class State:
    """The schema of a table and what is known of it, under what the account keeps."""

    schema: Schema
    tables: Mapping[str, Facts]

    @property
    def main(self) -> Facts:
        """What is known of the table itself."""
        return next(iter(self.tables.values()))

    def told(self, question: Question) -> tuple[str, ...]:
        """Return what is taken from the account beside bounds: groups that were learned, forms of files."""
        sql, said = question.rows.sql, self._groups(question)
        for table, (name, facts) in zip(self.schema.tables, self.tables.items(), strict=False):
            if f'"{name}"' in sql or f"`{name}`" in sql:
                columns = [each for each in table.columns if f'"{each}"' in sql or f"`{each}`" in sql]
                said += [f"{name}: {text}" for kind, text in facts.lines(columns) if kind == "assumed"]
        return tuple(said)

    def _groups(self, question: Question) -> list[str]:
        known, basis = self.main.learned, question.basis
        if known is None or basis is None or question.keys is None:
            return []
        return [
            f"groups by {name}: the {len(known.categories[name])} values that the account's profile shows"
            for place, name in enumerate(basis.keys)
            if name is not None
            and name not in self.main.categories
            and {key[place] for key in question.keys} == set(known.categories.get(name, ()))
        ]


def refit(engine: Engine, forms: Mapping[str, Form]) -> None:
    """Read the sources of an engine of DuckDB in forms that are kept, by the names of their tables."""
    from dalenius.tables.engines.duckdb import DuckdbEngine
    from dalenius.tables.sources.csv_files import Csv
    from dalenius.tables.sources.frames import Frame

    if not isinstance(engine, DuckdbEngine):
        return
    named = {folded(name): form for name, form in forms.items()}
    engine.sources = tuple(
        source.under(named[folded(source.name)])
        if isinstance(source, Csv | Frame) and folded(source.name) in named
        else source
        for source in engine.sources
    )


def with_facts(table: Private, facts: Facts) -> Private:
    """Return a table with what is known of it declared; a column that is not there is left aside."""
    columns = {folded(name) for name in table.columns}

    def there(known: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in known.items() if folded(name) in columns}

    learned = {} if facts.learned is None else facts.learned.categories
    return replace(
        table,
        ranges=there(facts.ranges),
        categories={**there(learned), **there(facts.categories)},
        rows_per_unit=facts.rows_per_unit,
    )
