"""A process that is killed at any step of a write leaves a whole store, with all that it called durable."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from typing import Any

from dalenius.ledger.entry import chained
from dalenius.ledger.owner import Owner
from dalenius.ledger.store import Store, open_store


def outcomes(place: Any) -> list[dict[str, Any]]:
    """What the script came to when killed at its first step, at its second, and so on to its end."""
    child = replace(place, where=f"{place.where}_PLACE").child("crash")
    said, _ = child.communicate()
    assert child.returncode == 0
    return [json.loads(line) for line in said.splitlines()]


def whole(store: Store, durable: int) -> None:
    """The chain holds, everything else follows from it, and it has just the writes that were committed."""
    with store.read() as held:
        entries = list(chained(held.entries()))
        assert len(entries) == durable
        assert sum(entry.fields["cost"] for entry in entries) == int(held.balance("people", "") or 0)
        events = [entry.event for entry in entries]
        assert list(held.accounts()) == ["people"] * ("open" in events)
        reserved = [entry.number for entry in entries if entry.event == "reserve"]
        still_open = reserved[events.count("commit") :]
        assert [reservation.number for reservation in held.reservations()] == still_open
        assert not any(Owner.read(reservation.owner).alive for reservation in held.reservations())


def test_a_kill_at_any_step_leaves_a_whole_store(shared: Any) -> None:
    *killed, ended = outcomes(shared)
    assert (ended["ended"], ended["durable"]) == (0, 4)
    assert {outcome["ended"] for outcome in killed} == {-signal.SIGKILL}
    assert {outcome["step"] for outcome in killed} == set(shared.open().steps), "a step that no kill fell on"
    assert {outcome["durable"] for outcome in killed} == {0, 1, 2, 3}
    for outcome in [*killed, ended]:
        store = open_store(outcome["where"])
        whole(store, outcome["durable"] + (outcome["step"] == "after commit" and outcome["ended"] != 0))
        with store.write(True) as transaction:
            transaction.set_balance("people", "after", "written")
        store.close()


def test_steps_come_in_the_order_of_the_write(place: Any, append: Any) -> None:
    seen: list[str] = []
    store = place.open()
    store.on_step = seen.append
    with store.write(True) as transaction:
        append(transaction)
    assert seen == ["begin", "append", "set balance", "before commit", "after commit"]
    assert set(seen) <= set(store.steps)
