"""Random Poisson-subsampled Gaussians: how wide the certified answers are, and how long they take.

The rate q is log-uniform from 1e-4 to 0.5, and 1 in a tenth of the cases; σ log-uniform from 0.5 to 20;
T in 1…30 for half of the cases, log-uniform from 1 to 1e6 for the others; δ log-uniform from 1e-30 to 1e-3.
In target means a width of at most 1e-8 of ε for T ≥ 30, 1e-6 below, and 1e-9 absolute where ε < 1e-3.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from measure import forget, milliseconds, table

WORST = 8
"""How many cases are listed."""


@dataclass(frozen=True)
class Case:
    """The parameters of one case."""

    rate: float
    noise: float
    steps: int
    delta: float

    def __str__(self) -> str:
        return f"q={self.rate:.6g}, σ={self.noise:.6g}, T={self.steps}, δ={self.delta:.4g}"


@dataclass(frozen=True)
class Outcome:
    """One answer: its width as a multiple of the target (infinite where it failed), and its CPU time."""

    case: Case
    excess: float
    ms: float
    note: str


WARM = (Case(0.01, 4, 10_000, 1e-5), Case(0.01, 4, 1, 1e-12), Case(0.01, 4, 5, 1e-12), Case(1, 4, 10, 1e-5))
"""One case for each route, so that no measured case pays for imports."""


def survey(count: int, seed: int) -> str:
    """The section of the report."""
    draw = random.Random(seed)
    cases = [draw_case(draw) for _ in range(count)]
    for case in WARM:
        evaluate(case)
    outcomes = [evaluate(case) for case in cases]
    groups = {
        "all": outcomes,
        "T < 30": [o for o in outcomes if o.case.steps < 30],
        "T ≥ 30": [o for o in outcomes if o.case.steps >= 30],
        "q = 1": [o for o in outcomes if o.case.rate == 1],
    }
    head = ["cases", "number", "in target", "failed", "median ms", "p99 ms", "worst ms"]
    parts = [table(head, [summary(name, group) for name, group in groups.items() if group])]
    wide = sorted((o for o in outcomes if o.excess > 1), key=lambda o: -o.excess)
    slow = sorted(outcomes, key=lambda o: -o.ms)
    parts += ["Widest, of those over the target:\n", listing(wide), "Slowest:\n", listing(slow)]
    return "\n".join(parts)


def draw_case(draw: random.Random) -> Case:
    """Parameters as short decimals, so that a case can be repeated from the report."""

    def spread(low: float, high: float) -> float:
        return float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.6g}")

    rate = 1.0 if draw.random() < 0.1 else spread(1e-4, 0.5)
    steps = draw.randint(1, 30) if draw.random() < 0.5 else round(spread(1, 1e6))
    return Case(rate, spread(0.5, 20), steps, float(f"{spread(1e-30, 1e-3):.4g}"))


def evaluate(case: Case) -> Outcome:
    """Ask Dalenius, with nothing remembered."""
    from dalenius.losses import Gaussian

    forget()
    start = time.process_time()
    try:
        bound = (Gaussian(noise_multiplier=case.noise).poisson(case.rate) * case.steps).epsilon(case.delta)
    except Exception as error:  # Counted and listed: a failure is a result of the survey.
        return Outcome(case, math.inf, 1e3 * (time.process_time() - start), type(error).__name__)
    ms = 1e3 * (time.process_time() - start)
    width = bound.upper - bound.lower if bound.upper else 0.0
    allowed = 1e-9 if bound.upper < 1e-3 else bound.upper * (1e-8 if case.steps >= 30 else 1e-6)
    excess = width / allowed if math.isfinite(width) else math.inf
    return Outcome(case, excess, ms, f"ε={bound.upper:.10g}, width {width:.1e}")


def summary(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """One row."""
    times = sorted(o.ms for o in outcomes)
    good = sum(o.excess <= 1 for o in outcomes)
    p99 = times[min(len(times) - 1, math.ceil(0.99 * len(times)) - 1)]
    return [
        name,
        f"{len(outcomes):,}",
        f"{good:,} ({100 * good / len(outcomes):.2f} %)",
        str(sum(math.isinf(o.excess) for o in outcomes)),
        *map(milliseconds, (statistics.median(times), p99, times[-1])),
    ]


def listing(outcomes: Sequence[Outcome]) -> str:
    """The first few cases, each repeatable."""
    rows = [[str(o.case), o.note, f"{o.excess:.2g}", milliseconds(o.ms)] for o in outcomes[:WORST]]
    return table(["case", "answer", "width / target", "ms"], rows) if rows else "none\n"
