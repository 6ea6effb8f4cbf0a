"""What an audit finds, and from how many draws, beside a peer.

    python -m venv build/bench-audit
    build/bench-audit/bin/pip install -r benchmarks/requirements-audit.txt -e '.[audit]'
    build/bench-audit/bin/python benchmarks/audit.py

writes benchmarks/results/audit.md. DP-Auditorium is not on the package index, so that it is not compared.
"""

from __future__ import annotations

import argparse
import math
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

from audit_training import training
from measure import one_thread, processor, table, version

RESULTS = Path(__file__).parent / "results" / "audit.md"
SHARE = 0.9
RISK = 0.05
MOST = 4_000_000
"""More draws than this, of both inputs together, are not tried."""
DRAWS = """\
The least number of draws, of both inputs together, from which the median of {repeats} audits at confidence
{confidence:g} shows {share:g} of the ε of the mechanism, and the CPU seconds of one such audit, the drawing
included. Draws are doubled and then narrowed down to a fifth. jax-privacy is given the scores that rank draws
best; its estimators are Clopper–Pearson at one δ, a part of the draws choosing the threshold, and for
Gaussian noise `epsilon_from_gdp`. "Too high" is the share of {checks} audits at that number of draws whose ε
is above the true one, of which {risk:g} is allowed.
"""


@dataclass(frozen=True)
class Case:
    """A mechanism, its ε and at which δ."""

    name: str
    mechanism: object
    epsilon: float
    delta: Fraction


SHORT = 400
"""Draws of a short run."""
CHECKS = 200
"""Audits by which it is seen how often one says too much."""

Auditor = Callable[[Case, int], float]
"""The ε that so many draws of each input show."""


def cases() -> list[Case]:
    from dalenius.mechanisms import Gaussian, Laplace

    found = [
        Case(
            f"Laplace, ε = {epsilon:g}",
            Laplace.calibrate(epsilon=epsilon, sensitivity=1),
            float(epsilon),
            Fraction(0),
        )
        for epsilon in (0.1, 0.5, 1, 3, 8)
    ]
    small = Fraction(1, 10**5)
    for epsilon in (1, 4):
        mechanism = Gaussian.calibrate(epsilon=epsilon, delta=small, sensitivity=1)
        found.append(Case(f"Gaussian, ε = {epsilon:g}, δ = 1e-5", mechanism, float(epsilon), small))
    return found


def dalenius(case: Case, size: int) -> float:
    from dalenius.audits import audit

    return audit(case.mechanism, trials=size, confidence=1 - RISK, delta=case.delta).epsilon_lower


def _scores(case: Case, size: int) -> tuple[object, object]:
    pair = case.mechanism.worst_case()
    draws = [case.mechanism.sample(value, size).astype(float) for value in pair]
    sign = 1 if pair[0] > pair[1] else -1
    return sign * draws[0], sign * draws[1]


def peer_point(case: Case, size: int) -> float:
    from jax_privacy.auditing import CanaryScoreAuditor, Split

    found = CanaryScoreAuditor(*_scores(case, size))
    return found.epsilon_clopper_pearson(RISK, float(case.delta), threshold_strategy=Split())


def peer_gaussian(case: Case, size: int) -> float:
    from jax_privacy.auditing import CanaryScoreAuditor

    if not case.delta:
        return 0.0
    return CanaryScoreAuditor(*_scores(case, size)).epsilon_from_gdp(RISK, float(case.delta))


def least(auditor: Auditor, case: Case, repeats: int) -> tuple[int, float] | None:
    """Draws of both inputs together, and CPU seconds of one audit; None where they are too many."""

    def enough(size: int) -> tuple[bool, float]:
        start = time.process_time()
        found = [auditor(case, size) for _ in range(repeats)]
        return statistics.median(found) >= SHARE * case.epsilon, (time.process_time() - start) / repeats

    size, low = 500, 250
    good, seconds = enough(size)
    while not good:
        low, size = size, 2 * size
        if 2 * size > MOST:
            return None
        good, seconds = enough(size)
    while size > 1.2 * low:
        middle = int(math.sqrt(low * size))
        good, took = enough(middle)
        low, size, seconds = (low, middle, took) if good else (middle, size, seconds)
    return 2 * size, seconds


