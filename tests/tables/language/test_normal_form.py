"""Equal questions have equal texts, and different ones different texts."""

from __future__ import annotations

import pytest
from language.hospital import hospital

from dalenius.tables.language.parsing import ask

BASE = "SELECT ward, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY ward"
SAME = [
    "select  ward,count(*) as n\nfrom Visits where AGE>30 group by WARD -- a remark",
    'SELECT v."Ward", COUNT(*) AS n FROM "VISITS" AS v WHERE (v.age) > 30 GROUP BY v.ward;',
    "SELECT ward, COUNT(*) AS n FROM visits AS x WHERE 30 < 31 AND x.age > 30 GROUP BY 1",
    "SELECT ward, COUNT() AS n FROM visits WHERE age > 30 GROUP BY ALL",
    "SELECT ward, COUNT(1) AS n FROM visits WHERE age > 15 + 15 GROUP BY ward",
]
DIFFERENT = [
    "SELECT ward, COUNT(*) AS m FROM visits WHERE age > 30 GROUP BY ward",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE age >= 30 GROUP BY ward",
    "SELECT ward, COUNT(age) AS n FROM visits WHERE age > 30 GROUP BY ward, urgent",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY ward LIMIT 3",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY ward HAVING n > 3",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY ward ORDER BY n",
]


@pytest.mark.parametrize("query", [SAME[0], SAME[1], SAME[3], SAME[4]])
def test_spelling_does_not_matter(query: str) -> None:
    assert ask(query, hospital()).text == ask(BASE, hospital()).text


@pytest.mark.parametrize("query", DIFFERENT)
def test_meaning_does(query: str) -> None:
    assert ask(query, hospital()).text != ask(BASE, hospital()).text


def test_inner_names_do_not_matter() -> None:
    one = (
        "WITH t AS (SELECT patient_id AS p, COUNT(*) AS c FROM visits GROUP BY p) SELECT AVG(c) AS"
        " mean FROM t"
    )
    two = "SELECT AVG(k) AS mean FROM (SELECT patient_id, COUNT(*) AS k FROM visits GROUP BY patient_id) AS s"
    assert ask(one, hospital()).text == ask(two, hospital()).text


def test_keys_and_declared_facts_are_part_of_the_question() -> None:
    plain = ask(BASE, hospital()).text
    assert len({plain, ask(BASE, hospital(), keys=["A"]).text, ask(BASE, hospital(), keys=["B"]).text}) == 3
    many = [f"w{i}" for i in range(500)]
    assert ask(BASE, hospital(), keys=many).text != ask(BASE, hospital(), keys=many[1:]).text
    sums = "SELECT SUM(age) FROM visits"
    assert ask(sums, hospital()).text != ask(sums, hospital(ranges={"age": (0, 9)})).text
