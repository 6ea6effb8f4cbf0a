"""One-run audits of private logistic regression, whose canaries have an entry of the gradient each.

A part of benchmarks/audit.py: what one run shows on average, beside the estimators of jax-privacy on the same
scores, and what all of them report where the scores are pure noise.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
from measure import table

CANARIES, EXAMPLES, WIDTH, CLIP, DELTA, RISK = 1_000, 2_000, 20, 1.0, Fraction(1, 10**5), 0.05
SETTINGS = ((4, 1.0, 50), (4, 0.2, 200), (8, 1.0, 50), (8, 0.2, 200))
"""True ε at δ, sampling rate, steps."""
SAID = """\
Logistic regression by noisy gradient descent on {examples:,} examples of {width} features, clipped to norm
1, with {canaries:,} canaries, each in with probability 1/2, whose gradients have an entry of their own. Noise
for the true ε at δ = 1e-5, by the accountant. Means over {runs} runs at confidence {confidence:g}, and in
brackets the largest; "pure noise" trains without the canaries, so that 0 is right but for the allowed error.
The score of a canary is the sum of its entry, or where batches are drawn the likelihood ratio of all its
values. jax-privacy is given the same scores; its thresholds are chosen by splitting. "Gaussian DP" is its
`epsilon_from_gdp`.
"""


@dataclass(frozen=True)
class Run:
    """A training: noise, sampling rate and steps; `leak` is what canaries add of themselves."""

    noise: float
    rate: float
    steps: int
    leak: float

    def scores(self, included: np.ndarray, draw: np.random.Generator) -> np.ndarray:
        features = draw.standard_normal((EXAMPLES, WIDTH))
        labels = (features @ draw.standard_normal(WIDTH) > 0) * 1.0
        weights, score = np.zeros(WIDTH), np.zeros(CANARIES)
        for _ in range(self.steps):
            taken = draw.random(EXAMPLES) < self.rate
            errors = 1 / (1 + np.exp(-features[taken] @ weights)) - labels[taken]
            gradients = errors[:, None] * features[taken]
            norms = np.linalg.norm(gradients, axis=1, keepdims=True)
            gradients *= np.minimum(1, CLIP / np.maximum(norms, 1e-12))
            present = included & (draw.random(CANARIES) < self.rate)
            exact = np.concatenate([gradients.sum(axis=0), self.leak * CLIP * present])
            released = exact + self.noise * CLIP * draw.standard_normal(len(exact))
            weights -= 0.5 / (self.rate * EXAMPLES) * released[:WIDTH]
            seen = (released[WIDTH:] / CLIP - 0.5) / self.noise**2
            score += seen if self.rate == 1 else np.log1p(self.rate * np.expm1(seen))
        return score


def training(runs: int) -> str:
    rows = []
    for epsilon, rate, steps in SETTINGS:
        noise, claim = _calibrated(epsilon, rate, steps)
        for leak in (1.0, 0.0):
            found, seconds = _audited(Run(noise, rate, steps, leak), claim, runs)
            how = "full batches" if rate == 1 else f"sampling rate {rate:g}"
            name = f"ε = {epsilon}, {how}, {steps} steps" if leak else "the same, pure noise"
            rows.append([name, *(_cell(values) for values in found.values()), f"{seconds:.2f}"])
    said = SAID.format(examples=EXAMPLES, width=WIDTH, canaries=CANARIES, runs=runs, confidence=1 - RISK)
    head = ["training", *found, "CPU s of an audit"]
    return f"## One training run\n\n{said}\n{table(head, rows)}"


def _cell(values: list[float]) -> str:
    return f"{statistics.mean(values):.2f} ({max(values):.2f})"


def _calibrated(epsilon: float, rate: float, steps: int) -> tuple[float, object]:
    from dalenius.losses import Gaussian

    def loss(noise: float) -> object:
        one = Gaussian(Fraction(f"{noise:.4f}"))
        return (one if rate == 1 else one.poisson(Fraction(f"{rate:g}"))) * steps

    low, high = 0.4, 60.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if loss(middle).epsilon(DELTA).upper <= epsilon else (middle, high)
    return float(f"{high:.4f}"), loss(high)


def _audited(run: Run, claim: object, runs: int) -> tuple[dict[str, list[float]], float]:
    """What each estimator shows in each run, and the CPU seconds of one audit of ours, training aside."""
    from dalenius.audits import audit_training

    peers, found, seconds = _peers(), {}, []
    for seed in range(runs):
        kept = {}

        def train(included: np.ndarray, seed: int = seed, kept: dict = kept) -> np.ndarray:
            kept["scores"] = run.scores(included, np.random.default_rng([seed, 7]))
            kept["included"], kept["start"] = included, time.process_time()
            return kept["scores"]

        mine = audit_training(
            train, CANARIES, claim=claim, delta=DELTA, confidence=1 - RISK, seed=seed
        ).epsilon_lower
        seconds.append(time.process_time() - kept["start"])
        found.setdefault("Dalenius", []).append(mine)
        for name, peer in peers.items():
            value = peer(kept["scores"][kept["included"]], kept["scores"][~kept["included"]])
            found.setdefault(name, []).append(value)
    return found, statistics.median(seconds)


def _peers() -> dict[str, Callable[[np.ndarray, np.ndarray], float]]:
    if find_spec("jax_privacy") is None:
        return {}
    from jax_privacy.auditing import CanaryScoreAuditor, Split

    delta, split = float(DELTA), Split()
    return {
        "jax-privacy, one run": lambda a, b: float(
            CanaryScoreAuditor(a, b).epsilon_one_run(RISK, delta, threshold_strategy=split)
        ),
        "jax-privacy, one run, f-DP": lambda a, b: float(
            CanaryScoreAuditor(a, b).epsilon_one_run_fdp(RISK, delta, threshold_strategy=split)
        ),
        "jax-privacy, Gaussian DP": lambda a, b: float(
            CanaryScoreAuditor(a, b).epsilon_from_gdp(RISK, delta)
        ),
    }
