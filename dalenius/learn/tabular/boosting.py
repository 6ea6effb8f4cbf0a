"""`BoostedTrees`: trees of random shape, each correcting the ones before it by noisy sums in its leaves.

Shapes see nothing but noisy histograms of the columns (compare Fletcher and Islam 2017; Nori, Caruana, Bu,
Shen and Kulkarni 2021; Maddock, Cormode, Wang, Maple and Jha 2022). The promise is spent on

    histograms   of all columns and of the labels, once: a row adds 1 to one cell of each, so with d columns
                 it moves them by d + 1 in L1 and √(d + 1) in L2
    leaves       of every tree: with r the residual of a row and t = |r|, the row adds r and h = 2t(1 − t) to
                 one leaf, for each class (or once for two classes)

Theorem. For two classes t + h ≤ 9/8 and t² + h² ≤ 1. For more, Σt ≤ 2 where the row's own class has t ≤ 1; as
t² + h² ≤ t and t + h ≤ 3t, and t + h ≤ 9/8 for one, L1 ≤ 9/8 + 3 and L2 ≤ √2. Rounding makes h smaller only.

A leaf moves the scores of its rows by Σr/(Σh/2 + ridge), a step of Newton. All is done in whole numbers:
residuals come from the table of `residuals`, and scores are sums of multiples of 2^−11.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from dalenius.learn.tabular.coins import Coins
from dalenius.learn.tabular.columns import Codes, codes, read_classes
from dalenius.learn.tabular.estimator import Classifier
from dalenius.learn.tabular.promise import Promise
from dalenius.learn.tabular.residuals import FINE, of_margins
from dalenius.learn.tabular.shapes import Cells, Shape, drawn, read_cells
from dalenius.learn.tabular.sums import ONE, Floats, Whole, counts, noisy
from dalenius.mechanisms.additive import Additive
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.sensitivity import sqrt_up

LOOKING = Fraction(1, 10)
"""The share of the promise for histograms."""
FARTHEST = 2.0
"""How far one leaf may move a score, before the rate."""
LEAST_TREES, MOST_TREES = 10, 300
"""Where they follow from the promise."""


class BoostedTrees(Classifier):
    """Classes by `trees` boosted trees of `depth` questions, on columns within `bounds`.

    `categorical` are the numbers of the columns that hold codes, whole numbers from the column's lower to its
    upper bound. `trees` and `rate` follow from the promise where they are left out.
    """

    purpose = "boosted trees"

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        bounds: Any = None,
        classes: Any = None,
        categorical: Any = (),
        trees: int | None = None,
        depth: int = 4,
        rate: Number | None = None,
        rows_per_unit: int = 1,
        relation: str | None = None,
        account: Any = None,
        by: str = "",
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes
        self.categorical, self.trees, self.depth, self.rate = categorical, trees, depth, rate
        self.rows_per_unit, self.relation, self.account, self.by = rows_per_unit, relation, account, by

    def fit(self, X: Any, y: Any = None, *, units: Any = None) -> Self:
        """Trees from rows and their labels; `units` says whose each row is."""
        promise, classes = self._promise(), read_classes(self.classes)
        self._read(X, y=self._labels(y), units=units)
        self._cells = read_cells(self.bounds, self.n_features_in_, self.categorical)
        depth = numbers.count(self.depth, "depth", most=12)
        asked = None if self.trees is None else numbers.count(self.trees, "trees", most=10**4)
        step = None if self.rate is None else float(numbers.rate(self.rate, "rate"))
        chance = Coins()
        grown: list[tuple[Shape, Floats]] = []
        vectors, share = 1 if len(classes) == 2 else len(classes), (1 - LOOKING) / (asked or MOST_TREES)

        def noises(one: Promise) -> list[Additive]:
            return [look_noise(one, self._cells, len(classes)), leaf_noise(one, vectors, 2**depth, share)]

        how = f"boosted trees of {depth} questions, noisy sums in leaves"
        with self._charged(promise, noises, how):
            cells, present = self._cells.of(X)
            labels = np.where(self._taken(promise, units, present), codes(y, classes), -1)
            histograms, frequent = look(cells, labels, self._cells, len(classes), promise)
            trees = enough(float(frequent.sum()), promise) if asked is None else asked
            rate = min(max(15 / trees, 0.15), 0.3) if step is None else step
            self._start = start(frequent)
            scores = np.tile(self._start, (len(labels), 1))
            for _ in range(trees):
                shape = drawn(histograms, self._cells.coded, depth, chance)
                leaves = shape.leaves(cells)
                moves = leaf_moves(scores, labels, leaves, 2**depth, promise, (1 - LOOKING) / trees)
                moves = np.rint(moves * rate * FINE)
                scores = scores + moves[leaves]
                grown.append((shape, moves))
        self._trees = grown
        self.classes_ = np.asarray(classes)
        return self

    def decision_function(self, X: Any) -> Floats:
        """How far on the side of the second class a row is; a column for each class where there are more."""
        self._asked(X)
        cells = self._cells.of(X)[0]
        found = np.tile(self._start, (len(cells), 1))
        for shape, moves in self._trees:
            found = found + moves[shape.leaves(cells)]
        return (found[:, 0] if len(self.classes_) == 2 else found) / FINE

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`."""
        margins = self.decision_function(X)
        if margins.ndim == 1:
            margins = np.column_stack([np.zeros_like(margins), margins])
        powers = np.exp(margins - margins.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def look(
    cells: Codes, labels: Codes, known: Cells, classes: int, promise: Promise
) -> tuple[list[Floats], Floats]:
    """Noisy histograms of the columns, and of the labels with at least one each."""
    sizes = [*known.sizes, classes]
    taken = np.where(labels < 0, -1, 0)
    tables = [
        counts(np.where(taken < 0, -1, code), size, most=1)
        for code, size in zip([*cells.T, labels], sizes, strict=True)
    ]
    noise = look_noise(promise, known, classes)
    *columns, frequent = np.split(noisy(np.concatenate(tables), noise), np.cumsum(sizes)[:-1])
    return columns, np.maximum(frequent, max(1.0, promise.spread(noise)))


def look_noise(promise: Promise, known: Cells, classes: int) -> Additive:
    """The noise of all histograms."""
    sizes = [*known.sizes, classes]
    many = len(sizes)
    bound = promise.bound(l1=many, l2=sqrt_up(Fraction(many)), linf=1, size=sum(sizes), nonnegative=True)
    return promise.noise(bound, LOOKING)


def enough(rows: float, promise: Promise) -> int:
    """How many trees: more where there are many rows for the noise that one sum would have."""
    if promise.pure:
        return int(np.clip(30 * (rows * float(promise.epsilon) / 2600) ** 0.4, LEAST_TREES, MOST_TREES))
    return int(np.clip(100 * (rows / float(promise.multiplier) / 700) ** 0.25, LEAST_TREES, MOST_TREES))


def start(frequent: Floats) -> Floats:
    """The scores before any tree, in steps: by how frequent classes are."""
    found = np.log(frequent / frequent.sum())
    return np.rint((found[1:] - found[:1] if len(found) == 2 else found) * FINE)


def leaf_noise(promise: Promise, vectors: int, leaves: int, share: Fraction) -> Additive:
    """The noise of the sums of one tree."""
    l1 = Fraction(9, 8) if vectors == 1 else Fraction(33, 8)
    l2 = Fraction(1) if vectors == 1 else sqrt_up(Fraction(2))
    bound = promise.bound(l1=l1 * ONE, l2=l2 * ONE, linf=ONE, size=2 * vectors * leaves)
    return promise.noise(bound, share)


def leaf_moves(
    scores: Whole, labels: Codes, leaves: Codes, many: int, promise: Promise, share: Fraction
) -> Floats:
    """How far each leaf moves each score, from noisy sums."""
    missed = of_margins(scores, labels)
    size = np.abs(missed)
    bent = np.floor(2 * size * (ONE - size) / ONE)
    vectors = scores.shape[1]
    sums = [
        counts(np.where(labels < 0, -1, leaves), many, part[:, k])
        for part in (missed, bent)
        for k in range(vectors)
    ]
    noise = leaf_noise(promise, vectors, many, share)
    found = noisy(np.stack(sums), noise, unit=ONE).reshape(2, vectors, many)
    ridge = max(1.0, promise.spread(noise) / ONE)
    held = np.maximum(found[1] / 2, 0) + ridge
    return np.clip(found[0] / held, -FARTHEST, FARTHEST).T