def draws(repeats: int) -> str:
    auditors: dict[str, Auditor] = {"Dalenius": dalenius}
    if find_spec("jax_privacy"):
        auditors |= {"jax-privacy": peer_point, "jax-privacy, Gaussian DP": peer_gaussian}
    rows = []
    for case in cases():
        cells = [case.name]
        for auditor in auditors.values():
            known = auditor is not peer_gaussian or case.delta
            found = least(auditor, case, repeats) if known else None
            cells += ["–"] * 3 if not known else _cells(auditor, case, found)
        rows.append(cells)
    head = ["mechanism"]
    for name in auditors:
        head += [f"{name}: draws", "CPU s", "too high"]
    said = DRAWS.format(repeats=repeats, confidence=1 - RISK, share=SHARE, checks=CHECKS, risk=RISK)
    return f"## Draws\n\n{said}\n{table(head, rows)}"


def _cells(auditor: Auditor, case: Case, found: tuple[int, float] | None) -> list[str]:
    if found is None:
        return [f"> {MOST:,}", "–", "–"]
    high = sum(auditor(case, found[0] // 2) > case.epsilon * (1 + 1e-9) for _ in range(CHECKS)) / CHECKS
    return [f"{found[0]:,}", f"{found[1]:.2f}", f"{high:.3f}"]


ZOO = """\
Every broken mechanism once, until it is caught at a million to one, and its twin once with all its draws:
{caught} of {count} caught, {accused} twins accused. Draws are those on each of two inputs, without those that
chose the pair of inputs; of a training loop one run is replayed. {shorts} short runs of each twin ({draws}
draws, confidence 0.99): {alarms} of {runs} accused, where one in a hundred is allowed.
"""


def zoo(shorts: int) -> str:
    from dalenius.audits.zoo import table as attacked
    from dalenius.audits.zoo import zoo as specimens

    rows = attacked(specimens())
    cells = [
        [
            row.name,
            row.how,
            "yes" if row.caught else "**no**",
            f"{row.draws:,}",
            f"{row.seconds:.2f}",
            f"{row.evidence:.1e}",
            "**accused**" if row.twin_rejected else "not accused",
            f"{row.twin_evidence:.1e}",
        ]
        for row in rows
    ]
    found = [
        one.attack(one.twin, trials=SHORT, confidence=Fraction(99, 100)).caught
        for one in specimens()
        for _ in range(shorts)
    ]
    said = ZOO.format(
        caught=sum(row.caught for row in rows),
        count=len(rows),
        accused=sum(row.twin_rejected for row in rows),
        shorts=shorts,
        draws=SHORT,
        alarms=sum(found),
        runs=f"{len(found):,}",
    )
    head = ["broken", "how", "caught", "draws", "CPU s", "evidence", "its twin", "evidence"]
    return f"## The zoo\n\n{said}\n{table(head, cells)}"


PARTS: dict[str, Callable[[argparse.Namespace], str]] = {
    "draws": lambda chosen: draws(chosen.repeats),
    "zoo": lambda chosen: zoo(chosen.shorts),
    "training": lambda chosen: training(chosen.runs),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure audits beside a peer.")
    parser.add_argument("--repeats", type=int, default=21, help="audits at each number of draws")
    parser.add_argument("--shorts", type=int, default=20, help="short runs of each twin of the zoo")
    parser.add_argument("--runs", type=int, default=30, help="trainings at each setting")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the report is written")
    chosen = parser.parse_args()
    one_thread()
    names = ", ".join(f"{name} {version(name)}" for name in ("dalenius", "jax-privacy", "scikit-learn"))
    page = [f"# Audits\n\n{processor()}, Python {platform.python_version()}; {names}.\n"]
    page += [PARTS[part](chosen) for part in chosen.parts]
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text("\n".join(page), encoding="utf-8")
    print("\n".join(page))


if __name__ == "__main__":
    main()
