"""`learned`: a table is profiled: charged, read, noised, and kept with its account.

    lesson ─▶ reserve ─▶ read, noise ─▶ keep with the account ─▶ commit

What goes wrong after the charge forfeits it, as for an answer (`answering`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dalenius.errors import (
    Argument,
    BudgetExceeded,
    DaleniusError,
    InvalidArgument,
    LedgerError,
    Message,
    QueryFailed,
)
from dalenius.ledger import Account
from dalenius.ledger.store import Granting
from dalenius.privacy.unit import Unit
from dalenius.tables.engines.engine import Engine
from dalenius.tables.keeping import Keeper
from dalenius.tables.language.parsing import ask
from dalenius.tables.learned import Learned
from dalenius.tables.planning.learning import Lesson
from dalenius.tables.progress import progress
from dalenius.tables.rows import Key, Rows
from dalenius.tables.schema import Private, Schema, folded
from dalenius.tables.unopened import Unopened
from dalenius.tables.window_column import settle_time

_NUMBERS, _GROUPS = ("integer", "real"), ("text", "boolean")
_STAYS = "it stays charged, and nothing was learned."


def learned(
    keeper: Keeper,
    engine: Engine,
    account: Account,
    *,
    unit: Unit,
    epsilon: Fraction,
    columns: Sequence[str] | None,
    by: str,
    purpose: str,
    time: str | None,
) -> Learned:
    """Learn the profile of a table, and keep it.

    Args:
        keeper: What is known of the table.
        engine: Where it is.
        account: What is charged.
        unit: Who is protected.
        epsilon: What it costs, at the δ of the account.
        columns: What to learn besides the rows of units; all columns that something can be learned of, where
            None.
        by: Who asks.
        purpose: What for.
        time: The column of time by which windows of units are cut.
    """
    state = keeper.state()
    main = state.schema.tables[0]
    assert isinstance(main, Private)
    delta = account.terms.limit.delta
    lesson = _lesson(state.schema, main, unit, epsilon, delta, columns)
    cost = f"epsilon {float(epsilon):g}" + (f", delta {float(delta):g}" if delta else "")
    waiting = isinstance(account, Unopened) and account.waiting
    if not waiting:
        settle_time(account, time)
        if isinstance(account.ledger.store, Granting) and account.profile is not None:
            # Who may not keep a profile is told so before anything is charged.
            account.note_profile(account.profile, by=by)
    with engine.turn():
        note = f"profile of {main.name}"
        try:
            reservation = account.reserve(lesson.loss, by=by, purpose=purpose, note=note)
        except BudgetExceeded as refused:
            raise _refusal(refused) from None
        charged = f"This had been charged as entry {reservation.number} of {account.name}: {_STAYS}"
        failed: DaleniusError
        try:
            with reservation, progress() as step:
                step("learning the profile")
                found = lesson.run(engine.load, cost=cost, entry=reservation.number)
                keeper.noting(
                    lambda kept: kept.noting(main.name, replace(kept.of(main.name), learned=found)), by=by
                )
                reservation.end("commit")
                return found
        except (LedgerError, QueryFailed) as error:
            failed = type(error)(f"{error.problem} {charged}", remedy=error.remedy)
        except Exception:
            failed = QueryFailed(
                f"Learning failed. {charged}",
                remedy="See that the source is whole and that there is memory, then learn again; that is "
                "charged again.",
            )
        except BaseException as stop:
            stop.add_note(f"Learning was stopped. {charged}")
            stop.__context__ = None
            raise
        # Raised outside of any handler, so that nothing that speaks of data is attached to it.
        raise failed


def _refusal(refused: BudgetExceeded) -> BudgetExceeded:
    """Return the refusal of a profile that does not fit, with a remedy in the words of `learn`."""
    left = "" if refused.left is None else f", of which {refused.left:.3g} is left"
    return BudgetExceeded(
        f"{refused.problem} Nothing was learned or charged.",
        remedy=Message("Learn the profile at a smaller ", Argument("epsilon", "epsilon"), f"{left}."),
        needed=refused.needed,
        left=refused.left,
        largest=refused.largest,
    )


def _lesson(
    schema: Schema,
    main: Private,
    unit: Unit,
    epsilon: Fraction,
    delta: Fraction,
    columns: Sequence[str] | None,
) -> Lesson:
    """What is to be learned: of columns that nothing is declared of, where none are named."""
    alone = Schema([replace(main, categories={})], None, schema.dialect)
    wanted = None if columns is None else {folded(name) for name in columns}
    unknown = [] if wanted is None else sorted(wanted - {folded(name) for name in main.columns})
    if unknown:
        raise InvalidArgument(
            f"There is no column {unknown[0]} in {main.name}.",
            remedy=f"Columns are {', '.join(main.columns)}.",
        )
    numbers, grouped = [], []
    for name, kind in main.columns.items():
        own = unit.column is not None and folded(name) == folded(unit.column)
        if own or (wanted is not None and folded(name) not in wanted):
            continue
        if kind in _NUMBERS and name not in main.ranges:
            numbers.append(name)
        if kind in _GROUPS or name in main.categories:
            grouped.append(name)
    listed: dict[str, list[Key]] = {
        name: [(v,) for v in main.categories[name]] for name in grouped if name in main.categories
    }
    quoted = [f'"{name.replace(chr(34), 2 * chr(34))}"' for name in (*numbers, *grouped)]
    table = f'"{main.name.replace(chr(34), 2 * chr(34))}"'
    sums = "".join(f", SUM({name})" for name in quoted[: len(numbers)])
    question = ask(f"SELECT COUNT(*){sums} FROM {table}", alone)
    return Lesson.make(
        question.rows,
        values=numbers,
        grouped={
            name: ask(f"SELECT {text}, COUNT(*) FROM {table} GROUP BY {text}", alone).rows
            for name, text in zip(grouped, quoted[len(numbers) :], strict=True)
        },
        listed=listed,
        missing=_without_id(main, unit, table, schema.dialect),
        epsilon=epsilon,
        delta=delta,
        relation=unit.relation,
    )


def _without_id(main: Private, unit: Unit, table: str, dialect: str) -> Rows | None:
    """The rows without an id, each of them a unit; None where none is left out."""
    if unit.column is None or unit.window is not None or unit.missing != "left out":
        return None
    each = Private(main.name, main.columns, Unit(unit.entity, relation=unit.relation))
    column = unit.column.replace('"', '""')
    return ask(f'SELECT COUNT(*) FROM {table} WHERE "{column}" IS NULL', Schema([each], None, dialect)).rows
