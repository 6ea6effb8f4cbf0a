"""What the tests run in other processes: a script that is killed at each of its steps, and one of a crowd."""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
from itertools import count

from dalenius.ledger.entry import Entry
from dalenius.ledger.owner import Owner
from dalenius.ledger.store import Store, Transaction, open_store

NOON = "2026-01-31T12:00:00.000000Z"


def append(transaction: Transaction, event: str, cost: int) -> int:
    """Add an entry and its cost to the balance."""
    entry = Entry.following(transaction.head(), account="people", event=event, at=NOON, fields={"cost": cost})
    transaction.append(entry)
    if cost:
        balance = int(transaction.balance("people", "") or 0)
        transaction.set_balance("people", "", str(balance + cost))
    return entry.number


def script(store: Store, report: int) -> None:
    """Open an account, record, reserve, commit; say after each block how many entries there are."""
    for durable, event, cost in (
        (True, "open", 0),
        (True, "reserve", 5),
        (False, "commit", 0),
        (True, "record", 2),
    ):
        with store.write(durable) as transaction:
            number = append(transaction, event, cost)
            if event == "open":
                transaction.add_account("people", "{}")
            elif event == "reserve":
                transaction.add_reservation(number, "people", str(Owner.here()), "{}")
            elif event == "commit":
                transaction.drop_reservation(number - 1)
        os.write(report, b"%d\n" % number)


def killed_at(place: int, where: str) -> dict[str, object]:
    """Run the script in a child that kills itself at the step of that place in its course."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        places = count()

        def hook(step: str) -> None:
            os.write(writing, f"{step}\n".encode())
            if next(places) == place:
                os.kill(os.getpid(), signal.SIGKILL)

        os.close(reading)
        script(open_store(where, on_step=hook), writing)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read().split("\n")[:-1]
    durable = [int(line) for line in said if line.isdigit()]
    steps = [line for line in said if not line.isdigit()]
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"where": where, "ended": ended, "step": steps[-1], "durable": max(durable, default=0)}


def crash(where: str) -> None:
    """Kill at the first step, at the second, and so on, each in a place of its own, until the script ends."""
    if "://" in where:
        import_module("psycopg")
    for place in count():
        outcome = killed_at(place, where.replace("PLACE", str(place)))
        print(json.dumps(outcome))
        if outcome["ended"] != -signal.SIGKILL:
            break


def crowd(where: str, limit: str) -> None:
    """Spend one at a time until the limit is reached; say how often."""
    store, spent = open_store(where), 0
    while True:
        with store.write(True) as transaction:
            if int(transaction.balance("people", "") or 0) >= int(limit):
                break
            append(transaction, "record", 1)
        spent += 1
    store.close()
    print(spent)


def hold(where: str) -> None:
    """Begin a write, say so, and stay in it until the input ends."""
    with open_store(where).write(True):
        print("holding", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    {"crash": crash, "crowd": crowd, "hold": hold}[sys.argv[1]](*sys.argv[2:])
