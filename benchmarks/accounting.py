"""Accounting: Dalenius against dp-accounting, prv-accountant and Opacus, in one run on one machine.

    python3 -m venv build/bench
    build/bench/bin/pip install -r benchmarks/requirements-accounting.txt -e .
    build/bench/bin/python benchmarks/accounting.py             # minutes, nearly all of them the peers'
    build/bench/bin/python benchmarks/accounting.py --no-peers --survey 10000 --output survey.md

A peer that is not installed is said so, and the run goes on. The report is printed and written to
benchmarks/results/accounting.md. Times are CPU times of one thread, the median of the repeats, with
Dalenius's caches cleared before each; what takes more than two seconds runs once.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

from accountants import PEERS, Accountant, Dalenius, DpAccounting, Step
from accounting_survey import survey
from measure import Answer, Timed, milliseconds, one_thread, processor, table, timed, version

RESULTS = Path(__file__).parent / "results" / "accounting.md"
SAMPLED = {
    "q=0.01, σ=4, T=10,000, δ=1e-5": (Step(4, 0.01), 10_000, 1e-5),
    "q=0.01, σ=4, T=40,000, δ=1e-5": (Step(4, 0.01), 40_000, 1e-5),
    "q=256/60000, σ=1.1, T=14,062, δ=1e-5": (Step(1.1, 256 / 60000), 14_062, 1e-5),
    "q=0.01, σ=4, T=10,000, δ=1e-15": (Step(4, 0.01), 10_000, 1e-15),
}
PURE = {"1,000 × any 0.1-private, δ=1e-6": (0.1, 1000, 1e-6)}
PROMISE = (3.0, 1e-5, 256 / 60000, 14_062)
MANY = {
    "1,000 subsampled Gaussians": [Step(2 + i / 250, (200 + i) / 100_000) for i in range(1000)],
    "a third each of Gaussians, Laplace and subsampled Gaussians": [
        (Step(40 + i / 10), Step(40 + i / 10, law="laplace"), Step(2 + i / 250, (200 + i) / 100_000))[i % 3]
        for i in range(1000)
    ],
}
Ask = Callable[[Accountant], Answer]


class Run:
    """The accountants of this run, and the sections of its report."""

    def __init__(self, peers: bool, repeats: int) -> None:
        self.repeats = repeats
        self.ours = Dalenius()
        self.peers = [(peer, _installed(peer)) for peer in PEERS] if peers else []

    def ask(self, question: Ask, only: Sequence[type[Accountant]] = PEERS) -> list[tuple[str, Timed]]:
        """Every accountant's answer, Dalenius first."""
        rows = [(self.ours.name, timed(lambda: question(self.ours), self.repeats))]
        for kind, peer in ((kind, peer) for kind, peer in self.peers if kind in only):
            missing = Timed(None, "not installed", 0.0)
            rows.append((kind.name, _timed_peer(question, peer) if peer else missing))
        return rows

    def cases(self) -> str:
        """The five cases."""
        questions: dict[str, Ask] = {name: lambda a, c=c: a.steps(*c) for name, c in SAMPLED.items()}
        questions |= {name: lambda a, c=c: a.pure(*c) for name, c in PURE.items()}
        return self._epsilons(questions)

    def many(self) -> str:
        """A thousand different mechanisms, against dp-accounting; prv-accountant takes minutes."""
        questions: dict[str, Ask] = {name: lambda a, s=s: a.many(s, 1e-5) for name, s in MANY.items()}
        return self._epsilons(questions, only=(DpAccounting,))

    def _epsilons(self, questions: dict[str, Ask], only: Sequence[type[Accountant]] = PEERS) -> str:
        head = ["case", "accountant", "ε", "error stated", "above Dalenius", "CPU ms", "× Dalenius"]
        answers = ((name, self.ask(question, only)) for name, question in questions.items())
        return table(head, [row for name, rows in answers for row in _compared(name, rows)])

    def calibration(self) -> str:
        """The noise for one promise, and the ε that Dalenius certifies with it."""
        _, delta, rate, steps = PROMISE
        rows = self.ask(lambda a: a.calibrate(*PROMISE))
        lines = [
            [
                name,
                *_noise(found, lambda s: self.ours.steps(Step(s, rate), steps, delta).value),
                *_cost(found, rows),
            ]
            for name, found in rows
        ]
        return table(["accountant", "σ", "tolerance", "certified ε at σ", "CPU ms", "× Dalenius"], lines)

    def tradeoff(self) -> str:
        """A hundred points of the trade-off curve of the first case."""
        step, count, _ = next(iter(SAMPLED.values()))

        def curve() -> Answer:
            loss = self.ours.loss(step) * count
            bounds = [loss.tradeoff(i / 101) for i in range(1, 101)]
            return Answer(max(b.upper - b.lower for b in bounds), "widest of the enclosures")

        found = timed(curve, self.repeats)
        value = f"{found.answer.value:.1e}" if found.answer else found.note
        return table(["points", "widest enclosure", "CPU ms"], [["100", value, milliseconds(found.ms)]])


