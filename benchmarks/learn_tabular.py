"""Private models of a table: their accuracy on Adult, beside no privacy and beside diffprivlib.

    pip install -r benchmarks/requirements-learn-tabular.txt
    python benchmarks/learn_tabular.py --data path/to/adult.csv.gz

Every model is fitted on the same random 80 % of the rows and measured on the rest, in every repeat on another
split; all libraries see the same columns, bounds and splits. Bounds and categories are those of the census
form and of its public description; capital gains are held within 10,000. No argument of a model depends on ε.
Defaults of the library were chosen in view of this table, on other splits of it: that favours them.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import platform
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import measure

measure.one_thread()

import numpy as np  # noqa: E402
from diffprivlib import models as peer  # noqa: E402
from sklearn import cluster, decomposition, ensemble, linear_model, naive_bayes  # noqa: E402

from dalenius.learn import tabular  # noqa: E402

EPSILONS = (0.1, 1, 10)
FIRST = 1000
"""The seed of the first split: those below were looked at while defaults were chosen."""
DELTA = 1e-6
RESULTS = Path(__file__).parent / "results" / "learn_tabular.md"
NUMBERS = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 10000),
    "capital_loss": (0, 4356),
    "hours_per_week": (1, 99),
}
NAMES = (
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
)


@dataclass(frozen=True)
class Adult:
    """The table in the forms that models ask for."""

    numbers: np.ndarray  # the five columns, scaled to [−1, 1]
    codes: np.ndarray
    sizes: list[int]
    full: np.ndarray  # numbers and one-hot columns; capital from 0 to 1
    hours: np.ndarray
    rich: np.ndarray

    @property
    def mixed(self) -> np.ndarray:
        """Numbers and codes, all scaled to [−1, 1]."""
        top = np.array(self.sizes) - 1
        return np.hstack([self.numbers, 2 * self.codes / top - 1])


def read(path: Path) -> Adult:
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    held = [np.clip([float(row[name]) for row in rows], *ends) for name, ends in NUMBERS.items()]
    ends = np.array([*NUMBERS.values()], dtype=float)
    raw = np.column_stack(held)
    scaled = (raw - ends.mean(axis=1)) / (np.diff(ends, axis=1)[:, 0] / 2)
    found = [sorted({row[name] for row in rows}) for name in NAMES]
    codes = np.array([[names.index(row[n]) for n, names in zip(NAMES, found, strict=True)] for row in rows])
    sizes = [len(names) for names in found]
    hot = [codes[:, [j]] == np.arange(size) for j, size in enumerate(sizes)]
    from_zero = scaled.copy()
    from_zero[:, 2:4] = raw[:, 2:4] / ends[2:4, 1]
    rich = np.array([row["income"].strip() == ">50K" for row in rows]).astype(int)
    return Adult(scaled, codes, sizes, np.hstack([from_zero, *hot]).astype(float), raw[:, 4], rich)


@dataclass(frozen=True)
class Task:
    """A model that is compared: its columns, its target, how it is measured, and how it is made."""

    name: str
    measured: str
    data: Callable[[Adult], tuple[np.ndarray, np.ndarray]]
    plain: Callable[[], Any]
    ours: Callable[[Adult, float, float], Any]
    theirs: Callable[[Adult, float], Any] | None
    score: Callable[[Any, Any, np.ndarray, np.ndarray], float]
    smaller: bool = False


def accuracy(model: Any, plain: Any, x: np.ndarray, y: np.ndarray) -> float:
    return 100 * float(np.mean(model.predict(x) == y))


def agreement(model: Any, plain: Any, x: np.ndarray, y: np.ndarray) -> float:
    return 100 * float(np.mean(model.predict(x) == plain.predict(x)))


def explained(model: Any, plain: Any, x: np.ndarray, y: np.ndarray) -> float:
    return float(model.score(x, y))


def kept(model: Any, plain: Any, x: np.ndarray, y: np.ndarray) -> float:
    centered = x - x.mean(axis=0)
    return 100 * float(np.square(centered @ model.components_.T).sum() / np.square(centered).sum())


def distance(model: Any, plain: Any, x: np.ndarray, y: np.ndarray) -> float:
    apart = np.square(x[:, np.newaxis] - model.cluster_centers_).sum(axis=2)
    return float(apart.min(axis=1).mean())


def forest_bounds(adult: Adult) -> tuple[list[float], list[float]]:
    return [-1.0] * 5 + [0] * 8, [1.0] * 5 + [size - 1 for size in adult.sizes]


BOX = {"bounds": (-1, 1)}
TWO = {"classes": [0, 1]}
FULL = {**BOX, "l1_norm": 13, "l2_norm": 3.6056}
TASKS = (
    Task(
        "logistic regression",
        "accuracy, %; 107 columns",
        lambda a: (a.full, a.rich),
        lambda: linear_model.LogisticRegression(max_iter=3000),
        lambda a, e, d: tabular.LogisticRegression(
            epsilon=e, delta=d, bounds=([-1, -1, 0, 0, -1] + [0] * 102, 1), **TWO, l1_norm=13, l2_norm=3.6056
        ),
        lambda a, e: peer.LogisticRegression(epsilon=e, data_norm=3.6056, max_iter=3000),
        accuracy,
    ),
    Task(
        "linear regression",
        "R² of hours by six columns",
        lambda a: (
            np.column_stack([a.numbers[:, :4], 2 * a.codes[:, 6] - 1, 2 * a.rich - 1]).astype(float),
            a.hours,
        ),
        lambda: linear_model.LinearRegression(),
        lambda a, e, d: tabular.LinearRegression(epsilon=e, delta=d, **BOX, target_bounds=(1, 99)),
        lambda a, e: peer.LinearRegression(epsilon=e, bounds_X=(-1, 1), bounds_y=(1, 99)),
        explained,
    ),
    Task(
        "Gaussian naive Bayes",
        "predictions like those without privacy, %; 13 columns",
        lambda a: (a.mixed, a.rich),
        lambda: naive_bayes.GaussianNB(),
        lambda a, e, d: tabular.GaussianNB(epsilon=e, delta=d, **BOX, **TWO),
        lambda a, e: peer.GaussianNB(epsilon=e, bounds=(-1, 1)),
        agreement,
    ),
    Task(
        "Gaussian naive Bayes",
        "accuracy, %; 13 columns",
        lambda a: (a.mixed, a.rich),
        lambda: naive_bayes.GaussianNB(),
        lambda a, e, d: tabular.GaussianNB(epsilon=e, delta=d, **BOX, **TWO),
        lambda a, e: peer.GaussianNB(epsilon=e, bounds=(-1, 1)),
        accuracy,
    ),
    Task(
        "categorical naive Bayes",
        "accuracy, %; 8 columns",
        lambda a: (a.codes, a.rich),
        lambda: naive_bayes.CategoricalNB(),
        lambda a, e, d: tabular.CategoricalNB(epsilon=e, delta=d, categories=a.sizes, **TWO),
        None,
        accuracy,
    ),
    Task(
        "k-means",
        "mean squared distance to 8 centres, less is better; 5 columns",
        lambda a: (a.numbers, a.rich),
        lambda: cluster.KMeans(8, n_init=5),
        lambda a, e, d: tabular.KMeans(8, epsilon=e, delta=d, **BOX),
        lambda a, e: peer.KMeans(8, epsilon=e, bounds=(-1, 1)),
        distance,
        smaller=True,
    ),
    Task(
        "PCA",
        "variance kept by 2 components, %; 5 columns",
        lambda a: (a.numbers, a.rich),
        lambda: decomposition.PCA(2),
        lambda a, e, d: tabular.PCA(2, epsilon=e, delta=d, **BOX),
        lambda a, e: peer.PCA(2, epsilon=e, data_norm=5**0.5, bounds=(-1, 1)),
        kept,
    ),
    Task(
        "trees",
        "accuracy, %; 13 columns",
        lambda a: (np.hstack([a.numbers, a.codes]), a.rich),
        lambda: ensemble.HistGradientBoostingClassifier(),
        lambda a, e, d: tabular.BoostedTrees(
            epsilon=e, delta=d, bounds=forest_bounds(a), categorical=range(5, 13), **TWO
        ),
        lambda a, e: peer.RandomForestClassifier(epsilon=e, bounds=forest_bounds(a), classes=[0, 1]),
        accuracy,
    ),
)


def compared(task: Task, adult: Adult, repeats: int) -> list[str]:
    """One row of the table for each ε."""
    x, y = task.data(adult)
    found: dict[tuple[str, float], list[float]] = {}
    for repeat in range(repeats):
        order = np.random.default_rng(FIRST + repeat).permutation(len(x))
        train, test = order[: len(x) * 4 // 5], order[len(x) * 4 // 5 :]
        plain = task.plain().fit(x[train], y[train])
        made = {("none", 0.0): plain}
        for epsilon in EPSILONS:
            made["pure", epsilon] = task.ours(adult, epsilon, 0).fit(x[train], y[train])
            made["delta", epsilon] = task.ours(adult, epsilon, DELTA).fit(x[train], y[train])
            if task.theirs is not None:
                made["peer", epsilon] = task.theirs(adult, epsilon).fit(x[train], y[train])
        for key, model in made.items():
            found.setdefault(key, []).append(task.score(model, plain, x[test], y[test]))
    rows = []
    for epsilon in EPSILONS:
        cells = [shown(found.get((who, epsilon))) for who in ("pure", "delta", "peer")]
        ahead = "–"
        if task.theirs is not None:
            pure, theirs = (np.mean(found[who, epsilon]) for who in ("pure", "peer"))
            ahead = "yes" if (pure < theirs if task.smaller else pure > theirs) else "no"
        none = shown(found["none", 0.0])
        rows.append(f"| {task.name} | {task.measured} | {epsilon} | {none} | {' | '.join(cells)} | {ahead} |")
        print(rows[-1], flush=True)
    return rows


def shown(values: list[float] | None) -> str:
    """The mean and the standard deviation over repeats."""
    if values is None:
        return "–"
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    if abs(mean) >= 1000:
        return f"{mean:.1e}"
    digits = 4 if abs(mean) < 1 else 2
    return f"{mean:.{digits}f} ± {spread:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    adult = read(given.data)
    rows = [row for task in TASKS if given.only in task.name for row in compared(task, adult, given.repeats)]
    versions = ", ".join(f"{name} {version(name)}" for name in ("scikit-learn", "diffprivlib", "numpy"))
    text = [
        "# Private models of a table",
        "",
        f"Adult, {len(adult.rich):,} rows, 80 % to fit and 20 % to measure; mean ± standard deviation over "
        f"{given.repeats} splits, the same for all. {versions}; {platform.machine()}, one thread.",
        "",
        f"Without privacy by scikit-learn; ours with δ = 0, and with δ = {DELTA:g}; diffprivlib, whose "
        "promise is with δ = 0 too. The last column compares means of the two with δ = 0.",
        "",
        "| model | measured | ε | no privacy | ours, δ = 0 | ours, δ > 0 | diffprivlib | ahead |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
        "",
        "Noise sometimes raises the accuracy of naive Bayes on these data, as its assumption fails on them; "
        "how many predictions stay the same says what noise does to it. Defaults of ours were chosen in view "
        "of this table at these ε, on other splits, and those of diffprivlib were not: that favours ours. "
        "Ours are told the L1 norm of rows (logistic regression) and which columns hold codes (trees), for "
        "which diffprivlib has no argument. Where bounds are left out diffprivlib takes them from the data, "
        "with a warning, and keeps them in the model: its promise does not hold then; here all were given.",
    ]
    if not given.only:
        RESULTS.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
