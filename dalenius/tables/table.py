"""`table`: a private table, asked in SQL or in Python, charged to an account.

    visits = dp.table("visits.parquet", unit=dp.Unit("patient", column="patient_id"),
                      budget=dp.Budget(epsilon=3, delta=1e-9))
    visits.explain("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.5)   # spends, reads nothing
    visits.sql("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.5)       # charged, then read
    visits.group_by("ward").agg(dp.agg.count()).release(epsilon=0.5)                 # the same from Python

Each answer is (ε, δ)-differentially private by itself, with the δ of the account; the account adds them up as
they compose. Where δ is 0, noise is Laplace's, else Gaussian.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import finalize

from dalenius.display import harmless
from dalenius.errors import InvalidArgument
from dalenius.ledger import Account
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Release
from dalenius.tables.answering import Request, answer
from dalenius.tables.answers_cache import Answers
from dalenius.tables.arguments import (
    check_bounds,
    check_counts,
    check_facts,
    check_keys,
    check_texts,
    check_types,
    listed,
)
from dalenius.tables.askable import Askable
from dalenius.tables.asked import Asked
from dalenius.tables.bounds import Bounds, names_of
from dalenius.tables.builder import Agg, Query
from dalenius.tables.engines.engine import Engine
from dalenius.tables.explanation import Explanation
from dalenius.tables.facts import Facts, Profiled
from dalenius.tables.keeping import Keeper, with_facts
from dalenius.tables.question import Question
from dalenius.tables.rows import KeyPart
from dalenius.tables.schema import LISTED, End, Private, Schema, folded, own
from dalenius.tables.sources.forms import declared
from dalenius.tables.unopened import Unopened

if TYPE_CHECKING:
    from dalenius.tables.language.public_keys import Given
    from dalenius.tables.sources.prepared import PreparedEngine


class Table(Askable):
    """A private table with its account. Made by `table`; it lets go of its source when it is closed."""

    def __init__(
        self,
        engine: Engine,
        keeper: Keeper,
        account: Account,
        *,
        unit: Unit,
        by: str = "",
    ) -> None:
        self.unit, self._account, self._keeper = unit, account, keeper
        self._engine, self._answers, self._by = engine, Answers(account), by
        self._prepared: list[PreparedEngine] = []
        self._open = ExitStack()
        self._open.callback(engine.close)
        # Also of a table that nobody closes.
        self._let_go = finalize(self, self._open.close)

    @property
    def account(self) -> Account:
        """What answers are charged to; an account that is not open yet is opened by the first charge."""
        if isinstance(self._account, Unopened):
            self._account.look()
        return self._account

    @property
    def schema(self) -> Schema:
        """Its columns and those of the tables beside it, with what is known of them."""
        return self._keeper.state().schema

    @property
    def name(self) -> str:
        """What it is called in SQL."""
        return self.schema.tables[0].name

    @property
    def columns(self) -> Mapping[str, str]:
        """Its columns in order, with their types."""
        return dict(self.schema.tables[0].columns)

    @property
    def _time(self) -> str | None:
        """The column of time by which windows of units are cut, as the table spells it."""
        main = self.schema.tables[0]
        time = main.time if isinstance(main, Private) and self.unit.window is not None else None
        return None if time is None else next(name for name in main.columns if folded(name) == folded(time))

    # Asking.

    def sql(
        self,
        query: str,
        *,
        epsilon: Number,
        keys: Given | None = None,
        bounds: Bounds | None = None,
        by: str | None = None,
        purpose: str = "",
        confidence: Number = CONFIDENCE,
    ) -> Release:
        """Answer a question in SQL, (epsilon, account δ)-differentially private by itself, and charge it.

        `keys` lists the groups where they are public; `bounds` limits what a unit contributes, where that
        shall not be found privately. The same question to the same data is answered again for free.
        """
        asked = self.ask(
            query, epsilon=epsilon, keys=keys, bounds=bounds, by=by, purpose=purpose, confidence=confidence
        )
        return asked.run()

    def explain(
        self,
        query: str | Query,
        *,
        epsilon: Number,
        keys: Given | None = None,
        bounds: Bounds | None = None,
        by: str | None = None,
        purpose: str = "",
        confidence: Number = CONFIDENCE,
    ) -> Explanation:
        """What the same call of `sql` would cost, exactly, and how. Nothing is spent, no data are read."""
        asked = self.ask(
            query, epsilon=epsilon, keys=keys, bounds=bounds, by=by, purpose=purpose, confidence=confidence
        )
        return asked.explanation

    def ask(
        self,
        query: str | Query,
        *,
        epsilon: Number,
        keys: Given | None = None,
        bounds: Bounds | None = None,
        by: str | None = None,
        purpose: str = "",
        confidence: Number = CONFIDENCE,
    ) -> Asked:
        """Read and plan a question once, to be explained, checked or answered. Nothing is spent.

        Args:
            query: The question, in SQL or made by `group_by` and the like.
            epsilon: The ε of the answer; its δ is that of the account.
            keys: The groups, where they are public: values, tuples, or lists by column.
            bounds: What a unit contributes, where that shall not be found privately.
            by: Who asks; the table's own `by` where left out.
            purpose: What for, for the ledger and its allowances.
            confidence: Of the error bars.
        """
        check_keys(keys)
        if isinstance(query, Query):
            question, text = query.question(keys=keys), query.sql
        else:
            from dalenius.tables.language.parsing import ask

            question, text = ask(query, self.schema, keys=keys), query
        request = self._request(question, text, epsilon, bounds, by, purpose, confidence)
        return Asked(request, lambda: self.account, self._answered)

    def answer(
        self,
        question: Question,
        *,
        epsilon: Number,
        asked: str | None = None,
        bounds: Bounds | None = None,
        by: str | None = None,
        purpose: str = "",
        confidence: Number = CONFIDENCE,
    ) -> Release:
        """Answer a question that was read already, as `sql` does; `asked` is how people would write it."""
        request = self._request(question, asked or question.text, epsilon, bounds, by, purpose, confidence)
        return self._answered(request)

    def _answered(self, request: Request) -> Release:
        self._check_open()
        rows = request.question.rows
        self._keeper.settle()
        engine = next((one for one in self._prepared if one.fits(rows) is not None), self._engine)
        return answer(request, self.account, engine, self._answers)

    def _check_open(self) -> None:
        if not self._let_go.alive:
            raise InvalidArgument(
                "This table is closed; nothing was charged.", remedy="Open it again with dp.table."
            )

    def _request(
        self,
        question: Question,
        asked: str,
        epsilon: Number,
        bounds: Bounds | None,
        by: str | None,
        purpose: str,
        confidence: Number,
    ) -> Request:
        check_bounds(bounds)
        check_texts(by=by, purpose=purpose)
        state = self._keeper.state()
        return Request(
            question,
            " ".join(asked.split()),
            unit=self.unit,
            epsilon=numbers.epsilon(epsilon),
            delta=self._account.terms.limit.delta,
            confidence=numbers.confidence(confidence),
            bounds=_applied(bounds, state.main.bounds, question),
            public_size=state.main.public_size,
            learned=state.main.learned,
            assumed=state.told(question),
            by=self._by if by is None else by,
            purpose=purpose,
            time=self._time,
        )

    @property
    def query(self) -> Query:
        """A question in the making, about all rows."""
        return Query(self.schema, self.name, self.ask)

    # What the account keeps about it.

    @property
    def profile(self) -> Profiled:
        """What the account keeps about the table: declared, found when it was opened, and learned."""
        return Profiled(self.name, self.unit.entity, self._keeper.state().main)

    def declare(
        self,
        *,
        types: Mapping[str, str] | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        dates: str | None = None,
        null: Sequence[str] | None = None,
        ranges: Mapping[str, tuple[End, End]] | None = None,
        categories: Mapping[str, Sequence[KeyPart]] | None = None,
        rows_per_unit: int | None = None,
        bounds: Bounds | None = None,
        public_size: int | None = None,
        by: str | None = None,
    ) -> Profiled:
        """Keep public facts with the account, for all later questions of everyone; nothing is charged.

        They must not be taken from the data. What is declared takes the place of what was kept of the same
        columns before. The arguments are those of `dp.table`.
        """
        check_facts(ranges, categories)
        check_types(types)
        check_bounds(bounds)
        check_counts(rows_per_unit=rows_per_unit, public_size=public_size)
        check_texts(by=by)
        form = declared(types=types, encoding=encoding, decimal=decimal, dates=dates, null=null)
        known = self.schema.tables[0].columns
        for column in (*form.types, *(ranges or {}), *(categories or {})):
            own(known, column)
        said = Facts(
            form,
            ranges=dict(ranges or {}),
            categories={name: tuple(values) for name, values in (categories or {}).items()},
            rows_per_unit=rows_per_unit,
            public_size=public_size,
            bounds=bounds,
        )
        main = self.schema.tables[0]
        if isinstance(main, Private) and not types:
            # What is no range or category of its column is refused before it is kept.
            with_facts(main, said)
        self._keeper.noting(
            lambda kept: kept.noting(self.name, said.over(kept.of(self.name))),
            by=self._by if by is None else by,
        )
        return self.profile

    def learn(
        self,
        *,
        epsilon: Number,
        columns: Sequence[str] | None = None,
        by: str | None = None,
        purpose: str = "",
    ) -> Profiled:
        """Learn a profile of the table privately, once, and keep it with the account.

        It holds how many rows units have, where the values of columns of numbers lie, and the values of
        columns that have few. Later questions use it and make no searches of their own. It is charged like an
        answer, before data is read. What is learned again takes the place of what was learned before, which
        stays charged and in the ledger.

        Args:
            epsilon: What it costs.
            columns: What to learn besides the rows of units: columns of numbers, and of texts or truth
                values; all of them where left out, but for those whose range is declared.
            by: Who asks.
            purpose: What for.
        """
        from dalenius.tables.learning import learned

        if columns is not None:
            listed(list(columns), "columns=…")
        check_texts(by=by, purpose=purpose)
        self._check_open()
        name = self._by if by is None else by
        self._keeper.settle()
        learned(
            self._keeper,
            self._engine,
            self.account,
            unit=self.unit,
            epsilon=numbers.epsilon(epsilon),
            columns=None if columns is None else tuple(columns),
            by=name,
            purpose=purpose,
            time=self._time,
        )
        return self.profile

    # Its source.

    def prepare(self, *columns: str, path: str | os.PathLike[str] | None = None) -> Path:
        """Store a copy that makes questions by these columns quick, or find it: raw data, for its owner only.

        It lies beside the source, or at `path`, and is left aside once the source has changed. Nothing is
        released, and nothing is charged.
        """
        from dalenius.tables.engines.duckdb import DuckdbEngine
        from dalenius.tables.sources.prepared import prepare

        if not isinstance(self._engine, DuckdbEngine):
            raise InvalidArgument("This source cannot be prepared.", remedy="Ask it as it is.")
        question = self.group_by(*columns).agg(Agg("count")).question()
        made = prepare(self._engine, question.rows, path=path)
        self._open.callback(made.close)
        self._prepared.append(made)
        return made.path

    def close(self) -> None:
        """Let go of the source; the ledger stays open, as its accounts may be in use elsewhere."""
        self._let_go()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        account = self.account
        return f"{self.schema._repr_html_()}{account._repr_html_() or ''}"

    def __repr__(self) -> str:
        names, more = list(self.columns)[:LISTED], len(self.columns) - LISTED
        shown = ", ".join(map(harmless, [*names, *([f"… {more} more"] if more > 0 else [])]))
        return f"<Table {harmless(self.name)} ({shown}), {self._account.budget} for each {self.unit}>"


def _applied(given: Bounds | None, kept: Bounds | None, question: Question) -> Bounds | None:
    """The bounds of a question: those given with it, else those that the account keeps of what it asks."""
    if given is not None or kept is None:
        return given
    names = names_of(question)
    return replace(kept, ranges={name: ends for name, ends in kept.ranges.items() if name in names})
