"""Units name who is protected; relations convert only where a theorem says so."""

from __future__ import annotations

import itertools
from dataclasses import FrozenInstanceError

import pytest

from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.privacy.unit import RELATIONS, Relation, Unit, read_relation, steps_between

SOUND = {("add_remove", "replace"): 2, ("zero_out", "replace"): 2}


@pytest.mark.parametrize(("source", "target"), [*itertools.product(RELATIONS, RELATIONS)])
def test_every_conversion_is_a_theorem_or_a_refusal(source: Relation, target: Relation) -> None:
    if source == target:
        assert steps_between(source, target) == 1
    elif (source, target) in SOUND:
        assert steps_between(source, target) == SOUND[source, target]
    else:
        with pytest.raises(RelationMismatch, match=f"{source} neighbours.*{target}") as refusal:
            steps_between(source, target)
        assert isinstance(refusal.value, NotSound) and repr(target) in refusal.value.remedy


def test_a_unit_moves_with_its_relation() -> None:
    person = Unit("person", column="person_id", window="week")
    assert person.steps_to("replace") == 2
    assert person.under("replace") == Unit("person", column="person_id", window="week", relation="replace")
    assert person.under("add_remove") == person
    with pytest.raises(RelationMismatch):
        person.under("replace").under("add_remove")


def test_a_unit_reads_as_words() -> None:
    assert str(Unit("person", column="person_id", window="week")) == "person (person_id) per week, add_remove"
    assert str(Unit("visit", relation="replace")) == "visit (each row), replace"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"entity": " "}, "entity"),
        ({"entity": 3}, "entity"),
        ({"entity": "person", "column": ""}, "column"),
        ({"entity": "person", "window": "fortnight"}, "window"),
        ({"entity": "person", "relation": "swap"}, "relation"),
    ],
)
def test_bad_fields_are_named(fields: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        Unit(**fields)


def test_a_unit_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Unit("person").entity = "household"


def test_relations_are_read_by_name() -> None:
    assert [read_relation(name) for name in RELATIONS] == list(RELATIONS)
    with pytest.raises(InvalidArgument, match="add_remove, replace, zero_out"):
        read_relation(None)
