"""Random tables and random questions about them: joins, common table expressions and redefinitions included.

    visits(patient, ward, age, cost, day)      private; patient is the unit; NULL, NaN and infinities occur
    labs(patient, result)                      private, the same units
    floors(ward, floor)                        public

Every query is one that Dalenius should take. Columns are redefined on the way (ward becomes another column,
patient a constant) as often as not, since claims about a column must not outlive it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import Any

Row = dict[str, Any]
WARDS = ("A", "B", "C", "é", "")
FLOORS = (
    {"ward": "A", "floor": 1},
    {"ward": "B", "floor": 2},
    {"ward": "B", "floor": 3},
    {"ward": "Z", "floor": 4},
)
NUMBERS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.5,
    99.0,
    1e9,
    -1e9,
    1e308,
    -1e308,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    None,
)
DAYS = (date(2024, 1, 1), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), None)


@dataclass(frozen=True)
class Data:
    """The rows of the private tables, by name."""

    visits: tuple[Row, ...]
    labs: tuple[Row, ...]

    def without(self, patient: int) -> Data:
        """All rows of one unit removed."""
        return Data(
            *(tuple(row for row in rows if row["patient"] != patient) for rows in (self.visits, self.labs))
        )

    def with_other(self, patient: int, random: Random) -> Data:
        """One unit's rows replaced by others."""
        rest = self.without(patient)
        return Data(rest.visits + _visits(patient, random), rest.labs + _labs(patient, random))


def random_data(random: Random) -> Data:
    """A few units; some with very many rows in one group, some in all groups."""
    patients = (
        [*range(random.randint(1, 6)), None] if random.random() < 0.3 else [*range(random.randint(1, 6))]
    )
    visits = [row for patient in patients for row in _visits(patient, random)]
    labs = [row for patient in patients for row in _labs(patient, random)]
    random.shuffle(visits)
    return Data(tuple(visits), tuple(labs))


def _visits(patient: int | None, random: Random) -> tuple[Row, ...]:
    count = random.choice((0, 1, 1, 2, 3, 8, 30))
    wards = random.sample(WARDS, random.randint(1, len(WARDS)))
    return tuple(
        {
            "patient": patient,
            "ward": random.choice([*wards, None]),
            "age": random.choice([0, 1, 17, 18, 45, 120, -5, 10**6, None]),
            "cost": random.choice(NUMBERS) if random.random() < 0.4 else round(random.uniform(-50, 200), 2),
            "day": random.choice(DAYS)
            if random.random() < 0.3
            else date(2024, 1, 1) + timedelta(random.randint(0, 90)),
        }
        for _ in range(count)
    )


def _labs(patient: int | None, random: Random) -> tuple[Row, ...]:
    return tuple(
        {"patient": patient, "result": random.choice([0.0, 1.5, -3.0, 1e6, math.nan, None])}
        for _ in range(random.choice((0, 0, 1, 2, 5)))
    )


# Expressions over visits, by type.

