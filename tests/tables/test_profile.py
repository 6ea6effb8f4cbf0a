"""The profile of an account: learned once, declared once, used by every later question of everyone."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalenius as dp
from dalenius import noise
from dalenius.errors import BudgetExceeded, InvalidArgument, LedgerTampered, QueryFailed
from dalenius.losses import Loss
from dalenius.tables import Bounds, Table
from dalenius.tables.engines.engine import MAGNITUDES, MASS, SIZES, WEIGHT, Bounding
from dalenius.tables.facts import Facts, Profile
from dalenius.tables.learned import Histogram, Learned, Steps
from dalenius.tables.planning.searching import STEPS, closer_steps
from dalenius.tables.question import Interval
from dalenius.tables.sources.forms import Form

PATIENT = dp.Unit("patient", column="id")
BUDGET = dp.Budget(epsilon=30, delta=1e-9)
QUESTIONS = (
    "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward",
    "SELECT COUNT(*) AS n, SUM(cost) AS cost FROM visits",
    "SELECT MEDIAN(cost) AS cost FROM visits",
)
DISTINCT = "SELECT age, COUNT(DISTINCT ward) AS n FROM visits GROUP BY age"


def write(path: Path, *, without: int | None = None) -> Path:
    """Write visits of twelve hundred patients, with one to twenty each; those of one left out."""
    lines = ["id,ward,age,cost,insured"]
    for unit in range(1200):
        for visit in range(1 + unit % 20 if unit != without else 0):
            lines.append(
                f"{unit},{'ABCDE'[unit % 5]},{20 + unit % 60},{visit + 0.5},{'true' if unit % 3 else 'false'}"
            )
    lines += [f",A,50,{i},true" for i in range(400)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("visits") / "visits.csv")


def opened(visits: Path, folder: Path, **options: Any) -> Table:
    return dp.table(visits, **{"unit": PATIENT, "budget": BUDGET, "ledger": folder / "v.ledger"} | options)


def charged(table: Table) -> list[Loss]:
    return [Loss.from_json(e.fields["loss"]) for e in table.account.entries() if e.event == "reserve"]


@pytest.fixture
def learned(visits: Path, tmp_path: Path) -> Table:
    table = opened(visits, tmp_path)
    table.learn(epsilon=4)
    return table


def test_a_profile_is_charged_before_it_is_kept(learned: Table) -> None:
    entries = learned.account.entries()
    assert [entry.event for entry in entries] == ["open", "reserve", "profile", "commit"]
    (loss,) = charged(learned)
    assert 3.9 < loss.epsilon(Fraction(1, 10**9)).upper <= 4
    assert learned.account.ledger.verify() == 4
    assert learned.profile.facts.learned is not None and learned.profile.facts.learned.entry == 2


def test_what_does_not_fit_is_refused_and_nothing_is_kept(visits: Path, tmp_path: Path) -> None:
    table = opened(visits, tmp_path, budget=dp.Budget(epsilon=1, delta=1e-9))
    with pytest.raises(
        BudgetExceeded, match=r"Nothing was learned or charged\. Learn the profile at a smaller"
    ):
        table.learn(epsilon=2)
    assert not (tmp_path / "v.ledger").exists()


def test_later_questions_of_everyone_search_for_nothing(learned: Table, visits: Path, tmp_path: Path) -> None:
    other = opened(visits, tmp_path, by="ben", unit=None, budget=None)
    for query in QUESTIONS:
        mine, theirs = (table.explain(query, epsilon=0.5) for table in (learned, other))
        assert mine.lines == theirs.lines
        names = [name for name, _ in mine.lines]
        assert "search" not in names and "profile" in names
    receipt = other.sql(QUESTIONS[0], epsilon=0.5).receipt
    assert sum("by the account's profile" in bound for bound in receipt.bounds) == 3
    assert '"profile_rows"' in receipt.mechanism and "search_" not in receipt.mechanism


def test_how_many_values_of_a_unit_differ_is_searched(learned: Table) -> None:
    """A profile does not count the different values of columns."""
    lines = learned.explain(DISTINCT, epsilon=0.5).lines
    assert [name for name, _ in lines if name in ("search", "profile")] == ["search"]


def test_rows_that_are_left_are_searched_and_ranges_are_not(learned: Table) -> None:
    """A bound for all rows of a unit may be many times larger than one for those that a filter leaves."""
    lines = learned.explain("SELECT COUNT(*), SUM(cost) FROM visits WHERE age > 40", epsilon=0.5).lines
    assert [text[:13] for name, text in lines if name == "search"] == ["how many rows"]
    assert [text[:15] for name, text in lines if name == "profile"] == ["where cost lies"]


def test_a_profile_is_near_the_truth(learned: Table) -> None:
    known = learned.profile.facts.learned
    assert known is not None and known.missing is not None
    assert abs(known.units[0] - 1200) < 60 and abs(known.missing[0] - 400) < 60
    assert set(known.categories["ward"]) == set("ABCDE") and set(known.categories["insured"]) == {True, False}
    assert abs(known.rows.noisy.sum() - 1200) < 300 and len(known.rows.counts) == SIZES
    assert len(known.values["age"].counts) == MAGNITUDES
    assert len(known.shapes["ward"].counts) == SIZES
    age = known.steps["age"]
    assert age.lower <= 20 and age.upper >= 79 and abs(age.histogram.noisy.sum() - 1200) < 500


def test_answers_by_a_profile_hold(learned: Table) -> None:
    release = learned.sql(QUESTIONS[0], epsilon=10)
    truth = {ward: sum(1 + u % 20 for u in range(1200) if u % 5 == i) for i, ward in enumerate("ABCDE")}
    for ward, n in zip(release["ward"], release["n"], strict=True):
        assert abs(n - truth[ward]) < 0.1 * truth[ward]


def test_what_is_learned_again_supersedes_and_both_are_charged(
    learned: Table, visits: Path, tmp_path: Path
) -> None:
    before = learned.profile.facts.learned
    learned.learn(epsilon=1, columns=["age"])
    after = learned.profile.facts.learned
    assert after is not None and before is not None and after.entry == 5 and set(after.values) == {"age"}
    assert after.shapes == {} and len(charged(learned)) == 2
    assert opened(visits, tmp_path).profile.facts.learned == after
    assert learned.account.ledger.verify() == 7


def test_without_a_delta_no_values_are_selected(visits: Path, tmp_path: Path) -> None:
    table = opened(visits, tmp_path, budget=dp.Budget(epsilon=9))
    table.learn(epsilon=8)
    known = table.profile.facts.learned
    assert known is not None and known.categories == {} and known.rows.heavy
    assert abs(known.units[0] - 1200) < 200
    assert "search" not in [name for name, _ in table.explain(QUESTIONS[2], epsilon=0.5).lines]


# Neighbours.


@pytest.mark.parametrize("epsilon", [0.2, 3])
def test_neighbours_give_equal_shapes_texts_and_charges(tmp_path: Path, epsilon: float) -> None:
    """A unit more or less changes released numbers only: what is kept has one form, and plans read alike."""
    forms, plans, losses = [], [], []
    for folder, without in (("whole", None), ("less", 19)):
        (tmp_path / folder).mkdir()
        table = opened(write(tmp_path / folder / "visits.csv", without=without), tmp_path / folder)
        with noise.seeded(b"the same noise"):
            table.learn(epsilon=epsilon)
        text = table.account.profile
        assert text is not None
        forms.append(_form(json.loads(text)))
        plans.append([table.explain(query, epsilon=0.5).lines for query in QUESTIONS])
        losses.append(charged(table))
    assert forms[0] == forms[1] and losses[0] == losses[1]
    for mine, theirs in zip(*plans, strict=True):
        assert [(name, _wordless(text)) for name, text in mine] == [
            (name, _wordless(text)) for name, text in theirs
        ]


def _form(plain: Any) -> Any:
    """What is kept with every number in the place of any."""
    if isinstance(plain, dict):
        return {name: _form(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_form(value) for value in plain]
    return 0 if isinstance(plain, int | float) and not isinstance(plain, bool) else plain


def _wordless(text: str) -> str:
    return "".join("0" if letter.isdigit() else letter for letter in text).replace("0", "").replace(",", "")


def test_one_unit_moves_what_is_learned_no_further_than_it_is_charged_for(tmp_path: Path) -> None:
    """Without noise, neighbours differ by one unit: 1 in shapes, MASS in magnitudes, WEIGHT in steps."""
    from dalenius.tables.learning import _lesson

    within, once = Interval(Fraction(0), Fraction(64)), Bounding("l1", Fraction(1))

    seen = []
    for folder, without in (("whole", None), ("less", 19)):
        (tmp_path / folder).mkdir()
        table = opened(write(tmp_path / folder / "visits.csv", without=without), tmp_path / folder)
        main = table.schema.tables[0]
        lesson = _lesson(table.schema, main, PATIENT, Fraction(1), Fraction(1, 10**9), None)  # type: ignore[arg-type]
        with table._engine.load(lesson.rows) as loaded:
            found = [loaded.shapes([()], norm="l2", presence=False)]
            found += [loaded.magnitudes(place) for place in range(len(lesson.values))]
            for place, noise_ in zip(range(len(lesson.values)), lesson.parts.noises, strict=False):
                found.append(closer_steps(loaded, [()], place, noise_, within, once)[0])
        for rows in lesson.grouped.values():
            with table._engine.load(rows) as loaded:
                held = loaded.holders(most=1, salt=bytes(32))
                keys = sorted(held, key=str)
                found.append(np.array([sum(held.values())]))
                found += [loaded.shapes(keys, norm="l2", presence=each) for each in (False, True)]
        seen.append(found)
    for whole, less in zip(*seen, strict=True):
        moved = np.abs(whole - less).sum()
        most = {(MAGNITUDES,): MASS, (1 << STEPS,): WEIGHT}.get(whole.shape, 1)
        assert (moved == 1) if most == 1 else (0.99 * most < moved <= most)


# Declared.


def test_what_is_declared_at_opening_need_not_be_said_again(visits: Path, tmp_path: Path) -> None:
    said: dict[str, Any] = {
        "ranges": {"age": (0, 120)},
        "categories": {"ward": ["A", "B", "C"]},
        "rows_per_unit": 20,
        "bounds": Bounds(groups=2, ranges={"cost": (0, 30)}),
    }
    first = opened(visits, tmp_path, **said)
    first.sql(QUESTIONS[0], epsilon=0.5)
    other = opened(visits, tmp_path, unit=None, budget=None)
    for query in QUESTIONS:
        assert other.explain(query, epsilon=0.5).lines == first.explain(query, epsilon=0.5).lines
    assert (
        other.sql(QUESTIONS[0], epsilon=0.5).receipt.entry
        == first.sql(QUESTIONS[0], epsilon=0.5).receipt.entry
    )
    assert len(charged(other)) == 1, "the same plan, so the same answer is given again"


def test_declaring_changes_open_tables_too_and_costs_nothing(visits: Path, tmp_path: Path) -> None:
    table, other = opened(visits, tmp_path), opened(visits, tmp_path)
    table.sql(QUESTIONS[2], epsilon=0.5)
    table.declare(ranges={"cost": (0, 40)}, by="ana")
    assert any(
        "cost held within 0 to 40" in text for _, text in other.explain(QUESTIONS[2], epsilon=0.5).lines
    )
    table.declare(ranges={"cost": (0, 50)})
    assert other.schema.tables[0].ranges["cost"] == (0, 50)  # type: ignore[union-attr]
    assert len(charged(table)) == 1 and other.account.entries()[-1].event == "profile"
    with pytest.raises(InvalidArgument, match="There is no column"):
        table.declare(ranges={"coats": (0, 1)})
    with pytest.raises(InvalidArgument, match="not of its type"):
        table.declare(ranges={"ward": (0, 1)})


def test_what_is_passed_counts_before_what_is_kept(visits: Path, tmp_path: Path) -> None:
    opened(visits, tmp_path, ranges={"age": (0, 120)}).sql(QUESTIONS[2], epsilon=0.5)
    other = opened(visits, tmp_path, ranges={"age": (0, 99)})
    assert any(
        "age held within 0 to 99" in text for _, text in other.explain(QUESTIONS[0], epsilon=0.5).lines
    )
    assert opened(visits, tmp_path).schema.tables[0].ranges["age"] == (0, 120)  # type: ignore[union-attr]


# Types are fixed.


def test_a_type_that_was_found_never_changes_again(tmp_path: Path) -> None:
    """One person's rows cannot make a question be answered or refused: what does not fit is NULL."""
    path = tmp_path / "visits.csv"
    lines = [f"{i},{i % 90}" for i in range(100)]
    path.write_text("id,age\n" + "\n".join(lines) + "\n")
    opened(path, tmp_path).sql("SELECT AVG(age) FROM visits", epsilon=1)
    path.write_text("id,age\n" + "7,old\n" * 200 + "\n".join(lines) + "\n")
    again = opened(path, tmp_path)
    assert again.columns["age"] == "integer"
    again.sql("SELECT AVG(age) FROM visits", epsilon=1)
    fresh = opened(path, tmp_path / "elsewhere.ledger", ledger=tmp_path / "fresh.ledger", account="fresh")
    assert fresh.columns["age"] == "text", "without an account it would be found anew"


