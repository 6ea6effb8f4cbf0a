"""A session: what is charged when, what is refused, what a crash costs, and an attack through all of it."""

from __future__ import annotations

import copy
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dalenius as dp
from dalenius import noise
from dalenius.errors import BudgetExceeded, InvalidArgument, NotSound, RelationMismatch
from dalenius.learn.serving.ensemble import Ensemble
from dalenius.learn.serving.service import Service
from dalenius.losses.pure import Pure

X = np.arange(400.0).reshape(200, 2)
Y = (np.arange(200) % 3 == 0).astype(int)


class Constant:
    """The commonest label of its shard, and how often it was asked."""

    asked = 0

    def __init__(self, x: Any, y: Any) -> None:
        self.label = int(np.mean(y) > 0.5)

    def predict(self, rows: Any) -> Any:
        Constant.asked += 1
        return [self.label] * len(rows)


def opened(tmp_path: Path, epsilon: float = 1, delta: float = 0, relation: str = "add_remove") -> Any:
    unit = dp.Unit("person", relation=relation)  # type: ignore[arg-type]
    budget = dp.Budget(epsilon=epsilon, delta=delta)
    return dp.Ledger(tmp_path / "a.ledger").open("people", unit=unit, budget=budget)


def service(models: int = 20, **given: Any) -> Any:
    ensemble = Ensemble.train(Constant, (X, Y), models=models)
    return dp.learn.serve(ensemble, **({"classes": 2, "epsilon": 0.25} | given))


def test_answers_are_charged_one_by_one_until_nothing_is_left(tmp_path: Path) -> None:
    people = opened(tmp_path)
    session = service().start(people, by="ana")
    for i in range(4):
        found = session.ask(X[i])
        assert found.value in (0, 1)
        assert found.receipt.charged == f"people, entry {2 + 2 * i}"
        assert found.receipt.unit == dp.Unit("person")
        assert float(people.spent) == pytest.approx(0.25 * (i + 1))
    asked = Constant.asked
    with pytest.raises(BudgetExceeded):
        session.ask(X[4])
    # Refused before a model was asked; what was answered can be had again.
    assert Constant.asked == asked
    again = session.ask(X[2])
    assert Constant.asked == asked
    assert "given again, free: the question was answered before" in again.receipt.postprocessing
    assert float(people.spent) == pytest.approx(1)


def test_the_same_question_has_one_answer_or_is_charged_twice(tmp_path: Path) -> None:
    people = opened(tmp_path)
    remembering = service(epsilon=0.1).start(people)
    assert len({remembering.ask(X[0]).value for _ in range(30)}) == 1
    assert float(people.spent) == pytest.approx(0.1)
    forgetful = service(epsilon=0.1).start(people, remember=False)
    for _ in range(3):
        forgetful.ask(X[0])
    assert float(people.spent) == pytest.approx(0.4)
    # Another session remembers nothing.
    service(epsilon=0.1).start(people).ask(X[0])
    assert float(people.spent) == pytest.approx(0.5)


def test_a_batch_is_charged_for_each_question(tmp_path: Path) -> None:
    people = opened(tmp_path)
    found = service(epsilon=0.1).start(people).ask_all(X[:5])
    assert len(found) == 5
    assert float(people.spent) == pytest.approx(0.5)
    assert found.loss.epsilon(0).upper == pytest.approx(0.5)
    with pytest.raises(BudgetExceeded):
        service(epsilon=0.1).start(people).ask_all(X[:6])


def test_answers_paid_for_at_once(tmp_path: Path) -> None:
    people = opened(tmp_path)
    session = service(epsilon=0.1).start(people, answers=3)
    assert float(people.spent) == pytest.approx(0.3)
    found = session.ask(X[0])
    assert found.receipt.charged == "people, entry 2"
    assert found.loss.epsilon(0).upper == pytest.approx(0.3)
    assert "one charge for a session of up to 3 answers" in found.receipt.bounds
    session.ask_all(X[:2])
    assert session.left == 0
    with pytest.raises(NotSound, match="0 answers are left of 3"):
        session.ask(X[5])
    assert session.ask(X[0]).value == found.value
    assert float(people.spent) == pytest.approx(0.3)


def test_a_session_cannot_be_copied_nor_go_on_after_a_fork() -> None:
    session = service().start(answers=5)
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotSound, match="copied"):
            copying(session)
    session._process = os.getpid() + 1
    with pytest.raises(NotSound, match="forked"):
        session.ask(X[0])


def test_what_is_broken_off_stays_charged(tmp_path: Path) -> None:
    class Stopped(Constant):
        def predict(self, rows: Any) -> Any:
            raise KeyboardInterrupt

    people = opened(tmp_path)
    ensemble = Ensemble.train(Stopped, (X, Y), models=3)
    session = dp.learn.serve(ensemble, classes=2, epsilon=0.25).start(people)
    with pytest.raises(KeyboardInterrupt):
        session.ask(X[0])
    assert [entry.event for entry in people.entries()] == ["open", "reserve", "forfeit"]
    # Asked again it is charged again, as nothing was remembered.
    with pytest.raises(KeyboardInterrupt):
        session.ask(X[0])
    assert float(people.spent) == pytest.approx(0.5)
    paid = dp.learn.serve(ensemble, classes=2, epsilon=0.25).start(answers=2)
    with pytest.raises(KeyboardInterrupt):
        paid.ask(X[0])
    assert paid.left == 1


