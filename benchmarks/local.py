"""Local privacy: error, bits and time of frequency oracles against the limit and against peers, in one run.

    python3 -m venv build/bench-local
    build/bench-local/bin/pip install -r benchmarks/requirements-local.txt -e .
    build/bench-local/bin/python benchmarks/local.py

Peers are left out where they are not installed. The report is printed and written to
benchmarks/results/local.md. Times are CPU times of one thread. The error is n·MSE over items of a share
below a thousandth, in units of the limit 4e^ε/(e^ε − 1)²; it is uncertain by a part of √(2/items), one
standard deviation. As some peers make estimates positive and scale them to 1, so are all, for another column.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from measure import one_thread, processor, table, version

RESULTS = Path(__file__).parent / "results" / "local.md"
DOMAIN, USERS = 65_536, 1_000_000
SMALL_DOMAIN, FEW = 2_048, 5_000
"""What peers can do in seconds: they try each item on each report, one by one."""
EPSILONS = (1, 4)
RARE = 1e-3
Row = tuple[str, ...]


def people(users: int, domain: int) -> Any:
    """An item for each person, by a law that falls with the item's rank."""
    import numpy as np

    weights = 1 / (np.arange(domain) + 30)
    return np.random.default_rng(12).choice(domain, users, p=weights / weights.sum())


def errors(shares: Any, values: Any, epsilon: float) -> Row:
    """Of the estimates, and of them made positive and scaled to 1."""
    import numpy as np

    true = np.bincount(values, minlength=len(shares)) / len(values)
    rare, unit = true < RARE, limit(epsilon) / len(values)
    positive = np.maximum(shares, 0)
    pair = np.asarray(shares), positive / positive.sum()
    return tuple(f"{np.mean((found - true)[rare] ** 2) / unit:.3f}" for found in pair)


def limit(epsilon: float) -> float:
    return 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2


