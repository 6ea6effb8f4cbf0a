"""Private evaluation on Adult: how far metrics are off, how wide their bars are, and what it takes.

    python benchmarks/evaluation.py

A logistic regression, trained on 22,561 people, is judged on 10,000 others, many times over with fresh noise.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import measure

measure.one_thread()

import numpy as np  # noqa: E402
from adult import TEST, adult  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

import dalenius as dp  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "evaluation.md"
METRICS = ("accuracy", "recall", "ece", "auc", "loss")
EPSILONS, TIMES, BOUND = (0.1, 1.0), 60, 5


def judged(
    model: LogisticRegression, rows: tuple[np.ndarray, np.ndarray], epsilon: float, metrics: object
) -> object:
    return dp.learn.evaluate(
        model, rows, classes=2, epsilon=epsilon, metrics=metrics, loss_bound=BOUND, batch_size=256
    )


def compared(model: LogisticRegression, rows: tuple[np.ndarray, np.ndarray]) -> list[list[str]]:
    """Each metric alone, and all of them for the same ε."""
    exact = judged(model, rows, 1e5, METRICS)
    found = []
    for metric in METRICS:
        truth = np.ravel(exact[metric].value)
        line = [metric, ", ".join(f"{one:.4f}" for one in truth)]
        for epsilon in EPSILONS:
            for asked in (metric, METRICS):
                drawn = [judged(model, rows, epsilon, asked)[metric] for _ in range(TIMES)]
                off = np.sqrt(np.mean([np.square(np.ravel(one.value) - truth) for one in drawn]))
                wide = np.mean([np.ravel(one.high) - np.ravel(one.low) for one in drawn]) / 2
                held = np.mean([(np.ravel(d.low) <= truth) & (truth <= np.ravel(d.high)) for d in drawn])
                line.append(f"{off:.4f} (± {wide:.4f}, {held:.0%})")
        found.append(line)
        print(line, flush=True)
    return found


def times(model: LogisticRegression, rows: tuple[np.ndarray, np.ndarray]) -> list[list[str]]:
    def took(call: object) -> float:
        start = time.process_time()
        call()
        return 1e3 * (time.process_time() - start)

    plain = min(took(lambda: model.predict_proba(rows[0])) for _ in range(5))
    found = [["predict_proba", f"{plain:.1f}"]]
    for metrics in ("accuracy", METRICS):
        spent = min(took(lambda asked=metrics: judged(model, rows, 1.0, asked)) for _ in range(5))
        found.append([metrics if isinstance(metrics, str) else "all of these", f"{spent:.1f}"])
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=RESULTS)
    asked = arguments.parse_args()
    warnings.simplefilter("ignore")
    x, y = adult()
    model = LogisticRegression(max_iter=500).fit(x[TEST:], y[TEST:])
    rows = x[:TEST], y[:TEST]
    head = ["metric", "on these rows"]
    head += [f"ε = {epsilon:g}, {how}" for epsilon in EPSILONS for how in ("alone", "all at once")]
    how = (
        f"Root mean square of what noise does to a metric on {TEST:,} people; in brackets the mean half-"
        f"width of its 95 % bar, and how often the bar held it, over {TIMES} releases. δ = 0. "
        f"{measure.processor()}."
    )
    text = [
        "# Private evaluation on Adult",
        how,
        measure.table(head, compared(model, rows)),
        "CPU milliseconds for all rows, one thread:",
        measure.table(["", "ms"], times(model, rows)),
    ]
    asked.output.write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()
