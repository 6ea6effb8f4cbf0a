"""`TreeSum`: running sums by the noisy sums of dyadic blocks; pure ε, or no end, or both.

Each complete block [j·2^h, (j + 1)·2^h) has its sum released once with noise of scale s_h, and every prefix
is a sum of blocks, one for each binary digit of the step (Dwork et al. 2010; Chan, Shi and Song 2011).

Theorem. Let one unit move one step by Δ = `largest` (one category by 1), or `most` such steps.
  Known horizon n. A step lies in L = ⌊log₂n⌋ + 1 blocks, all of scale s. Laplace: ε = most·L·Δ/s, by discrete
  Laplace noise on whole sums. Gaussian: N(μ, 1) with μ = sens·Δ/s, where sens = √L for one step
  (`losses.streams.binary_tree` for several); noise is the rounded Gaussian, on whole sums post-processing.
  No horizon. s_h = s·(h+1)(h+2) (Laplace) or s·√((h+1)(h+2)), rounded up (Gaussian). As Σ 1/((h+1)(h+2)) = 1,
  ε = most·Δ/s for ever, and μ = most·Δ/s, by the triangle inequality.
Blocks are released when they are complete, in time order, so numbers may depend on earlier outputs. Prefixes,
also by Honaker's estimators (`tree_noise`), are functions of the released sums: free.

Error. A prefix has variance Σ v_h over its digits. Error bars are those of a Gaussian, and all that rounding
can do; with Laplace noise, those of one Laplace number of that variance where they are wider (P(|X| > x) is
e^{−√2·x/σ} of one and Gaussian of many; sums of a few are between). At the same μ the largest error is log₂n
times that of one Gaussian release, or about ¾ of it with `online`, against ln(n)/π of `ContinualSum`.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.bound import Bound
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.fields import Parameter, whole
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.losses.streams.binary_tree import BinaryTree
from dalenius.losses.streams.correlated import gaussian
from dalenius.mechanisms.mechanism import Floats, Payer
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.release import Release
from dalenius.streams.continual import Continual, fitted
from dalenius.streams.counter import Counter
from dalenius.streams.sums import quantile
from dalenius.streams.tallies import Ints, Tally, Total
from dalenius.streams.tree_noise import ENDLESS, LARGEST, Estimator, Law, Nodes, TreeBlocks

MOST_FULL = 2**20


@dataclass(frozen=True)
class TreeSum(Continual, kind="tree_sum"):
    """Running sums for `horizon` steps, or any number, by noise of `scale` on dyadic blocks."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    horizon: int | None = None
    law: Law = "gaussian"
    estimator: Estimator = "online"
    largest: Parameter[int] = Parameter(whole, 1)
    categories: int | None = None
    separation: Parameter[int] = Parameter(whole, 1)
    most: int | None = None

    def __post_init__(self) -> None:
        if self.horizon is not None:
            object.__setattr__(self, "horizon", BinaryTree(self.horizon).length)
        if self.law not in ("gaussian", "laplace") or self.estimator not in ("plain", "online", "full"):
            raise InvalidArgument(
                "law must be gaussian or laplace, and estimator plain, online or full.",
                remedy="Pass one of these names.",
            )
        if self.estimator == "full":
            self._check_full()
        self._check()
        if self.estimator != "plain" and self.nodes.top > 2**LARGEST:
            raise InvalidArgument(
                "Without a horizon scales grow with the level: the one of the highest is above 2^38.",
                remedy="Use estimator='plain', pass a horizon, or count in coarser units.",
            )

    def _check_full(self) -> None:
        length = self.horizon
        if length is None or length & (length - 1) or length > MOST_FULL or self.categories:
            raise InvalidArgument(
                "The full estimator is for one number and a horizon that is a power of two, up to 2^20.",
                remedy="Round the horizon up to one, or use estimator='online'.",
            )

    @cached_property
    def nodes(self) -> Nodes:
        """The law of the noise of blocks."""
        levels = None if self.horizon is None else self.horizon.bit_length()
        return Nodes(self.law, self._scale_of, levels, self.estimator)

    def _scale_of(self, level: int) -> Fraction:
        if self.horizon is not None:
            return self.scale
        square = (level + 1) * (level + 2)
        if self.law == "laplace":
            return self.scale * square
        return self.scale * Fraction(math.isqrt(square << 40) + 1, 1 << 20)

    @cached_property
    def loss(self) -> Loss:
        """Of all outputs together."""
        times, levels = self.most or 1, 1 if self.nodes.levels is None else self.nodes.levels
        if self.law == "laplace" and times == 1 and self.horizon is not None:
            return DiscreteLaplace(self.scale, sensitivity=self.largest) * levels
        if self.law == "laplace":
            return Pure(Fraction(times * levels * self.largest) / self.scale)
        if self.horizon is None:
            known = Bound(0.5**0.5 * (1 - 1e-6), float(times), False)
            return gaussian(self.scale / self.largest, known, "add_remove")
        return BinaryTree(self.horizon).loss(self.scale / self.largest, self.participation)

    def blocks(self, key: StreamKey, width: int) -> TreeBlocks:
        """Noise of the blocks of each step's digits."""
        return TreeBlocks(self.nodes, key, width, self.horizon if self.estimator == "full" else None)

    def tally(self, width: int) -> Tally:
        """The sums."""
        return Total(width)

    def start(
        self, account: Payer | None = None, *, unit: Unit | None = None, by: str = "", purpose: str = ""
    ) -> Counter:
        """A counter; not with the full estimator, which looks ahead."""
        if self.estimator == "full":
            raise NotSound(
                "The full estimator looks ahead: there is no value before the last step.",
                remedy="Use estimator='online', or release the whole stream at the end.",
            )
        return super().start(account, unit=unit, by=by, purpose=purpose)

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """All values of a whole stream of numbers, each a step of its own."""
        if self.estimator != "full":
            return super().release(value, unit=unit)
        whom = self._whom(None, unit)
        self.released(np.empty((0, 1), np.int64), whom)
        session = Counter(self, whom, lambda release: release, StreamKey.fresh())
        return session.series(value)

    def reach(self, steps: Ints, alpha: Fraction) -> Floats:
        """By the variance of the nodes of each step's digits, and what rounding can do."""
        variance, slack = self.spread(steps)
        return wide(alpha, self.law) * np.sqrt(variance) + (slack if self.law == "gaussian" else 1)

    def spread(self, steps: Ints) -> tuple[Floats, Floats]:
        """The variance of each step's noise, and what rounding can do."""
        variance, slack = np.zeros(len(steps)), np.ones(len(steps))
        for h, (each, rounding) in enumerate(self._shares):
            digit = steps >> h & 1
            variance += each * digit
            slack += rounding * digit
        if self.estimator == "full":
            norms = BinaryTree(self.horizon or 1, "full").row_norms()[steps - 1]
            variance = self.nodes.variance(0) * norms**2
        return variance, slack

    @cached_property
    def _shares(self) -> list[tuple[float, float]]:
        """For each level the variance, and what rounding may do."""
        found, slack = [], 0.5
        for h, (variance, weight) in enumerate(self.nodes.shares(self.nodes.levels or ENDLESS)):
            slack = weight / 2 + (1 - weight) * 2 * slack + 2.0**-self.nodes.bits if h else slack
            found.append((variance, slack))
        return found

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        horizon: int | None = None,
        estimator: Estimator = "online",
        largest: int = 1,
        categories: int | None = None,
        separation: int = 1,
        most: int | None = None,
    ) -> TreeSum:
        """The least noise that keeps the promise: Laplace at delta 0, Gaussian otherwise."""
        law: Law = "gaussian" if numbers.delta(delta) else "laplace"
        make = partial(
            TreeSum,
            horizon=horizon,
            law=law,
            estimator=estimator,
            largest=largest,
            categories=categories,
            separation=separation,
            most=most,
        )
        limit, times = numbers.epsilon(epsilon), most or 1
        if law == "laplace":
            levels = 1 if horizon is None else BinaryTree(horizon).levels
            return make(scale=times * levels * largest / limit)
        multiplier = Gaussian.calibrate(epsilon=limit, delta=delta).noise_multiplier
        draft = make(scale=1000 * largest)
        sensitivity = float(times)
        if horizon is not None:
            sensitivity = BinaryTree(horizon).sensitivity(draft.participation).upper
        return fitted(lambda scale: make(scale=scale), multiplier, sensitivity, largest)


def wide(alpha: Fraction, law: Law) -> float:
    """Deviations that a sum of independent noise is within, but for `alpha`: of Laplace noise, the wider of
    one such number's and of infinitely many's, which are Gaussian.
    """
    one = math.log(1 / float(alpha)) / math.sqrt(2) if law == "laplace" else 0.0
    return max(quantile(alpha), one)
