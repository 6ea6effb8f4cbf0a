"""Noise: Dalenius's exact samplers against numpy's unsafe ones and OpenDP, in one run on one machine.

    python3 -m venv build/bench-noise
    build/bench-noise/bin/pip install -r benchmarks/requirements-noise.txt -e .
    build/bench-noise/bin/python benchmarks/noise.py

OpenDP is left out where it is not installed. The report is printed and written to
benchmarks/results/noise.md. Times are CPU times of one thread, the median of the repeats, of which those of
the libraries take turns. A table is made before its vectors are timed, and has a time of its own.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from measure import forget, milliseconds, one_thread, processor, table, version

RESULTS = Path(__file__).parent / "results" / "noise.md"
SIZE = 1_000_000
SINGLE = 100_000
SCALES = (1, 1_000, 1_000_000)
NARROW = (2**16, 2**20, 2**23)
LAWS = {"discrete_laplace": "laplace", "rounded_gaussian": "normal", "discrete_gaussian": "normal"}
OPENDP = {
    "discrete_laplace": "make_laplace",
    "rounded_gaussian": "make_gaussian",
    "discrete_gaussian": "make_gaussian",
}
OPENDP_SIZE = 20_000
"""OpenDP's vectors are shorter; its time is per draw all the same."""
Call = Callable[[], object]