def test_without_an_account_answers_are_uncharged() -> None:
    found = service().start().ask(X[0])
    assert found.receipt.charged == "uncharged"
    assert found.loss.epsilon(0).upper == pytest.approx(0.25)
    assert any("20 models, each row in one of them" in bound for bound in found.receipt.bounds)


def test_who_asks_has_an_allowance(tmp_path: Path) -> None:
    people = opened(tmp_path)
    people.allow(dp.Budget(epsilon=0.25), by="bob")
    bob, ana = (service().start(people, by=name) for name in ("bob", "ana"))
    bob.ask(X[0])
    with pytest.raises(BudgetExceeded):
        bob.ask(X[1])
    ana.ask(X[1])


def test_relations(tmp_path: Path) -> None:
    people = opened(tmp_path, relation="replace")
    service().start(people).ask(X[0])
    assert float(people.spent) == pytest.approx(0.5)
    (tmp_path / "z").mkdir()
    blank = opened(tmp_path / "z", relation="zero_out")
    with pytest.raises(RelationMismatch):
        service().start(blank).ask(X[0])
    service(relation="zero_out").start(blank).ask(X[0])
    with pytest.raises(NotSound, match="two models may differ"):
        service(relation="replace")


def test_how_many_answers_a_promise_has() -> None:
    made = service(epsilon=2, delta=1e-6, answers=50)
    assert made.affords(epsilon=2, delta=1e-6) == 50
    assert service(epsilon=1, answers=4).affords(epsilon=3) == 12
    assert service(epsilon=1).affords(epsilon=0.5) == 0


def test_a_question_of_another_form_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    people = opened(tmp_path)
    session = service().start(people)
    for question in (X[0, :1], 3.0, X[:2], torch.zeros(2), {"a": X[0]}):
        with pytest.raises(InvalidArgument, match="form of a row"):
            session.ask(question)
    for questions in (X[0], X[:0], 5):
        with pytest.raises(InvalidArgument):
            session.ask_all(questions)
    assert float(people.spent) == 0


def test_torch_models_vote_by_their_logits_and_rest(tmp_path: Path) -> None:
    def fit(x: torch.Tensor, y: torch.Tensor) -> torch.nn.Module:
        model = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 2)).train()
        with torch.no_grad():
            model[1].weight.zero_()
            model[1].bias[:] = torch.tensor([0.0, 1.0])
        return model

    ensemble = Ensemble.train(fit, (torch.as_tensor(X).float(), torch.as_tensor(Y)), models=30)
    session = dp.learn.serve(ensemble, classes=["no", "yes"], epsilon=20).start()
    assert session.ask(torch.zeros(2)).value == "yes"


def test_numbers_are_averaged() -> None:
    class Mean:
        def __init__(self, rows: list[Any]) -> None:
            self.mean = float(np.mean([target for _, target in rows]))

        def predict(self, rows: Any) -> Any:
            return np.full(len(rows), self.mean)

    rows = [(torch.zeros(2), 4.0)] * 500
    made = dp.learn.serve(Ensemble.train(Mean, rows, models=50), lower=0, upper=10, epsilon=50)
    found = made.start().ask(torch.zeros(2))
    # About ten times as wide as the bars, which hold 19 times in 20.
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(4, abs=0.1)
    assert "each model's number clipped to [0, 10]" in found.receipt.bounds


@pytest.mark.parametrize(
    "change",
    [
        {"classes": None},
        {"classes": 2, "lower": 0, "upper": 1},
        {"classes": None, "lower": 0},
        {"epsilon": 0},
        {"answers": 0},
        {"ensemble": Constant(X, Y)},
    ],
)
def test_wrong_input_says_what_to_do(change: dict[str, Any]) -> None:
    ensemble = Ensemble([Constant(X, Y) for _ in range(3)])
    given: dict[str, Any] = {"ensemble": ensemble, "classes": 2, "epsilon": 1} | change
    with pytest.raises(InvalidArgument) as refused:
        dp.learn.serve(given.pop("ensemble"), **given)
    assert refused.value.remedy
    with pytest.raises(InvalidArgument):
        Ensemble.train("fit", (X, Y), models=3)
    with pytest.raises(InvalidArgument):
        Ensemble.train(Constant, (X, Y), models=0)


# The ensemble.


def test_a_unit_has_a_say_in_one_model_only() -> None:
    units, key = np.arange(200) // 4, b"k" * 32
    seen = []
    for rows in (np.arange(200), np.flatnonzero(units != 7)):
        made = Ensemble.train(
            lambda x, y: sorted(map(tuple, x.tolist())),
            (X[rows], Y[rows]),
            models=9,
            units=units[rows],
            key=key,
        )
        seen.append(made._models)
    differ = [one != two for one, two in zip(*seen, strict=True)]
    assert sum(differ) == 1
    assert sum(map(len, seen[0])) - sum(map(len, seen[1])) == 4


