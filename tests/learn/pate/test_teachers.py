"""One unit is behind one teacher, whatever it does to it; and no part of the data makes itself heard."""

from __future__ import annotations

import copy
import logging
import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.pate import Network, Teachers
from dalenius.learn.pate import teachers as module
from dalenius.noise.stream import StreamKey

KEY = StreamKey(bytes(range(32)), tainted=False)
X = np.random.default_rng(0).normal(size=(240, 3))
Y = (X.sum(axis=1) > 0).astype(int) + (X[:, 0] > 1)
QUERIES = np.random.default_rng(1).normal(size=(40, 3))


class Frequent:
    """The most frequent label of its part, and a class by chance for every fifth query."""

    def fit(self, x, y):
        self.label = np.bincount(y).argmax()
        np.random.rand(len(y))  # noqa: NPY002
        return self

    def predict(self, x):
        found = np.full(len(x), self.label)
        found[::5] = np.random.randint(3, size=len(found[::5]))  # noqa: NPY002
        return found


@pytest.fixture(autouse=True)
def _one_key(monkeypatch):
    monkeypatch.setattr(module.StreamKey, "fresh", classmethod(lambda cls: KEY))


def asked(model, x, y, units=None, count=12):
    return Teachers(model, (x, y), count=count, classes=3, units=units).counts(QUERIES)


@pytest.mark.parametrize(
    "model", [Frequent(), GaussianNB(), SGDClassifier(), Network(torch.nn.Linear(3, 3), epochs=2)]
)
def test_a_unit_moves_one_vote(model):
    # Units of several rows, which leave, or whose rows become anything at all.
    units = np.arange(240) % 20
    before = asked(model, X, Y, units)
    assert (before.sum(axis=1) == 12).all()
    moved = 0
    for unit in (3, 8, 12, 17):
        without = units != unit
        wild, labels = X.copy(), Y.copy()
        wild[~without], labels[~without] = np.nan, 2
        for after in (
            asked(model, X[without], Y[without], units[without]),
            asked(model, wild, labels, units),
        ):
            apart = np.abs(after - before)
            assert apart.sum(axis=1).max() <= 2 and apart.max() <= 1
            moved += apart.sum()
    assert moved > 0


def test_a_row_moves_one_vote():
    before, after = asked(Frequent(), X, Y), asked(Frequent(), X[:-1], Y[:-1])
    assert np.abs(after - before).sum(axis=1).max() <= 2


@pytest.mark.parametrize("labels", [Y * 0, Y * 0 + 7, Y - 5, np.full(240, np.nan), Y + 0.5, [None] * 240])
def test_no_value_is_an_error(labels, capsys):
    class Loud(LogisticRegression):
        def fit(self, x, y):
            print("rows", len(y))
            warnings.warn("private", stacklevel=1)
            return super().fit(x, y)

    for x in (X, np.full_like(X, np.nan), np.full_like(X, np.inf)):
        found = asked(Loud(), x, labels)
        assert (found.sum(axis=1) == 12).all()
    assert capsys.readouterr() == ("", "")


def test_a_teacher_without_data_votes_for_a_fixed_class():
    assert asked(GaussianNB(), X[:0], Y[:0])[:, 0].tolist() == [12] * 40


def test_labels_that_are_no_class_are_left_out():
    odd = np.where(np.arange(240) < 40, 9, Y)
    units = np.arange(240)
    assert (asked(GaussianNB(), X, odd, units) == asked(GaussianNB(), X[40:], Y[40:], units[40:])).all()


def test_generators_that_others_share_are_left_as_they_were():
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    states = np.random.get_state()[1].tolist()  # noqa: NPY002
    teachers = Teachers(SGDClassifier(), (X, Y), count=4, classes=3)
    state = torch.get_rng_state()
    np.random.seed(5)  # noqa: NPY002
    teachers.counts(QUERIES)
    assert np.random.get_state()[1].tolist() == states  # noqa: NPY002
    assert (torch.get_rng_state() == state).all()


