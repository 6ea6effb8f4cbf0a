"""`KMeans`: centres of clusters, from a noisy picture of where rows are and a few noisy means.

First, points that stand for the rows (`halving`), with part of the promise: centres of these are found by
k-means++ and Lloyd's steps, which is post-processing. Then a few steps of Lloyd on the rows themselves: each
assigns every row to its nearest centre, in whole numbers, and adds noise to the sums (1, x) of each cluster.
A row is in one cluster, so a step moves by 1 + ‖x‖₁ in L1 and √(1 + ‖x‖₂²) in L2 (compare Su, Cao, Li,
Bertino and Jin 2016). Noise as large as m rows counts as m rows at the old centre.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from dalenius.learn.tabular.coins import Coins
from dalenius.learn.tabular.estimator import Estimator
from dalenius.learn.tabular.halving import Points, counting, dense_points
from dalenius.learn.tabular.promise import Promise
from dalenius.learn.tabular.sums import ONE, Floats, Whole, noisy, products
from dalenius.mechanisms.additive import Additive
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.sensitivity import sqrt_up

SEEDING = Fraction(1, 2)
"""The share of the promise that goes to the points."""
ROUNDS, TRIES = 30, 8
"""Steps and starts on points, which cost nothing."""


class KMeans(Estimator):
    """`n_clusters` centres of columns within `bounds`, by distances of columns scaled to [−1, 1]."""

    kind = "clusterer"
    purpose = "k-means"
    _estimator_type = "clusterer"
    cluster_centers_: Floats

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        bounds: Any = None,
        l1_norm: Number | None = None,
        l2_norm: Number | None = None,
        steps: int = 2,
        rows_per_unit: int = 1,
        relation: str | None = None,
        account: Any = None,
        by: str = "",
    ) -> None:
        self.n_clusters, self.epsilon, self.delta, self.bounds = n_clusters, epsilon, delta, bounds
        self.l1_norm, self.l2_norm, self.steps = l1_norm, l2_norm, steps
        self.rows_per_unit, self.relation, self.account, self.by = rows_per_unit, relation, account, by

    def fit(self, X: Any, y: Any = None, *, units: Any = None) -> Self:
        """Centres of rows; `units` says whose each row is."""
        promise = self._promise()
        self._read(X, centered=True, units=units)
        many = numbers.count(self.n_clusters, "n_clusters", most=10**5)
        steps = numbers.count(self.steps, "steps", least=0, most=100)
        seeding = SEEDING if steps else Fraction(1)
        moving = (1 - seeding) / max(steps, 1)

        def noises(one: Promise) -> list[Additive]:
            wide = self.n_features_in_
            return [counting(one, seeding, wide), *([self._noise(one, many, moving)] if steps else [])]

        with self._charged(promise, noises, "k-means, noisy counts and sums", *self._held()):
            rows, present = self._columns.rows(X)
            rows = rows[self._taken(promise, units, present)]
            centers = on_points(dense_points(rows, promise, seeding), many)
            for _ in range(steps):
                centers = self._moved(rows, centers, promise, moving)
        self._centers = centers
        self.cluster_centers_ = centers * np.array(self._columns.half) + np.array(self._columns.middle)
        return self

    def _noise(self, promise: Promise, many: int, share: Fraction) -> Additive:
        """The noise of one step of Lloyd."""
        columns = self._columns
        l1, l2 = (1 + columns.l1) * ONE, sqrt_up(1 + columns.l2**2) * ONE
        bound = promise.bound(l1=l1, l2=l2, linf=ONE, size=many * (1 + columns.width))
        return promise.noise(bound, share)

    def _moved(self, rows: Whole, centers: Floats, promise: Promise, share: Fraction) -> Floats:
        """One step of Lloyd on the rows."""
        whole = np.rint(centers * ONE)
        # Products of whole numbers below 2^53: the nearest centre of a row is a function of the row.
        distances = np.square(whole).sum(axis=1) - 2 * (rows @ whole.T)
        own = (np.argmin(distances, axis=1)[:, np.newaxis] == np.arange(len(whole))).astype(np.float64)
        full = np.hstack([np.full((len(rows), 1), float(ONE)), rows])
        noise = self._noise(promise, len(whole), share)
        found = noisy(products(own, full, most=ONE), noise, unit=ONE)
        more = promise.spread(noise) / ONE
        held = np.maximum(found[:, :1], 0) + more
        return np.clip((found[:, 1:] + more * centers) / held, -1, 1)

    def fit_predict(self, X: Any, y: Any = None, **more: Any) -> Any:
        """The cluster of each row of a fit. Not private: of rows that may be published."""
        return self.fit(X, y, **more).predict(X)

    def predict(self, X: Any) -> Any:
        """The number of the nearest centre of each row."""
        return np.argmin(self._distances(self._asked(X)), axis=1)

    def transform(self, X: Any) -> Floats:
        """The distance of each row from each centre, of columns scaled to [−1, 1]."""
        return np.sqrt(np.maximum(self._distances(self._asked(X)), 0))

    def fit_transform(self, X: Any, y: Any = None, **more: Any) -> Floats:
        """The rows of a fit as distances. Not private: of rows that may be published."""
        return self.fit(X, y, **more).transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances, of scaled columns. Not private."""
        return -float(self._distances(self._asked(X)).min(axis=1).sum())

    def _distances(self, rows: Floats) -> Floats:
        return np.asarray(np.square(rows[:, np.newaxis, :] - self._centers).sum(axis=2))


def on_points(points: Points, many: int) -> Floats:
    """The best of several runs of k-means++ on weighted points; chance here protects nobody."""
    chance = Coins()
    runs = [_run(points, many, chance) for _ in range(TRIES)]
    return min(runs, key=lambda run: run[0])[1]


def _run(points: Points, many: int, chance: Coins) -> tuple[float, Floats]:
    places, weights = points.places, points.weights
    centers = places[chance.choice(weights)][np.newaxis]
    while len(centers) < many:
        far = weights * np.square(places[:, np.newaxis] - centers).sum(axis=2).min(axis=1)
        if not far.sum() > 0:
            spare = chance.uniform(-1, 1, (many - len(centers), places.shape[1]))
            centers = np.vstack([centers, spare])
            break
        centers = np.vstack([centers, places[chance.choice(far)]])
    for _ in range(ROUNDS):
        nearest = np.square(places[:, np.newaxis] - centers).sum(axis=2).argmin(axis=1)
        own = (nearest[:, np.newaxis] == np.arange(many)) * weights[:, np.newaxis]
        mass = own.sum(axis=0)[:, np.newaxis]
        centers = np.where(mass > 0, own.T @ places / np.maximum(mass, 1e-300), centers)
    cost = (weights * np.square(places[:, np.newaxis] - centers).sum(axis=2).min(axis=1)).sum()
    return float(cost), centers
