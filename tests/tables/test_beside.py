"""A table has one account: the one that was given, or the one in the ledger beside its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument
from dalenius.ledger import Account
from dalenius.losses import Pure
from dalenius.tables.beside import file_of, find_account, stem

PATIENT = dp.Unit("patient", column="patient_id")
BUDGET = dp.Budget(epsilon=3, delta=1e-9)


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.parquet"
    path.touch()
    return path


def beside(file: Path, **options: object) -> Account:
    return find_account("visits", file, **{"unit": PATIENT, "budget": BUDGET} | options)  # type: ignore[arg-type]


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
    with pytest.raises(InvalidArgument, match="windows by admitted"):
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
        find_account("visits", visits, unit=None, budget=BUDGET)
