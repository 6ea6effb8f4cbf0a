"""PATE on real images: a student of noisy votes of 250 teachers, its accuracy and what it costs.

    python benchmarks/learn_pate.py --data path/to/mnist

The folder holds the four files of MNIST as they are distributed (gzipped idx). Teachers are logistic
regressions on parts of the 60,000 training images; queries are from the first half of the test images, taken
as public and without labels, and the student, a support vector machine, is measured on the second half. Both
look at histograms of the directions of edges, a fixed function of an image by itself. Labels are drawn and
students trained `--repeats` times from the same teachers.
"""

from __future__ import annotations

import argparse
import gzip
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import measure

measure.one_thread()

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

import dalenius as dp  # noqa: E402
from dalenius.learn.pate import ConfidentGNMax, GNMax, Sanitizer, Student, Teachers  # noqa: E402

DELTA = 1e-5
TEACHERS, CLASSES = 250, 10
RESULTS = Path(__file__).parent / "results" / "learn_pate.md"
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

SESSIONS = (
    ("GNMax, σ 40, 1,000 queries", GNMax(scale=40, queries=1000)),
    ("GNMax, σ 80, 1,000 queries", GNMax(scale=80, queries=1000)),
    (
        "Confident, as published: T 200, σ 150 and 40, 640 queries",
        ConfidentGNMax(threshold=200, test_scale=150, scale=40, queries=640, answers=286),
    ),
    (
        "Confident: T 200, σ 100 and 60, 1,500 queries",
        ConfidentGNMax(threshold=200, test_scale=100, scale=60, queries=1500, answers=1000),
    ),
)
SANITIZER = Sanitizer(order=8, scale=8, ratio=0.96)
"""Found by a search, in view of votes on the same images: see what the report says of it."""
CHOSEN = (
    "How that figure is sanitized (order 8, scale 8, ratio 0.96) was chosen in view of votes: of another 250 "
    "teachers\nof the same images, among 294 settings for GNMax and 196 for confident votes, one compromise "
    "for all rows. Nothing\nis charged here for that choice; with private data it is to be made on public "
    "votes. The setting tried first, by\nguess (order 16, scale 14, ratio 0.99), gave means of 8.86, 3.11, "
    "3.70 and 4.71 for the four rows, all above what\nis charged. Noise scales, thresholds and numbers of "
    "queries were fixed before the first run and not changed.\nFeatures and the teachers' model were chosen "
    "among three by their accuracy on the first half of the test images.\n\n"
)


@dataclass(frozen=True)
class Result:
    """One session and its student."""

    answered: int
    right: float
    student: float
    charged: float
    figure: float
    with_figure: float


def images(folder: Path, part: str) -> tuple[Floats, Ints]:
    pixels, labels = (
        np.frombuffer(
            gzip.decompress((folder / f"{part}-{kind}-ubyte.gz").read_bytes()), np.uint8, offset=skip
        )
        for kind, skip in (("images-idx3", 16), ("labels-idx1", 8))
    )
    return edges(pixels.reshape(-1, 28, 28).astype(np.float32) / 255), labels.astype(np.int64)


def edges(pixels: Floats) -> Floats:
    """How much there is of each of eight directions in each of 7 by 7 fields of four by four pixels."""
    down, across = np.zeros_like(pixels), np.zeros_like(pixels)
    down[:, 1:-1] = pixels[:, 2:] - pixels[:, :-2]
    across[:, :, 1:-1] = pixels[:, :, 2:] - pixels[:, :, :-2]
    size, turn = np.hypot(down, across), np.arctan2(down, across) % np.pi
    found = []
    for direction in np.arange(8) * np.pi / 8:
        away = np.abs((turn - direction + np.pi / 2) % np.pi - np.pi / 2)
        field = size * np.clip(1 - away / (np.pi / 8), 0, 1)
        found.append(field.reshape(-1, 7, 4, 7, 4).sum(axis=(2, 4)))
    fields = np.stack(found, axis=1)
    fields /= np.sqrt((fields**2).sum(axis=1, keepdims=True)) + 0.5
    return fields.reshape(len(pixels), -1)


