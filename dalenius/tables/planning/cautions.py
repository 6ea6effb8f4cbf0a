"""What concerns a whole answer and not its cells: warnings, from released values only.

What bounds take is in the bars and in the flag of each cell. A warning is left for what the caller can do
something about: no group is shown, or too few units stood out for bounds to be found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius.tables.bounds import names_of
from dalenius.tables.planning.searching import Found
from dalenius.tables.planning.selecting import shown_from

if TYPE_CHECKING:
    from dalenius.tables.planning.answers import Sheet
    from dalenius.tables.planning.plan import Plan


def warnings(plan: Plan, found: Found, sheet: Sheet) -> tuple[str, ...]:
    """All of them, each once."""
    said = [*_no_groups(plan, sheet), *(_nothing_seen(plan, found) if sheet.keys else ())]
    return tuple(dict.fromkeys(said))


def _no_groups(plan: Plan, sheet: Sheet) -> list[str]:
    selection = plan.parts.selection
    if selection is None or sheet.keys:
        return []
    return [
        f"No group is shown: {shown_from(selection, plan.unit.entity)}. "
        "List the groups, or allow a larger epsilon."
    ]


def _nothing_seen(plan: Plan, found: Found) -> list[str]:
    names, who = names_of(plan.question), plan.unit.entity
    said = []
    for family, chosen in found.chosen.items():
        if not chosen.sighted and not chosen.removed.nothing:
            most = "rows" if family == "rows" else "groups"
            said.append(
                f"How many {most} a {who} has could not be found: too few {who}s stood out of the noise, and "
                f"results may be too small by any amount. Declare how many {most} each has at most, give a "
                f"bound on {most}, or allow a larger epsilon."
            )
    return said + [
        f"No range of {names[column]} could be found, so nothing is said of its values: too few stood out of "
        f"the noise. Give the range of {names[column]}."
        for column in found.unseen
    ]
