"""Which keys of a group-by may be shown: the optimal mechanism.

That a key occurs at all may tell on someone. Each key is kept or dropped by itself, by the number n of units
that hold it, with probability π(n); keys that no unit holds are never shown.

Theorem (Desfontaines, Voss, Gipson and Mandayam 2022). For units with one key each, the greatest π that is
(ε, δ)-differentially private is, from π(0) = 0,
    π(n) = min(e^ε π(n−1) + δ, 1 − e^{−ε}(1 − π(n−1) − δ), 1),
greatest at every n at once. Until the terms cross, near ½, π(n) = δ(e^{nε} − 1)/(e^ε − 1); from there on
1 − π(n) falls to 0 in the same way.

Proof that it is private. Adding a unit to a key that n − 1 hold moves π(n−1) to π(n). The first term is
P(kept) ≤ e^ε P'(kept) + δ, the second the same of the key being dropped; the other two inequalities hold as π
grows. No greater value satisfies both. Here π is a table of multiples of 2^−bits, each rounded down from the
value before it, with e^ε rounded down and e^{−ε} up: the inequalities hold exactly, and so does the law.

A unit with several keys changes at most `keys` of these decisions, new keys or old, each private whatever the
others are: the loss is that of their composition. A new key attains δ, and where the terms cross at a whole
number both inequalities are equalities there and the profile up to ε is attained; elsewhere nearly so.
The relation is add_remove. Only counts are seen here: that no unit holds more than `keys` is the caller's to
see to, before counting.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.losses.calibration import calibrate
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate
from dalenius.mechanisms.keys import HAIR, Counts, in_order
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.mechanisms.truncated_geometric import half, table
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.release import Release

SHARES = (Fraction(1, 2), Fraction(1, 8), Fraction(1, 32))
"""Of δ, which calibration tries to set aside for the composition over keys."""
FEW = 8
"""The law is written out for so many keys."""


def _above_zero(value: object, name: str) -> Fraction:
    return numbers.rate(numbers.delta(value, name), name)


@dataclass(frozen=True)
class PartitionSelection(Mechanism, kind="partition_selection"):
    """Keys kept with the greatest probability that is (`epsilon`, `delta`)-private a key.

    A unit holds at most `keys` of them.
    """

    _: KW_ONLY
    epsilon: Parameter[Fraction] = Parameter(numbers.positive)
    delta: Parameter[Fraction] = Parameter(_above_zero)
    keys: Parameter[int] = Parameter(numbers.count, 1)

    def __post_init__(self) -> None:
        table(self.epsilon, self.delta)

    @property
    def loss(self) -> Loss:
        """A decision for every key that a unit may hold."""
        return Approximate(self.epsilon, delta=self.delta) * self.keys

    @property
    def sure(self) -> int:
        """The least count that is always shown."""
        return len(table(self.epsilon, self.delta)[0]) - 1

    def probability(self, count: int) -> Fraction:
        """π(count)."""
        known, one = table(self.epsilon, self.delta)
        return Fraction(known[min(max(count, 0), self.sure)], one)

    def release(self, value: Counts, *, name: str = "key", unit: Unit | None = None) -> Release:
        """The keys that are kept, in their own order."""
        names, counts = in_order(value)
        kept = self._keep(counts, 1)[0]
        return self._released({name: [names[i] for i in np.flatnonzero(kept)]}, (name,), unit)

    def sample(self, value: Counts, size: int) -> NDArray[Any]:
        """Whether each key is kept, as 0 and 1: a number for one key, else a row."""
        kept = self._keep(in_order(value)[1], size).astype(np.int64)
        return kept[:, 0] if kept.shape[1] == 1 else kept

    def worst_case(self) -> tuple[Counts, Counts]:
        """As many keys as a unit may hold, where one more unit raises π the most."""
        known, _ = table(self.epsilon, self.delta)
        at = max(range(self.sure), key=lambda n: known[n + 1] - known[n])
        names = [f"key {i}" for i in range(self.keys)]
        return dict.fromkeys(names, at), dict.fromkeys(names, at + 1)

    def probabilities(self, value: Counts) -> Law | None:
        """Every set of keys, where they are few."""
        chances = [self.probability(n) for n in in_order(value)[1].tolist()]
        if len(chances) > FEW:
            return None
        rows = list(itertools.product((0, 1), repeat=len(chances)))
        masses = [
            math.prod(p if kept else 1 - p for p, kept in zip(chances, row, strict=True)) for row in rows
        ]
        outcomes: list[Any] = [row[0] for row in rows] if len(chances) == 1 else list(rows)
        return Law(tuple(outcomes), np.array(masses, dtype=np.float64))

    def _keep(self, counts: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
        """One row a draw; keys of one count share their coins."""
        kept = np.zeros((size, counts.size), bool)
        held = np.clip(counts, 0, self.sure)
        for n in np.unique(held).tolist():
            where = np.flatnonzero(held == n)
            kept[:, where] = noise.bernoulli(self.probability(n), size * where.size).reshape(size, -1)
        return kept

    @staticmethod
    def calibrate(*, epsilon: Number, delta: Number, keys: int = 1) -> PartitionSelection:
        """The decisions that together are (epsilon, delta)-private and soonest keep a key half the time.

        ε and δ in equal parts always do; with many keys less of δ a key allows more of ε by composition.
        """
        limit, failure = numbers.positive(epsilon, "epsilon"), _above_zero(delta, "delta") * HAIR
        count = numbers.count(keys, "keys")
        shares = SHARES if count > 1 else ()
        plans = [_composed(limit, failure, share * failure / count, count) for share in shares]
        best = min([(limit / count, failure / count), *plans], key=lambda plan: half(*plan))
        return PartitionSelection(epsilon=best[0], delta=best[1], keys=count)


def _composed(epsilon: Fraction, delta: Fraction, each: Fraction, count: int) -> tuple[Fraction, Fraction]:
    """The largest ε a key, at `each` as its δ, with which `count` of them keep the promise."""
    found = calibrate(lambda rate: Approximate(1 / rate, delta=each) * count, epsilon=epsilon, delta=delta)
    return 1 / found, each