def run(
    session: GNMax | ConfidentGNMax,
    teachers: Teachers,
    public: tuple[Floats, Ints],
    test: tuple[Floats, Ints],
) -> Result:
    budget = dp.Budget(epsilon=20, delta=DELTA)
    people = dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=budget)
    queries, truth = public[0][: session.queries], public[1][: session.queries]
    started = session.start(people, teachers=teachers, by="benchmark", purpose="labels")
    labels = started.label(queries)
    figure = started.sanitized(SANITIZER, delta=DELTA, account=people, by="benchmark")
    given = [i for i, label in enumerate(labels.columns["label"]) if label is not None]
    right = np.mean([labels.columns["label"][i] == truth[i] for i in given])
    student = Student(SVC(C=10)).fit(queries, labels)
    return Result(
        len(given),
        float(right),
        float((student.predict(test[0]) == test[1]).mean()),
        session.loss.epsilon(DELTA).upper,
        float(figure.value),
        (session.loss + SANITIZER.loss).epsilon(DELTA).upper,
    )


def rows(folder: Path, repeats: int) -> tuple[list[list[str]], float]:
    train, (x, y) = images(folder, "train"), images(folder, "t10k")
    public, test = (x[:5000], y[:5000]), (x[5000:], y[5000:])
    teachers = Teachers(LogisticRegression(max_iter=100), train, count=TEACHERS, classes=CLASSES)
    start = time.process_time()
    teachers.train()
    seconds = time.process_time() - start
    told = []
    for size in (1000, 5000):
        known = SVC(C=10).fit(public[0][:size], public[1][:size])
        told.append(_row(f"true labels of {size:,} public rows", known.predict(test[0]) == test[1]))
    for name, session in SESSIONS:
        found = [run(session, teachers, public, test) for _ in range(repeats)]
        print(name, *found, sep="\n")
        students = [100 * one.student for one in found]
        told.append(
            [
                name,
                f"{np.mean([one.answered for one in found]):.0f}",
                f"{100 * np.mean([one.right for one in found]):.1f}",
                f"{np.mean(students):.2f} ({min(students):.2f} to {max(students):.2f})",
                f"{found[0].charged:.3f}",
                f"{np.mean([one.figure for one in found]):.2f}",
                f"{found[0].with_figure:.3f}",
            ]
        )
    return told, seconds


def _row(name: str, hits: NDArray[np.bool_]) -> list[str]:
    return [name, "", "", f"{100 * hits.mean():.2f}", "", "", ""]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--repeats", type=int, default=3)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    told, seconds = rows(given.data, given.repeats)
    head = [
        "labels by",
        "labels",
        "of them right, %",
        "student's accuracy, %",
        "ε charged",
        "ε of these votes, sanitized",
        "ε charged with that figure",
    ]
    command = f"python benchmarks/learn_pate.py --data mnist --repeats {given.repeats}"
    RESULTS.write_text(
        f"# PATE on MNIST\n\n`{command}`, {measure.processor()}, one thread.\n\n"
        f"{TEACHERS} teachers (logistic regression on directions of edges), trained in {seconds:.0f} s; "
        f"δ = {DELTA:g}.\nStudents are support vector machines on the same features, measured on 5,000 test "
        "images that were not asked\nabout. The ε that is charged holds for all votes. That of these votes "
        "is an upper bound with confidence 95 %,\nat Rényi order "
        f"{SANITIZER.order}, its own release included; it is no differential privacy, and never what an\n"
        "account is charged. The last column is what labels and that figure cost together.\n\n"
        + CHOSEN
        + measure.table(head, told)
    )


if __name__ == "__main__":
    main()
