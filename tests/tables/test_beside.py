"""A table has one account: the one that was given, or the one in the ledger beside its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import dalenius as dp
from dalenius.errors import BudgetExceeded, InvalidArgument
from dalenius.ledger import Account
from dalenius.losses import Pure
from dalenius.tables.beside import find_account, stem
from dalenius.tables.sources.identity import file_of
from dalenius.tables.unopened import Unopened
from dalenius.tables.window_column import time_of

PATIENT = dp.Unit("patient", column="patient_id")
BUDGET = dp.Budget(epsilon=3, delta=1e-9)


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.parquet"
    path.touch()
    return path


def found(file: Path, **options: object) -> Account:
    return find_account("visits", file, **{"unit": PATIENT, "budget": BUDGET} | options)  # type: ignore[arg-type]


def beside(file: Path, **options: object) -> Account:
    """The account, opened as by a first charge."""
    account = found(file, **options)
    if isinstance(account, Unopened):
        account.open()
    return account


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("visits.parquet", "visits"),
        ("a/b/visits.csv.gz", "visits"),
        ("visits.2024.CSV", "visits.2024"),
        ("visits", "visits"),
    ],
)
def test_a_table_is_called_as_its_file_without_endings(file: str, name: str) -> None:
    assert stem(Path(file)) == name


def test_the_ledger_lies_beside_the_file_and_names_it(visits: Path) -> None:
    account = beside(visits)
    assert (account.name, account.unit, account.terms.source) == ("visits", PATIENT, "visits.parquet")
    assert visits.with_name("visits.ledger").exists()


def test_the_same_words_find_the_same_account(visits: Path) -> None:
    beside(visits).record(Pure(1))
    assert float(beside(visits).spent) == 1
    assert float(beside(visits, budget=None).spent) == 1
    assert float(beside(visits, unit=replace(PATIENT, relation="add_remove")).spent) == 1


@pytest.mark.parametrize(
    "otherwise",
    [
        {"budget": dp.Budget(4, 1e-9)},
        {"budget": dp.Budget(3)},
        {"unit": dp.Unit("visit")},
        {"unit": dp.Unit("visit"), "budget": None},
        {"unit": replace(PATIENT, relation="replace")},
        {"account": "again"},
        {"unit": replace(PATIENT, window="week"), "time": "admitted", "account": "weeks"},
    ],
)
def test_other_words_are_refused(visits: Path, otherwise: dict[str, object]) -> None:
    beside(visits)
    with pytest.raises(InvalidArgument) as refused:
        beside(visits, **otherwise)
    assert refused.value.remedy


def test_windows_of_one_column_are_not_those_of_another(visits: Path) -> None:
    """A unit is then a patient in a week: which week decides who is protected."""
    weeks = {"unit": replace(PATIENT, window="week"), "time": "admitted"}
    beside(visits, **weeks)
    beside(visits, **weeks)
    with pytest.raises(InvalidArgument, match="belongs to"):
        beside(visits, **weeks | {"time": "discharged"})


def test_an_account_that_is_given_keeps_its_windows(visits: Path) -> None:
    weeks = replace(PATIENT, window="week")
    account = beside(visits, unit=weeks, time="admitted")
    assert find_account("visits", visits, unit=weeks, account=account, time="admitted") is account
    with pytest.raises(InvalidArgument, match="windows of time by admitted"):
        find_account("visits", visits, unit=weeks, account=account, time="discharged")


def test_a_link_leads_to_the_same_account(visits: Path) -> None:
    link = visits.with_name("link.parquet")
    link.symlink_to(visits)
    found = file_of(link)
    assert found == visits.resolve()


def test_other_data_of_the_same_name_have_another_account(visits: Path) -> None:
    """A CSV and a Parquet file may be about the same people: whoever knows says so."""
    beside(visits)
    with pytest.raises(InvalidArgument, match=r"belongs to visits\.parquet") as refused:
        beside(visits.with_suffix(".csv"))
    assert "account=" in refused.value.remedy
    account = dp.Ledger(visits.with_name("visits.ledger")).account("visits")
    assert find_account("visits", visits.with_suffix(".csv"), unit=None, account=account) is account


def test_a_ledger_elsewhere_names_the_data_by_their_path(visits: Path, tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    where = tmp_path / "books" / "all.ledger"
    assert beside(visits, ledger=where).terms.source == str(visits.resolve())
    assert not visits.with_name("visits.ledger").exists()
    with dp.Ledger(where) as ledger:
        assert beside(visits, ledger=ledger).ledger is ledger


def test_frames_and_patterns_need_a_ledger(tmp_path: Path) -> None:
    assert file_of([1, 2]) is None
    assert file_of(str(tmp_path / "visits-*.parquet")) is None
    with pytest.raises(InvalidArgument, match="one file") as refused:
        find_account("visits", None, unit=PATIENT, budget=BUDGET)
    assert "ledger=" in refused.value.remedy
    account = find_account("visits", None, unit=PATIENT, budget=BUDGET, ledger=tmp_path / "x.ledger")
    assert (account.name, account.terms.source) == ("visits", None)


def test_only_a_charge_opens_an_account(visits: Path) -> None:
    where, account = visits.with_name("visits.ledger"), found(visits)
    assert account.accepts(Pure(1)) and not account.accepts(Pure(4)) and account.left.epsilon > 2
    with pytest.raises(BudgetExceeded):
        account.reserve(Pure(4), by="ana")
    assert not where.exists(), "what is refused opens nothing"
    found(visits, budget=dp.Budget(1)).record(Pure(0.5))
    assert where.exists()
    with pytest.raises(InvalidArgument, match="fixed"):
        account.record(Pure(1))


def test_an_account_that_is_opened_by_a_charge_is_an_account(visits: Path) -> None:
    account, other = found(visits), found(visits)
    with account.reserve(Pure(1), by="ana"):
        pass
    assert [entry.event for entry in account.entries()] == ["open", "reserve", "forfeit"]
    assert isinstance(account, Unopened) and not account.waiting and float(account.spent) == 1
    assert isinstance(other, Unopened) and float(other.spent) == 0
    other.look()
    assert float(other.spent) == 1
    account.allow(dp.Budget(0.1), by="ben")
    assert not other.accepts(Pure(0.2), by="ben")


@pytest.mark.parametrize("begin", ["allow", "cell"])
def test_what_is_kept_opens_an_account(visits: Path, begin: str) -> None:
    account = found(visits)
    if begin == "allow":
        account.allow(dp.Budget(0.1), by="ben")
    else:
        account.cell("ward", "A").record(Pure(0.1))
    assert len(account.entries()) == 2 and visits.with_name("visits.ledger").exists()


def test_an_account_says_who_is_protected(visits: Path) -> None:
    weeks = replace(PATIENT, window="week", relation="zero_out")
    with pytest.raises(InvalidArgument, match="who is protected") as refused:
        found(visits, unit=None)
    assert "unit=Unit(" in refused.value.remedy
    beside(visits, unit=weeks, time="admitted")
    for budget in (None, BUDGET):
        account = found(visits, unit=None, budget=budget)
        assert account.unit == weeks and time_of(account) == "admitted"
    with pytest.raises(InvalidArgument, match="fixed"):
        found(visits, unit=None, budget=dp.Budget(9))
    with pytest.raises(InvalidArgument, match="belongs to"):
        found(visits, unit=None, budget=None, time="discharged")


def test_no_ledger_is_made_without_a_budget(visits: Path) -> None:
    with pytest.raises(InvalidArgument, match="no budget"):
        beside(visits, budget=None)
    assert [path.name for path in visits.parent.iterdir()] == ["visits.parquet"]
    beside(visits)
    with pytest.raises(InvalidArgument, match="have an account already"):
        beside(visits, budget=None, account="others")


def test_an_account_brings_its_own_unit_ledger_and_budget(visits: Path) -> None:
    account = beside(visits)
    for otherwise in ({"budget": BUDGET}, {"ledger": "x.ledger"}, {"unit": dp.Unit("visit")}):
        with pytest.raises(InvalidArgument):
            find_account("visits", visits, **{"unit": None, "account": account} | otherwise)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="protected"):
        find_account("visits", visits.with_name("others.csv"), unit=None, budget=BUDGET)
