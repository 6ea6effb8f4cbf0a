"""The rows of Adult as numbers between bounds that are public: who earns more than 50,000 dollars."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).parents[1] / "examples" / "data" / "adult.csv.gz"
MOST = {"age": 90, "education_num": 16, "capital_gain": 20_000, "capital_loss": 3_000, "hours_per_week": 99}
LISTED = ("workclass", "marital_status", "occupation", "relationship", "sex")
TEST = 10_000


def adult(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Inputs and labels, shuffled; the categories count as public."""
    with gzip.open(DATA, "rt") as file:
        rows = list(csv.DictReader(file))
    columns = [[min(float(row[name]) / most, 1.0) for row in rows] for name, most in MOST.items()]
    for name in LISTED:
        for value in sorted({row[name] for row in rows}):
            columns.append([float(row[name] == value) for row in rows])
    order = np.random.default_rng(seed).permutation(len(rows))
    labels = np.array([row["income"].startswith(">") for row in rows], dtype=np.int64)
    return np.array(columns).T[order], labels[order]
