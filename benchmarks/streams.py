"""Private streams: errors against the square root and the limit, memory, and speed, in one run.

    python3 -m venv build/bench-streams
    build/bench-streams/bin/pip install -r benchmarks/requirements-streams.txt -e .
    build/bench-streams/bin/python benchmarks/streams.py

Peers are left out where they are not installed. The report is printed and written to
benchmarks/results/streams.md. Times are CPU times of one thread, the median of the repeats.
"""

from __future__ import annotations

import argparse
import math
import platform
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from measure import one_thread, processor, table, version

RESULTS = Path(__file__).parent / "results" / "streams.md"
HORIZONS = (10**3, 10**4, 10**5, 10**6)
EVENTS, BATCH, STEPS, CATEGORIES = 10**7, 10**4, 10**6, 100
PEER_STEPS = 2**14


def seconds(call: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return statistics.median(found)


def limit(horizon: int) -> float:
    """‖A‖*/n: no factorization has a smaller root-mean-square error, nor a smaller largest one."""
    import numpy as np

    angles = (2 * np.arange(1, horizon + 1) - 1) * math.pi / (4 * horizon + 2)
    return float(np.sum(0.5 / np.sin(angles)) / horizon)


def errors() -> list[tuple[str, ...]]:
    from dalenius.losses.streams import BinaryTree, SquareRoot
    from dalenius.streams import ContinualSum, EndlessSum

    rows, endless = [], EndlessSum.designed(scale=100)
    for n in HORIZONS:
        start = time.process_time()
        mechanism = ContinualSum.designed(horizon=n, scale=100)
        made = time.process_time() - start
        root = SquareRoot(n).errors().largest
        tree, online = (BinaryTree(n, kind).errors().largest for kind in ("plain", "online"))
        rows.append(
            (
                f"{n:,}",
                f"{len(mechanism.decays)}",
                f"{mechanism.factor:.4f}",
                f"{root:.4f}",
                f"{mechanism.factor / root:.5f}",
                f"{tree:.2f}",
                f"{online:.2f}",
                f"{limit(n):.2f}",
                f"{endless.factor(n):.2f}",
                f"{made:.1f}",
            )
        )
    return rows


def memory() -> list[tuple[str, ...]]:
    """What is carried from block to block, and the block itself."""
    from dalenius.streams import ContinualSum, TreeSum

    rows = []
    for n in HORIZONS:
        sizes = []
        for mechanism in (ContinualSum.designed(horizon=n, scale=100), TreeSum(horizon=n, scale=100)):
            counter = mechanism.start()
            left = n
            while left:
                counter.extend(ONES[: min(left, len(ONES))])
                left -= min(left, len(ONES))
            sizes += [counter._blocks.size, counter._drawn.nbytes]
        rows.append((f"{n:,}", *(f"{size:,}" for size in sizes)))
    return rows


def speed(repeats: int) -> list[tuple[str, ...]]:
    import numpy as np

    from dalenius.streams import ContinualSum, DecayedSum, EndlessSum, TreeSum, WindowSum

    sums = ContinualSum.designed(horizon=2**20, scale=Fraction(10))
    wide = ContinualSum.designed(horizon=2**20, scale=Fraction(10), categories=CATEGORIES)
    units = ContinualSum.designed(horizon=1000, scale=Fraction(10), most=3)
    batch, indices = np.ones(BATCH, np.int64), np.arange(BATCH) % CATEGORIES
    names = np.arange(BATCH)

    def batches(mechanism: ContinualSum, events: np.ndarray, times: int, **given: object) -> None:
        counter = mechanism.start()
        for _ in range(times):
            counter.add(events, **given)
            counter.value()

    rows = []
    for name, mechanism, events, given in (
        (f"sum, batches of {BATCH:,}, a value each", sums, batch, {}),
        (f"histogram of {CATEGORIES}, the same", wide, indices, {}),
        ("sum with units, 3 times each at most", units, batch, {"unit": names}),
    ):
        times = 100 if given or mechanism is wide else EVENTS // BATCH
        taken = seconds(partial(batches, mechanism, events, times, **given), repeats)
        rows.append((name, f"{times * BATCH:,} events", f"{times * BATCH / taken:.2g}", ""))
    for name, made in (
        ("sum, every event a step", sums),
        ("sum without a horizon", EndlessSum.designed(scale=Fraction(10))),
        ("tree, Gaussian, online, no horizon", TreeSum(scale=100)),
        ("tree, Laplace, plain", TreeSum(scale=100, law="laplace", estimator="plain", horizon=2**20)),
        ("decayed sum, 0.999", DecayedSum.designed(horizon=2**20, decay=0.999, scale=Fraction(10))),
        ("window of 1,000", WindowSum(window=1000, scale=100)),
    ):
        made.start().extend(batch[:10])
        counters = []

        def run(made: object = made, counters: list[object] = counters) -> None:
            counters.append(made.start())
            counters[-1].extend(np.ones(STEPS, np.int64))

        taken = seconds(run, repeats)
        settled = statistics.mean(getattr(each._blocks, "settled", 0) for each in counters)
        rows.append((name, f"{STEPS:,} steps", f"{STEPS / taken:.2g}", f"{settled:g}"))
    return rows


def worst_step() -> list[tuple[str, ...]]:
    """How long the last number of n takes where floats leave it open: from its block, and from step 0."""
    from dalenius.noise.stream import StreamKey
    from dalenius.streams import ContinualSum

    rows = []
    for n in HORIZONS:
        running = ContinualSum.designed(horizon=n, scale=Fraction(10)).blocks(StreamKey.fresh(), 1)
        last, row = divmod(n - 1, running.steps)
        for _ in range(last):
            running.next()
        cells, places = (part[: row + 1] for part in (running.cells(last), running.places(last)))
        block = seconds(partial(running._from_block, row, 0, cells, places), 5)
        start = time.process_time()
        first = running._exact(n - 1, 0)
        before = time.process_time() - start
        assert running._from_block(row, 0, cells, places) == first == running.next()[row, 0]
        rows.append((f"{n:,}", f"{1e3 * before:.1f}", f"{1e3 * block:.2f}", f"{before / block:.0f}"))
    return rows


def opendp(repeats: int) -> str:
    """A tree of noisy counts, made at once for a stream that has ended."""
    if find_spec("opendp") is None:
        return "OpenDP is not installed here: not measured."
    import opendp.prelude as dp

    from dalenius.streams import TreeSum

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int), size=PEER_STEPS), dp.l1_distance(T=int)
    levels = PEER_STEPS.bit_length()
    trees = dp.t.make_b_ary_tree(*space, leaf_count=PEER_STEPS, branching_factor=2)
    release = trees >> dp.m.then_laplace(scale=float(levels))
    theirs = seconds(lambda: release([1] * PEER_STEPS), repeats)
    mechanism = TreeSum(scale=levels, law="laplace", estimator="plain", horizon=PEER_STEPS)
    ours = seconds(lambda: mechanism.start().extend([1] * PEER_STEPS), repeats)
    return (
        f"OpenDP {version('opendp')} makes the noisy tree of a stream of {PEER_STEPS:,} steps that has "
        "ended "
        f"(`make_b_ary_tree`, Laplace, ε = 1) in {theirs:.2f} s; here the same tree, step by step with a "
        f"value at each, takes {ours:.3f} s: {theirs / ours:,.0f} times as fast. It has no correlated noise, "
        "and no session that goes on."
    )


