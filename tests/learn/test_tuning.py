"""The best of a secret number of runs: drawn by its law, charged once and first, nothing else is shown."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch
from contract import chi_square

import dalenius as dp
from dalenius import noise
from dalenius.errors import BudgetExceeded, InvalidArgument, LedgerError, NotSound, QueryFailed
from dalenius.learn import tune, tuning_loss
from dalenius.learn.tuning import read_runs
from dalenius.losses import Gaussian, Pure
from dalenius.losses.selection import selected
from dalenius.mechanisms import Laplace, PrivateSelection
from dalenius.privacy import Grid

SCORE = Laplace(scale=2, sensitivity=1, grid=Grid(0), exact=True)
COUNTS = {"small": 3, "large": 5}


@pytest.fixture
def people():
    return dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=6, delta=1e-5))


def scored(name):
    return SCORE.sample(COUNTS[name], 1)[0], name.upper()


@pytest.mark.parametrize(
    ("law", "same"),
    [
        ({"distribution": "geometric"}, {"stop": Fraction(1, 3)}),
        ({"distribution": "poisson"}, {"mean": 3}),
        ({"distribution": "logarithmic"}, None),
    ],
)
def test_what_is_kept_has_the_law_of_the_best_run(law, same):
    drawn = [tune(scored, [*COUNTS], loss=SCORE.loss, runs=3, **law) for _ in range(500)]
    found = [(-1.0, 0.0) if t.score is None else ([*COUNTS].index(t.candidate), t.score) for t in drawn]
    assert all(t.model == (None if t.score is None else t.candidate.upper()) for t in drawn)
    if same is None:
        stop = read_runs(3, "logarithmic").stop
        assert (1 - stop) / (stop * -math.log(stop)) == pytest.approx(3, rel=1e-6)
        same = {"stop": stop, "shape": 0}
    expected = PrivateSelection(base=SCORE, **same).probabilities([*COUNTS.values()])
    # Equal scores go to the first run here and to the later candidate there: only scores are compared.
    scores = Counter()
    for (_, score), mass in zip(expected.outcomes, expected.masses.tolist(), strict=True):
        scores[score] += mass
    whole = type(expected)(tuple(scores), np.array([*scores.values()]), expected.rest)
    assert chi_square(np.array([score for _, score in found]), whole) > 1e-7


@pytest.mark.parametrize("distribution", ["geometric", "logarithmic", "poisson"])
def test_the_charge_is_that_of_a_selection(people, distribution):
    law = read_runs(4, distribution)
    same = {"mean": 4} if distribution == "poisson" else {"stop": law.stop, "shape": law.shape}
    tuned = tune(
        scored,
        [*COUNTS],
        loss=Pure(0.5),
        runs=4,
        distribution=distribution,
        account=people,
        by="ana",
        delta=1e-6,
    )
    assert tuned.receipt.loss == tuning_loss(Pure(0.5), runs=4, distribution=distribution)
    assert tuned.receipt.loss == selected(Pure(0.5), **same)
    assert tuned.receipt.charged == "people, entry 2" and tuned.receipt.unit == dp.Unit("person")
    assert [entry.event for entry in people.entries()] == ["open", "reserve", "commit"]
    assert law.mean == pytest.approx(4, rel=1e-6)


def test_it_costs_two_or_three_runs_and_not_as_many_as_were_made():
    # Liu and Talwar 2019: 3ε for a geometric number; Papernot and Steinke 2022: 2ε for a logarithmic one.
    for runs in (10, 1000):
        assert tuning_loss(Pure(0.1), runs=runs).epsilon(0).upper <= 0.3
        assert tuning_loss(Pure(0.1), runs=runs, distribution="logarithmic").epsilon(0).upper <= 0.2


def test_the_charge_is_on_disk_before_the_first_run_and_stays(people):
    spent = []

    def broken(candidate):
        spent.append(float(people.spent))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(broken, [1, 2], loss=Pure(0.5), account=people, by="ana")
    assert spent[0] > 0 and float(people.spent) == spent[0]
    assert [entry.event for entry in people.entries()] == ["open", "reserve", "forfeit"]
    with pytest.raises(BudgetExceeded):
        tune(broken, [1, 2], loss=Pure(5), account=people, by="ana")
    assert len(spent) == 1


def test_runs_charge_nothing_of_their_own(people):
    def charging(candidate):
        people.record(Pure(0.1))
        return 1, candidate

    with pytest.raises(QueryFailed, match="None of the runs") as refused:
        tune(charging, [1], loss=Pure(0.5), account=people, by="ana")
    assert "charges an account" in refused.value.remedy
    assert [entry.event for entry in people.entries()] == ["open", "reserve", "forfeit"]
    people.record(Pure(0.1))
    assert len(people.entries()) == 4
    assert not isinstance(refused.value, LedgerError)


def test_a_run_that_fails_is_the_least_of_all():
    def some(candidate):
        if candidate == "bad":
            raise ValueError("row 7 is of ann")
        return {"odd": math.nan, "none": None, "low": -5.0}[candidate], candidate

    candidates = ["bad", "odd", "none", "low"]
    found = {_found(some, candidates) for _ in range(40)}
    assert found == {"low", "nothing"}


def _found(train, candidates):
    try:
        return tune(train, candidates, loss=Pure(0.5), runs=4).candidate
    except QueryFailed as failed:
        assert "ann" not in str(failed) and failed.__cause__ is None and failed.__context__ is None
        return "nothing"


def test_runs_are_not_heard(capsys, recwarn):
    def loud(candidate):
        print("a run", candidate)
        warnings.warn("a run", stacklevel=1)
        torch.rand(3)
        return 1, candidate

    torch.manual_seed(3)
    state = torch.get_rng_state()
    tuned = tune(loud, [1, 2], loss=Pure(0.5))
    assert capsys.readouterr() == ("", "") and not recwarn.list
    assert (torch.get_rng_state() == state).all()
    assert "loud" not in repr(tuned) and tuned.receipt.entry is None


def test_a_poisson_number_may_be_none_and_then_nothing_is_shown():
    found = [tune(scored, [*COUNTS], loss=SCORE.loss, runs=2, distribution="poisson") for _ in range(200)]
    # e⁻² of 200: none at all has a probability below 1e-12.
    empty = [tuned for tuned in found if tuned.candidate is None]
    assert empty and all((t.score, t.model) == (None, None) for t in empty)


def test_seeded_runs_are_tainted():
    with noise.seeded(b"for a test"):
        assert tune(scored, [*COUNTS], loss=SCORE.loss).receipt.tainted


PLAIN = Laplace(scale=1, sensitivity=1, grid=Grid(0), exact=True)


def naive(count):
    """The best of twenty runs at the price of one."""
    return PLAIN.sample(count, 20).max()


def charged(count):
    """The same by `tune`, about twenty runs."""
    return tune(lambda _: (PLAIN.sample(count, 1)[0], None), [0], loss=PLAIN.loss, runs=20).score


def test_the_naive_claim_is_refuted_and_what_tune_charges_is_not():
    given = {"inputs": [10], "neighbors": lambda count: [count + 1]}
    leaking = dp.audit(naive, claim=PLAIN.loss, trials=10_000, **given)
    assert leaking.violated and leaking.epsilon_any > 0, str(leaking)
    # By accounting: twenty runs that are all looked at cost as many, of which the greatest can tell most.
    assert (PLAIN.loss * 20).epsilon(0).upper == pytest.approx(20 * PLAIN.loss.epsilon(0).upper)
    price = tuning_loss(PLAIN.loss, runs=20)
    assert 2.5 * PLAIN.loss.epsilon(0).upper < price.epsilon(0).upper < 3 * PLAIN.loss.epsilon(0).upper
    assert not dp.audit(charged, claim=price, trials=500, **given).violated


def test_private_training_is_tuned():
    x, x_public = torch.randn(200, 2), torch.randn(50, 2)
    y, y_public = ((rows[:, 0] > 0).long() for rows in (x, x_public))

    def fitted(lr):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        given = {"epsilon": 1, "delta": 1e-6, "public_size": 200, "batch_size": 40, "epochs": 1}
        return model, dp.learn.fit(model, (x, y), optimizer=optimizer, **given)

    def train(lr):
        model, _ = fitted(lr)
        return (model(x_public).argmax(1) == y_public).float().mean(), model.state_dict()

    one = fitted(0.1)[1].cost
    tuned = tune(train, [0.1, 1.0], loss=one, runs=2, delta=1e-6)
    assert tuned.candidate in (0.1, 1.0) and 0 <= tuned.score <= 1 and set(tuned.model) == {"weight", "bias"}
    assert tuned.receipt.loss == tuning_loss(one, runs=2)


def test_what_does_not_fit_is_refused():
    for given in ({"runs": 1}, {"runs": 10**6}, {"distribution": "uniform"}, {"loss": 3}):
        with pytest.raises(InvalidArgument):
            tune(scored, ["small"], **{"loss": Pure(1)} | given)
    for train, candidates in ((None, [1]), (scored, []), (scored, "small")):
        with pytest.raises(InvalidArgument, match="candidate"):
            tune(train, candidates, loss=Pure(1))
    with pytest.raises(NotSound):
        tuning_loss(dp.losses.DiscretePair([1, 0], [0, 1]))
    assert tuning_loss(Gaussian(4)).relation == "add_remove"


def test_what_a_run_does_to_its_candidate_is_not_seen():
    candidates = [{"rate": 1}, {"rate": 2}]

    def train(candidate):
        candidate["seen"] = True
        return candidate.pop("rate"), None

    tune(train, candidates, loss=dp.losses.Pure(0.1), runs=20)
    assert candidates == [{"rate": 1}, {"rate": 2}]


@pytest.mark.parametrize("candidates", [{"rate": 1}, "ab", [], 3])
def test_candidates_are_a_list(candidates):
    with pytest.raises(InvalidArgument, match="candidates"):
        tune(lambda candidate: (1, None), candidates, loss=Pure(0.1))
