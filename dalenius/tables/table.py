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
from collections.abc import Mapping
from contextlib import ExitStack
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
from dalenius.tables.arguments import check_bounds, check_keys, check_texts
from dalenius.tables.askable import Askable
from dalenius.tables.asked import Asked
from dalenius.tables.bounds import Bounds
from dalenius.tables.builder import Agg, Query
from dalenius.tables.engines.engine import Engine
from dalenius.tables.explanation import Explanation
from dalenius.tables.question import Question
from dalenius.tables.schema import LISTED, Private, Schema, folded
from dalenius.tables.unopened import Unopened

if TYPE_CHECKING:
    from dalenius.tables.language.public_keys import Given
    from dalenius.tables.sources.prepared import PreparedEngine


class Table(Askable):
    """A private table with its account. Made by `table`; it lets go of its source when it is closed."""

    def __init__(
        self,
        engine: Engine,
        schema: Schema,
        account: Account,
        *,
        unit: Unit,
        by: str = "",
        public_size: int | None = None,
    ) -> None:
        self.schema, self.unit, self._account = schema, unit, account
        self._engine, self._answers, self._by = engine, Answers(account), by
        self._public_size = public_size
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
        if not self._let_go.alive:
            raise InvalidArgument(
                "This table is closed; nothing was charged.", remedy="Open it again with dp.table."
            )
        rows = request.question.rows
        engine = next((one for one in self._prepared if one.fits(rows) is not None), self._engine)
        return answer(request, self.account, engine, self._answers)

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
        return Request(
            question,
            " ".join(asked.split()),
            unit=self.unit,
            epsilon=numbers.epsilon(epsilon),
            delta=self._account.terms.limit.delta,
            confidence=numbers.confidence(confidence),
            bounds=bounds,
            public_size=self._public_size,
            by=self._by if by is None else by,
            purpose=purpose,
            time=self._time,
        )

    @property
    def query(self) -> Query:
        """A question in the making, about all rows."""
        return Query(self.schema, self.name, self.ask)

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
        listed = ", ".join(map(harmless, [*names, *([f"… {more} more"] if more > 0 else [])]))
        return f"<Table {harmless(self.name)} ({listed}), {self._account.budget} for each {self.unit}>"
