"""What notebooks show: short texts, HTML that is well formed and harmless, nothing spent by looking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius.ledger import Account
from dalenius.losses import Gaussian, Pure
from dalenius.release import EXACT, TAINTED, Receipt
from dalenius.tables import Table
from dalenius.tables.schema import Private, Public, Schema

NASTY = "<script>alert(1)</script>\x1b[2J"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


class WellFormed(HTMLParser):
    """Closes every tag that it opens, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag in {"p", "strong", "div", "ul", "li", "details", "summary", "dl", "dt", "dd"} | TABLE, tag
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


TABLE = {"table", "thead", "tbody", "tr", "th", "td"}


def texts(value: Any) -> list[str]:
    """The texts of what a notebook shows of a value."""
    page = value._repr_html_()
    assert "\x1b" not in page and "<script" not in page
    return WellFormed(page).texts


@pytest.fixture
def visits(tmp_path: Path) -> Iterator[Table]:
    path = tmp_path / "visits.csv"
    path.write_text(
        "patient_id,age,ward\n" + "".join(f"{i % 50},{i % 90},{'AB'[i % 2]}\n" for i in range(200))
    )
    unit, budget = dp.Unit("patient", column="patient_id"), dp.Budget(3, 1e-9)
    facts: dict[str, Any] = {
        "ranges": {"age": (0, 120)},
        "categories": {"ward": ["A", "B"]},
        "rows_per_unit": 4,
    }
    with dp.table(path, unit=unit, budget=budget, **facts) as table:
        yield table


def test_a_table_shows_its_columns_and_its_account(visits: Table, tmp_path: Path) -> None:
    shown = texts(visits)
    assert {"age", "integer", "0 to 120", "one of A, B", "tells patients apart"} <= set(shown)
    assert "Account visits" in shown and "epsilon 3 at delta 1e-09" in shown and "100 % left" in shown
    assert "At most 4 rows of each patient." in shown
    assert not [*tmp_path.glob("*.ledger")], "looking opens no account"
    visits.sql(BY_WARD, epsilon=1)
    assert "100 % left" not in texts(visits)


def test_an_explanation_and_a_question_show_what_they_would_cost(visits: Table) -> None:
    asked = visits.ask(BY_WARD, epsilon=0.5)
    assert texts(asked) == texts(asked.explanation)
    assert {"cost", "measure", "error bars", BY_WARD} <= set(texts(asked))
    assert repr(asked) == f"<Asked {BY_WARD} at epsilon 0.5>"
    cost = "epsilon 0.5, delta 1e-09 for each patient, whatever the data are"
    assert repr(asked.explanation) == f"<Explanation of {BY_WARD}: {cost}>"
    assert len(repr(visits.explain(f"{BY_WARD} HAVING {' OR '.join(['n > 3'] * 99)}", epsilon=1))) < 250


def test_ledgers_and_accounts_show_what_is_left(visits: Table) -> None:
    visits.sql(BY_WARD, epsilon=1)
    account, ledger = visits.account, visits.account.ledger
    assert repr(ledger) == "<Ledger visits.ledger>" and repr(dp.Ledger.memory()) == "<Ledger in memory>"
    assert {"visits", "largest next release", "patient (patient_id), add_remove"} <= set(texts(ledger))
    assert isinstance(account, Account) and "Account visits" in texts(account)
    ledger.close()
    assert ledger._repr_html_() is None and account._repr_html_() is None, "what is closed is shown as text"


def test_a_receipt_shows_its_cost_and_folds_the_rest(visits: Table) -> None:
    receipt = visits.sql(BY_WARD, epsilon=1).receipt
    assert repr(receipt) == "<Receipt epsilon 1 at delta 1e-09 per patient, visits, entry 2>"
    page = receipt._repr_html_()
    before, _, folded = page.partition("<details")
    assert "mechanism" in folded and "mechanism" not in before and "left" in before and texts(receipt)
    tainted = Receipt(Pure(1), NASTY, EXACT, warnings=(NASTY,), tainted=True)
    assert TAINTED in texts(tainted) and texts(tainted).count(TAINTED) == 1


def test_a_meaning_is_a_list_of_sentences() -> None:
    meaning = Gaussian(noise_multiplier=4).meaning(0.5, delta=1e-6)
    assert repr(meaning).startswith("<Meaning of ε = 1.061") and len(repr(meaning)) < 100
    assert list(meaning.sentences()) == [text for text in texts(meaning) if "What ε" not in text]


def test_a_schema_shows_each_table() -> None:
    unit = dp.Unit("patient", column="id", window="week")
    columns = {"id": "integer", "day": "date", NASTY: "text"}
    facts: dict[str, Any] = {"categories": {NASTY: tuple(map(str, range(20)))}, "not_null": ["day"]}
    schema = Schema((Private("visits", columns, unit, "day", **facts), Public("wards", {"ward": "text"})))
    assert repr(schema) == "<Schema visits (private), wards (public)>"
    shown = texts(schema)
    assert "wards, public" in shown and "cuts each week; never missing" in shown
    assert "one of 0, 1, 2, 3, 4, 5, 6, 7 and 12 more" in shown


SHORT: list[Callable[[], object]] = [
    lambda: dp.count([1, 2], epsilon=1),
    lambda: dp.count([1, 2], epsilon=1).receipt,
    lambda: Pure(1).meaning(),
    lambda: Schema((Private("v", {f"column {i}": "text" for i in range(300)}, dp.Unit("visit")),)),
]


@pytest.mark.parametrize("make", SHORT)
def test_reprs_are_short(make: Callable[[], object]) -> None:
    assert len(repr(make())) < 150
