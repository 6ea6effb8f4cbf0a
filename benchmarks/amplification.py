"""Losses beyond plain composition, beside what other libraries have for the same.

    python3 -m venv build/bench-amplification
    build/bench-amplification/bin/pip install -r benchmarks/requirements-amplification.txt -e .
    build/bench-amplification/bin/python benchmarks/amplification.py

A peer that is not installed is said so, and the run goes on. The report is printed and written to
benchmarks/results/amplification.md. Times are CPU times of one thread, the median of the repeats, with
Dalenius's caches cleared before each; what takes more than two seconds runs once.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from measure import Answer, milliseconds, one_thread, processor, table, timed, version

RESULTS = Path(__file__).parent / "results" / "amplification.md"
HEAD = ("what is done", "library", "ε", "CPU ms")
SAID = """\
ε at the δ given, an upper bound where the library gives one; Dalenius's own lower bound is in brackets.
Only libraries that have the scheme are listed. σ is in units of one record's norm; dp-accounting is given
half of it under replace-one, where two records differ. JAX Privacy takes batches of fixed size for Poisson
samples of twice the sensitivity: that is the worst case where the other records never change, and our lower
bound; ours also holds where they are chosen step by step.
"""


@dataclass(frozen=True)
class Case:
    """One thing that is done to data, and who can say what it costs."""

    name: str
    answers: tuple[tuple[str, Callable[[], Answer]], ...]


def ours(build: Callable[[], Any], delta: float) -> tuple[str, Callable[[], Answer]]:
    """ε of a loss, with its lower bound."""

    def ask() -> Answer:
        bound = build().epsilon(delta)
        return Answer(bound.upper, f"[{bound.lower:.6g}]")

    return "Dalenius", ask


def rdp(
    event: Callable[[Any], object], count: int, delta: float, relation: str = "ADD_OR_REMOVE_ONE"
) -> Answer:
    """dp-accounting by Rényi divergence."""
    from dp_accounting import dp_event, rdp
    from dp_accounting.privacy_accountant import NeighboringRelation

    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation[relation])
    accountant.compose(event(dp_event), count)
    return Answer(accountant.get_epsilon(delta), "")


def pld(event: Callable[[Any], object], count: int, delta: float) -> Answer:
    """dp-accounting by privacy-loss distributions."""
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    accountant.compose(event(dp_event), count)
    return Answer(accountant.get_epsilon(delta), "")


def opacus(noise: float, rate: float, steps: int, delta: float, *, by: str) -> Answer:
    """Opacus's accountants, which know Poisson samples of Gaussians."""
    from opacus.accountants import create_accountant

    accountant = create_accountant(by)
    accountant.history = [(noise, rate, steps)]
    return Answer(accountant.get_epsilon(delta=delta), "")


def jax_privacy(
    noise: float, steps: int, delta: float, *, population: int, batch: int, by: str = "Pld", **params: object
) -> Answer:
    """JAX Privacy's accounting of training, with cyclic groups, cut batches or batches of fixed size."""
    from jax_privacy.accounting import accountants, analysis

    config = getattr(accountants, f"{by}AccountantConfig")()
    if params.pop("fixed", False):
        params["sampling_method"] = analysis.SamplingMethod.FIXED_BATCH_SIZE
    asked = analysis.DpParams(
        noise_multipliers=noise, num_samples=population, delta=delta, batch_size=batch, **params
    )
    return Answer(float(analysis.DpsgdTrainingAccountant(config).compute_epsilon(steps, asked)), "")


