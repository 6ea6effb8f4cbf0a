"""`dp.table`: from a source to a charged release, the same from SQL and Python, and again for free."""

from __future__ import annotations

import os
import re
import stat
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pytest

import dalenius as dp
from dalenius import noise
from dalenius.errors import BudgetExceeded, InvalidArgument, Unsupported
from dalenius.losses import Loss, Pure
from dalenius.tables import Bounds, Table

PATIENT = dp.Unit("patient", column="patient_id")
BUDGET = dp.Budget(epsilon=3, delta=1e-9)
WARDS = {"ward": ["A", "B", "C"]}
BY_WARD = "SELECT ward, COUNT(*) AS visits, AVG(age) AS age FROM visits GROUP BY ward"
MADE = """SELECT i % 1000 AS patient_id, 20 + i % 50 AS age, ['A', 'B', 'C'][1 + i % 3] AS ward,
          DATE '2026-01-01' + (i % 90)::INT AS day FROM range(6000) AS made(i)"""


@pytest.fixture
def visits(tmp_path: Path) -> str:
    """Six thousand visits of a thousand patients to three wards, made up."""
    path = tmp_path / "visits.parquet"
    duckdb.sql(f"COPY ({MADE}) TO '{path}'")
    return str(path)


def opened(source: Any, **options: Any) -> Table:
    return dp.table(source, **{"unit": PATIENT, "budget": BUDGET} | options)


def charged(table: Table) -> list[Loss]:
    """The losses that the account was charged with."""
    entries = table.account.entries()
    return [Loss.from_json(one.fields["loss"]) for one in entries if one.event == "reserve"]


def test_an_answer_has_bars_a_receipt_and_a_charge(visits: str) -> None:
    table = opened(visits, categories=WARDS, ranges={"age": (0, 120)})
    release = table.sql(BY_WARD, epsilon=1, by="ana", purpose="wards")
    assert release.columns["ward"] == ("A", "B", "C") and release.measures == ("visits", "age")
    for measure in release.measures:
        ends = zip(release[f"{measure}_low"], release[measure], release[f"{measure}_high"], strict=True)
        assert all(low <= value <= high for low, value, high in ends)
    receipt = release.receipt
    assert receipt.entry is not None and (receipt.entry.account, receipt.entry.number) == ("visits", 2)
    assert receipt.cost == "epsilon 1 at delta 1e-09" and receipt.unit == PATIENT
    assert receipt.bounds and receipt.mechanism and not receipt.tainted
    assert [entry.event for entry in table.account.entries()] == ["open", "reserve", "commit"]
    assert table.account.entries()[1].fields["by"] == "ana"
    assert "left: " in str(release) and "±" in str(release)


@pytest.mark.parametrize(
    "query",
    [
        BY_WARD,
        "SELECT COUNT(DISTINCT patient_id) AS patients FROM visits",
        "SELECT ward, MEDIAN(age) AS age FROM visits GROUP BY ward HAVING COUNT(*) > 10 ORDER BY age LIMIT 2",
        "SELECT SUM(age) AS years FROM visits WHERE day >= DATE '2026-02-01'",
    ],
)
@pytest.mark.parametrize("budget", [BUDGET, dp.Budget(epsilon=3)])
def test_what_is_explained_is_what_is_charged(visits: str, query: str, budget: dp.Budget) -> None:
    table = opened(visits, categories=WARDS, budget=budget)
    explained = table.explain(query, epsilon=0.5)
    assert charged(table) == [], "explaining costs nothing"
    release = table.sql(query, epsilon=0.5)
    assert charged(table) == [explained.loss] == [release.loss] and explained.fits
    delta = table.account.terms.limit.delta
    assert explained.loss.epsilon(delta).upper <= 0.5
    assert explained.loss.epsilon(delta).upper > 0.49, "and no less private than was paid for"
    assert str(explained).startswith("question:") and "visits, where it fits" in str(explained)


def test_without_delta_the_loss_is_pure(visits: str) -> None:
    table = opened(visits, categories=WARDS, budget=dp.Budget(epsilon=1))
    table.sql(BY_WARD, epsilon=0.5)
    assert table.account.spent.epsilon == 0.5
    with pytest.raises(InvalidArgument, match="delta 0"):
        other = Path(visits).with_name("other.ledger")
        opened(visits, budget=dp.Budget(epsilon=1), ledger=other).sql(BY_WARD, epsilon=0.25)


