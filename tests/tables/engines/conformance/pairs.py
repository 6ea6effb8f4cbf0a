"""Random neighbours, questions about them and plans for these; what an engine finds is what DuckDB does."""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from random import Random
from typing import Any

from apart import Both, check, schema
from engines.conformance.on_duckdb import DuckdbSite
from engines.conformance.sites import PLANS, Site, clinic
from random_queries import WARDS, Data, random_data, random_query

from dalenius.privacy.unit import Unit
from dalenius.tables.bounds import Bounds
from dalenius.tables.language.parsing import ask
from dalenius.tables.planning.plan import Plan
from dalenius.tables.question import Question

RELATIONS = ("add_remove", "add_remove", "zero_out", "replace")


def neighbours(random: Random, relation: str) -> tuple[Data, Data]:
    data = random_data(random)
    patient = random.choice([row["patient"] for row in data.visits if row["patient"] is not None] or [0])
    other = data.with_other(patient, random) if relation == "replace" else data.without(patient)
    return (data, other) if random.random() < 0.5 else (other, data)


def questions(random: Random, relation: str, *dialects: str) -> list[Question]:
    """A random one; where it groups by ward its keys may be public, or its column declared."""
    declared: dict[str, Any] = {}
    if random.random() < 0.5:
        declared["ranges"] = {"age": (0, random.choice((1, 120))), "cost": (random.choice((-10, 0)), 100)}
    if random.random() < 0.4:
        declared["categories"] = {"ward": WARDS[: random.randint(1, 5)]}
    if random.random() < 0.2:
        declared["rows_per_unit"] = random.choice((1, 2, 5))  # often false, which must not matter
    query = random_query(random)
    if dialects != ("duckdb", "duckdb"):
        # Other engines match regular expressions in their own ways, and are not asked to.
        query = query.replace("regexp_matches(ward, '^A|.$')", "ward <> 'B'")
    return [ask(query, schema(relation, dialect=dialect, **declared)) for dialect in dialects]


def plan_of(random: Random, asked: Question, relation: str) -> Plan:
    pure = asked.keys is not None and random.random() < 0.3
    given = {
        "rows": random.choice((1, Fraction(7, 2), 20)),
        "groups": random.choice((None, 1, 2)),
        "pairs": 2,
    }
    return Plan.make(
        asked,
        unit=Unit("patient", column="patient", relation=relation),
        epsilon=random.choice((Fraction(1, 10), Fraction(1), Fraction(8), Fraction(40))),
        delta=Fraction(0) if pure else Fraction(1, 10 ** random.choice((2, 6))),
        bounds=Bounds(**given) if random.random() < 0.5 else None,
    )


def tried(site: Site, seed: int) -> None:
    """Some plans on one pair of neighbours; for some pairs, DuckDB is asked the same of the first."""
    random = Random(seed)
    relation = random.choice(RELATIONS)
    with ExitStack() as open_now:
        pair = neighbours(random, relation)
        engines = [open_now.enter_context(site.holding(clinic(data))) for data in pair]
        if site.name != "duckdb" and seed % 4 == 0:
            engines.append(open_now.enter_context(DuckdbSite().holding(clinic(pair[0]))))
        for _ in range(PLANS[site.name]):
            here, there = questions(random, relation, site.name, "duckdb")
            plan = plan_of(random, here, relation)
            with ExitStack() as asked:
                first, second, *more = (
                    asked.enter_context(engine.load(one.rows))
                    for engine, one in zip(engines, (here, here, there), strict=False)
                )
                both, same = Both(first, second), [Both(first, third) for third in more]
                plan.run(_Several(both, *same))
            check(plan, both)
            assert not any(_apart(one) for one in same), here.text


def _apart(both: Both) -> bool:
    """Whether anything was not the same."""
    apart = [*both.shapes_apart, *both.magnitudes_apart]
    apart += both.totals_apart
    return any(both.held) or any((one != 0).any() for one in apart)


class _Several:
    """Asks several of what a plan asks one."""

    def __init__(self, *several: Both) -> None:
        self._several = several

    def __getattr__(self, method: str) -> Any:
        def asked(*given: Any, **named: Any) -> Any:
            first, *_ = [getattr(one, method)(*given, **named) for one in self._several]
            return first

        return asked
