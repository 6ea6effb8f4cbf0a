"""An entry is its body and its hash: nothing in it can change without being found."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, LedgerCorrupt, UnknownLedger
from dalenius.ledger.entry import EVENTS, NOTHING, Entry, Head, chained

NOON = "2026-01-31T12:00:00.000000Z"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**60), 10**60) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)
FIELDS = st.dictionaries(TEXTS, VALUES, max_size=4)


def entry(head: Head | None = None, **changes: Any) -> Entry:
    stated = {"account": "people", "event": "record", "at": NOON, "fields": {"by": "ana", "cost": 3}}
    return Entry.following(head, **(stated | changes))


def chain(length: int) -> list[Entry]:
    entries = [entry()]
    while len(entries) < length:
        entries.append(entry(entries[-1].head, fields={"cost": len(entries)}))
    return entries


def test_the_body_is_canonical_and_the_hash_is_sha256_of_its_bytes() -> None:
    first = entry(fields={"zug": 1, "by": "Zoë"})
    assert first.body == (
        '{"account":"people","at":"2026-01-31T12:00:00.000000Z","event":"record",'
        f'"fields":{{"by":"Zoë","zug":1}},"number":1,"previous":"{NOTHING}"}}'
    )
    assert first.hash == sha256(first.body.encode("utf-8")).hexdigest()


@given(fields=FIELDS, account=TEXTS.filter(bool), event=st.sampled_from(EVENTS))
def test_an_entry_survives_its_text(fields: dict[str, Any], account: str, event: str) -> None:
    first = entry(fields=fields, account=account, event=event)
    copy = Entry.read(first.body, first.hash, number=1)
    assert copy == first and copy.fields == fields and (copy.account, copy.event) == (account, event)
    assert json.loads(first.body)["fields"] == fields


@given(fields=FIELDS, order=st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(fields: dict[str, Any], order: Any) -> None:
    names = list(fields)
    order.shuffle(names)
    assert entry(fields={name: fields[name] for name in names}).hash == entry(fields=fields).hash


def test_a_changed_bit_anywhere_is_found() -> None:
    first = entry(fields={"by": "Zoë", "cost": 12})
    data = first.body.encode()
    for place in range(8 * len(data)):
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(LedgerCorrupt, match="Entry 1 "):
            Entry.read(changed.decode("utf-8", "surrogateescape"), first.hash, number=1)
    for place, digit in enumerate(first.hash):
        other = first.hash[:place] + ("0" if digit != "0" else "1") + first.hash[place + 1 :]
        with pytest.raises(LedgerCorrupt):
            Entry.read(first.body, other)


@pytest.mark.parametrize("value", [0.5, 1.0, float("nan"), float("inf"), 1j, b"x", {1: 2}, {1, 2}, object()])
def test_what_json_does_not_keep_exactly_is_refused(value: object) -> None:
    for fields in ({"cost": value}, {"cost": [1, {"deep": value}]}):
        with pytest.raises(InvalidArgument, match="cannot hold"):
            entry(fields=fields)


def test_a_text_that_is_not_unicode_and_a_number_too_long_to_print_are_refused() -> None:
    for value in ("\ud800", 10**5000):
        with pytest.raises(InvalidArgument, match="hexadecimal"):
            entry(fields={"note": value})
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises(InvalidArgument):
        entry(fields={"note": nested})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("account", ""),
        ("account", None),
        ("event", "spend"),
        ("at", "2026-01-31T12:00:00Z"),
        ("at", "2026-01-31T12:00:00.000000+00:00"),
        ("at", NOON + "\n"),
        ("fields", [1]),
    ],
)
def test_what_an_entry_must_have_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match=name):
        entry(**{name: value})


def test_what_was_passed_may_change_and_the_entry_does_not() -> None:
    fields = {"cost": [1, 2]}
    first = entry(fields=fields)
    fields["cost"].append(3)
    assert first.fields == {"cost": [1, 2]} and Entry.read(first.body, first.hash).fields == first.fields


@pytest.mark.parametrize(
    "forged",
    [
        lambda body: body.replace(":", ": ", 1),
        lambda body: body[:-1] + ',"number":1}',
        lambda body: body.replace('"cost":3', '"cost":3.0'),
        lambda body: body.replace('"cost":3', '"cost":NaN'),
        lambda body: body.replace('"number":1', '"number":"1"'),
        lambda body: "[" * 100_000,
        lambda body: "[]",
        lambda body: "",
    ],
)
def test_a_body_that_is_not_written_so_is_refused_even_with_its_hash(forged: Any) -> None:
    body = forged(entry().body)
    assert body != entry().body
    with pytest.raises(LedgerCorrupt, match="Entry 1 is not one"):
        Entry.read(body, sha256(body.encode()).hexdigest(), number=1)


def test_an_entry_found_under_another_number_is_refused() -> None:
    with pytest.raises(LedgerCorrupt, match="Entry 7"):
        Entry.read(entry().body, entry().hash, number=7)


def test_an_event_of_a_later_version_is_named_as_such() -> None:
    body = entry().body.replace('"record"', '"absolve"')
    with pytest.raises(UnknownLedger, match="does not know"):
        Entry.read(body, sha256(body.encode()).hexdigest())


def test_a_chain_holds_and_a_removed_reordered_or_repeated_entry_breaks_it() -> None:
    whole = chain(5)
    assert list(chained(whole)) == whole
    assert list(chained(whole[3:], whole[2].head)) == whole[3:]
    for broken, place in (
        (whole[1:], 1),
        (whole[:2] + whole[3:], 3),
        ([whole[0], whole[2], whole[1]], 2),
        (whole[:2] + whole[1:], 3),
        ([*whole[:2], entry(entry().head, fields={}), whole[3]], 3),
    ):
        with pytest.raises(LedgerCorrupt, match=f"at entry {place}:"):
            list(chained(broken))


def test_time_does_not_run_backwards_along_a_chain() -> None:
    first = entry()
    assert not entry(first.head, at="2026-01-31T11:59:59.999999Z").follows(first.head)
    assert entry(first.head, at=NOON).follows(first.head)


def test_entries_are_equal_by_hash_and_can_be_keys() -> None:
    assert len({entry(), entry(), entry(fields={})}) == 2


def test_what_is_checked_is_what_is_kept() -> None:
    class Two(dict[str, Any]):
        """Shows one thing and holds another."""

        def items(self) -> Any:
            return {"cost": 1}.items()

    with pytest.raises(InvalidArgument, match="float"):
        Entry.following(None, account="people", event="record", at=NOON, fields=Two(cost=0.5))