def test_groups_that_are_not_listed_are_selected_privately(visits: str) -> None:
    """Each ward has a thousand patients, more than are ever left out at this price."""
    release = opened(visits).sql(BY_WARD, epsilon=2)
    assert set(release.columns["ward"]) <= {"A", "B", "C"}
    listed = opened(visits).sql(BY_WARD, epsilon=0.5, keys=["C", "Z"])
    assert listed.columns["ward"] == ("C", "Z")


# Asked again.


def test_the_same_question_to_the_same_data_is_free(visits: str) -> None:
    table = opened(visits, categories=WARDS)
    first = table.sql(BY_WARD, epsilon=0.5, by="ana")
    again = table.sql(
        "select  ward, count(*) as visits, avg(age) AS age from visits group by 1", epsilon=Fraction(1, 2)
    )
    other = opened(visits, categories=WARDS).sql(BY_WARD, epsilon=0.5, by="ben")
    assert first.columns == again.columns == other.columns and len(charged(table)) == 1
    assert again.receipt.entry == first.receipt.entry
    assert again.receipt.postprocessing[-1] == "given again, free: it was released before, by entry 2"


def test_anything_else_is_paid_for(visits: str) -> None:
    table = opened(visits, categories=WARDS)
    asked: list[dict[str, Any]] = [
        {},
        {"epsilon": 0.11},
        {"confidence": 0.9},
        {"bounds": Bounds(rows=6)},
        {"keys": ["A"]},
    ]
    for options in asked:
        table.sql(BY_WARD, **{"epsilon": 0.1} | options)
    opened(visits, categories=WARDS, ranges={"age": (0, 99)}).sql(BY_WARD, epsilon=0.1)
    assert len(charged(table)) == 6
    stamp = os.stat(visits).st_mtime_ns
    os.utime(visits, ns=(stamp + 10**9, stamp + 10**9))
    opened(visits, categories=WARDS).sql(BY_WARD, epsilon=0.1)
    assert len(charged(table)) == 7, "the data may have changed"


def test_an_answer_in_seeded_noise_is_not_given_to_others(visits: str) -> None:
    table = opened(visits, categories=WARDS)
    with noise.seeded(b"a test"):
        assert table.sql(BY_WARD, epsilon=0.5).receipt.tainted
    assert not table.sql(BY_WARD, epsilon=0.5).receipt.tainted
    assert len(charged(table)) == 2


# The same from Python.


def test_python_asks_the_same_question(visits: str) -> None:
    table = opened(visits, categories=WARDS)
    sql = "SELECT ward, COUNT(*) AS visits, AVG(age) AS age FROM visits WHERE age > 30 GROUP BY ward"
    first = table.sql(sql, epsilon=0.5)
    built = table.where("age > 30").group_by("ward")
    again = built.agg(dp.agg.count().alias("visits"), dp.agg.mean("age").alias("age")).release(epsilon=0.5)
    assert again.columns == first.columns and len(charged(table)) == 1


def test_what_is_built_can_be_explained(visits: str) -> None:
    table = opened(visits, categories=WARDS)
    query = table.group_by("ward").agg(dp.agg.count())
    explained = table.explain(query, epsilon=0.5)
    assert query.release(epsilon=0.5).loss == explained.loss and "GROUP BY" in explained.question


# Sources.