def jax_privacy() -> str:
    """Its buffered Toeplitz matrices, as it chooses them, by the certified sensitivity of this library."""
    if find_spec("jax_privacy") is None:
        return "jax-privacy is not installed here: its buffered Toeplitz matrices are not compared."
    import jax
    import numpy as np
    from jax_privacy.matrix_factorization import buffered_toeplitz

    from dalenius.losses.streams import BufferedToeplitz, SquareRoot

    jax.config.update("jax_enable_x64", True)
    found = []
    for n in (HORIZONS[0], HORIZONS[-1]):
        start = time.process_time()
        theirs = buffered_toeplitz.optimize(n=n)
        taken = time.process_time() - start
        decays, scales = (np.asarray(x, float).tolist() for x in (theirs.buf_decay, theirs.output_scale))
        ratio = BufferedToeplitz(n, decays, scales).errors().largest / SquareRoot(n).errors().largest
        found.append(
            f"{ratio:.5f} of the square root with {len(decays)} buffers, {taken:.1f} s, at n = {n:,}"
        )
    return (
        f"jax-privacy {version('jax-privacy')} (`buffered_toeplitz.optimize`): {'; '.join(found)}. Its noise "
        "is that of floats, filtered in floats, and it has no counters."
    )


def report(repeats: int) -> str:
    parts = [
        "# Private streams",
        f"CPU time of one thread, the median of {repeats} repeats; the machine was shared.\n"
        f"{processor()}, Python {platform.python_version()}; dalenius {version('dalenius')}, "
        f"numpy {version('numpy')}, scipy {version('scipy')}.",
        "## The largest error, by that of one Gaussian release of the same cost",
        "One event a person, horizon known. `limit` is ‖A‖*/n, below which no factorization is; `endless` "
        "is\n`EndlessSum`, which knows no horizon.",
        table(
            (
                "steps",
                "buffers",
                "here",
                "square root",
                "ratio",
                "tree",
                "tree, online",
                "limit",
                "endless",
                "s",
            ),
            errors(),
        ),
        "## Memory",
        "Bytes that are carried along, which grow with the logarithm of the steps, and the block of noise "
        "that is\ndrawn at a time, which does not grow.",
        table(("steps", "filter", "its block", "tree", "its block"), memory()),
        "## Speed",
        "`settled` are the numbers that floats left open, and balls decided, in a stream.",
        table(("what", "size", "a second", "settled"), speed(repeats)),
        "## The worst step",
        "About one number in a million is left open by floats. Milliseconds to settle the last of so many, "
        "made again\nfrom the first step on in balls, and from the start of its block in fixed point.",
        table(("step", "from the first step", "from its block", "ratio"), worst_step()),
        "## Peers",
        f"{opendp(repeats)}\n\n{jax_privacy()}",
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    one_thread()
    import numpy as np

    ONES = np.ones(2**16, np.int64)
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    text = report(parser.parse_args().repeats)
    RESULTS.write_text(text)
    print(text)
