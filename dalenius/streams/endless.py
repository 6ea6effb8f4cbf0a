"""`EndlessSum`: running sums with correlated Gaussian noise, for any number of steps.

    >>> from dalenius.streams import EndlessSum
    >>> mechanism = EndlessSum.calibrate(epsilon=1, delta=1e-6)
    >>> f"{mechanism.factor(10**3):.1f} {mechanism.factor(10**6):.1f} {mechanism.factor(10**8):.1f}"
    '4.7 6.1 14.8'

Steps are cut into epochs of n = `epoch`. Within one, sums run from zero as those of `sums` do, with noise of
their own; when it is over, its total joins the tree of `trees` that has no end, with noise of `total_scale`
and more. Released at step τ of the epoch after the first e is the sum of both: S_t + R_τ + T_e, R the noise
of the epoch's sums, T_e that of the tree's sum of e totals.

Theorem. Let one unit move one step by Δ = `largest` (one category by 1), or `most` such steps that are at
least b = `separation` apart. All outputs together, however many, are dominated by N(μ, 1) against N(0, 1),

    μ² = Δ²·(G/scale² + most²/total_scale²),  G = Σ_{i,j<most} A(|i − j|·b),  A(l) = Σ_{k<n−l} c_k c_{k+l},

c the first column of the encoder C of an epoch: G = ‖c‖² for one step. As an event is in one epoch, no epoch
costs more than the first; numbers may depend on earlier outputs.
Proof. Outputs are functions of Cx + N of each epoch, as in `sums`, and of the noisy sums of the tree: of one
linear map of all steps with Gaussian noise, whose rows can be read in time order. So the theorem of
`losses.streams.factorization` holds for it, and the squares of both parts add up. For the epochs, the map is
nowhere above the Toeplitz matrix of c_0, …, c_{n−1}, 0, 0, …, over all steps: non-negative and falling, so
that the steps 0, b, 2b, … move it the most (`losses.streams.toeplitz`), by √G. For the tree it is Σ_h
1/((h+1)(h+2)) = 1 for one step, and at most `most` times that by the triangle inequality.

Error. Z_τ + T_e has the variance scale²·‖b‖² of `sums`, plus that of the tree's e totals; rounding adds what
it does in both. `factor` is the largest deviation so far over that of one Gaussian release of the same cost.
For up to n steps it is about √(L(n)·L(t)/(1 − a)), L(t) ≈ 1.07 + ln(t)/π the square root's for t steps and
a the part of μ² for totals; a tree without an end has 11.3 at 10³ steps, 33 at 10⁶ and 66 at 10⁹. Epochs of
1, 2, 4, … steps without a tree, one after the other, would have 7.5 and 16. The memory is that of `sums` and
a number for each level of the tree: O(log t).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.bound import Bound
from dalenius.losses.fields import Numbers, Parameter, whole
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.losses.streams.buffered import BufferedToeplitz
from dalenius.losses.streams.correlated import gaussian
from dalenius.mechanisms.mechanism import Floats
from dalenius.noise.buffered import Buffers, Running, block_steps
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.profiles.balls import BITS, ball, lower, upper
from dalenius.streams.continual import Continual, fitted
from dalenius.streams.sums import design, deviations, quantile
from dalenius.streams.tallies import Ints, Tally, Total
from dalenius.streams.trees import TreeSum

EPOCH = 2**20
LONGEST = 2**23
TOTALS = Fraction(1, 5)
"""The part of μ² for the totals of epochs."""
MOST_TOTAL_SCALE = 2**32
MOST_TIMES = 10**4
EPOCHS = 8
"""The first number of the paths of streams that the keys of epochs come from."""


@dataclass(frozen=True)
class EndlessSum(Continual, kind="endless_sum"):
    """Running sums in epochs of `epoch` steps, by filtered Gaussians of `scale`; a tree of their totals."""

    _: KW_ONLY
    epoch: Parameter[int] = Parameter(whole)
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    total_scale: Parameter[Fraction] = Parameter(numbers.positive)
    decays: Numbers = Numbers(numbers.non_negative)
    scales: Numbers = Numbers(numbers.positive)
    largest: Parameter[int] = Parameter(whole, 1)
    categories: int | None = None
    separation: Parameter[int] = Parameter(whole, 1)
    most: int | None = None
    horizon = None

    def __post_init__(self) -> None:
        if self.epoch & (self.epoch - 1) or not 2 <= self.epoch <= LONGEST:
            raise InvalidArgument(
                "epoch must be a power of two, from 2 to 2^23.", remedy=f"Leave it out, for {EPOCH}."
            )
        if self.total_scale > MOST_TOTAL_SCALE:
            raise InvalidArgument("total_scale must be at most 2^32.", remedy="Count in coarser units.")
        if self.most is not None and numbers.count(self.most, "most") > MOST_TIMES:
            raise InvalidArgument("most must be at most 10^4.", remedy="Use TreeSum for more.")
        _ = BufferedToeplitz(self.epoch, self.decays, self.scales), self._buffers.floats
        self._check()

    @cached_property
    def sensitivity(self) -> Bound:
        """μ·scale/Δ."""
        times, ratio = self.most or 1, ball(self.scale / self.total_scale)
        with workprec(BITS):
            far = range(1, min(times, -(-self.epoch // self.separation)))
            both = times * self._together(0)
            for d in far:
                both += 2 * (times - d) * self._together(d * self.separation)
            # The first level of the tree is enough for what some unit attains.
            least = (self._together(0) + ratio**2 / 2).sqrt() * (1 - arb(2) ** -20)
            return Bound(lower(least), upper((both + (times * ratio) ** 2).sqrt()), False)

    def _together(self, lag: int) -> arb:
        """A(l), by geometric sums."""
        pairs = [(ball(decay), ball(scale)) for decay, scale in zip(self.decays, self.scales, strict=True)]
        total = sum((w * m ** (lag - 1) for m, w in pairs), arb(0)) if lag else arb(1)
        for m, w in pairs:
            for other, weight in pairs:
                ratio = m * other
                ends = 1 - ratio ** (self.epoch - 1 - lag)
                total += w * weight * other**lag * ends / (1 - ratio)
        return total

    @cached_property
    def loss(self) -> Loss:
        """Of all outputs together."""
        return gaussian(self.scale / self.largest, self.sensitivity, "add_remove")

    @cached_property
    def totals(self) -> TreeSum:
        """The tree of the totals of epochs."""
        return TreeSum(scale=self.total_scale, largest=self.largest, categories=self.categories)

    @cached_property
    def _buffers(self) -> Buffers:
        return Buffers(self.decays, self.scales)

    def blocks(self, key: StreamKey, width: int) -> EndlessBlocks:
        """Filtered noise of each epoch, and that of the totals before it."""
        return EndlessBlocks(self, key, width)

    def running(self, key: StreamKey, epoch: int, width: int) -> Running:
        """The noise of one epoch, by a key of its own."""
        secret = key.stream(EPOCHS, epoch).integer(8 * len(key.secret)).to_bytes(len(key.secret), "little")
        return Running(self._buffers, self.scale, StreamKey(secret, tainted=key.tainted), width)

    def tally(self, width: int) -> Tally:
        """The sums."""
        return Total(width)

    def reach(self, steps: Ints, alpha: Fraction) -> Floats:
        """By the law of both, and what rounding can do."""
        variance, slack = self._spread(steps)
        return np.asarray(quantile(alpha) * np.sqrt(variance) + slack)

    def _spread(self, steps: Ints) -> tuple[Floats, Floats]:
        """The variance of each step's noise, and what rounding can do."""
        past = (steps - 1) // self.epoch
        within = float(self.scale) * deviations(self._buffers, steps - past * self.epoch)
        variance, slack = self.totals.spread(past)
        return variance + within**2, np.where(past, slack, 0.0) + 0.5

    def factor(self, steps: int) -> float:
        """The largest deviation in so many steps, by that of one Gaussian release of the same cost."""
        last = numbers.count(steps, "steps")
        past = (last - 1) // self.epoch
        # Each digit that is set adds noise. A smaller number has one digit less and at most all below it.
        ends = [past, *((past >> k << k) - 1 for k in range(past.bit_length()) if past >> k & 1)]
        worst = [min((each + 1) * self.epoch, last) for each in ends]
        variance = float(self._spread(np.array(worst))[0].max())
        return math.sqrt(variance) * self.sensitivity.upper / float(self.scale)

    @staticmethod
    def designed(
        *,
        scale: Number,
        epoch: int = EPOCH,
        largest: int = 1,
        categories: int | None = None,
        separation: int = 1,
        most: int | None = None,
    ) -> EndlessSum:
        """With buffers of the least largest error for units that take part once; a fifth of μ² for totals."""
        noise = numbers.positive(scale, "scale")
        decays, scales = design(numbers.count(epoch, "epoch", least=2, most=LONGEST), None)

        def made(total_scale: Fraction) -> EndlessSum:
            return EndlessSum(
                epoch=epoch,
                scale=noise,
                total_scale=total_scale,
                decays=decays,
                scales=scales,
                largest=largest,
                categories=categories,
                separation=separation,
                most=most,
            )

        times, draft = most or 1, made(noise)
        alone = math.sqrt(draft.sensitivity.upper**2 - times**2)
        ratio = times / alone * math.sqrt(1 / TOTALS - 1)
        return made(noise * Fraction(math.ceil(ratio * 10**9), 10**9))

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number,
        epoch: int = EPOCH,
        largest: int = 1,
        categories: int | None = None,
        separation: int = 1,
        most: int | None = None,
    ) -> EndlessSum:
        """The least noise with which all outputs together are (epsilon, delta)-differentially private."""

        def make(scale: Number) -> EndlessSum:
            return EndlessSum.designed(
                scale=scale,
                epoch=epoch,
                largest=largest,
                categories=categories,
                separation=separation,
                most=most,
            )

        multiplier = Gaussian.calibrate(epsilon=epsilon, delta=delta).noise_multiplier
        draft = make(1000 * largest)
        return fitted(make, multiplier, draft.sensitivity.upper, largest)


class EndlessBlocks:
    """The noise of `width` streams, released at every step."""

    def __init__(self, mechanism: EndlessSum, key: StreamKey, width: int) -> None:
        self.mechanism, self.key, self.width = mechanism, key, width
        self.steps = min(block_steps(width), mechanism.epoch)
        self.blocks = 0
        self._totals, self._known = mechanism.totals.blocks(key, width), np.empty((0, width), np.int64)
        self._running, self._past = mechanism.running(key, 0, width), np.zeros(width, np.int64)

    @property
    def size(self) -> int:
        """Bytes of what is carried from block to block, but for the noise of totals to come."""
        return self._running.size + self._totals.size + self._past.nbytes

    def next(self) -> Ints:
        """The noise of the next block's steps."""
        epoch, place = divmod(self.blocks * self.steps, self.mechanism.epoch)
        if epoch and not place:
            self._turn(epoch)
        found = self._running.next()[: self.steps] + self._past
        self.blocks += 1
        return found

    def _turn(self, epoch: int) -> None:
        """A new epoch, before which there were so many."""
        place = (epoch - 1) % self._totals.steps
        if not place:
            self._known = self._totals.next()
        self._past = self._known[place]
        self._running = self.mechanism.running(self.key, epoch, self.width)
