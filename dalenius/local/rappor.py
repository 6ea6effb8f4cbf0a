"""RAPPOR: Bloom filters of strings, flipped once for good, and flipped again for every report.

Of the string the device sets `hashes` bits of `width` in a Bloom filter, by the hashes of its cohort, which
it drew once and for all. Permanent response: each bit is replaced by a fair coin with probability f =
`replaced`, once for each string, and remembered (`client`). Instantaneous response: each report draws its
bits anew, 1 with probability q = `high` where the permanent bit is 1 and p = `low` where it is 0.

Theorem (Erlingsson, Pihur and Korolova 2014; natural logarithms). Two strings differ in at most h bits each
way, h = `hashes`, and bits are drawn by themselves. So, exactly where they do:

    one report          ε₁ = h·log(q*(1 − p*)/(p*(1 − q*))),  q* = (f/2)(p + q) + (1 − f)q, p* the same with p
    k reports           what counts of a bit is how often it was 1: Bin(k, q) with probability 1 − f/2 and
                        Bin(k, p) with f/2 for a bit that is set, the other way round for one that is not;
                        ε_k = h·(log of the ratio at k ones + that at no ones)
    all reports ever    ε∞ = 2h·log((1 − f/2)/(f/2)), the loss of the permanent response itself

as long as the string stays the same; `what_reports_cost` says what changes cost. Shares of candidate
strings: `decode`, which solves for them by `regression`. A bit of the permanent response must be cleared as
well as set: a client that only sets bits tells a string that is there for certain, and fails its audit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

import numpy as np

from dalenius import noise
from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument
from dalenius.local import intervals
from dalenius.local.bit_rows import BitRows
from dalenius.local.frequency import ALPHA
from dalenius.local.randomizer import Estimates, Ints, ratio_of
from dalenius.local.regression import regressed
from dalenius.local.reports import Rows
from dalenius.local.strings import Words, power_of_two
from dalenius.losses.fields import Parameter
from dalenius.losses.joint import Joint
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.losses.raw import DiscretePair
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.profiles.balls import BITS, ball, upper

MOST_LISTED = 64
"""Reports up to which their law is written out; for more the loss is stated by its ε."""


@dataclass(frozen=True)
class Rappor(BitRows, kind="rappor"):
    """Filters of `width` bits, `hashes` of them set. See the module."""

    _: KW_ONLY
    width: Parameter[int] = Parameter(lambda value, name: power_of_two(value, name, most=2**14))
    hashes: Parameter[int] = Parameter(lambda value, name: numbers.count(value, name, most=16))
    cohorts: Parameter[int] = Parameter(lambda value, name: power_of_two(value, name, least=1, most=2**12))
    replaced: Parameter[Fraction] = Parameter(numbers.probability)
    low: Parameter[Fraction] = Parameter(numbers.probability)
    high: Parameter[Fraction] = Parameter(numbers.probability)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 < self.replaced < 1 and self.low < self.high):
            raise InvalidArgument(
                "replaced must be between 0 and 1, and low below high.",
                remedy="Choose replaced=0.5, low=0.25, high=0.75, as Chrome did.",
            )
        if self.width < 2 * self.hashes:
            raise InvalidArgument("width must be at least twice hashes.", remedy="Choose a wider filter.")

    @property
    def layout(self) -> tuple[int, int, int]:
        """A row for each cohort."""
        return self.cohorts, self.width, self.hashes

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """q* and p*."""
        mixed = self.replaced / 2 * (self.low + self.high)
        return mixed + (1 - self.replaced) * self.high, mixed + (1 - self.replaced) * self.low

    # The device.

    def permanent(self, filters: Rows) -> Rows:
        """Each bit replaced by a fair coin with probability f: set, or cleared."""
        replaced = noise.bernoulli(self.replaced, filters.size).reshape(filters.shape)
        coins = noise.bernoulli(Fraction(1, 2), filters.size).reshape(filters.shape)
        return np.where(replaced, coins, filters).astype(np.uint8)

    def instantaneous(self, permanent: Rows) -> Rows:
        """The bits of one report each."""
        high, low = (
            noise.bernoulli(one, permanent.size).reshape(permanent.shape) for one in (self.high, self.low)
        )
        return np.where(permanent, high, low).astype(np.uint8)

    def randomize(self, values: Words) -> Rows:
        """The first report of as many devices."""
        row = self.draw_rows(len(values))
        return self.joined(row, self.instantaneous(self.permanent(self.filters(row, values))))

    # What it costs.

    @property
    def loss(self) -> Loss:
        """Of one report."""
        return self.loss_of(1)

    def loss_of(self, reports: int) -> Loss:
        """Of so many reports of one string by one device."""
        many = numbers.count(reports, "reports")
        if many == 1:
            q, p = self.support
            return self._both(q * (1 - p), p * (1 - q))
        if many > MOST_LISTED:
            return Pure(Fraction(self.epsilon_of(many)), relation=self.relation)
        kept = 1 - self.replaced / 2
        ones, zeros = (_binomial(many, chance) for chance in (self.high, self.low))
        is_set = [kept * one + (1 - kept) * zero for one, zero in zip(ones, zeros, strict=True)]
        is_not = [(1 - kept) * one + kept * zero for one, zero in zip(ones, zeros, strict=True)]
        there, back = (
            DiscretePair(p, q, relation=self.relation) for p, q in ((is_set, is_not), (is_not, is_set))
        )
        # A bit that only the one string sets, and one that only the other sets, change together.
        pair = Joint(there + back)
        return pair if self.hashes == 1 else pair * self.hashes

    @property
    def permanent_loss(self) -> Loss:
        """Of the permanent response: of all reports of one string there may ever be."""
        kept = 1 - self.replaced / 2
        return self._both(kept**2, (1 - kept) ** 2)

    def _both(self, a: Fraction, b: Fraction) -> Loss:
        """Of h pairs of bits, a bit set by each of two strings, that tell them apart with these masses."""
        pair = DiscretePair((a, b, 1 - a - b), (b, a, 1 - a - b), relation=self.relation)
        return pair if self.hashes == 1 else pair * self.hashes

    def epsilon_of(self, reports: int) -> float:
        """ε_k, rounded up."""
        many = numbers.count(reports, "reports")
        with workprec(BITS):
            kept, lost = ball(1 - self.replaced / 2), ball(self.replaced / 2)
            total = ball(Fraction(0))
            for under, over in ((self.low, self.high), (1 - self.high, 1 - self.low)):
                rest = (many * ball(under / over).log()).exp() if under else ball(Fraction(0))
                total += ((kept + lost * rest) / (lost + kept * rest)).log()
            return upper(self.hashes * total)

    # The server.

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """In which share of each cohort's filters a bit is set."""
        counts, ones = self.by_row(tally)
        q, p = map(float, self.support)
        many = np.repeat(counts, self.width)
        share = (ones.ravel() / np.maximum(many, 1) - p) / (q - p)
        ends = intervals.mean_chance(ones.ravel(), many, ALPHA)
        low, high = ((end - p) / (q - p) for end in ends)
        low, high, open_ = intervals.held(low, high, 0.0, 1.0)
        columns = {
            "cohort": np.repeat(np.arange(self.cohorts), self.width).tolist(),
            "bit": np.tile(np.arange(self.width), self.cohorts).tolist(),
            "share": np.where(many, share, 0).tolist(),
            "share_low": low.tolist(),
            "share_high": high.tolist(),
        }
        return Estimates(columns, ("share",), intervals.doubts(open_))

    def decoded(
        self, tally: Ints, count: int, candidates: Words, alpha: float
    ) -> tuple[dict[str, list[float]], str]:
        """Shares of candidates, by regression of the bits of all cohorts on theirs."""
        counts, ones = self.by_row(tally)
        filters = np.stack(
            [self.filters(np.full(len(candidates), row), candidates) for row in range(self.cohorts)]
        )
        q, p = map(float, self.support)
        return regressed(counts, ones, filters, p, q, alpha)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        width: int = 128,
        hashes: int = 2,
        cohorts: int = 128,
        low: Number = Fraction(1, 4),
        high: Number = Fraction(3, 4),
    ) -> Rappor:
        """All reports of one string, by a client that remembers, are epsilon-private together.

        One report alone costs less. Filters and the second noise are those of Chrome, if nothing is said.
        """
        many = numbers.count(hashes, "hashes", most=16)
        replaced = 2 / (ratio_of(numbers.epsilon(epsilon) / (2 * many)) + 1)
        return Rappor(width=width, hashes=many, cohorts=cohorts, replaced=replaced, low=low, high=high)

    def of_crowd(self, values: Sequence[str], people: Ints) -> tuple[Estimates, bool]:
        """Shares of these strings as so many people with each would give them."""
        words, count = self.read(list(values)), int(people.sum())
        columns, how = self.decoded(self.crowd(words, people), count, words, ALPHA)
        return Estimates({"item": list(values), **columns}, ("share",), (how,)), True


def _binomial(trials: int, chance: Fraction) -> list[Fraction]:
    """The masses of 0 to `trials` successes."""
    return [math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]
