"""Private prediction on Adult: how right answers are, by ε, how many are asked, and how many models vote.

    python benchmarks/prediction.py

Logistic regressions of disjoint shards of 22,561 people answer for 5,000 others, whose incomes count as
public here. The same people trained one model without privacy, and by private training with the same ε, which
then answers any number of questions.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import measure

measure.one_thread()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from adult import TEST, adult  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

import dalenius as dp  # noqa: E402

QUESTIONS = 5_000
RESULTS = Path(__file__).parent / "results" / "prediction.md"
DELTA, EPSILONS, ANSWERS, MODELS = 1e-6, (0.5, 1, 3), (100, 1000), (25, 100, 400)


def fit(x: np.ndarray, y: np.ndarray) -> LogisticRegression:
    return LogisticRegression(C=1.0, max_iter=300).fit(x, y)


def trained(x: np.ndarray, y: np.ndarray, epsilon: float, test: tuple[np.ndarray, np.ndarray]) -> float:
    """The accuracy of private training, with settings chosen once by hand for all ε."""
    model = torch.nn.Linear(x.shape[1], 2)
    rows = torch.as_tensor(x).float(), torch.as_tensor(y)
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    dp.learn.fit(
        model,
        rows,
        epsilon=epsilon,
        delta=DELTA,
        optimizer=optimizer,
        public_size=len(x),
        batch_size=1024,
        epochs=10,
        progress=False,
    )
    with torch.no_grad():
        return float((model(torch.as_tensor(test[0]).float()).argmax(1).numpy() == test[1]).mean())


def accuracies(
    ensemble: dp.learn.Ensemble, test: tuple[np.ndarray, np.ndarray]
) -> dict[tuple[float, int], float]:
    """Of answers that were drawn to many more questions than one session has."""
    found = {}
    for epsilon in EPSILONS:
        for answers in ANSWERS:
            service = dp.learn.serve(ensemble, classes=2, epsilon=epsilon, delta=DELTA, answers=answers)
            drawn = service.start().ask_all(test[0][:QUESTIONS])
            found[epsilon, answers] = float((drawn["answer"] == test[1][:QUESTIONS]).mean())
    return found


def latency(ensemble: dp.learn.Ensemble, questions: np.ndarray, *, at_once: bool) -> float:
    """CPU milliseconds of an answer, charged to a ledger on disk."""
    service = dp.learn.serve(ensemble, classes=2, epsilon=3, delta=DELTA, answers=1000)
    with tempfile.TemporaryDirectory() as folder:
        budget = dp.Budget(epsilon=100, delta=1e-4)
        people = dp.Ledger(Path(folder) / "a.ledger").open("people", unit=dp.Unit("person"), budget=budget)
        session = service.start(people, answers=len(questions) if at_once else None)
        start = time.process_time()
        for question in questions:
            session.ask(question)
        return 1e3 * (time.process_time() - start) / len(questions)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=RESULTS)
    asked = arguments.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    x, y = adult()
    test, x, y = (x[:TEST], y[:TEST]), x[TEST:], y[TEST:]
    plain = float(fit(x, y).score(*test))
    commonest = float(max(np.mean(test[1]), 1 - np.mean(test[1])))
    rows, times = [], []
    for models in MODELS:
        start = time.process_time()
        ensemble = dp.learn.Ensemble.train(fit, (x, y), models=models)
        took = time.process_time() - start
        found = accuracies(ensemble, test)
        rows.append([f"{models} models", *(f"{share:.1%}" for share in found.values())])
        waits = [f"{latency(ensemble, test[0][:15], at_once=at_once):.1f}" for at_once in (False, True)]
        times.append([f"{models}", f"{took:.1f}", *waits])
        print(rows[-1], times[-1], flush=True)
    private = [f"{trained(x, y, epsilon, test):.1%}" for epsilon in EPSILONS]
    rows.append(["private training", *(share for share in private for _ in ANSWERS)])
    head = ["", *(f"ε = {epsilon:g}, {answers} answers" for epsilon in EPSILONS for answers in ANSWERS)]
    how = (
        f"δ = {DELTA:g}; accuracy of drawn answers about {QUESTIONS:,} people that were in no shard. "
        f"Without privacy {plain:.1%}; the commonest class {commonest:.1%}. "
        f"{measure.processor()}, one thread."
    )
    text = [
        "# Private prediction on Adult",
        how,
        measure.table(head, rows),
        "CPU milliseconds of an answer, on a ledger on disk; nearly all of it is the models'.",
        measure.table(["models", "training, CPU s", "charged one by one", "paid for at once"], times),
    ]
    asked.output.write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()
