"""What a plan does and costs, in plain words: what `explain` shows before anything is spent or read."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.release.digits import at_most
from dalenius.tables.bounds import names_of
from dalenius.tables.engines.engine import WEIGHT, Bounding
from dalenius.tables.planning import remarks
from dalenius.tables.planning.measures import Need, ranged
from dalenius.tables.planning.searching import Found
from dalenius.tables.planning.selecting import shown_from

if TYPE_CHECKING:
    from dalenius.tables.planning.plan import Plan

Line = tuple[str, str]


def lines(plan: Plan) -> list[Line]:
    """Cost, groups, bounds and measures, in the order in which they come about."""
    epsilon = at_most(plan.loss.epsilon(plan.delta).upper)
    failure = f", delta {float(plan.delta):g}" if plan.delta else ""
    cost = f"epsilon {epsilon}{failure} for each {plan.unit.entity}, whatever the data are"
    return [
        ("cost", cost),
        ("protects", f"{plan.unit}"),
        *_absent(plan),
        _groups(plan),
        *_known(plan),
        *_searches(plan),
        *(_measure(plan, need) for need in plan.needs),
        (
            "error bars",
            f"each holds its result with probability {float(plan.confidence):g}{_assumed(plan)}",
        ),
    ]


def _absent(plan: Plan) -> list[Line]:
    absent = remarks.without_id(plan)
    return [] if absent is None else [("rows", absent)]


def _assumed(plan: Plan) -> str:
    """What an interval rests on besides noise."""
    kinds = {search.kind for search in (*plan.searches, *plan.kept)}
    if not kinds:
        return ", as far as bounds that are given or declared take nothing away"
    who = plan.unit.entity
    of = "values" if kinds <= {"values", "steps"} else f"{who}s"
    return (
        f", what bounds take away included, if {of} beyond those that stand out of the noise become rarer at "
        "least as fast as those do"
    )


def _groups(plan: Plan) -> Line:
    selection, keys = plan.parts.selection, plan.question.keys
    if keys is not None:
        return ("groups", "one, of all rows" if keys == ((),) else f"{len(keys):,}, all known beforehand")
    assert selection is not None
    who = plan.unit.entity
    return (
        "groups",
        f"selected privately, by at most {selection.keys} of each {who}: {shown_from(selection, who)}",
    )


def _known(plan: Plan) -> list[Line]:
    """Bounds that need no search."""
    asked, said = {need.family for need in plan.needs}, []
    if "rows" in asked and plan.facts.rows is not None:
        said.append(("bound", remarks.rows_bound(plan, f"{float(plan.facts.rows):.4g}")))
    if "distinct" in asked and plan.facts.pairs is not None:
        said.append(("bound", f"at most {plan.facts.pairs} values of each {plan.unit.entity} count"))
    names = names_of(plan.question)
    for column in ranged(plan.needs):
        interval = plan.intervals[column]
        if interval is not None:
            said.append(("bound", remarks.range_bound(names[column], interval)))
    if not plan.searches and not plan.kept and remarks.unclipped(plan, _settled(plan)):
        said.append(("bound", remarks.UNCLIPPED))
    return said


def _searches(plan: Plan) -> list[Line]:
    who = plan.unit.entity
    words = {
        "rows": f"how many rows of a {who} count (C)",
        "groups": f"how many groups of a {who} count (K)",
        "pairs": f"how many different values of a {who} count (D)",
    }
    said = []
    for place, search in enumerate(plan.searches):
        closer = ", more closely" if search.kind == "steps" else ""
        what = words.get(search.kind) or f"where {names_of(plan.question)[search.column or 0]} lies{closer}"
        said.append(("search", f"{what}, found privately with {_share(plan, place)} of the cost"))
    for search, kept in plan.kept.items():
        what = words.get(search.kind) or f"where {names_of(plan.question)[search.column or 0]} lies"
        said.append(("profile", f"{what}, by the account's profile ({kept.what}), at no cost"))
    return said


def _measure(plan: Plan, need: Need) -> Line:
    place = len(plan.searches) + plan.needs.index(need)
    law = "Gaussian" if plan.norm == "l2" else "Laplace"
    name = (
        "" if need.column is None or need.kind == "distinct" else f" {names_of(plan.question)[need.column]}"
    )
    words = {
        "rows": "number of rows",
        "present": f"number of values of{name}",
        "sum": f"sum of{name}",
        "squares": f"sum of squares of{name}",
        "tree": f"tree of counts of{name}",
        "units": f"number of {plan.unit.entity}s",
        "distinct": "number of different values",
    }
    return (
        "measure",
        f"{words[need.kind]}: {law} noise, {_share(plan, place)} of the cost, {_bar(plan, need)}",
    )


def _share(plan: Plan, place: int) -> str:
    """By what each part takes of μ², or of ε."""
    power = 2 if plan.norm == "l2" else 1
    each = [1 / float(noise.multiplier) ** power for noise in plan.parts.noises]
    return f"{float(f'{100 * each[place] / sum(each):.2g}'):g} %"


def _bar(plan: Plan, need: Need) -> str:
    """The error bar as a number where every bound is known, else as a formula of the bounds."""
    rows, presence, pairs = plan.facts.rows, plan.facts.presence, plan.facts.pairs
    ready = {"rows": rows, "units": presence, "distinct": pairs}[need.family] is not None
    interval = plan.intervals[need.column] if need.column is not None and need.family == "rows" else None
    found = _settled(plan)
    if ranged([need]) and interval is None:
        return _formula(plan, need)
    groups = 1 if plan.question.keys is None else len(plan.question.keys)
    made = plan.measure(need, found, groups)
    law = plan.law(need, made, Bounding(plan.norm, found.limit, found.presence, found.pairs))
    step = float(made.range.grid.step) if made.range is not None and need.kind in ("sum", "squares") else 1.0
    step = step * step * 2.0**made.shift if need.kind == "squares" else step
    off = law.error(1 - plan.confidence) * step / (1 if need.kind == "distinct" else WEIGHT)
    each = " a node" if need.kind == "tree" else ""
    return f"± {off:.3g}{'' if ready else _times(plan, need)}{each}"


def _settled(plan: Plan) -> Found:
    """Bounds that need no search, 1 where one does."""
    facts, one = plan.facts, Fraction(1)
    return Found(facts.rows or one, facts.presence or one, facts.pairs or 1, plan.intervals)


def _times(plan: Plan, need: Need) -> str:
    """What stands for a bound yet to be found."""
    groups = " × √K" if plan.norm == "l2" else " × K"
    return {"rows": " × C", "units": groups, "distinct": " × D"}[need.family]


def _formula(plan: Plan, need: Need) -> str:
    noise = plan.measure_noises[plan.needs.index(need)]
    signed = noise.sensitivity(Fraction(1), nonnegative=need.kind != "sum").need(noise.norm)
    law = noise.on(Fraction(WEIGHT), nonnegative=True)
    off = law.error(1 - plan.confidence) / WEIGHT
    plain = noise.sensitivity(Fraction(1), nonnegative=True).need(noise.norm)
    size = {"sum": " × (its largest size)", "squares": " × (its largest size)²"}.get(need.kind, " a node")
    rows = plan.facts.rows
    limit = " × C" if rows is None else "" if rows == 1 else f" × {float(rows):.3g}"
    return f"± {off * float(signed / plain):.3g}{limit}{size}"
