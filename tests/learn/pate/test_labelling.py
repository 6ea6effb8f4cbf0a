"""Sessions: charged once and first, asked until used up, their own figure only with noise and a charge."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import dalenius as dp
from dalenius import noise
from dalenius.errors import BudgetExceeded, InvalidArgument, NotSound, RelationMismatch
from dalenius.learn.pate import ConfidentGNMax, GNMax, Sanitizer, Student, Teachers

X = np.random.default_rng(0).normal(size=(400, 2))
Y = (X[:, 0] > 0).astype(int)
QUERIES = np.random.default_rng(1).normal(size=(30, 2)) * 3
ONE = GNMax(scale=1, queries=1)
BY = Sanitizer(order=3, scale=4, ratio=0.95)


class Watched(GaussianNB):
    """Counts the rows that it is trained on."""

    rows = 0

    def fit(self, x, y):
        Watched.rows += len(y)
        return super().fit(x, y)


class Constant:
    """The label of its only row."""

    def fit(self, x, y):
        self.label = y[0]
        return self

    def predict(self, x):
        return np.full(len(x), self.label)


@pytest.fixture
def teachers():
    return Teachers(GaussianNB(), (X, Y), count=30, classes=2)


@pytest.fixture
def people():
    budget = dp.Budget(epsilon=60, delta=1e-5)
    return dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=budget)


def test_a_session_is_charged_once_before_data_is_read(people):
    Watched.rows = 0
    teachers = Teachers(Watched(), (X, Y), count=30, classes=2)
    made_up = Watched.rows
    mechanism = GNMax(scale=4, queries=30)
    session = mechanism.start(people, teachers=teachers, by="ana", purpose="labels")
    assert float(people.spent) > 0 and Watched.rows == made_up
    first, rest = session.label(QUERIES[:10]), session.label(QUERIES[10:])
    assert Watched.rows == made_up + 400
    assert [entry.event for entry in people.entries()] == ["open", "reserve", "commit"]
    assert first.receipt.loss == mechanism.loss and rest.receipt.charged == "people, entry 2"
    assert len(first) == 10 and set(first.value) <= {0, 1}
    assert session.left == 0 and session.answered == 30
    with pytest.raises(NotSound, match="another session"):
        session.ask(QUERIES[0])
    assert people.ledger.verify() == 3


def test_a_session_that_does_not_fit_is_refused_before_anyone_is_trained(people):
    Watched.rows = 0
    teachers = Teachers(Watched(), (X, Y), count=30, classes=2)
    made_up = Watched.rows
    with pytest.raises(BudgetExceeded):
        GNMax(scale=0.1, queries=1000).start(people, teachers=teachers, by="ana")
    assert Watched.rows == made_up and float(people.spent) == 0


def test_confident_sessions_pay_for_every_test_and_end_with_their_last_answer(teachers):
    mechanism = ConfidentGNMax(threshold=20, test_scale=1, scale=2, queries=30, answers=4)
    session = mechanism.start(teachers=teachers, unit=dp.Unit("person"))
    labels = session.label(QUERIES)
    given = [label for label in labels.columns["label"] if label is not None]
    assert len(given) == session.answered == 4 and session.left == 0
    assert labels.receipt.charged == "uncharged"
    silent = ConfidentGNMax(threshold=90, test_scale=1, scale=2, queries=3, answers=2).start(
        teachers=teachers
    )
    assert silent.ask(QUERIES[0]).value is None and silent.left == 2


def test_more_queries_than_are_left_are_refused_and_use_up_nothing(teachers):
    session = GNMax(scale=2, queries=3).start(teachers=teachers)
    with pytest.raises(InvalidArgument, match="3 are left") as refused:
        session.label(QUERIES)
    assert "1 to 3" in refused.value.remedy
    with pytest.raises(InvalidArgument, match="made-up rows"):
        session.label(QUERIES[:2, :1])
    assert session.left == 3
    with pytest.raises(NotSound, match="copied"):
        copy.copy(session)


def test_people_of_several_rows_need_their_ids(people, teachers):
    ledger = people.ledger
    users = ledger.open(
        "users", unit=dp.Unit("user", column="user"), budget=dp.Budget(epsilon=20, delta=1e-5)
    )
    with pytest.raises(InvalidArgument, match="units="):
        GNMax(scale=4, queries=3).start(users, teachers=teachers)
    grouped = Teachers(GaussianNB(), (X, Y), count=30, classes=2, units=np.arange(400) % 100)
    assert GNMax(scale=4, queries=3).start(users, teachers=grouped).left == 3
    with pytest.raises(InvalidArgument, match="teachers="):
        GNMax(scale=4, queries=3).start(users, teachers=None)


def test_units_that_are_replaced_move_two_votes(teachers):
    grouped = Teachers(GaussianNB(), (X, Y), count=30, classes=2, units=np.arange(400) % 100)
    replaced = GNMax(scale=4, queries=3, relation="replace")
    with pytest.raises(NotSound, match="two teachers"):
        replaced.start(teachers=grouped)
    assert replaced.start(teachers=teachers).left == 3
    budget, unit = dp.Budget(epsilon=60, delta=1e-5), dp.Unit("person", relation="replace")
    others = dp.Ledger.memory().open("others", unit=unit, budget=budget)
    GNMax(scale=4, queries=3).start(others, teachers=grouped, by="ana")
    once = GNMax(scale=4, queries=3).loss.epsilon(1e-5).upper
    assert float(others.spent) > 1.5 * once


def test_a_session_that_was_broken_off_has_no_figure(teachers, monkeypatch):
    session = GNMax(scale=4, queries=30).start(teachers=teachers)

    def broken(queries):
        raise KeyboardInterrupt

    monkeypatch.setattr(teachers, "counts", broken)
    with pytest.raises(KeyboardInterrupt):
        session.label(QUERIES)
    assert session.left == 0
    with pytest.raises(NotSound, match="beforehand"):
        session.sanitized(BY, delta=1e-5)


@pytest.mark.parametrize(
    "mechanism",
    [
        GNMax(scale=4, queries=30),
        ConfidentGNMax(threshold=15, test_scale=4, scale=4, queries=30, answers=30),
    ],
)
def test_the_figure_of_the_votes_is_released_with_noise_and_charged(mechanism, people, teachers):
    session = mechanism.start(people, teachers=teachers, by="ana")
    with pytest.raises(NotSound, match="beforehand"):
        session.sanitized(BY, delta=1e-5, account=people)
    session.label(QUERIES)
    before = float(people.spent)
    with pytest.raises(RelationMismatch, match="relation"):
        session.sanitized(Sanitizer(order=3, scale=4, ratio=0.95, relation="replace"), delta=1e-5)
    figure = session.sanitized(BY, delta=1e-5, account=people, by="ana")
    assert float(people.spent) > before and figure.receipt.loss == BY.loss
    assert figure.receipt.charged == "people, entry 4"
    assert figure.value > 0 and "not what the account was charged" in figure.receipt.warnings[0]
    assert session.sanitized(BY, delta=1e-5).receipt.charged == "uncharged"


@pytest.mark.parametrize(
    ("mechanism", "count", "why"),
    [
        (
            ConfidentGNMax(threshold=600, test_scale=300, scale=40, queries=3, answers=2),
            1001,
            "1000 teachers",
        ),
        (GNMax(scale=0.001, queries=3), 30, "too large"),
    ],
)
def test_a_figure_that_cannot_be_had_costs_nothing(mechanism, count, why, people):
    teachers = Teachers(Constant(), (X, Y), count=count, classes=2)
    session = mechanism.start(teachers=teachers)
    session.label(QUERIES[:3])
    with pytest.raises(InvalidArgument, match=why) as refused:
        session.sanitized(BY, delta=1e-5, account=people, by="ana")
    assert refused.value.remedy and [entry.event for entry in people.entries()] == ["open"]


def test_queries_in_two_parts_have_no_figure(teachers):
    session = GNMax(scale=4, queries=30).start(teachers=teachers)
    session.label(QUERIES[:10])
    session.label(QUERIES[10:])
    with pytest.raises(NotSound, match="beforehand"):
        session.sanitized(BY, delta=1e-5)


def test_a_student_learns_from_what_was_answered(people, teachers):
    session = ConfidentGNMax(threshold=20, test_scale=2, scale=2, queries=30, answers=30).start(
        people, teachers=teachers, by="ana"
    )
    labels = session.label(QUERIES)
    student = Student(GaussianNB())
    with pytest.raises(InvalidArgument, match="fit"):
        _ = student.receipt
    student.fit(QUERIES, labels)
    assert (student.predict(QUERIES) == (QUERIES[:, 0] > 0)).mean() > 0.7
    assert student.receipt.loss == labels.receipt.loss and "student" in student.receipt.postprocessing[-1]
    with pytest.raises(InvalidArgument, match="same queries"):
        student.fit(QUERIES[:5], labels)
    none = ConfidentGNMax(threshold=999, test_scale=1, scale=1, queries=30, answers=1).start(
        teachers=teachers
    )
    with pytest.raises(InvalidArgument, match="None of the queries"):
        student.fit(QUERIES, none.label(QUERIES))


def test_seeded_noise_taints_labels(teachers):
    session = GNMax(scale=4, queries=30).start(teachers=teachers)
    with noise.seeded(b"for a test"):
        assert session.label(QUERIES[:3]).receipt.tainted
    assert not session.label(QUERIES[3:]).receipt.tainted


def answered(rows):
    """One label from two teachers of people with a row each, from the parts to the noise."""
    x = np.zeros((len(rows), 1))
    labels = np.array([label for _, label in rows], dtype=int)
    units = np.array([name for name, _ in rows], dtype=object)
    teachers = Teachers(Constant(), (x, labels), count=2, classes=2, units=units)
    return ONE.start(teachers=teachers).label(np.zeros((1, 1))).value


@pytest.mark.parametrize(("claimed", "broken"), [(1, False), (6, True)])
def test_whole_sessions_survive_an_audit_and_lesser_claims_do_not(claimed, broken):
    # One person, of class 1 where a teacher without data votes for 0, or nobody.
    found = dp.audit(
        answered,
        inputs=[[("ann", 1)]],
        claim=GNMax(scale=claimed, queries=1).loss,
        trials=500,
    )
    assert found.violated == broken, str(found)
