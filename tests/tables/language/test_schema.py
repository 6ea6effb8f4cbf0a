"""What an owner declares is checked when it is declared."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from language.hospital import PATIENT, VISITS

from dalenius.errors import InvalidArgument
from dalenius.privacy.unit import Unit
from dalenius.tables.schema import Private, Public, Schema


def visits(**facts: Any) -> Private:
    return Private("visits", VISITS, **{"unit": PATIENT, **facts})


def test_declared_facts_are_kept_under_the_names_of_the_table() -> None:
    table = visits(
        ranges={"AGE": (0, 120), "day": ("2024-01-01", date(2024, 2, 1))},
        categories={"Ward": ["A"]},
        not_null=["Age"],
    )
    assert table.ranges == {"age": (0, 120), "day": (date(2024, 1, 1), date(2024, 2, 1))}
    assert table.categories == {"ward": ("A",)} and table.not_null == ("age",)


@pytest.mark.parametrize(
    "facts",
    [
        {"ranges": {"height": (0, 1)}},
        {"ranges": {"age": (5, 1)}},
        {"ranges": {"age": (0, float("inf"))}},
        {"ranges": {"age": (float("nan"), 1)}},
        {"ranges": {"ward": ("A", "B")}},
        {"ranges": {"day": ("yesterday", "today")}},
        {"categories": {"age": ["A"]}},
        {"categories": {"urgent": [1]}},
        {"not_null": ["height"]},
        {"rows_per_unit": 0},
        {"unit": Unit("patient", column="person")},
        {"unit": Unit("patient", column="patient_id", window="week")},
        {"unit": Unit("patient", column="patient_id", window="week"), "time": "ward"},
        {"unit": Unit("patient", window="week"), "time": "day"},
    ],
)
def test_what_cannot_be_is_refused(facts: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        visits(**facts)
    assert caught.value.remedy


def test_names_are_unique_without_regard_to_case() -> None:
    with pytest.raises(InvalidArgument):
        Schema((visits(), Public("VISITS", {"a": "text"})))
    with pytest.raises(InvalidArgument):
        Public("t", {"a": "text", "A": "text"})
    assert Schema((visits(),)).table("vIsItS").name == "visits"


def test_types_that_are_not_known_are_other() -> None:
    assert Public("t", {"a": "geometry"}).columns == {"a": "other"}