def frames() -> dict[str, Any]:
    arrow = duckdb.sql(MADE).to_arrow_table()
    return {"arrow": arrow, "pandas": arrow.to_pandas(), "polars": polars.from_arrow(arrow)}


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_frames_are_asked_too(kind: str, tmp_path: Path) -> None:
    table = opened(frames()[kind], name="visits", ledger=tmp_path / "x.ledger", categories=WARDS)
    assert list(table.columns) == ["patient_id", "age", "ward", "day"]
    assert len(table.sql(BY_WARD, epsilon=1)) == 3


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "duckdb"])
def test_files_are_asked_and_have_a_ledger_beside_them(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"visits.{ending}"
    if ending == "duckdb":
        with duckdb.connect(str(path)) as file:
            file.execute(f"CREATE TABLE visits AS {MADE}")
    else:
        duckdb.sql(f"COPY ({MADE}) TO '{path}'")
    with opened(str(path), categories=WARDS) as table:
        assert len(table.sql(BY_WARD, epsilon=1)) == 3
    assert (tmp_path / "visits.ledger").exists() and (tmp_path / "visits.answers").exists()


def test_tables_of_the_same_units_and_public_ones_are_joined(visits: str, tmp_path: Path) -> None:
    stays = pandas.DataFrame({"patient_id": range(1000), "nights": [1 + i % 9 for i in range(1000)]})
    wards = polars.DataFrame({"ward": ["A", "B", "C"], "floor": [1, 2, 2]})
    table = opened(
        visits, private={"stays": stays}, public={"wards": wards}, ranges={"stays.nights": (0, 10)}
    )
    joined = "SELECT SUM(nights) AS nights FROM visits JOIN stays USING (patient_id) WHERE ward = 'A'"
    assert len(table.sql(joined, epsilon=0.5)) == 1
    floors = "SELECT floor, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY floor"
    assert table.sql(floors, epsilon=0.5, keys=[1, 2]).columns["floor"] == (1, 2)


def test_a_prepared_table_answers_the_same(visits: str) -> None:
    """Each patient has 2 visits to each ward, a norm below 4: nothing is clipped; bars miss by 1e-9 each."""
    table = opened(visits, categories=WARDS)
    asked = {"epsilon": 1, "bounds": Bounds(rows=4), "confidence": 1 - Fraction(1, 10**9)}
    path = table.prepare("ward")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.parent == Path(visits).parent
    assert charged(table) == [], "nothing is released"
    release = table.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", **asked)
    assert all(low <= 2000 <= high for low, high in zip(release["n_low"], release["n_high"], strict=True))
    rows = table.ask(
        "SELECT ward, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY ward", epsilon=1
    ).request.question.rows
    assert table._prepared[0].fits(rows) is not None
    os.utime(visits, ns=(1, 1))
    assert table._prepared[0].fits(rows) is None, "the source has changed"
    table.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", **asked)
    assert len(charged(table)) == 2


# Who is protected, and how much.


def test_units_are_those_of_the_account(visits: str) -> None:
    table = opened(visits)
    with pytest.raises(InvalidArgument, match="is for each"):
        dp.table(visits, unit=dp.Unit("visit"), account=table.account)
    same = dp.table(visits, account=table.account, categories=WARDS)
    assert same.unit == PATIENT and same.sql(BY_WARD, epsilon=0.5).receipt.unit == PATIENT


@pytest.mark.parametrize(
    ("unit", "options"),
    [
        (dp.Unit("visit"), {}),
        (dp.Unit("patient", column="patient_id", window="week"), {"time": "day"}),
        (dp.Unit("patient", column="patient_id", relation="replace"), {"public_size": 1000}),
        (dp.Unit("patient", column="patient_id", relation="zero_out"), {}),
    ],
)
def test_every_kind_of_unit_is_charged_as_itself(visits: str, unit: dp.Unit, options: dict[str, Any]) -> None:
    table = opened(visits, unit=unit, categories=WARDS, **options)
    release = table.sql(BY_WARD, epsilon=1)
    assert release.receipt.unit == unit and release.loss.relation == unit.relation


def test_a_budget_that_is_gone_refuses_before_data_are_read(
    visits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(visits, categories=WARDS, budget=dp.Budget(epsilon=1))
    table.sql(BY_WARD, epsilon=0.75)
    explained = table.explain(BY_WARD, epsilon=0.5)
    assert not explained.fits and "does not fit" in str(explained)
    monkeypatch.setattr(type(table._engine), "load", lambda self, rows: pytest.fail("data were read"))
    with pytest.raises(BudgetExceeded):
        table.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)


def test_allowances_hold(visits: str) -> None:
    table = opened(visits, categories=WARDS, by="ana")
    table.account.allow(dp.Budget(epsilon=0.2), by="ana")
    with pytest.raises(BudgetExceeded):
        table.sql(BY_WARD, epsilon=0.5)
    assert not table.explain(BY_WARD, epsilon=0.5).fits
    assert table.explain(BY_WARD, epsilon=0.5, by="ben").fits
    table.sql(BY_WARD, epsilon=0.5, by="ben")


def test_other_charges_count(visits: str) -> None:
    """One account for a query, a model, and what was made elsewhere."""
    table = opened(visits, categories=WARDS, budget=dp.Budget(epsilon=1))
    table.account.record(Pure(0.8), note="made elsewhere")
    with pytest.raises(BudgetExceeded):
        table.sql(BY_WARD, epsilon=0.5)


# What it says of itself.


def test_it_prints_without_data(visits: str) -> None:
    assert repr(opened(visits)) == (
        "<Table visits (patient_id, age, ward, day), "
        "epsilon 3 at delta 1e-09 for each patient (patient_id), add_remove>"
    )


def test_a_refused_question_costs_nothing(visits: str) -> None:
    table = opened(visits)
    with pytest.raises(Unsupported) as refused:
        table.sql("SELECT age FROM visits", epsilon=1)
    assert refused.value.remedy and charged(table) == []


@pytest.mark.parametrize("epsilon", [0, -1, "much", None])
def test_a_price_that_is_none_is_refused(visits: str, epsilon: Any) -> None:
    table = opened(visits)
    with pytest.raises(InvalidArgument, match="epsilon"):
        table.sql("SELECT COUNT(*) FROM visits", epsilon=epsilon)
    assert charged(table) == []


def test_the_price_that_a_refusal_names_is_accepted(visits: str) -> None:
    """Also where the groups are selected, which takes of the account's delta too."""
    table = opened(visits, budget=dp.Budget(epsilon=1, delta=1e-9))
    table.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)
    with pytest.raises(BudgetExceeded) as refused:
        table.sql(BY_WARD, epsilon=0.9)
    (price,) = re.findall(r"Try epsilon=([\d.]+)\.", refused.value.remedy)
    assert 0.1 < float(price) < 0.9 and refused.value.left == float(price)
    assert table.sql(BY_WARD, epsilon=float(price)).receipt.entry is not None