NUMERIC = (
    "age",
    "cost",
    "age + 1",
    "cost * 2 - age",
    "cost / age",
    "CASE WHEN age > 18 THEN cost ELSE 0 END",
    "abs(cost)",
    "age * age",
    "greatest(age, 3)",
    "coalesce(cost, 0)",
    "length(ward)",
    "extract(month FROM day)",
    "CAST(ward AS DOUBLE)",
    "sqrt(cost)",
    "ln(age)",
    "floor(cost / 10)",
    "nullif(age, 0)",
    "round(cost)",
    "CAST(cost AS TINYINT)",
    "CAST(cost AS DECIMAL(6, 1))",
    "CAST(cost AS FLOAT)",
    "strpos(ward, 'A')",
    "asin(age)",
)
KEYS = (
    "ward",
    "age",
    "ward || 'x'",
    "age > 18",
    "floor(age / 10)",
    "extract(year FROM day)",
    "date_trunc('month', day)",
    "upper(ward)",
    "CASE WHEN cost > 0 THEN 'paid' ELSE 'free' END",
    "coalesce(ward, 'none')",
    "cost",
    "lpad(ward, 2, 'x')",
    "left(ward, -1)",
    "last_day(day)",
)
CONDITIONS = (
    "age > 18",
    "cost IS NOT NULL",
    "ward IN ('A', 'B')",
    "cost / age > 1",
    "NOT (ward = 'A')",
    "age BETWEEN 1 AND 50",
    "ward LIKE 'A%'",
    "day >= DATE '2024-02-01'",
    "age > 3 AND (cost < 10 OR ward = 'B')",
    "cost <> cost",
    "ward NOT IN (SELECT ward FROM floors WHERE floor > 2)",
    "regexp_matches(ward, '^A|.$')",
)
AGGREGATES = (
    "COUNT(*)",
    "COUNT({x})",
    "SUM({x})",
    "AVG({x})",
    "VAR_SAMP({x})",
    "STDDEV_POP({x})",
    "MEDIAN({x})",
    "MIN({x})",
    "MAX({x})",
    "COUNT(DISTINCT ward)",
    "COUNT(DISTINCT patient)",
    "SUM({x}) / COUNT(*)",
    "SUM({x}) + 2 * COUNT({x})",
    "CORR({x}, age)",
    "COVAR_POP({x}, cost)",
    "REGR_SLOPE(cost, {x})",
    "MIN(day)",
    "MAX(day)",
    "QUANTILE_DISC({x}, 0.3)",
    "COUNT(DISTINCT (ward, age))",
)
SOURCES = {
    "plain": "visits",
    "subquery": "(SELECT * FROM visits WHERE {condition}) AS v",
    "redefined": "(SELECT patient, {ward} AS ward, age, cost * 1000 AS cost, day FROM visits) AS v",
    "shadowed": "(SELECT 1 AS patient, ward, age, cost, day FROM visits) AS v",
    "public": "(SELECT v.patient, v.ward, f.floor AS age, v.cost, v.day"
    " FROM visits AS v JOIN floors AS f ON v.ward = f.ward) AS j",
    "units": "(SELECT v.patient, v.ward, v.age, l.result AS cost, v.day"
    " FROM visits AS v JOIN labs AS l ON v.patient = l.patient) AS j",
    "union": "(SELECT patient, ward, age, cost, day FROM visits UNION ALL"
    " SELECT patient, 'lab' AS ward, 1 AS age, result AS cost, NULL AS day FROM labs) AS u",
    "window": "(SELECT patient, ward, sum(age) OVER (PARTITION BY patient) AS age, cost, day"
    " FROM visits) AS w",
    "running": "(SELECT patient, ward, sum(age) OVER (PARTITION BY patient ORDER BY age, cost, ward, day)"
    " AS age, cost, day FROM visits) AS w",
    "per unit": "(SELECT patient, max(ward) AS ward, count(*) AS age, sum(cost) AS cost, min(day) AS day"
    " FROM visits GROUP BY patient) AS p",
    "distinct": "(SELECT DISTINCT patient, ward, age, cost, day FROM visits) AS d",
    "in a public table": "(SELECT * FROM visits WHERE ward IN (SELECT ward FROM floors WHERE floor > 1)) AS"
    " s",
    "in of the unit": "(SELECT * FROM visits WHERE patient NOT IN (SELECT patient FROM labs WHERE result > 0)"
    " OR age > 18) AS s",
    "exists": "(SELECT * FROM visits AS v WHERE EXISTS (SELECT 1 FROM labs AS l WHERE l.patient = v.patient"
    " AND"
    " l.result = v.cost AND l.result < 9) OR NOT EXISTS (SELECT 1 FROM floors AS f WHERE f.ward = v.ward))"
    " AS e",
    "semi": "(SELECT * FROM visits SEMI JOIN labs ON visits.patient = labs.patient AND result IS NOT NULL)"
    " AS s",
    "anti": "(SELECT * FROM visits ANTI JOIN floors USING (ward)) AS a",
    "right": "(SELECT v.patient, v.ward, v.age, l.result AS cost, v.day FROM labs AS l RIGHT JOIN visits AS"
    " v ON"
    " v.patient = l.patient AND l.result > v.cost) AS r",
    "natural": "(SELECT patient, ward, floor AS age, cost, day FROM visits NATURAL JOIN floors) AS n",
    "nested": "(SELECT patient, upper(ward) AS ward, age, cost, day FROM"
    " (SELECT patient, age AS cost, cost AS age, ward, day FROM visits) AS i WHERE age > 0) AS o",
    "named": "visits2",
}
"""Relations with the columns of visits; in "shadowed" `patient` is a name without its meaning."""
WITH = "WITH visits2 AS (SELECT patient, ward, age, cost, day FROM visits) "
OTHER_WARDS = ("CAST(age AS VARCHAR)", "ward || CAST(cost AS VARCHAR)", "'one'", "CAST(day AS VARCHAR)")


def random_query(random: Random) -> str:
    """A query over the tables."""
    kind = random.choice([*SOURCES])
    source = SOURCES[kind].format(condition=random.choice(CONDITIONS), ward=random.choice(OTHER_WARDS))
    # The unit itself is no key; a column that only has its name is one like any other.
    usable = [*KEYS, "patient"] if kind == "shadowed" else KEYS
    keys = random.sample(usable, random.choice((0, 1, 1, 1, 2)))
    asked = [random.choice(AGGREGATES).format(x=random.choice(NUMERIC)) for _ in range(random.randint(1, 3))]
    columns = [f"{key} AS k{i}" for i, key in enumerate(keys)]
    columns += [f"{one} AS a{i}" for i, one in enumerate(asked)]
    text = f"{WITH if kind == 'named' else ''}SELECT {', '.join(columns)} FROM {source}"
    if random.random() < 0.4:
        text += f" WHERE {random.choice(CONDITIONS)}"
    if not keys:
        return text
    by_place = [f"{i + 1}" for i in range(len(keys))]
    listed = ", ".join(random.choice((keys, by_place)))
    if random.random() < 0.3 and not any("DISTINCT" in one or "patient" in one for one in asked):
        sets = random.choice(("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"))
        listed = sets.format(", ".join(by_place))
    return _afterwards(f"{text} GROUP BY {listed}", random)


def _afterwards(text: str, random: Random) -> str:
    """The query, or one over its answer: all of it costs the same."""
    return random.choice(
        (
            text,
            text,
            text,
            f"{text} HAVING COUNT(*) > 3 ORDER BY 1 LIMIT 2",
            f"{text} QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) < 3",
            f"SELECT a0, COUNT(*) OVER (), LAG(k0) OVER (ORDER BY a0) FROM ({text}) WHERE a0 IS NOT NULL",
            f"SELECT COUNT(*), MIN(a0) FROM ({text}) GROUP BY k0 ORDER BY 1",
        )
    )
