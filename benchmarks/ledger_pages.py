"""What a first page, a burn-down and a charge cost on a ledger of 10^3 and of 10^6 entries, before and after.

    git worktree add build/before COMMIT
    python benchmarks/ledger_pages.py --before build/before

Both versions of the library read the same files in one run, in processes of their own; without `--before`
only this one is measured. Times are those of the processor, which other programs disturb least. The report is
printed and written to benchmarks/results/ledger_pages.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import one_thread, processor, table

RESULTS = Path(__file__).parent / "results" / "ledger_pages.md"
HERE = Path(__file__).parent.parent
SIZES = (1_000, 1_000_000)
BATCH = 20_000
"""Entries that are filled in at once."""
NOTE = "a note of some length, as they are"
CALLS = ("show, first page", "burn_down", "record, first of a process", "record, later ones")


def fill(path: Path, size: int) -> None:
    """Charges as `record` makes them, many in one transaction."""
    import dalenius as dp
    from dalenius.ledger.charge import Charge, charge
    from dalenius.losses import Pure

    with dp.Ledger(path) as ledger:
        people = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=10))
        loss = Pure(1e-6)
        asked = Charge(loss, loss, people.terms.price(loss), "ana", "wards", NOTE)
        written = 1
        while written < size:
            many = min(BATCH, size - written)
            with ledger.store.write(durable=False) as transaction:
                state = ledger.state(transaction)
                for _ in range(many):
                    charge(transaction, people.terms, asked, "record", state=state)
            written += many


def measure(path: str, repeats: int) -> None:
    """In a process of its own: the seconds of each call, as JSON."""
    import dalenius as dp
    from dalenius.ledger.overview import overview
    from dalenius.ledger.picture import burn_down
    from dalenius.losses import Pure

    with dp.Ledger(path) as ledger:
        people = ledger.account("people")
        first = _seconds(lambda: people.record(Pure(1e-6), by="ana"))
        later = [_seconds(lambda: people.record(Pure(1e-6), by="ana")) for _ in range(100)]
        for call in (lambda: overview(people), lambda: burn_down([people])) if repeats > 1 else ():
            call()
        shown = [_seconds(lambda: overview(people)) for _ in range(repeats)]
        drawn = [_seconds(lambda: burn_down([people])) for _ in range(repeats)]
    medians = [statistics.median(times) for times in (shown, drawn, [first], later)]
    print(json.dumps(medians))


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def measured(path: Path, tree: Path, repeats: int) -> list[float]:
    """The medians of one version of the library on one ledger."""
    command = [sys.executable, __file__, "--measure", str(path), "--repeats", str(repeats)]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    found: list[float] = json.loads(said)
    return found


def report(folder: Path, sizes: tuple[int, ...], before: Path | None, repeats: int) -> str:
    trees = {"after": HERE} | ({} if before is None else {"before": before})
    found: dict[str, dict[int, list[float]]] = {name: {} for name in trees}
    for size in sizes:
        path = folder / f"{size}.ledger"
        fill(path, size)
        # The newer version goes first: what the older one appends has no root, and is verified by the next.
        for name, tree in trees.items():
            found[name][size] = measured(path, tree, repeats if size < 10**5 or name == "after" else 1)
    rows = []
    for index, call in enumerate(CALLS):
        for name in trees:
            times = [found[name][size][index] for size in sizes]
            rows.append((call, name, *(f"{1e3 * t:.3g}" for t in times), f"{times[-1] / times[0]:.2f}"))
    head = ("call", "version", *(f"ms at {size:,}" for size in sizes), "ratio")
    return "\n".join(
        [
            "# A first page of a ledger\n",
            f"{processor()}. Processor time, medians; SQLite; one account, a note in each entry.",
            "`show` is the overview with its five newest entries; more than 1,000 entries are only walked",
            "when asked to say who spent what. The first record of a process reads and checks the newest",
            "entry and the tree; later ones find both remembered.\n",
            table(head, rows),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what does not grow with a ledger.")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="entries of the ledgers")
    parser.add_argument("--before", type=Path, default=None, help="a checkout of the version to compare with")
    parser.add_argument("--repeats", type=int, default=31, help="calls of each kind")
    parser.add_argument("--folder", type=Path, default=None, help="a folder on the disk to measure")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the report is written")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    one_thread()
    if chosen.measure:
        measure(chosen.measure, chosen.repeats)
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        page = report(Path(folder), tuple(chosen.sizes), chosen.before, chosen.repeats)
    chosen.output.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
