"""What is said of an answer: bounds that applied, and the receipt's text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dalenius.losses.fields import written
from dalenius.release.receipt import ROWS_WITHOUT
from dalenius.tables.bounds import names_of
from dalenius.tables.engines.engine import Measure
from dalenius.tables.planning.bars import Noisy
from dalenius.tables.planning.choosing import RISK
from dalenius.tables.planning.measures import Family, Place, ranged
from dalenius.tables.planning.searching import Found
from dalenius.tables.question import Interval

if TYPE_CHECKING:
    from dalenius.tables.planning.plan import Plan

UNCLIPPED = "nothing is clipped if the declared facts hold"
WORTH = 0.001
"""Shares below are not worth telling apart from none."""
UNCLEAR = 0.02
"""Where a share may be larger by more than this and half of it, that is said."""


def bounds(plan: Plan, found: Found) -> tuple[str, ...]:
    """Every bound on what a unit contributes, how it came about, and whom it clips."""
    asked = {need.family for need in plan.needs}
    who = plan.unit.entity
    said: list[str] = []
    if plan.parts.selection is not None:
        said.append(f"groups selected privately, each {who} counting in at most {plan.parts.selection.keys}")
    if "rows" in asked:
        said.append(f"{rows_bound(plan, _limits(plan, found))}: {_origin(plan, found, 'rows')}")
    if plan.bounds.groups is not None:
        said.append(f"at most {plan.bounds.groups} groups of each {who} count, drawn at random: given")
    if "units" in asked:
        most = float(found.presence) ** (2 if plan.norm == "l2" else 1)
        said.append(
            f"a {who} in more than {most:.4g} groups counts less in each: {_origin(plan, found, 'units')}"
        )
    if "distinct" in asked:
        said.append(f"at most {found.pairs} values of each {who} count: {_origin(plan, found, 'distinct')}")
    clipped = [UNCLIPPED] if unclipped(plan, found) else []
    absent = without_id(plan)
    return (*said, *_ranges(plan, found), *clipped, *([] if absent is None else [absent]))


def without_id(plan: Plan) -> str | None:
    """What becomes of rows without the id of a unit; None where every row is a unit."""
    if plan.unit.column is None:
        return None
    whole = plan.unit.missing == "left out"
    what = "left out of every answer" if whole else f"each counted as a {plan.unit.entity} of its own"
    time = " or a time" if plan.unit.window is not None else ""
    many = ""
    if plan.missing is not None:
        count, off = plan.missing
        many = f" (about {max(count, 0):,.0f} ± {off:,.0f}, by the account's profile)"
    return f"{ROWS_WITHOUT}{plan.unit.column}{time}{many} are {what}"


def _limits(plan: Plan, found: Found) -> str:
    """The bound on rows, of each measure where they differ."""
    limits = sorted({found.limit_of(need.place) for need in plan.needs if need.family == "rows"})
    return " or ".join(f"{float(limit):.4g}" for limit in limits)


def unclipped(plan: Plan, found: Found) -> bool:
    """Whether bounds take nothing away from any table of which the declared facts are true.

    In a table of at most m rows a unit the norm of its rows is at most m, and it is in at most m groups.
    """
    facts, power = plan.facts, 2 if plan.norm == "l2" else 1
    families = {need.family for need in plan.needs}
    most = facts.most_rows
    enough = {
        "rows": most is not None and found.limit >= most,
        "units": facts.most_groups is not None and found.presence**power >= facts.most_groups,
        "distinct": most is not None and found.pairs >= most,
    }
    declared = all(
        plan.question.intervals[column] == found.intervals[column] for column in ranged(plan.needs)
    )
    sampled = plan.bounds.groups is not None
    return bool(families) and declared and not sampled and all(enough[family] for family in families)


def rows_bound(plan: Plan, limit: str) -> str:
    """What the bound on rows means."""
    who = plan.unit.entity
    if plan.question.keys == ((),):
        return f"rows of a {who} that has more than {limit} are given less weight"
    return f"rows of a {who} are given less weight where their norm over groups is above {limit}"


def mechanism(plan: Plan, found: Found, made: dict[Place, Measure], noisy: dict[Place, Noisy]) -> str:
    """The parts with their kinds and parameters, as JSON: public ones only."""
    selection = plan.parts.selection
    parts: list[dict[str, object]] = [] if selection is None else [json.loads(selection.to_json())]
    for search, noise in zip(plan.searches, plan.search_noises, strict=True):
        parts.append({"kind": f"search_{search.kind}", "multiplier": written(noise.multiplier)})
    parts += [{"kind": f"profile_{search.kind}", "of": kept.what} for search, kept in plan.kept.items()]
    for place, total in noisy.items():
        measure = {"measure": place[0], "column": place[1], "levels": made[place].levels}
        part: dict[str, object] = {k: v for k, v in measure.items() if v}
        if place in found.limits:
            part["limit"] = written(found.limits[place])
        parts.append(part | {"noise": json.loads(total.law.to_json())})
    applied = {"norm": plan.norm, "limit": written(found.limit), "presence": written(found.presence)}
    return json.dumps(
        {"kind": "table_query", "version": 1, "bounds": applied | {"pairs": found.pairs}, "parts": parts},
        separators=(",", ":"),
        sort_keys=True,
    )


def _origin(plan: Plan, found: Found, family: Family) -> str:
    chosen = found.chosen.get(family)
    if family == "distinct" and found.ladders:
        return "found privately"
    if chosen is None:
        given = {"rows": plan.bounds.rows, "units": plan.bounds.groups, "distinct": plan.bounds.pairs}[family]
        return "known" if given is None else "given"
    who, share = plan.unit.entity, (chosen.clipped, chosen.most_clipped)
    kinds = {"rows": "rows", "units": "groups", "distinct": "rows"}
    how = _how(plan, kinds[family], None)
    return f"{how}, {_share(share, who, f'{who}s', 'have more')}"


def _how(plan: Plan, kind: str, column: int | None) -> str:
    kept = next((each for search, each in plan.kept.items() if search.place == (kind, column)), None)
    return "found privately" if kept is None else f"by the account's profile ({kept.what})"


def _share(share: tuple[float, float], who: str, what: str, does: str) -> str:
    """How many of them do, by estimate and at most."""
    likely, most = share
    unclear = most > 1.5 * likely + UNCLEAR
    if likely < WORTH:
        which = "" if what == f"{who}s" else f"{what} "
        few = f"too few {who}s to tell how many {which}{does}"
        return few if unclear else f"hardly any {what} {does}"
    bound = f" (at most about {100 * most:.2g} %)" if unclear else ""
    return f"about {100 * likely:.2g} %{bound} of {what} {does}"


def _ranges(plan: Plan, found: Found) -> list[str]:
    said = []
    for column in ranged(plan.needs):
        interval = found.intervals[column]
        if interval is not None:
            how = _how(plan, "values", column) if plan.intervals[column] is None else "given"
            how = "for want of any that could be found" if column in found.unseen else how
            values = found.values.get(column)
            if values is not None and values.some:
                most = min(values.outside(interval, RISK) / values.votes, 1.0)
                outside = (values.likely_outside(interval), most)
                how += f", {_share(outside, plan.unit.entity, 'values', 'lie outside')}"
            said.append(f"{range_bound(names_of(plan.question)[column], interval)}: {how}")
    return said


def range_bound(name: str, interval: Interval) -> str:
    """Where values are held."""
    return f"{name} held within {float(interval.lower):.6g} to {float(interval.upper):.6g}"
