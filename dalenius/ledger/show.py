"""How an `Overview` looks in a terminal: a bar of what is left, who spent what, the newest entries.

What is spent is rounded up and what is left is rounded down. Names and notes come from whoever charged, so
what could act on a terminal is made harmless.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from dalenius.display import harmless
from dalenius.ledger.overview import Allowed, Line, Overview, Spender, Spending
from dalenius.ledger.texts import shortened
from dalenius.losses.gauges import round_down, round_up

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

WIDTH = 40
"""Letters of the bar."""
LONGEST = 60
"""A longer expression, name or note ends in dots."""
MOST = 10
"""Analysts and purposes beyond these are only counted."""


def view(overview: Overview) -> Group:
    """The whole of it, for a rich console."""
    from rich.console import Group
    from rich.text import Text

    head = Text(f"{harmless(overview.account)}: {overview.budget}", style="bold")
    head.append(f" for each {harmless(overview.unit)}", style="not bold")
    return Group(head, bar(overview), *map(Text, _facts(overview)), *_tables(overview))


def bar(overview: Overview) -> Text:
    """The share of the budget that is left, as a bar."""
    from rich.text import Text

    full = math.floor(WIDTH * overview.left)
    color = "green" if overview.left > 0.5 else "yellow" if overview.left > 0.2 else "red"
    drawn = Text("█" * full, style=color)
    return drawn.append("░" * (WIDTH - full), style="dim").append(
        f" {_left(overview.left)} left", style="bold"
    )


def _facts(overview: Overview) -> Iterator[str]:
    yield f"spent: epsilon {_up(overview.spent)}{_counted(overview.spending)}"
    loss = overview.next_loss
    if loss is None:
        yield "nothing is left"
    else:
        known = "" if loss.startswith("pure(") else f", epsilon {_down(overview.next)}"
        yield f"largest next release: {shortened(loss, LONGEST)}{known}"


def _counted(spending: Spending | None) -> str:
    if spending is None:
        return "; who spent what: --spending"
    lost = f", {spending.forfeited} of them forfeited" if spending.forfeited else ""
    return f" in {spending.charges} {'charge' if spending.charges == 1 else 'charges'}{lost}"


def _tables(overview: Overview) -> Iterator[Table | Text]:
    from rich.text import Text

    spending = overview.spending
    tables = [
        _spenders("analyst", () if spending is None else spending.analysts),
        _spenders("purpose", () if spending is None else spending.purposes),
        _allowances(overview.allowances),
        _lines(_reserved(overview), overview.reservations),
        _lines("newest entries", overview.newest),
    ]
    for table in tables:
        if table is not None:
            yield Text("")
            yield table
    if overview.newest and overview.older is not None:
        yield Text(f"older entries: --before {overview.older}", style="dim")


def _reserved(overview: Overview) -> str:
    more = overview.reserved - len(overview.reservations)
    return f"open reservations, the first of {overview.reserved}" if more else "open reservations"


def _spenders(title: str, rows: Sequence[Spender]) -> Table | None:
    if not any(row.name for row in rows):
        return None
    cells = [
        [shortened(row.name, LONGEST) or "–", _used(row.share), _up(row.alone), str(row.charges)]
        for row in rows[:MOST]
    ]
    if len(rows) > MOST:
        cells.append([f"… {len(rows) - MOST} more", "", "", ""])
    return _table([title, "share", "epsilon alone", "charges"], cells, right=(1, 2, 3))


def _allowances(rows: Sequence[Allowed]) -> Table | None:
    cells = [
        [row.by or "any", row.purpose or "any", row.window or "–", row.budget, _left(row.left)]
        for row in rows
    ]
    return _table(["allowance for", "purpose", "each", "budget", "left"], cells, right=(4,))


def _lines(title: str, rows: Sequence[Line]) -> Table | None:
    head = ["entry", "when (UTC)", "event", "by", "purpose", "loss", "share"]
    cells = [
        [
            str(row.number),
            row.at[:16].replace("T", " "),
            row.event,
            shortened(row.by, LONGEST),
            _purpose(row),
            *_of(row),
        ]
        for row in rows
    ]
    used = [i for i in range(len(head)) if i < 3 or any(line[i] for line in cells)]
    names = [head[i] for i in used]
    right = [names.index(name) for name in ("entry", "share") if name in names]
    return _table(names, [[line[i] for i in used] for line in cells], right=right, title=title)


def _purpose(row: Line) -> str:
    purpose, note = shortened(row.purpose, LONGEST), shortened(row.note, LONGEST)
    return f"{purpose} ({note})".lstrip() if note else purpose


def _of(row: Line) -> tuple[str, str]:
    """The loss and the share of a charge; of what ends a reservation, which one."""
    if row.reservation is not None:
        return f"entry {row.reservation}", ""
    about = f" in {shortened(row.cell, LONGEST)}" if row.cell else ""
    return (shortened(row.loss, LONGEST) + about if row.loss else ""), (
        "" if row.share is None else _used(row.share)
    )


def _table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int], title: str | None = None
) -> Table | None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    look: dict[str, Any] = {"box": SIMPLE_HEAD, "show_edge": False, "padding": (0, 1, 0, 0)}
    table = Table(title=title, title_justify="left", **look)
    for i, name in enumerate(head):
        justify: Literal["left", "right"] = "right" if i in right else "left"
        whole = name in ("when (UTC)", "event", "share")
        table.add_column(Text(name), justify=justify, overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*(Text(harmless(cell)) for cell in row))
    return table if rows else None


def _used(share: float) -> str:
    return f"{math.ceil(round(1000 * share, 6)) / 10:.1f} %"


def _left(share: float) -> str:
    return f"{math.floor(round(1000 * share, 6)) / 10:.1f} %"


def _up(epsilon: float) -> str:
    return f"{float(round_up(Fraction(repr(epsilon)), 4)):g}" if epsilon else "0"


def _down(epsilon: float) -> str:
    return f"{float(round_down(Fraction(repr(epsilon)), 4)):g}" if epsilon else "0"