# Arguments that are none.


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"budget": 3}, "budget=Budget(epsilon=3, delta=1e-9)"),
    ({"budget": True}, "budget=Budget("),
    ({"unit": "patient"}, "unit=Unit("),
    ({"categories": ["A"]}, "categories={"),
    ({"categories": {"ward": "AB"}}, 'categories={"ward": […]}'),
    ({"categories": {"ward": []}}, "List"),
    ({"ranges": [0, 120]}, "ranges={"),
    ({"ranges": {"age": 5}}, 'ranges={"age": (low, high)}'),
    ({"ranges": {5: (0, 1)}}, "ranges={"),
    ({"rows_per_unit": "x"}, "rows_per_unit"),
    ({"rows_per_unit": 0}, "rows_per_unit"),
    ({"public_size": "x"}, "public_size"),
    ({"ledger": 5}, "ledger="),
    ({"account": 5}, "account="),
    ({"public": ["wards"]}, '{"wards": "wards.csv"}'),
    ({"public": 5}, "public={"),
    ({"public": "wards"}, "public={"),
    ({"public": {"visits": "other.csv"}}, "name of its own"),
    ({"private": {"Visits": "other.csv"}}, "name of its own"),
    ({"types": {"age": "FOO"}}, "BIGINT"),
    ({"types": {"age": "INT) FROM x; --"}}, "BIGINT"),
    ({"types": {"age": 5}}, "BIGINT"),
    ({"types": ["age"]}, "types={"),
    ({"name": 5}, "name="),
    ({"time": 5}, "time="),
    ({"by": 5}, "by="),
]


