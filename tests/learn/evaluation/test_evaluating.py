"""`evaluate` as a whole: metrics, charge, receipt, what is refused, and an attack on its claim."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import confusion_matrix, log_loss, recall_score, roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import dalenius as dp
from dalenius.errors import BudgetExceeded, InvalidArgument, NotSound
from dalenius.learn.evaluation import evaluating
from dalenius.losses.pure import Pure
from dalenius.release import Release

ALARM = 1e-7
EVERYTHING = ("accuracy", "recall", "confusion", "calibration", "ece", "auc", "loss")
bits = np.random.default_rng(3)
X = bits.normal(size=(1500, 4))
Y = (X[:, 0] + X[:, 1] / 2 + 0.7 * bits.normal(size=1500) > 0).astype(np.int64)
MODEL = LogisticRegression(C=30).fit(X[:400], Y[:400])
CHANCES, CHOSEN = MODEL.predict_proba(X), MODEL.predict(X)


def account(tmp_path: Path, relation: str = "add_remove", epsilon: float = 2, delta: float = 0) -> Any:
    unit = dp.Unit("person", relation=relation)  # type: ignore[arg-type]
    budget = dp.Budget(epsilon=epsilon, delta=delta)
    return dp.Ledger(tmp_path / "a.ledger").open("people", unit=unit, budget=budget)


def plain_ece(edges: np.ndarray) -> float:
    sure, right = CHANCES.max(axis=1), CHOSEN == Y
    place = np.minimum(np.searchsorted(edges, sure, side="right") - 1, len(edges) - 2)
    return float(sum(abs((right - sure)[place == b].sum()) for b in range(len(edges) - 1)) / len(Y))


def test_with_little_noise_the_metrics_are_the_usual_ones() -> None:
    found = dp.learn.evaluate(
        MODEL, (X, Y), classes=2, metrics=EVERYTHING, epsilon=4000, loss_bound=20, score_bins=1000
    )
    assert set(found) == set(EVERYTHING)
    assert found["accuracy"].value == pytest.approx((CHOSEN == Y).mean(), abs=1e-4)
    assert found["recall"].value == pytest.approx(recall_score(Y, CHOSEN, average=None), abs=1e-4)
    matrix = found["confusion"]["n"].reshape(2, 3)
    assert matrix[:, :2] == pytest.approx(confusion_matrix(Y, CHOSEN), abs=0.05)
    assert matrix[:, 2] == pytest.approx([0, 0], abs=0.05)
    assert found["auc"].value == pytest.approx(roc_auc_score(Y, CHANCES[:, 1]), abs=1e-3)
    assert found["loss"].value == pytest.approx(log_loss(Y, CHANCES), abs=1e-3)
    edges = np.linspace(0.5, 1, 11)
    assert found["ece"].value == pytest.approx(plain_ece(edges), abs=1e-3)
    table = found["calibration"]
    sure = CHANCES.max(axis=1)
    for low, high, n, mean, right in zip(
        *(table[name].tolist() for name in ("bin_from", "bin_to", "n", "confidence", "accuracy")), strict=True
    ):
        rows = (sure >= low) & (sure < high)
        assert n == pytest.approx(rows.sum(), abs=0.1)
        assert mean == pytest.approx(sure[rows].mean(), abs=1e-3)
        assert right == pytest.approx((CHOSEN == Y)[rows].mean(), abs=1e-2)


@pytest.mark.parametrize(("epsilon", "delta"), [(2, 0), (1, 0.1)])
def test_bars_hold_the_metrics_as_often_as_they_say(epsilon: float, delta: float) -> None:
    score = np.floor(np.clip(CHANCES[:, 1], 0, 1) * 8) / 8
    truth = {
        "accuracy": [(CHOSEN == Y).mean()],
        "recall": recall_score(Y, CHOSEN, average=None),
        "ece": [plain_ece(np.linspace(0.5, 1, 5))],
        "auc": [roc_auc_score(Y, score)],
        "loss": [log_loss(Y, CHANCES)],
    }
    times = 40
    missed = {metric: np.zeros(len(values)) for metric, values in truth.items()}
    for _ in range(times):
        found = dp.learn.evaluate(
            MODEL,
            (X, Y),
            classes=2,
            metrics=list(truth),
            epsilon=epsilon,
            delta=delta,
            loss_bound=20,
            bins=4,
            score_bins=8,
            confidence=0.7,
        )
        assert ("gaussian" in found.receipt.mechanism) == bool(delta)
        for metric, values in truth.items():
            low, high = (np.ravel(end) for end in (found[metric].low, found[metric].high))
            missed[metric] += ~((low - 2e-6 <= values) & (values <= high + 2e-6))
    for metric, counts in missed.items():
        assert all(binom.sf(count - 1, times, 0.3) > ALARM for count in counts.tolist()), metric


def test_any_model_on_any_rows() -> None:
    tree = DecisionTreeClassifier(max_depth=3).fit(X, np.where(Y, "yes", "no"))
    texts = np.where(Y, "yes", "no")
    truth = (tree.predict(X) == texts).mean()
    given = {"classes": ["yes", "no"], "epsilon": 1000}
    for model, rows in (
        (tree, (X, texts)),
        (tree.predict, (X, texts.tolist())),
        (lambda x: tree.predict(np.asarray(x)), (torch.as_tensor(X), list(texts))),
    ):
        assert dp.learn.evaluate(model, rows, **given)["accuracy"].value == pytest.approx(truth, abs=1e-3)
    # The columns of predict_proba are those of classes_, in another order than asked for here.
    assert dp.learn.evaluate(tree, (X, texts), metrics="auc", **given)["auc"].value > 0.7


def test_torch_modules_dictionaries_and_data_sets() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 2, dtype=torch.float64)

        def forward(self, first: Any, second: Any) -> Any:
            return SimpleNamespace(logits=self.head(torch.cat([first, second], dim=1)))

    model = Named()
    with torch.no_grad():
        model.head.weight[:] = torch.tensor([[0.0] * 4, [1, 0.5, 0, 0]])
        model.head.bias.zero_()
    truth = (((X[:, 0] + X[:, 1] / 2) > 0) == Y).mean()
    x = torch.as_tensor(X)
    by_name = ({"first": x[:, :1], "second": x[:, 1:]}, torch.as_tensor(Y))
    by_row = [
        ({"first": row[:1], "second": row[1:]}, label) for row, label in zip(x, Y.tolist(), strict=True)
    ]
    for rows in (by_name, by_row):
        found = dp.learn.evaluate(model, rows, classes=2, epsilon=1000)
        assert found["accuracy"].value == pytest.approx(truth, abs=1e-3)
    assert model.training


def test_the_model_of_a_private_run_is_judged_as_it_is() -> None:
    x, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(Y)
    model = nn.Linear(4, 2)
    run = dp.learn.Private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        (x, y),
        batch_size=100,
        steps=3,
        clip=1,
        noise_multiplier=1,
        public_size=1500,
    )
    found = [
        dp.learn.evaluate(one, (x, y), classes=2, epsilon=1000)["accuracy"] for one in (run.model, model)
    ]
    assert found[0].value == pytest.approx(found[1].value, abs=1e-3)


def test_frames_go_row_by_row_or_with_made_up_rows() -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": X[:60, 0], "b": ["x", "y"] * 30})
    calls = []

    def model(rows: Any) -> Any:
        calls.append(len(rows))
        return (rows["a"] > 0).astype(int).to_numpy()

    truth = ((X[:60, 0] > 0) == Y[:60]).mean()
    assert dp.learn.evaluate(model, (frame, Y[:60]), classes=2, epsilon=1000)["accuracy"].value == (
        pytest.approx(truth, abs=1e-2)
    )
    assert set(calls) == {1}
    calls.clear()
    made = pd.DataFrame({"a": [-1.0, 1.0], "b": ["x", "y"]})
    dp.learn.evaluate(model, (frame, Y[:60]), classes=2, epsilon=1, synthetic=made, batch_size=16)
    assert set(calls) == {16}
    with pytest.raises(InvalidArgument, match="cannot be made up"):
        dp.learn.evaluate(model, (frame, Y[:60]), classes=2, epsilon=1, batch_size=16)


def test_regression() -> None:
    model = LinearRegression().fit(X, X @ [1, 2, 3, 4])
    rows = (X, X @ [1, 2, 3, 4] + 0.5)
    for loss, truth in (("squared", 0.25), ("absolute", 0.5)):
        found = dp.learn.evaluate(model, rows, metrics="loss", loss=loss, loss_bound=2, epsilon=1000)
        assert found["loss"].value == pytest.approx(truth, abs=1e-3)
        assert "losses clipped to [0, 2]" in found.receipt.bounds


# People.


STEP = 2.0**-20
MANY = 200_000


def test_bars_hold_what_rounding_took_from_a_mean_loss() -> None:
    """Losses just below a step lose nearly all of it; noise reaches a tenth of a step one time in 1e8."""
    losses = (np.arange(MANY) % 1000 + 0.9) * STEP
    found = dp.learn.evaluate(
        lambda rows: rows,
        (losses, np.zeros(MANY)),
        metrics="loss",
        loss="absolute",
        loss_bound=1,
        epsilon=1000,
    )["loss"]
    truth = math.fsum(losses) / MANY
    assert found.high - found.low < 2 * STEP
    assert found.low <= truth - 0.8 * STEP and truth <= found.high


def test_bars_hold_what_rounding_took_from_confidences() -> None:
    """The same of the mean confidence of a bin, and of the calibration error."""
    bins = 2
    step = STEP / (2 * bins)
    sure = 0.5 + (np.arange(MANY) % 1000 + 0.9) * step + 0.25 * (np.arange(MANY) % 2)
    right = np.arange(MANY) % 4 < 2
    found = dp.learn.evaluate(
        lambda rows: np.column_stack([1 - rows, rows]),
        (sure, right.astype(int)),
        classes=2,
        outputs="probabilities",
        metrics=("calibration", "ece"),
        bins=bins,
        epsilon=2000,
    )
    table = found["calibration"]
    for place in range(bins):
        mine = np.arange(MANY) % 2 == place
        truth = math.fsum(sure[mine]) / mine.sum()
        low, high = (float(table[f"confidence_{end}"][place]) for end in ("low", "high"))
        assert high - low < 4 * step
        assert low <= truth <= high
        assert truth - 0.8 * step > low, "what was counted is 0.9 of a step below"
    off = sum(abs(math.fsum((right - sure)[np.arange(MANY) % 2 == place])) for place in range(bins)) / MANY
    assert found["ece"].low <= off <= found["ece"].high


def test_a_person_counts_no_more_often_than_stated() -> None:
    x, y = np.zeros((300, 1)), [0] * 300
    given: dict[str, Any] = {"classes": 2, "metrics": "confusion", "epsilon": 1000, "rows_per_unit": 3}
    found = dp.learn.evaluate(lambda x: [0] * len(x), (x, y), units=["ann"] * 299 + ["bob"], **given)
    assert found["confusion"]["n"][0] == pytest.approx(4, abs=0.1)
    assert any("at most 3 rows per unit" in bound for bound in found.receipt.bounds)
    wide = dp.learn.evaluate(lambda x: [0] * len(x), (x, y), classes=2, epsilon=1).receipt.mechanism
    assert '"scale":"1"' in wide
    given["epsilon"] = 1
    assert (
        '"scale":"3"'
        in dp.learn.evaluate(lambda x: [0] * 300, (x, y), units=y, batch_size=300, **given)[
            "confusion"
        ].receipt.mechanism
    )


def test_under_replace_a_row_counts_twice(tmp_path: Path) -> None:
    people = account(tmp_path, "replace")
    found = dp.learn.evaluate(lambda x: [0] * len(x), (X, Y), classes=2, epsilon=1, account=people)
    assert found.loss.relation == "replace"
    assert found.loss.epsilon(0).upper == pytest.approx(1)
    assert found.receipt.unit == dp.Unit("person", relation="replace")
    assert '"scale":"2"' in found.receipt.mechanism


# The charge.


def test_all_metrics_are_one_charge(tmp_path: Path) -> None:
    people = account(tmp_path)
    found = dp.learn.evaluate(
        MODEL, (X, Y), classes=2, metrics=EVERYTHING, loss_bound=9, epsilon=1, account=people, by="ana"
    )
    assert float(people.spent) == pytest.approx(1)
    assert {release.receipt.charged for release in found.values()} == {"people, entry 2"}
    assert [entry.event for entry in people.entries()] == ["open", "reserve", "commit"]
    for release in found.values():
        assert Release.from_json(release.to_json()).to_json() == release.to_json()
        assert "one charge for accuracy, recall" in release.receipt.bounds[0]
    assert found.loss.epsilon(0).upper == 1
    assert "auc" in str(found["auc"].receipt)


def test_without_budget_no_row_is_read(tmp_path: Path) -> None:
    people, seen = account(tmp_path, epsilon=0.5), []

    def model(rows: Any) -> Any:
        seen.append(np.abs(rows).max())
        return [0] * len(rows)

    with pytest.raises(BudgetExceeded):
        dp.learn.evaluate(model, (X + 1000, Y), classes=2, epsilon=1, account=people)
    # Only made-up rows, which are between −1 and 1.
    assert max(seen) <= 1
    assert float(people.spent) == 0


def test_what_is_broken_off_stays_charged(tmp_path: Path) -> None:
    people = account(tmp_path)

    def model(rows: Any) -> Any:
        if np.abs(rows).max() > 100:
            raise KeyboardInterrupt
        return [0] * len(rows)

    with pytest.raises(KeyboardInterrupt):
        dp.learn.evaluate(model, (X + 1000, Y), classes=2, epsilon=1, account=people)
    assert [entry.event for entry in people.entries()] == ["open", "reserve", "forfeit"]
    assert float(people.spent) == pytest.approx(1)


def test_a_model_that_mixes_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    people = account(tmp_path)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 2))
    with pytest.raises(NotSound):
        dp.learn.evaluate(model, (torch.as_tensor(X).float(), Y), classes=2, epsilon=1, account=people)
    assert float(people.spent) == 0
    alone = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).train()
    dp.learn.evaluate(alone, (torch.as_tensor(X).float(), Y), classes=2, epsilon=1, account=people)
    assert alone[1].num_batches_tracked == 0


def test_no_value_of_a_row_makes_an_error_or_a_warning() -> None:
    x = np.array([[math.nan] * 4, [math.inf] * 4, [1e308] * 4, [0.0] * 4])
    for y in ([None, "x", 7, 1], [math.nan, [1], 10**400, -1], [1, 1, 1, 1]):
        for model in (MODEL, lambda rows: rows[:, 0] / 0, lambda rows: [{}] * len(rows)):
            metrics = EVERYTHING if model is MODEL else "accuracy"
            found = dp.learn.evaluate(
                model, (x, y), classes=2, metrics=metrics, epsilon=1, loss_bound=9, batch_size=1
            )
            assert found["accuracy"].value == found["accuracy"].value
    empty = dp.learn.evaluate(MODEL, (X[:0], Y[:0]), classes=2, metrics=EVERYTHING, epsilon=1, loss_bound=9)
    assert set(empty) == set(EVERYTHING)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metrics": "f1"}, "metrics are some of"),
        ({"metrics": []}, "metrics are some of"),
        ({"classes": None}, "need classes"),
        ({"classes": 1}, "classes"),
        ({"classes": ["a", "a"]}, "classes"),
        ({"classes": 3, "metrics": "auc"}, "two classes"),
        ({"metrics": "loss"}, "needs a bound"),
        ({"metrics": "loss", "loss_bound": 0}, "loss_bound"),
        ({"metrics": "loss", "loss_bound": 1, "loss": "squared"}, "is log"),
        ({"outputs": "scores"}, "outputs must be"),
        ({"outputs": "labels", "metrics": "auc"}, "no chances"),
        ({"outputs": "numbers"}, "regression"),
        ({"units": Y}, "go together"),
        ({"rows_per_unit": 2}, "go together"),
        ({"units": Y[:3], "rows_per_unit": 2}, "differ in length"),
        ({"bins": 0, "metrics": "ece"}, "bins"),
        ({"epsilon": 0}, "epsilon"),
        ({"confidence": 95}, "confidence"),
        ({"batch_size": 0}, "batch_size"),
        ({"model": "a model"}, "no model"),
        ({"dataset": X}, "by number"),
        ({"dataset": (X, Y[:4])}, "differ in length"),
        ({"dataset": (3, Y)}, "Rows must be in"),
        ({"dataset": (X, np.stack([Y, Y], axis=1))}, "one column"),
        ({"classes": ["no", "yes"]}, "numbers and classes are texts"),
        ({"dataset": (X, Y.astype(str))}, "or the other way round"),
    ],
)
def test_wrong_input_says_what_to_do(change: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"model": MODEL, "dataset": (X, Y), "classes": 2, "epsilon": 1} | change
    with pytest.raises(InvalidArgument, match=said) as refused:
        dp.learn.evaluate(given.pop("model"), given.pop("dataset"), **given)
    assert refused.value.remedy


def test_a_metric_that_was_not_measured_is_named() -> None:
    found = dp.learn.evaluate(MODEL, (X, Y), classes=2, epsilon=1)
    with pytest.raises(InvalidArgument, match="was not measured"):
        found["auc"]


# The attack.


def _judged(rows: list[int]) -> float:
    """The noisy number of right answers about rows of which 1 is right, from the release as it is."""
    x, y = np.zeros((len(rows), 1)), [1 - row for row in rows]
    found = dp.learn.evaluate(
        lambda x: [0] * len(x), (x, y), classes=2, metrics="confusion", epsilon=4, batch_size=1
    )
    return float(found["confusion"]["n"][0])


def test_an_attack_through_the_whole_of_it_finds_no_more_than_was_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The same law each time: calibration is not what is attacked.
    monkeypatch.setattr(evaluating, "_noise", functools.lru_cache(evaluating._noise))
    pairs = {"inputs": [[1, 1]], "neighbors": lambda rows: [rows[1:]], "trials": 600}
    assert not dp.audit(_judged, claim=Pure(4), **pairs).violated
    # More than a quarter of it is found out: the attack could have found more than all of it.
    assert dp.audit(_judged, claim=Pure(1), **pairs).violated
