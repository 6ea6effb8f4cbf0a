"""Each mistake of a training loop is found in its record, and a correct loop has nothing to find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from dalenius.audits.replay_checks import check_influence, declared_loop
from dalenius.audits.replaying import Recorder, Replay, replay
from dalenius.errors import InvalidArgument
from dalenius.losses import Gaussian, Laplace
from dalenius.losses.loss import Loss

EXAMPLES, RATE, STEPS, NOISE, CLIP, WIDTH = 400, 0.05, 80, 1.5, 2.0, 12
DECLARED = Gaussian(NOISE).poisson(RATE) * STEPS
FULL = Gaussian(NOISE) * STEPS

Array = NDArray[Any]
DATA = np.random.default_rng(0).standard_normal((EXAMPLES, WIDTH)) * np.linspace(0.1, 3, EXAMPLES)[:, None]
LABELS = (DATA.sum(axis=1) > 0).astype(float)


def clipped(rows: Array, bound: float = CLIP) -> Array:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1, bound / np.maximum(norms, 1e-12)))


def gradients(weights: Array, who: Array) -> Array:
    """Of the logistic loss, one row for each example."""
    chances = 1 / (1 + np.exp(-DATA[who] @ weights))
    return np.asarray((chances - LABELS[who])[:, None] * DATA[who])


def microbatches(rows: Array, size: int = 4) -> Array:
    """The averages of every four examples, clipped: not what the loss covers."""
    parts = [rows[k : k + size].mean(axis=0) for k in range(0, len(rows), size)]
    return clipped(np.array(parts).reshape(-1, rows.shape[1]))


@dataclass(frozen=True)
class Loop:
    """Logistic regression by DP-SGD; each part can be replaced by a wrong one."""

    seed: int = 1
    steps: int = STEPS
    sample: Callable[[np.random.Generator, int], Array] = lambda rng, k: np.flatnonzero(
        rng.random(EXAMPLES) < RATE
    )
    clip: Callable[[Array], Array] = clipped
    total: Callable[[Array, Array], Array] = lambda rows, parts: parts.sum(axis=0)
    noise: Callable[[np.random.Generator, int], Array] = lambda rng, k: (
        NOISE * CLIP * rng.standard_normal(WIDTH)
    )

    def __call__(self, recorder: Recorder) -> None:
        rng, weights, batch = np.random.default_rng([self.seed, 2]), np.zeros(WIDTH), EXAMPLES * RATE
        for k in range(self.steps):
            who = self.sample(rng, k)
            rows = gradients(weights, who)
            parts = self.clip(rows)
            total = self.total(rows, parts)
            released = (total + self.noise(rng, k)) / batch
            recorder.step(sampled=who, contributions=parts, total=total, released=released, divisor=batch)
            weights = weights - 0.5 * released


def run(loop: Loop, declared: Loss = DECLARED) -> Replay:
    return replay(loop, examples=EXAMPLES, clip=CLIP, declared=declared)


def shuffled(rng: np.random.Generator, step: int) -> Array:
    """Every example exactly once in an epoch, in an order fixed by its number."""
    per_epoch, size = round(1 / RATE), round(EXAMPLES * RATE)
    order = np.random.default_rng(step // per_epoch).permutation(EXAMPLES)
    return np.asarray(order[(step % per_epoch) * size :][:size])


def reused(rng: np.random.Generator, step: int) -> Array:
    return NOISE * CLIP * np.random.default_rng(7 if step in (3, 60) else step + 100).standard_normal(WIDTH)


def partial(rng: np.random.Generator, step: int) -> Array:
    return NOISE * CLIP * rng.standard_normal(WIDTH) * (np.arange(WIDTH) > 0)


CORRECT = Loop()
BROKEN = {
    "microbatch clipping": (replace(CORRECT, clip=microbatches), "clipping", "averages"),
    "microbatch clipping, not reported": (
        replace(CORRECT, total=lambda rows, parts: microbatches(rows).sum(axis=0)),
        "clipping",
        "not that of the contributions",
    ),
    "a larger bound": (replace(CORRECT, clip=lambda rows: clipped(rows, 2 * CLIP)), "clipping", "above 2"),
    "no clipping": (replace(CORRECT, clip=lambda rows: rows), "clipping", "above 2"),
    "no noise": (replace(CORRECT, noise=lambda rng, k: np.zeros(WIDTH)), "noise", "3 is declared"),
    "noise 20 % too small": (
        replace(CORRECT, noise=lambda rng, k: 0.8 * NOISE * CLIP * rng.standard_normal(WIDTH)),
        "noise",
        "3 is declared",
    ),
    "noise that forgets the bound": (
        replace(CORRECT, noise=lambda rng, k: NOISE * rng.standard_normal(WIDTH)),
        "noise",
        "its scale is 1.",
    ),
    "noise divided by the batch size twice": (
        replace(CORRECT, noise=lambda rng, k: NOISE * CLIP / (EXAMPLES * RATE) * rng.standard_normal(WIDTH)),
        "noise",
        "twice?",
    ),
    "no noise in one step": (
        replace(CORRECT, noise=lambda rng, k: (k != 9) * NOISE * CLIP * rng.standard_normal(WIDTH)),
        "noise",
        "next to none in step 9",
    ),
    "no noise on the first weight": (
        replace(CORRECT, noise=partial),
        "noise",
        "next to none in coordinate 0",
    ),
    "noise used twice": (replace(CORRECT, noise=reused), "reuse", "steps 3 and 60"),
    "one number as noise everywhere": (
        replace(CORRECT, noise=lambda rng, k: np.full(WIDTH, NOISE * CLIP * rng.standard_normal())),
        "reuse",
        "coordinates",
    ),
    "shuffled": (replace(CORRECT, sample=shuffled), "shuffled", "exactly once in 20 steps"),
    "batches of one size": (
        replace(CORRECT, sample=lambda rng, k: rng.choice(EXAMPLES, 20, replace=False)),
        "shuffled",
        "every batch has 20",
    ),
    "a rate a fifth too high": (
        replace(CORRECT, sample=lambda rng, k: np.flatnonzero(rng.random(EXAMPLES) < 1.2 * RATE)),
        "rate",
        "0.05 is declared",
    ),
    "one example always in": (
        replace(
            CORRECT,
            sample=lambda rng, k: np.flatnonzero((rng.random(EXAMPLES) < RATE) | (np.arange(EXAMPLES) == 5)),
        ),
        "rate",
        "in 80 of 80 batches",
    ),
    "examples drawn with replacement": (
        replace(CORRECT, sample=lambda rng, k: rng.integers(0, EXAMPLES, rng.binomial(EXAMPLES, RATE))),
        "repeats",
        "more than once",
    ),
    "more steps": (replace(CORRECT, steps=STEPS + 1), "steps", "81 steps, and 80"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_loop_is_caught(name: str) -> None:
    loop, kind, text = BROKEN[name]
    found = run(loop).findings
    assert any(f.kind == kind and text in f.text for f in found), found


def test_a_broken_loop_is_caught_for_its_own_mistake_only() -> None:
    """Other kinds stay silent where nothing follows from the mistake."""
    for name in ("a larger bound", "no noise in one step", "noise used twice", "shuffled", "more steps"):
        loop, kind, _ = BROKEN[name]
        assert {f.kind for f in run(loop).findings} == {kind}


@pytest.mark.parametrize("seed", range(20))
def test_a_correct_loop_has_no_finding(seed: int) -> None:
    """False alarm 1e-6 in each of 20 runs, and half of that again for full batches."""
    assert run(replace(CORRECT, seed=seed)).findings == ()
    full = replace(CORRECT, seed=seed, sample=lambda rng, k: np.arange(EXAMPLES), steps=5)
    assert run(full, FULL).findings == ()


def test_false_alarms_are_as_rare_as_asked_for() -> None:
    """At a rate of 10 %, over 120 correct runs; false alarm 1e-7."""
    loops = (replace(CORRECT, seed=seed) for seed in range(120))
    alarms = sum(
        bool(replay(loop, examples=EXAMPLES, clip=CLIP, declared=DECLARED, false_alarm=0.1).findings)
        for loop in loops
    )
    assert alarms <= binom.isf(1e-7, 120, 0.1)


def test_leaving_one_out_shows_clipped_averages() -> None:
    """One far example against three that pull the other way: it turns their average round."""
    rows = np.zeros((8, WIDTH))
    rows[:, 0] = [100, -10, -10, -10, -10, -10, -10, -10]

    def right(who: Array) -> Array:
        return np.asarray(clipped(rows[who]).sum(axis=0))

    def wrong(who: Array) -> Array:
        return np.asarray(microbatches(rows[who]).sum(axis=0))

    assert check_influence(right, np.arange(8), clip=CLIP) == ()
    (found,) = check_influence(wrong, np.arange(8), clip=CLIP)
    assert found.text.startswith("one example moves the sum by 4, more than 2")


def test_the_record_says_what_it_found() -> None:
    found = run(BROKEN["no noise in one step"][0])
    assert str(found) == "80 steps recorded, 1 findings\nnoise (step 9): next to none in step 9."


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Gaussian noise"):
        declared_loop(Laplace(1) * 3)
    with pytest.raises(InvalidArgument, match="No step"):
        replay(lambda recorder: None, examples=3, clip=1, declared=DECLARED)
    with pytest.raises(InvalidArgument, match="out of range"):
        Recorder(3, 1).step(sampled=[3], contributions=[[1.0]], total=[1.0], released=[1.0])