def seconds(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = call()
    return found, time.process_time() - start


def ours(oracle: Any, values: Any, epsilon: float) -> Row:
    """From values to bytes, and from bytes to a release with error bars."""
    oracle.estimator().add(oracle.encode(values[:1000])).estimate()
    data, encoding = seconds(lambda: oracle.encode(values).to_bytes())
    found, decoding = seconds(lambda: oracle.estimator().add(data).estimate())
    return (
        f"Dalenius: {type(oracle).__name__}",
        f"{oracle.bits:,}",
        f"{oracle.variance() / limit(epsilon):.3f}",
        *errors(found["share"], values, epsilon),
        f"{len(values) / encoding:,.0f}",
        f"{decoding:.2f}",
    )


def peer(
    name: str, encode: Callable[[Any], Any], decode: Callable[[Any], Any], values: Any, epsilon: float
) -> Row:
    """A peer, whatever it does with estimates that are negative."""
    try:
        reports, encoding = seconds(lambda: encode(values))
        found, decoding = seconds(lambda: decode(reports))
    except Exception as failure:  # A peer that fails is a result, and the run goes on.
        return name, "–", "–", f"{type(failure).__name__}: {str(failure)[:60]}", "–", "–", "–"
    speed = f"{len(values) / encoding:,.0f}", f"{decoding:.2f}"
    return name, "–", "–", *errors(found, values, epsilon), *speed


def pure_ldp(values: Any, epsilon: float, domain: int) -> list[Row]:
    if find_spec("pure_ldp") is None:
        return []
    import numpy as np
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

    def decoded(server: Any) -> Callable[[Any], Any]:
        def decode(reports: Any) -> Any:
            server.aggregate_all(reports)
            # Items are numbered from 1.
            found = server.estimate_all(range(1, domain + 1), suppress_warnings=True)
            return np.asarray(found) / len(values)

        return decode

    hashing = LHClient(epsilon, domain, use_olh=True)
    server = HadamardResponseServer(epsilon, domain)
    hadamard = HadamardResponseClient(epsilon, domain, hash_funcs=server.get_hash_funcs())
    pairs = [
        ("pure-ldp: OLH", hashing, LHServer(epsilon, domain, use_olh=True)),
        ("pure-ldp: Hadamard response", hadamard, server),
    ]
    return [
        peer(name, lambda v, c=client: [c.privatise(int(x) + 1) for x in v], decoded(server), values, epsilon)
        for name, client, server in pairs
    ]


def multi_freq(values: Any, epsilon: float, domain: int) -> list[Row]:
    if find_spec("multi_freq_ldpy") is None:
        return []
    from multi_freq_ldpy.pure_frequency_oracles import LH, SS

    return [
        peer(
            f"multi-freq-ldpy: {name}",
            lambda v, c=client: [c(int(x), domain, epsilon) for x in v],
            lambda reports, a=aggregator: a(reports, domain, epsilon),
            values,
            epsilon,
        )
        for name, client, aggregator in [
            ("OLH", LH.LH_Client, LH.LH_Aggregator_MI),
            ("subset selection", SS.SS_Client, SS.SS_Aggregator_MI),
        ]
    ]


HEAD = ("oracle", "bits", "expected error", "error", "positive, scaled", "encodes/s", "decode, s")


def full_size(epsilon: float) -> str:
    from dalenius.local import FrequencyOracle, HadamardResponse, LocalHashing

    values = people(USERS, DOMAIN)
    choice = FrequencyOracle.choose(DOMAIN, epsilon, bits=18)
    others = [make.calibrate(domain=DOMAIN, epsilon=epsilon) for make in (LocalHashing, HadamardResponse)]
    rows = [ours(oracle, values, epsilon) for oracle in (choice.oracle, *others)]
    return f"The choice for 18 bits is {choice.why}.\n\n" + table(HEAD, rows)


def small_size(epsilon: float) -> str:
    from dalenius.local import FrequencyOracle, LocalHashing, SubsetSelection, UnaryEncoding

    values = people(FEW, SMALL_DOMAIN)
    made = [
        FrequencyOracle.best(SMALL_DOMAIN, epsilon, bits=18),
        LocalHashing.calibrate(domain=SMALL_DOMAIN, epsilon=epsilon),
        UnaryEncoding.optimized(domain=SMALL_DOMAIN, epsilon=epsilon),
        SubsetSelection.calibrate(domain=SMALL_DOMAIN, epsilon=epsilon),
    ]
    rows = [ours(oracle, values, epsilon) for oracle in made]
    peers = pure_ldp(values, epsilon, SMALL_DOMAIN) + multi_freq(values, epsilon, SMALL_DOMAIN)
    return table(HEAD, rows + peers)


def planned() -> str:
    """Aggregates of a billion reports."""
    import numpy as np

    from dalenius.local import FrequencyOracle, KaryResponse, UnaryEncoding, simulate

    true = np.bincount(people(USERS, DOMAIN), minlength=DOMAIN) * 1000
    rows = []
    for oracle in (
        KaryResponse.calibrate(domain=DOMAIN, epsilon=4),
        UnaryEncoding.optimized(domain=DOMAIN, epsilon=4),
        FrequencyOracle.best(DOMAIN, 4, bits=18),
    ):
        found, took = seconds(lambda oracle=oracle: simulate(oracle, true))
        rows.append((type(oracle).__name__, f"{took:.2f}", found.receipt.postprocessing[0]))
    return table(("oracle", "s", "how"), rows)


def report() -> str:
    versions = ", ".join(f"{p} {version(p)}" for p in ("numpy", "pure-ldp", "multi-freq-ldpy"))
    parts = [
        "# Local privacy\n",
        f"CPU time of one thread. {processor()}, Python {platform.python_version()}; {versions}.",
        "The error is n·MSE of rare items in units of the limit 4e^ε/(e^ε − 1)². Decoding is all from bytes",
        "to a release with variances and error bars.\n",
    ]
    for epsilon in EPSILONS:
        parts += [f"## {DOMAIN:,} items, {USERS:,} people, ε = {epsilon}\n", full_size(epsilon)]
    for epsilon in EPSILONS:
        parts += [
            f"## {SMALL_DOMAIN:,} items, {FEW:,} people, ε = {epsilon}, with peers\n",
            "Errors here are uncertain by about 3 %. multi-freq-ldpy makes estimates positive and scales",
            "them, so only that column can be compared with the others.\n",
            small_size(epsilon),
        ]
    parts += [f"## Planning: {USERS * 1000:,} people, {DOMAIN:,} items, ε = 4\n", planned()]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure frequency oracles against the limit and peers.")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the report is written")
    chosen = parser.parse_args()
    one_thread()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        page = report()
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
