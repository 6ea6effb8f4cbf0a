"""Batches have the law that their losses are stated for, and come again from the same bits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, chi2, norm

from dalenius import noise
from dalenius.audits.replaying import Recorder, replay
from dalenius.learn.sampling import (
    Poisson,
    RandomAllocation,
    Sampling,
    TruncatedPoisson,
    WithoutReplacement,
)
from dalenius.losses import Gaussian
from dalenius.losses.loss import Loss
from dalenius.noise.bits import Bits
from dalenius.noise.source import Source
from dalenius.noise.stream import StreamKey

ROWS = 6_123
MADE: dict[str, Callable[[], Sampling]] = {
    "poisson": lambda: Poisson(ROWS, batch_size=100, epochs=2, public_size=6_000),
    "counted": lambda: Poisson(ROWS, batch_size=100, steps=7),
    "truncated": lambda: TruncatedPoisson(
        ROWS, batch_size=100, cap=98, steps=9, public_size=6_000, population=7_000
    ),
    "allocation": lambda: RandomAllocation(ROWS, batch_size=100, epochs=3, public_size=6_000),
    "fixed": lambda: WithoutReplacement(ROWS, batch_size=100, epochs=1),
}


def batches(sampling: Sampling, key: StreamKey) -> list[Any]:
    return [sampling.batch(k, key.stream(1, sampling.period(k))) for k in range(sampling.steps)]


def taken(sampling: Sampling, units: int) -> NDArray[np.bool_]:
    """Steps by units, from fresh bits."""
    found = np.zeros((sampling.steps, units), bool)
    for row, batch in zip(found, batches(sampling, StreamKey.fresh()), strict=True):
        row[batch] = True
    return found


@pytest.mark.parametrize("name", MADE)
def test_the_same_key_gives_the_same_batches_to_another_value(name: str) -> None:
    """In any order, and with another key in between, whatever is kept from one step to the next."""
    one, other, key = MADE[name](), MADE[name](), StreamKey.fresh()
    found = batches(one, key)
    different = batches(one, StreamKey.fresh())
    for k in reversed(range(other.steps)):
        assert np.array_equal(other.batch(k, key.stream(1, other.period(k))), found[k])
        assert np.array_equal(one.batch(k, key.stream(1, one.period(k))), found[k])
    assert not any(np.array_equal(a, b) for a, b in zip(found, different, strict=True))
    assert not np.array_equal(found[0], found[1])


KNOWN = {
    "poisson": "4420ca07d670b780",
    "counted": "106d1fb4d3bddfe3",
    "truncated": "8b97bee30c850241",
    "allocation": "56e20ea70da6b925",
    "fixed": "0f9cc9448d4262d5",
}


@pytest.mark.parametrize("name", MADE)
def test_a_run_that_is_resumed_elsewhere_meets_the_same_batches(name: str) -> None:
    """Known answers: in another process, on another machine, and in later versions."""
    key = StreamKey(bytes(32), tainted=True)
    drawn = b"".join(batch.astype("<i8").tobytes() for batch in batches(MADE[name](), key))
    assert hashlib.sha256(drawn).hexdigest()[:16] == KNOWN[name]
    sparse = Poisson(10**6, batch_size=10, steps=1).batch(0, key.stream(1, 0))
    assert sparse.tolist() == [235779, 337273, 567470, 637494, 892098, 944051]


@pytest.mark.parametrize(("rows", "public"), [(60, 60), (59, 60), (90, 60), (60, None)])
def test_coins_have_the_rate_for_every_row_whoever_else_is_there(rows: int, public: int | None) -> None:
    """In all, and for the row that is taken most and least; binomial, false alarm 4e-7."""
    sampling = Poisson(rows, batch_size=20, steps=600, public_size=public)
    found = taken(sampling, rows)
    for counts, trials in ((found.sum(), found.size), (found.sum(axis=0), sampling.steps)):
        tail = 1e-7 / np.size(counts)
        assert binom.ppf(tail, trials, 1 / 3) <= np.min(counts)
        assert np.max(counts) <= binom.isf(tail, trials, 1 / 3)


def test_coins_are_independent_over_rows_and_steps() -> None:
    """Correlations of all pairs of rows, and of rows with themselves one step later; false alarm 2e-7."""
    found = taken(Poisson(40, batch_size=10, steps=3000, public_size=40), 40) - 0.25
    unit = 0.1875 * np.sqrt(len(found))
    pairs = (found.T @ found)[np.triu_indices(40, 1)] / unit
    later = (found[1:] * found[:-1]).sum(axis=0) / unit
    # A normal law has lighter tails than these sums: a factor of ten covers that at 3,000 terms.
    limit = norm.isf(1e-8 / (2 * (pairs.size + later.size)))
    assert max(np.abs(pairs).max(), np.abs(later).max()) < limit
    assert abs(pairs.sum()) / np.sqrt(pairs.size) < limit


def test_one_row_more_changes_no_coin_of_the_others() -> None:
    class Words(Bits):
        def fill(self, words: NDArray[Any]) -> None:
            words[:] = np.arange(words.size) * 40503 % 65521

    fewer, more = (Poisson(n, batch_size=300, steps=1, public_size=1_000) for n in (999, 1_000))
    assert fewer.batch(0, Words()).tolist() == [k for k in more.batch(0, Words()).tolist() if k < 999]


def test_an_empty_batch_is_a_batch() -> None:
    few = Poisson(3, batch_size=1, steps=1, public_size=10**9).batch(0, Source(b"a test"))
    none = Poisson(0, batch_size=1, steps=1, public_size=10).batch(0, Source(b"a test"))
    nobody = Poisson(0, batch_size=1, steps=1, public_size=10, units=np.empty(0, int), rows_per_unit=4)
    assert few.shape == none.shape == (0,) and few.dtype == none.dtype == np.int64
    assert nobody.batch(0, Source(b"a test")).shape == (0, 4)
    assert RandomAllocation(0, batch_size=1, epochs=1, public_size=10).batch(9, Source(b"a")).shape == (0,)


def test_a_sample_is_cut_to_a_random_part_of_it() -> None:
    """Rows are taken alike, first and last; binomial with less than its variance, false alarm 2e-7."""
    sampling = TruncatedPoisson(40, batch_size=20, cap=15, steps=2000, public_size=40)
    found = taken(sampling, 40)
    sizes = found.sum(axis=1)
    assert sizes.max() == 15 and sizes.min() < 15 and (sizes == 15).mean() > 0.9
    share = sizes.mean() / 40
    counts = found.sum(axis=0)
    assert binom.ppf(1e-7 / 40, 2000, share) <= counts.min()
    assert counts.max() <= binom.isf(1e-7 / 40, 2000, share)


def test_an_epoch_takes_each_row_once_and_epochs_differ() -> None:
    sampling = RandomAllocation(1_000, batch_size=64, epochs=3)
    found = batches(sampling, StreamKey.fresh())
    epochs = [np.concatenate(found[k : k + 16]) for k in range(0, 48, 16)]
    assert sampling.steps == 48 and sampling.expected == Fraction(1_000, 16)
    assert all(np.array_equal(np.sort(epoch), np.arange(1_000)) for epoch in epochs)
    assert not np.array_equal(epochs[0], epochs[1])


def test_rows_choose_their_steps_independently() -> None:
    """Sizes of batches have the χ² of independent choices: neither unequal chances, nor a shuffle. 2e-7."""
    sampling = RandomAllocation(20_000, batch_size=400, epochs=1)
    sizes = np.array([len(batch) for batch in batches(sampling, StreamKey.fresh())])
    statistic = ((sizes - 400) ** 2 / 400).sum()
    assert chi2.ppf(1e-7, 49) < statistic < chi2.isf(1e-7, 49)


def test_batches_of_one_size_have_it() -> None:
    """And take every row alike; binomial, false alarm 2e-7."""
    found = taken(WithoutReplacement(50, batch_size=20, steps=1500), 50)
    assert (found.sum(axis=1) == 20).all()
    counts = found.sum(axis=0)
    tail = 1e-7 / 50
    assert binom.ppf(tail, 1500, 0.4) <= counts.min() and counts.max() <= binom.isf(tail, 1500, 0.4)


EXAMPLES, CLIP, WIDTH = 200, 1.0, 12


def _findings(sampling: Sampling, declared: Loss) -> set[str]:
    key = StreamKey.fresh()
    data = np.random.default_rng(5).standard_normal((EXAMPLES, WIDTH))

    def loop(recorder: Recorder) -> None:
        for k in range(sampling.steps):
            who = sampling.batch(k, key.stream(1, sampling.period(k)))
            rows = data[who] * np.minimum(1, CLIP / np.linalg.norm(data[who], axis=1, keepdims=True))
            total, divisor = rows.sum(axis=0), float(sampling.expected)
            drawn = noise.rounded_gaussian(2**20, WIDTH) / 2**20
            released = (total + drawn) / divisor
            recorder.step(sampled=who, contributions=rows, total=total, released=released, divisor=divisor)

    return {found.kind for found in replay(loop, examples=EXAMPLES, clip=CLIP, declared=declared).findings}


def test_a_recorded_run_does_what_its_loss_declares() -> None:
    """False alarm 1e-6."""
    sampling = Poisson(EXAMPLES, batch_size=10, epochs=4)
    assert _findings(sampling, sampling.loss(Gaussian(1))) == set()


def test_other_batches_declared_as_poisson_are_found() -> None:
    """False alarm, of any other kind, 2e-6."""
    declared = Poisson(EXAMPLES, batch_size=10, epochs=4).loss(Gaussian(1))
    assert _findings(RandomAllocation(EXAMPLES, batch_size=10, epochs=4), declared) == {"shuffled"}
    assert _findings(WithoutReplacement(EXAMPLES, batch_size=10, epochs=4), declared) == {"shuffled"}