def cases() -> tuple[Case, ...]:
    """What is asked."""
    from dalenius.losses import Gaussian, Pure
    from dalenius.losses.streams import BandedSquareRoot, BinaryTree, once

    def gaussian_on_fixed(noise: float) -> Any:
        return Gaussian(noise, relation="replace").without_replacement(600, 60_000) * 1000

    bands = BandedSquareRoot(1024, 16)
    per_column = float(bands.sensitivity(once()).upper)
    return (
        Case(
            "Poisson sample 256 of 60,000, σ = 1.1, 14,062 steps, δ = 1e-5",
            (
                ours(lambda: Gaussian(1.1).poisson(Fraction(256, 60_000)) * 14_062, 1e-5),
                (
                    "dp-accounting, loss distributions",
                    lambda: pld(_poisson(256 / 60000, 1.1), 14_062, 1e-5),
                ),
                ("dp-accounting, Rényi", lambda: rdp(_poisson(256 / 60000, 1.1), 14_062, 1e-5)),
                ("Opacus, PRV", lambda: opacus(1.1, 256 / 60000, 14_062, 1e-5, by="prv")),
                ("Opacus, Rényi", lambda: opacus(1.1, 256 / 60000, 14_062, 1e-5, by="rdp")),
            ),
        ),
        Case(
            "the same sample cut to 400, σ = 1, 1,000 steps, δ = 1e-5",
            (
                ours(
                    lambda: (
                        Gaussian(1).truncated_poisson(Fraction(256, 60_000), population=60_000, cap=400)
                        * 1000
                    ),
                    1e-5,
                ),
                (
                    "dp-accounting, loss distributions",
                    lambda: pld(
                        lambda e: e.TruncatedSubsampledGaussianDpEvent(60_000, 256 / 60000, 400, 1.0),
                        1000,
                        1e-5,
                    ),
                ),
                (
                    "JAX Privacy",
                    lambda: jax_privacy(
                        1.0, 1000, 1e-5, population=60_000, batch=256, truncated_batch_size=400
                    ),
                ),
            ),
        ),
        Case(
            "600 of 60,000 without replacement, replace-one, σ = 4, 1,000 steps, δ = 1e-6",
            (
                ours(lambda: gaussian_on_fixed(4), 1e-6),
                (
                    "dp-accounting, Rényi",
                    lambda: rdp(
                        lambda e: e.SampledWithoutReplacementDpEvent(60_000, 600, e.GaussianDpEvent(2.0)),
                        1000,
                        1e-6,
                        "REPLACE_ONE",
                    ),
                ),
                (
                    "JAX Privacy, as a Poisson sample of twice the sensitivity",
                    lambda: jax_privacy(4.0, 1000, 1e-6, population=60_000, batch=600, fixed=True),
                ),
            ),
        ),
        Case(
            "random allocation to 1,000 steps, σ = 1, δ = 1e-5",
            (
                ours(lambda: Gaussian(1).random_allocation(1000), 1e-5),
                ours_named(
                    "Dalenius, Poisson sample of rate 1/1,000, another scheme",
                    lambda: Gaussian(1).poisson(Fraction(1, 1000)) * 1000,
                    1e-5,
                ),
            ),
        ),
        Case(
            "100,000 reports of ε₀ = 4, shuffled, δ = 1e-6",
            (ours(lambda: Pure(4, relation="replace").shuffled(100_000), 1e-6),),
        ),
        Case(
            "tree of 1,024 steps, σ = 10, one participation, δ = 1e-5",
            (
                ours(lambda: BinaryTree(1024).loss(10), 1e-5),
                (
                    "dp-accounting, Rényi",
                    lambda: rdp(
                        lambda e: e.SingleEpochTreeAggregationDpEvent(10.0, 1024), 1, 1e-5, "REPLACE_SPECIAL"
                    ),
                ),
            ),
        ),
        Case(
            "16 bands, 1,024 steps, 500 of 50,000 by cyclic Poisson sampling, σ = 6 a column, δ = 1e-5",
            (
                ours(lambda: bands.amplified(6 * per_column, 0.16), 1e-5),
                (
                    "JAX Privacy, loss distributions",
                    lambda: jax_privacy(6.0, 1024, 1e-5, population=50_000, batch=500, cycle_length=16),
                ),
                (
                    "JAX Privacy, Rényi",
                    lambda: jax_privacy(
                        6.0, 1024, 1e-5, population=50_000, batch=500, cycle_length=16, by="Rdp"
                    ),
                ),
            ),
        ),
        Case(
            "the best of a geometric number of runs, 20 on average, σ = 20, δ = 1e-6",
            (
                ours(lambda: Gaussian(20).selected(stop=Fraction(1, 20)), 1e-6),
                (
                    "dp-accounting, Rényi",
                    lambda: rdp(
                        lambda e: e.RepeatAndSelectDpEvent(e.GaussianDpEvent(20.0), 20.0, 1.0), 1, 1e-6
                    ),
                ),
            ),
        ),
    )


def ours_named(name: str, build: Callable[[], Any], delta: float) -> tuple[str, Callable[[], Answer]]:
    """The same under another name."""
    return name, ours(build, delta)[1]


def _poisson(rate: float, noise: float) -> Callable[[Any], object]:
    return lambda e: e.PoissonSampledDpEvent(rate, e.GaussianDpEvent(noise))


def main() -> None:
    """Ask everybody, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    rows = []
    for case in cases():
        for place, (name, ask) in enumerate(case.answers):
            found = timed(ask, chosen.repeats)
            shown = f"{found.answer.value:.6g} {found.answer.error}".strip() if found.answer else found.note
            rows.append(("" if place else case.name, name, shown, milliseconds(found.ms)))
    peers = ", ".join(f"{one} {version(one)}" for one in ("dp-accounting", "jax-privacy", "opacus"))
    head = f"{processor()}, Python {platform.python_version()}; dalenius {version('dalenius')}, {peers}."
    page = f"# Amplification\n\n{head}\n\n{SAID}\n{table(HEAD, rows)}"
    chosen.output.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    one_thread()
    main()
