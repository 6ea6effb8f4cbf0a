"""What the tests of accounts run in other processes: one that is killed at each of its steps, and a crowd."""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
from itertools import count

import dalenius as dp
from dalenius import mechanisms
from dalenius.errors import BudgetExceeded
from dalenius.ledger.account import Account
from dalenius.ledger.store import Store, open_store
from dalenius.losses import Pure

COUNT = mechanisms.Laplace(scale=10, sensitivity=1)


def people(store: Store, anchor: str | None = None) -> Account:
    return dp.Ledger(store, anchor=anchor).open(
        "people", unit=dp.Unit("person"), budget=dp.Budget(10), source="register"
    )


def die_reserved(store: Store) -> None:
    """A child that reserves a tenth and ends without a word."""
    child = os.fork()
    if child == 0:
        store.on_step = None
        people(store).reserve(Pure(0.1), by="ben")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def script(store: Store, anchor: str, report: int) -> None:
    """Everything an account does; whatever is charged is said, in tenths, and whatever is let out."""

    def say(tenths: int, number: int = 0) -> None:
        os.write(report, f"{json.dumps([tenths, number])}\n".encode())

    people(store, anchor)
    die_reserved(store)
    say(1)
    account = people(store, anchor)
    account.allow(dp.Budget(5), by="ana", window="year")
    say(0)
    account.record(Pure(0.2), by="ana")
    say(2)
    release = account.spend(COUNT, 100, by="ana")
    assert release.receipt.entry is not None
    say(1, release.receipt.entry.number)
    reservation = account.cell("wards", "A").reserve(Pure(0.4), by="ben")
    say(4)
    reservation.forfeit()
    say(0)


def killed_at(place: int, where: str, anchor: str) -> dict[str, object]:
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
        try:
            script(open_store(where, on_step=hook), anchor, writing)
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read().split("\n")[:-1]
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told = [json.loads(line) for line in said if line.startswith("[")]
    return {
        "where": where,
        "anchor": anchor,
        "ended": ended,
        "step": [line for line in said if not line.startswith("[")][-1],
        "tenths": sum(tenths for tenths, _ in told),
        "released": [number for _, number in told if number],
        "acts": len(told),
    }


def crash(where: str, anchor: str) -> None:
    """Kill at the first step, at the second, and so on, each in a place of its own, until the script ends."""
    if "://" in where:
        import_module("psycopg")
    for place in count():
        outcome = killed_at(place, *(text.replace("PLACE", str(place)) for text in (where, anchor)))
        print(json.dumps(outcome))
        if outcome["ended"] != -signal.SIGKILL:
            break


def crowd(where: str, attempts: str, share: str) -> None:
    """Reserve a share of the budget again and again, committing and forfeiting; say how often it was let."""
    account, done = dp.Ledger(where).account("people"), 0
    for n in range(int(attempts)):
        try:
            with account.reserve(Pure(float(share)), by=f"{os.getpid()}") as reservation:
                done += 1
                if n % 2:
                    reservation.forfeit()
        except BudgetExceeded:
            continue
    print(done)


if __name__ == "__main__":
    {"crash": crash, "crowd": crowd}[sys.argv[1]](*sys.argv[2:])