def _installed(kind: type[Accountant]) -> Accountant | None:
    try:
        return kind()
    except ImportError:
        return None


def _timed_peer(question: Ask, peer: Accountant) -> Timed:
    return timed(lambda: question(peer), 3)


def _compared(case: str, rows: Sequence[tuple[str, Timed]]) -> list[list[str]]:
    """One line for each accountant."""
    least = rows[0][1].answer
    lines = []
    for name, found in rows:
        answer = found.answer
        told = [f"{answer.value:.10f}", answer.error] if answer else ["–", found.note]
        above = f"{answer.value - least.value:+.1e}" if answer and least and answer is not least else "–"
        lines.append([case, name, *told, above, *_cost(found, rows)])
    return lines


def _noise(found: Timed, certified: Callable[[float], float]) -> list[str]:
    answer = found.answer
    return (
        [f"{answer.value:.10f}", answer.error, f"{certified(answer.value):.8f}"]
        if answer
        else ["–", found.note, "–"]
    )


def _cost(found: Timed, rows: Sequence[tuple[str, Timed]]) -> list[str]:
    """Its time, and the ratio to that of Dalenius."""
    ours = rows[0][1].ms
    return [milliseconds(found.ms), f"{found.ms / ours:,.1f}"] if found.answer and ours else ["–", "–"]


def report(peers: bool, repeats: int, cases: int, seed: int) -> str:
    """The whole page."""
    run = Run(peers, repeats)
    packages = (
        "dalenius",
        "dp-accounting",
        "prv-accountant",
        "opacus",
        "torch",
        "numpy",
        "scipy",
        "python-flint",
    )
    parts = [
        "# Accounting\n",
        "CPU time of one thread, the median of the repeats, with Dalenius's caches cleared before each.",
        f"{processor()}, Python {platform.python_version()}; "
        + ", ".join(f"{name} {version(name)}" for name in packages)
        + ".\n",
        "## The least ε\n\n" + run.cases(),
        f"## The least noise for ε=3, δ=1e-5, q=256/60000, T=14,062\n\n{run.calibration()}",
        f"## A thousand different mechanisms, δ=1e-5\n\n{run.many()}",
        f"## The trade-off curve, q=0.01, σ=4, T=10,000\n\n{run.tradeoff()}",
        f"## {cases:,} random subsampled Gaussians, Dalenius alone, seed {seed}\n\n{survey(cases, seed)}",
    ]
    return "\n".join(parts)


def main() -> None:
    """Measure, print, and keep the report."""
    parser = argparse.ArgumentParser(description="Accounting against peers; see the head of this file.")
    parser.add_argument("--survey", type=int, default=1000, metavar="N", help="number of random cases")
    parser.add_argument("--seed", type=int, default=2, help="seed of the random cases")
    parser.add_argument("--repeats", type=int, default=21, help="calls of Dalenius per time; peers get three")
    parser.add_argument("--no-peers", action="store_true", help="measure Dalenius alone")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the report is written")
    chosen = parser.parse_args()
    one_thread()
    page = report(not chosen.no_peers, chosen.repeats, chosen.survey, chosen.seed)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