def seconds(call: Call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def medians(calls: Sequence[Call], repeats: int) -> list[float]:
    """CPU seconds of each, in turns, after a first call that is not counted."""
    for call in calls:
        call()
    rounds = [[seconds(call) for call in calls] for _ in range(repeats)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def opendp(name: str, scale: int) -> Call | None:
    """A vector of noise by OpenDP, over integers and so exact as well."""
    if find_spec("opendp") is None:
        return None
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l1_distance(T=int) if name == "discrete_laplace" else dp.l2_distance(T=float)
    space = dp.vector_domain(dp.atom_domain(T=int)), metric
    release = getattr(dp.m, OPENDP[name])(*space, scale=float(scale))
    zeros = [0] * OPENDP_SIZE
    return lambda: release(zeros)


def vector(name: str, scale: int, repeats: int) -> tuple[str, ...]:
    """One law at one scale, by all who have it."""
    import numpy as np

    from dalenius import noise

    ours, theirs = getattr(noise, name), getattr(np.random.default_rng(), LAWS[name])
    mine, unsafe = medians([lambda: ours(scale, SIZE), lambda: theirs(0.0, scale, SIZE)], repeats)
    other = opendp(name, scale)
    peer = medians([other], 3)[0] * SIZE / OPENDP_SIZE if other else None
    return (
        name,
        f"{scale:,}",
        milliseconds(1e3 * mine),
        f"{SIZE / mine:.2g}",
        milliseconds(1e3 * unsafe),
        f"{unsafe / mine:.2f}",
        milliseconds(1e3 * peer) if peer else "–",
        f"{peer / mine:,.0f}" if peer else "–",
    )


def vectors(repeats: int) -> str:
    head = ("law", "scale", "ms", "draws/s", "numpy ms", "× numpy", "OpenDP ms", "× OpenDP")
    return table(head, [vector(name, scale, repeats) for name in LAWS for scale in SCALES])


def narrow(name: str, scale: int, repeats: int) -> tuple[str, ...]:
    """Vectors of 32 bits by a stream, as training draws them, and the bits alone."""
    import numpy as np

    from dalenius.noise import narrow as fills
    from dalenius.noise.stream import StreamKey

    key, values, normal = StreamKey.fresh(), np.empty(SIZE, np.int32), np.random.default_rng().standard_normal
    fill = getattr(fills, f"fill_{name}")
    ours, cipher, unsafe = medians(
        [
            lambda: fill(values, scale, key.stream(1)),
            lambda: key.stream(1).fill(values.view(np.uint32)),
            lambda: normal(SIZE, np.float32),
        ],
        repeats,
    )
    nanoseconds = (f"{1e9 * took / SIZE:.2f}" for took in (ours, cipher, unsafe))
    return name, f"{scale:,}", *nanoseconds, f"{unsafe / ours:.2f}"


def narrows(repeats: int) -> str:
    head = ("law", "scale", "ns a draw", "of AES", "numpy ns", "× numpy")
    names = ("rounded_gaussian", "discrete_laplace")
    return table(head, [narrow(name, scale, repeats) for name in names for scale in NARROW])


def single(name: str, scale: int, repeats: int) -> tuple[str, ...]:
    """Single draws out of a pool, and what a scale costs that was never used before."""
    from dalenius import noise

    draw = getattr(noise, name)

    def set_up() -> None:
        forget()
        draw(scale, 1)

    def one_by_one() -> None:
        for _ in range(SINGLE):
            draw(scale, 1)

    first, many = medians([set_up], repeats)[0], medians([one_by_one], 3)[0]
    return name, f"{scale:,}", f"{1e6 * many / SINGLE:.2f}", milliseconds(1e3 * first)


def singles(repeats: int) -> str:
    head = ("law", "scale", "µs a single draw", "ms of a new scale with its first pool")
    return table(head, [single(name, scale, repeats) for name in LAWS for scale in SCALES])


def selections(repeats: int) -> str:
    import numpy as np

    from dalenius import noise

    utilities = {
        "a random walk": np.cumsum(np.random.default_rng(1).integers(-3, 4, SIZE)),
        "all alike": np.zeros(SIZE, np.int64),
        "one best by far": np.where(np.arange(SIZE) == 17, 10**9, 0),
    }
    parameter = {"exponential_mechanism": "1/100", "permute_and_flip": "1/100", "noisy_max": "100"}

    def row(name: str, words: str) -> tuple[str, ...]:
        took = medians([lambda: getattr(noise, name)(utilities[words], parameter[name])], repeats)[0]
        return name, words, milliseconds(1e3 * took), f"{SIZE / took:.2g}"

    head = ("choice", "utilities", "ms", "candidates/s")
    return table(head, [row(name, words) for name in parameter for words in utilities])


def others(repeats: int) -> str:
    from dalenius import noise

    calls = {
        "bernoulli(1/3)": lambda: noise.bernoulli("1/3", SIZE),
        "bernoulli_exp(1/3)": lambda: noise.bernoulli_exp("1/3", SIZE),
        "uniform(1000)": lambda: noise.uniform(1000, SIZE),
        "geometric(1/1000)": lambda: noise.geometric("1/1000", SIZE),
        "binomial(1000, 1/3)": lambda: noise.binomial(1000, "1/3", SIZE),
        "binomial(10^6, 1/3)": lambda: noise.binomial(10**6, "1/3", SIZE),
        "skellam(100)": lambda: noise.skellam(100, SIZE),
        "skellam(10^6)": lambda: noise.skellam(10**6, SIZE),
    }
    rows = [(name, medians([call], min(repeats, 3))[0]) for name, call in calls.items()]
    return table(("law", "ms", "draws/s"), [(n, milliseconds(1e3 * s), f"{SIZE / s:.2g}") for n, s in rows])


def report(repeats: int) -> str:
    versions = ", ".join(
        f"{p} {version(p)}" for p in ("dalenius", "numpy", "opendp", "cryptography", "python-flint")
    )
    return "\n".join(
        [
            "# Noise\n",
            f"CPU time of one thread, the median of {repeats} repeats; OpenDP's of 3, {OPENDP_SIZE:,} draws.",
            f"{processor()}, Python {platform.python_version()}; {versions}.\n",
            f"## Vectors of {SIZE:,}\n",
            "Dalenius draws from exact laws with bits of AES-256. numpy draws doubles, and their low bits",
            "reveal what they are added to. OpenDP has no rounded Gaussian; its discrete one stands for it.",
            "A ratio above 1 means that Dalenius is faster.\n",
            vectors(repeats),
            f"## Vectors of {SIZE:,} in 32 bits, for training\n",
            "By streams that can be made again, into the same array. numpy draws normal 32-bit floats.\n",
            narrows(repeats),
            "## Single draws, and a new scale\n",
            singles(repeats),
            f"## One choice among {SIZE:,} candidates\n",
            selections(repeats),
            f"## Other laws, vectors of {SIZE:,}\n",
            others(repeats),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure exact noise against numpy and OpenDP.")
    parser.add_argument("--repeats", type=int, default=21, help="calls per time")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the report is written")
    chosen = parser.parse_args()
    one_thread()
    page = report(chosen.repeats)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
