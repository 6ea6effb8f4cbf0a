"""How long losses on samples take under the replace relation: charges, curves and answers.

    python benchmarks/replace_losses.py [--before CHECKOUT]

Each question is asked once, in a process of its own, so that nothing is remembered; the time is that of the
processor, without imports. With `--before` the same is asked of another checkout of the library in the same
run, and `results/replace_losses.md` is written.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "replace_losses.md"
SETUP = """
import time
from fractions import Fraction
import dalenius as dp
from dalenius.losses import Gaussian, Laplace, Pure
Pure(1).epsilon(0), (Laplace(1) * 3).epsilon(1e-3)
unit, budget = dp.Unit("person", relation="replace"), dp.Budget(epsilon=20, delta=1e-5)
account = dp.Ledger.memory().open("people", unit=unit, budget=budget)
run = Gaussian(3).poisson(0.01) * 1000
start = time.process_time()
{question}
print(time.process_time() - start)
"""
QUESTIONS = {
    "charge of `Gaussian(3).poisson(0.01) * 1000`": 'account.reserve(run, by="ana")',
    "its epsilon": 'run.under("replace").epsilon(1e-6)',
    "its curve": 'run.under("replace").curve()',
    'epsilon of `Gaussian(3).random_allocation(100).under("replace")`': (
        'Gaussian(3).random_allocation(100).under("replace").epsilon(1e-6)'
    ),
}


def seconds(question: str, tree: Path) -> float:
    """Return the processor time of one question, asked of one checkout."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, "-c", SETUP.format(question=question)],
        env={**os.environ, **threads, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tree,
    )
    return float(found.stdout)


def main() -> None:
    """Ask all questions, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout of the library, for comparison")
    before = parser.parse_args().before
    lines: list[list[str]] = []
    for name, question in QUESTIONS.items():
        now = seconds(question, HERE.parent)
        then = seconds(question, before) if before else None
        row = [name, f"{now:.2f}"] + ([f"{then:.2f}", f"{then / now:.0f}"] if then else [])
        lines.append(row)
        print(row, flush=True)
    if before:
        head = ["question", "now (CPU-s)", "before (CPU-s)", "times"]
        about = f"One thread of {measure.processor()}, on a machine that is shared with other work."
        RESULTS.write_text(f"# Losses on samples under replace\n\n{measure.table(head, lines)}\n\n{about}\n")


if __name__ == "__main__":
    main()