def test_an_account_opened_by_hand_keeps_types_at_its_first_charge(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("id,age\n" + "".join(f"{i},{i % 90}\n" for i in range(50)))
    account = dp.Ledger.memory().open("people", unit=PATIENT, budget=BUDGET)
    dp.table(path, account=account).sql("SELECT COUNT(*) FROM visits", epsilon=1)
    assert [entry.event for entry in account.entries()] == ["open", "profile", "reserve", "commit"]
    path.write_text("id,age\n" + "".join(f"{i},x\n" for i in range(50)))
    again = dp.table(path, account=account)
    assert again.columns["age"] == "integer"
    again.sql("SELECT COUNT(*) FROM visits", epsilon=1)
    assert sum(entry.event == "profile" for entry in account.entries()) == 1


def test_receipt_and_explanation_name_what_was_found(visits: Path, tmp_path: Path) -> None:
    table = opened(visits, tmp_path, types={"age": "BIGINT"})
    query = "SELECT SUM(cost) FROM visits WHERE age > 3"
    for text in (str(table.explain(query, epsilon=1)), str(table.sql(query, epsilon=1).receipt)):
        assert "taken to be public: cost DOUBLE" in text and "age BIGINT" not in text


# The ledger.


def test_a_profile_that_was_changed_or_put_back_is_refused(
    learned: Table, visits: Path, tmp_path: Path
) -> None:
    learned.account.ledger.close()
    with sqlite3.connect(tmp_path / "v.ledger") as file:
        file.execute("DROP TRIGGER entries_never_change")
        (body,) = file.execute("SELECT body FROM entries WHERE number = 3").fetchone()
        changed = body.replace('"missing\\":[', '"missing\\":[1')
        assert changed != body
        file.execute("UPDATE entries SET body = ? WHERE number = 3", (changed,))
    file.close()
    with pytest.raises(LedgerTampered):
        opened(visits, tmp_path).explain(QUESTIONS[0], epsilon=1)


def test_terms_with_a_profile_read_back_and_promise_the_same(tmp_path: Path) -> None:
    ledger = dp.Ledger(tmp_path / "people.ledger")
    ledger.open("people", unit=PATIENT, budget=BUDGET, profile="{}")
    assert ledger.account("people").profile == "{}"
    ledger.open("people", unit=PATIENT, budget=BUDGET)
    ledger.account("people").note_profile('{"a":1}', by="ana")
    assert ledger.account("people").profile == '{"a":1}' and ledger.verify() == 2
    with dp.Ledger(tmp_path / "people.ledger") as again:
        assert again.account("people").profile == '{"a":1}'


def test_a_profile_reads_back_from_its_json() -> None:
    histogram = Histogram.of([5, -3, 400], Fraction(10), 1, heavy=False)
    steps = Steps(histogram, Fraction(-1, 3), Fraction(128))
    known = Learned(
        "epsilon 1",
        2,
        histogram,
        (10.0, 3.0),
        values={"age": histogram},
        steps={"age": steps},
        categories={"ward": ("A", None)},
    )
    facts = Facts(
        Form("cp1252", ",", "DD.MM.YYYY", ("NA",), {"age": "BIGINT"}),
        Form(types={"age": "BIGINT"}),
        {"age": (0, 120)},
        {"ward": ("A", "B", None)},
        5,
        100,
        Bounds(rows=Fraction(7, 3), ranges={"age": (0, 1.5)}),
        known,
    )
    read = Profile.from_json(Profile({"visits": facts}).to_json())
    assert read.of("VISITS").plain() == facts.plain() and read.of("VISITS").learned == known
    with pytest.raises(InvalidArgument, match="does not know"):
        Profile.from_json('{"kind": "table_profile", "version": 2, "tables": {}}')


def test_kept_counts_are_coarse_beside_their_noise_only() -> None:
    noisy = [123_456, -99, 0]
    kept = Histogram.of(noisy, Fraction(4096), 1024, heavy=True)
    assert np.all(np.abs(kept.noisy - np.array(noisy) / 1024) <= 4096 / 32 / 1024)
    assert kept.scale == 4 and kept.step == Fraction(1, 8)


@pytest.mark.parametrize("without", [3, 4])
def test_neighbours_of_a_file_in_latin_letters_are_read_alike(tmp_path: Path, without: int) -> None:
    """Whether a person's name has an umlaut changes no type, form, text or refusal."""
    said = []
    for folder, left_out in (("whole", None), ("less", without)):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "visits.csv"
        rows = [
            f"{i};{i},5;{'Köln' if i % 3 else 'Bonn'};{1 + i % 28:02}.12.2013"
            for i in range(90)
            if i != left_out
        ]
        path.write_bytes("\n".join(["id;cost;town;day", *rows, ""]).encode("cp1252"))
        table = opened(path, tmp_path / folder)
        query = "SELECT COUNT(town) AS n, AVG(cost) AS cost FROM visits WHERE day > DATE '2013-12-05'"
        release = table.sql(query, epsilon=1, bounds=Bounds(rows=1, ranges={"cost": (0, 100)}))
        said.append(
            (str(table.profile), table.explain(query, epsilon=1).lines, release.receipt.bounds, release.loss)
        )
    assert said[0] == said[1]


def test_what_fails_after_the_charge_stays_charged_and_keeps_nothing(
    visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(visits, tmp_path)

    def broken(rows: object) -> Any:
        raise RuntimeError("the record of Ana Lima")

    monkeypatch.setattr(table._engine, "load", broken)
    with pytest.raises(QueryFailed, match="charged as entry 2") as failed:
        table.learn(epsilon=1)
    assert failed.value.__context__ is None and "Ana" not in str(failed.value)
    assert [entry.event for entry in table.account.entries()] == ["open", "reserve", "forfeit"]
    assert table.profile.facts.learned is None
    table.close()
    with pytest.raises(InvalidArgument, match="closed"):
        table.learn(epsilon=1)