def test_a_model_that_fails_is_silent_and_nothing_else() -> None:
    def fit(x: Any, y: Any) -> Any:
        if 0.0 in x:
            raise ValueError("a secret")
        return Constant(x, [1])

    ensemble = Ensemble.train(fit, (X, Y), models=10)
    assert sum(model is None for model in ensemble._models) == 1
    found = ensemble.answers(X[:1], 1, None, [0, 1])
    assert sorted(int(one.chosen[0]) for one in found) == [-1, *[1] * 9]
    assert dp.learn.serve(ensemble, classes=2, epsilon=20).start().ask(X[0]).value == 1


def test_what_one_model_draws_is_nothing_to_the_others() -> None:
    """Generators that models share would carry the size of one shard into the next model."""

    def fit(x: Any, y: Any) -> Any:
        return [np.random.rand(len(x) + 1)[-1], random.random(), float(torch.rand(1))]  # noqa: NPY002

    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    torch.manual_seed(0)
    states = random.getstate(), torch.random.get_rng_state()
    drawn = [Ensemble.train(fit, (X, Y), models=4)._models for _ in range(2)]
    assert random.getstate() == states[0]
    assert torch.equal(torch.random.get_rng_state(), states[1])
    np.random.seed(0)  # noqa: NPY002
    # Nothing follows from the seed outside, and no two models draw the same.
    everything = [number for models in drawn for model in models for number in model]
    assert len(set(everything)) == len(everything) == 24


def test_nothing_of_a_model_is_shown() -> None:
    assert repr(Ensemble([Constant(X, Y) for _ in range(3)])) == (
        "<Ensemble of 3 models, each unit in one of them by the caller's promise>"
    )
    assert "Constant" not in repr(service())


# The attack.


def test_an_attack_through_training_and_asking_finds_no_more_than_was_charged() -> None:
    """One of five people decides the vote of the only model."""
    price = dp.learn.serve(Ensemble([None]), classes=2, epsilon=4).aggregate

    def answer(people: list[int]) -> int:
        rows = np.zeros((len(people), 1)), np.array(people, dtype=int)
        return int(Service(Ensemble.train(Constant, rows, models=1), price).start().ask(np.zeros(1)).value)

    # Three ones and two zeros, or one fewer of these: the commonest label is the other one.
    pairs = {"inputs": [[0, 0, 1, 1, 1]], "neighbors": lambda rows: [rows[:-1]], "trials": 600}
    assert not dp.audit(answer, claim=price.loss, **pairs).violated
    # One vote of one moves the odds by e⁴, half of that for either answer: more than 1 is found.
    assert dp.audit(answer, claim=Pure(1), **pairs).violated


def test_one_model_is_not_many() -> None:
    """What a method of one object gives back is that object, trained on the last shard."""
    with pytest.raises(NotSound, match="method of one object"):
        Ensemble.train(Constant(X, Y).predict, (X, Y), models=5)
    one = Constant(X, Y)
    with pytest.raises(NotSound, match="are one object"):
        Ensemble([one, one])


def test_a_fallback_that_several_shards_share_is_no_error() -> None:
    """On how many shards `fit` falls back may depend on one row."""
    fallback = Constant(X, Y)
    ensemble = Ensemble.train(lambda x, y: fallback, (X, Y), models=5)
    assert len(ensemble) == 5
    assert (
        dp.learn.serve(ensemble, classes=2, epsilon=40).start().ask(X[0]).value == fallback.predict(X[:1])[0]
    )


def test_a_model_that_is_fitted_anew_for_each_shard_votes_by_its_own() -> None:
    class Last:
        def fit(self, x: Any, y: Any) -> Any:
            self.seen = np.sort(np.ravel(x)).tolist()
            return self

    model, rows = Last(), np.arange(60.0).reshape(-1, 1)
    ensemble = Ensemble.train(lambda x, y: model.fit(x, y), (rows, np.zeros(60, int)), models=4)
    assert sorted(one for made in ensemble._models for one in made.seen) == list(range(60))


def test_models_of_a_seed_taint_their_answers() -> None:
    with noise.seeded(b"known"):
        ensemble = Ensemble.train(Constant, (X, Y), models=5)
    answer = dp.learn.serve(ensemble, classes=2, epsilon=4).start().ask(X[0])
    assert answer.receipt.tainted


def test_columns_side_by_side_are_no_rows() -> None:
    from torch.utils.data import TensorDataset

    x, y = torch.zeros(500, 2), torch.zeros(500)
    sizes: list[int] = []
    Ensemble.train(lambda rows: sizes.append(len(rows)), TensorDataset(x, x, y), models=4)
    assert sum(sizes) == 500
    with pytest.raises(InvalidArgument, match="list of columns"):
        Ensemble.train(lambda rows: None, [x, y], models=4)


def test_rows_are_not_people() -> None:
    service = dp.learn.serve(Ensemble.train(Constant, (X, Y), models=5), classes=2, epsilon=1)
    with pytest.raises(InvalidArgument, match="may be in many rows"):
        service.start(unit=dp.Unit("user", column="user"))