@pytest.mark.parametrize(("wrong", "remedy"), WRONG)
def test_a_wrong_argument_is_refused_with_a_remedy(visits: str, wrong: dict[str, Any], remedy: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        opened(visits, **wrong)
    assert remedy in refused.value.remedy
    assert not Path(visits).with_suffix(".ledger").exists()


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ({"keys": "AB"}, "keys=[…]"),
        ({"keys": 5}, "keys=[…]"),
        ({"keys": {"ward": "AB"}}, 'keys={"ward": […]}'),
        ({"keys": []}, "List the groups"),
        ({"keys": {"ward": []}}, "List the groups"),
        ({"bounds": {"rows": 5}}, "bounds=dp.Bounds(rows=5)"),
        ({"by": 5}, "by="),
        ({"purpose": 5}, "purpose="),
        ({"confidence": "x"}, "confidence"),
    ],
)
def test_a_wrong_option_costs_nothing(visits: str, wrong: dict[str, Any], remedy: str) -> None:
    table = opened(visits)
    query = table.group_by("ward").agg(dp.agg.count())
    asked: list[Any] = [
        lambda: table.sql(BY_WARD, **{"epsilon": 1} | wrong),
        lambda: table.explain(BY_WARD, **{"epsilon": 1} | wrong),
        lambda: query.release(**{"epsilon": 1} | wrong),
        lambda: query.explain(**{"epsilon": 1} | wrong),
    ]
    for ask in asked:
        with pytest.raises(InvalidArgument) as refused:
            ask()
        assert remedy in refused.value.remedy
    assert not Path(visits).with_suffix(".ledger").exists()


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        (lambda table: table.agg("count"), "dp.agg.count()"),
        (lambda table: table.agg(dp.agg.count), "dp.agg.count()"),
        (lambda table: table.agg(dp.agg.mean), "dp.agg.mean(…)"),
        (lambda table: table.agg(None), "dp.agg.count()"),
        (lambda table: dp.agg.mean(None), "dp.agg.mean("),
        (lambda table: dp.agg.count(5), "in quotes"),
        (lambda table: dp.agg.count().alias(5), "in quotes"),
        (lambda table: dp.agg.quantile("age", "x"), "fraction"),
        (lambda table: dp.agg.quantile("age", 2), "fraction"),
        (lambda table: table.group_by(["ward"]).agg(dp.agg.count()).sql, "in quotes"),
        (lambda table: table.where(5).agg(dp.agg.count()).sql, "in quotes"),
        (lambda table: table.agg(dp.agg.count()).limit("x"), "10"),
    ],
)
def test_a_wrong_word_of_a_question_is_refused(visits: str, wrong: Any, remedy: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        wrong(opened(visits))
    assert remedy in refused.value.remedy


def test_a_column_that_is_not_released_is_named(visits: str) -> None:
    release = opened(visits, categories=WARDS).sql(BY_WARD, epsilon=1)
    with pytest.raises(InvalidArgument, match="zz") as refused:
        release["zz"]
    assert "ward, visits, visits_low" in refused.value.remedy


# Opened by its first charge, and closed.


def test_nothing_is_opened_before_the_first_charge(visits: str) -> None:
    ledger, table = Path(visits).with_suffix(".ledger"), opened(visits, categories=WARDS)
    explained = table.explain(BY_WARD, epsilon=0.5)
    assert explained.fits and "nothing was opened" in str(explained)
    for wrong, epsilon in (("SELECT age FROM visits", 1), ("SELEC", 1), (BY_WARD, 4)):
        with pytest.raises((InvalidArgument, BudgetExceeded)):
            table.sql(wrong, epsilon=epsilon)
    assert not ledger.exists()
    other = opened(visits, categories=WARDS, budget=dp.Budget(epsilon=1, delta=1e-6))
    release = other.sql(BY_WARD, epsilon=0.5)
    assert ledger.exists() and ledger.with_suffix(".answers").exists()
    assert "nothing was opened" not in str(other.explain(BY_WARD, epsilon=0.5))
    assert other.sql(BY_WARD, epsilon=0.5).columns == release.columns and len(charged(other)) == 1
    with pytest.raises(InvalidArgument, match="fixed"):
        table.sql(BY_WARD, epsilon=0.5)


def test_an_answer_of_another_is_found_by_who_opened_before(visits: str) -> None:
    first, second = opened(visits, categories=WARDS), opened(visits, categories=WARDS)
    release = first.sql(BY_WARD, epsilon=0.5)
    assert second.sql(BY_WARD, epsilon=0.5).columns == release.columns and len(charged(second)) == 1


def test_the_unit_may_be_left_out_once_the_account_is_open(visits: str) -> None:
    with pytest.raises(InvalidArgument, match="who is protected"):
        dp.table(visits, budget=BUDGET)
    week = dp.Unit("patient", column="patient_id", window="week")
    opened(visits, unit=week, time="day", categories=WARDS).sql(BY_WARD, epsilon=0.5)
    again = dp.table(visits, categories=WARDS)
    assert again.unit == week
    assert again.sql(BY_WARD, epsilon=0.5).receipt.postprocessing[-1].startswith("given again, free")


def test_a_closed_table_charges_nothing(visits: str) -> None:
    table = opened(visits, categories=WARDS)
    query = table.group_by("ward").agg(dp.agg.count())
    table.sql(BY_WARD, epsilon=0.5)
    table.close()
    for ask in (lambda: table.sql(BY_WARD, epsilon=0.25), lambda: query.release(epsilon=0.25)):
        with pytest.raises(InvalidArgument, match="closed; nothing was charged"):
            ask()
    assert len(charged(table)) == 1


def test_a_question_in_the_making_prints_as_sql(visits: str) -> None:
    query = opened(visits).group_by("ward").agg(dp.agg.count())
    assert repr(query) == '<Query SELECT "ward", COUNT(*) FROM "visits" GROUP BY "ward">'
    assert len(repr(query.where(" OR ".join(["age > 30"] * 99)))) < 120
    assert repr(query.where("age >")) == "<Query of visits>"
    assert query.explain(epsilon=0.5).loss == query.release(epsilon=0.5).loss


def test_who_is_protected_by_each_row_is_told(visits: str) -> None:
    release = opened(visits, unit=dp.Unit("visit"), categories=WARDS).sql(BY_WARD, epsilon=0.5)
    assert "per visit (each row), visits, entry 2" in str(release) and "left: " in str(release)


def test_what_is_given_again_says_so_instead_of_what_was_left(visits: str) -> None:
    table = opened(visits, categories=WARDS)
    table.sql(BY_WARD, epsilon=0.5)
    again = table.sql(BY_WARD, epsilon=0.5)
    assert "given again, free" in str(again) and "left: " not in str(again)


def test_a_question_longer_than_a_note_is_answered(visits: str) -> None:
    table = opened(visits, ranges={"age": (0, 120)})
    clauses = " OR ".join(f"age = {number}" for number in range(20, 320))
    table.sql(f"SELECT COUNT(*) AS visits FROM visits WHERE {clauses}", epsilon=1, by="ana")
    note = table.account.entries()[1].fields["note"]
    assert len(note) == 2000 and note.startswith("SELECT COUNT(*)") and note.endswith("…")


def test_new_questions_have_answers_near_the_truth(visits: str) -> None:
    """With next to no noise: pairs, dates, margins, shares, membership and what is there at all."""
    table = opened(visits, budget=dp.Budget(epsilon=10**5, delta=1e-6), ranges={"age": (20, 70)})
    asked = {
        "SELECT CORR(age, age + 1) AS r FROM visits": 1.0,
        "SELECT REGR_SLOPE(age * 2, age) AS r FROM visits": 2.0,
        "SELECT COUNT(DISTINCT (ward, age)) AS n FROM visits": 150,
        "SELECT COUNT(*) AS n FROM visits WHERE regexp_matches(ward, '[AB]')": 4000,
        "SELECT COUNT(*) AS n FROM visits WHERE patient_id IN (SELECT patient_id FROM visits WHERE age >"
        " 68)": 120,
    }
    for query, truth in asked.items():
        release = table.sql(query, epsilon=3000, bounds=Bounds(rows=6, pairs=6))
        assert release.value == pytest.approx(truth, rel=0.05), query
        assert release.low <= truth * (1 + 1e-9) and release.high >= truth * (1 - 1e-9), query
    shares = table.sql(
        "SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY ward", epsilon=1000
    )
    assert sum(shares["share"]) == pytest.approx(1) and shares.measures == ("share",)
    rolled = table.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)", epsilon=1000)
    assert rolled.columns["ward"] == ("A", "B", "C", None)
    assert rolled["n"][3] == pytest.approx(rolled["n"][:3].sum(), abs=2) and rolled["n_high"][3] == float(
        "inf"
    )


def test_dates_and_values_without_bars_are_released_and_read_back(visits: str) -> None:
    table = opened(visits, budget=dp.Budget(epsilon=10**5, delta=1e-6))
    first = table.sql("SELECT MIN(day) AS first FROM visits", epsilon=1000)
    assert isinstance(first.value, date) and first.low <= first.value <= first.high
    assert first.low <= date(2026, 1, 1) <= first.high and f"({first.low} to {first.high})" in str(first)
    there = table.sql("SELECT DISTINCT ward FROM visits", epsilon=100)
    assert there.columns == {"ward": ("A", "B", "C")} and there.measures == () and there.confidence is None
    usual = table.sql("SELECT MODE(ward) AS w FROM visits WHERE ward = 'B' OR age < 40", epsilon=100)
    assert usual.value == "B" and usual.low is None
    for release in (first, there, usual):
        assert dp.Release.from_json(release.to_json()) == release and release._repr_html_()