def test_a_model_that_cannot_work_is_refused_before_it_meets_data():
    class Broken:
        def fit(self, x, y):
            raise RuntimeError("no such column")

        def predict(self, x):
            return [0] * len(x)

    class Words(Frequent):
        def predict(self, x):
            return np.full(len(x), 5)

    with pytest.raises(InvalidArgument, match="no such column"):
        Teachers(Broken(), (X, Y), count=4, classes=3)
    with pytest.raises(InvalidArgument, match="one class"):
        Teachers(Words(), (X, Y), count=4, classes=3)
    for bad in (GaussianNB, lambda x: x, 3):
        with pytest.raises(InvalidArgument, match="fit and predict"):
            Teachers(bad, (X, Y), count=4, classes=3)
    with pytest.raises(InvalidArgument, match="synthetic"):
        Teachers(GaussianNB(), (X.tolist(), Y), count=4, classes=3)
    lists = Teachers(
        GaussianNB(), (X.tolist(), Y), count=4, classes=3, synthetic=(X[:9] * 0 + Y[:9, None], Y[:9])
    )
    assert lists.counts(QUERIES).sum() == 160


def test_queries_that_cannot_be_asked_are_refused():
    teachers = Teachers(GaussianNB(), (X, Y), count=4, classes=3)
    with pytest.raises(InvalidArgument, match="made-up rows"):
        teachers.check(QUERIES[:, :2])
    assert teachers.check(QUERIES) == 40


def test_wrong_shapes_are_refused():
    with pytest.raises(InvalidArgument, match="length"):
        Teachers(GaussianNB(), (X, Y[:-1]), count=4, classes=3)
    with pytest.raises(InvalidArgument, match="length"):
        Teachers(GaussianNB(), (X, Y), count=4, classes=3, units=[1, 2])
    with pytest.raises(InvalidArgument, match="data"):
        Teachers(GaussianNB(), X, count=4, classes=3)
    with pytest.raises(InvalidArgument, match="numbers"):
        Teachers(GaussianNB(), (X, Y.astype(str)), count=4, classes=3)


def test_teachers_are_written_nowhere():
    teachers = Teachers(GaussianNB(), (X, Y), count=4, classes=3)
    assert repr(teachers) == "Teachers(count=4, classes=3)"
    for read in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(NotSound, match="private"):
            read(teachers)


def test_a_torch_module_is_a_teacher():
    x = torch.as_tensor(X).float()
    teachers = Teachers(torch.nn.Linear(3, 3), (x, torch.as_tensor(Y)), count=3, classes=3)
    assert teachers.counts(torch.as_tensor(QUERIES).float()).sum() == 120


class Scaling:
    """Standardises what it is asked in place, as StandardScaler(copy=False) does."""

    def fit(self, x, y):
        self.mean = x.mean(axis=0)

    def predict(self, x):
        x -= self.mean
        return (np.asarray(x).sum(axis=1) > 0).astype(int)


def test_what_a_teacher_does_to_the_queries_stays_with_it():
    units, wild, queries = np.arange(240), X.copy(), QUERIES.copy()
    wild[5] = 1e6
    before, after = asked(Scaling(), X, Y, units), asked(Scaling(), wild, Y, units)
    assert np.abs(after - before).max() <= 1
    assert np.array_equal(QUERIES, queries)


def test_teachers_begin_as_the_model_was_when_they_were_made():
    class Given:
        says = 0

        def fit(self, x, y):
            pass

        def predict(self, x):
            return np.full(len(x), self.says)

    model = Given()
    made = Teachers(model, (X, Y), count=4, classes=3)
    model.says = 2
    assert (made.counts(QUERIES)[:, 0] == 4).all()


def test_a_teacher_is_neither_heard_nor_seen_to_fail(caplog):
    class Loud:
        def fit(self, x, y):
            logging.getLogger("loud").warning("rows %d", len(y))
            if (np.asarray(x) > 1e5).any():
                raise SystemExit("a row is large")

        def predict(self, x):
            return np.zeros(len(x), int)

    wild = X.copy()
    wild[5] = 1e6
    asked(Loud(), wild, Y)
    assert caplog.records == []
