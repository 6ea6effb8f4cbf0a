"""PrivUnit, for the mean of vectors: a random direction, more often than not one that points the same way.

Theorem (Bhowmick, Duchi, Freudiger, Kapoor and Rogers 2018). Let v be a unit vector of dimension d, û uniform
on the sphere, and Q = P(⟨û, v⟩ ≥ c), whatever v is. The report is û given ⟨û, v⟩ ≥ c with probability p, else
û given the contrary. It is ε-private with e^ε = (p/Q)/((1 − p)/(1 − Q)), and over m = E⟨report, v⟩ unbiased,
of E‖report/m − v‖² = 1/m² − 1. Asi, Feldman and Talwar (2022) show that with the best p and c none that is
ε-private and unbiased has a smaller worst error; here that is so as long as the best cap is not too unlikely
to be drawn (`calibrate`). At the best c, m = c; both are derived in `caps`.

On a grid, exactly. Devices draw u as independent rounded Gaussians of scale s = 2^20, exact (`noise`), cut at
11 standard deviations, and anew where all are 0; v is first put on integers w, of length 2^20(1 ± ρ), ρ =
(√d + 1)/2^19, which is checked in integers, and what does not pass is a fixed vector. With c = a/b the cap is

    ⟨u, w⟩ > 0   and   b²⟨u, w⟩² ≥ a²‖u‖²‖w‖²,

decided exactly (`caps.steep`). Its probability Q_w is between Q⁻ and Q⁺ for every w, by the theorem of
`caps`, in which only the direction of w counts. A report u has probability p·P(u)/Q_w in the cap and (1 −
p)·P(u)/(1 − Q_w) outside, P the same for all vectors. So between two vectors it is likelier by at most the
largest of p(1 − Q⁻)/((1 − p)Q⁻), (1 − p)Q⁺/(p(1 − Q⁺)), Q⁺/Q⁻ and (1 − Q⁻)/(1 − Q⁺). Here p = r·Q⁻/(1 − Q⁻ +
r·Q⁻), rational, makes the first at most r = `ratio`, and that the others are not above is checked in rational
numbers, else refused. Q⁻ and Q⁺ come from ball arithmetic, rounded outward. No float decides anything of this
unless it is proved to be right. The loss charged is that of randomized response with r, the worst of all that
are r-private (Kairouz, Oh and Viswanath 2015). For d = 1 the mechanism is randomized response.

What is sent is √d·u/‖u‖ in steps of 2^−10, rounded at random without bias. This is post-processing of u, as
is all that a server does, so floats may be used: privacy is settled before. Its length is √d within a step
for each entry, and anything else is refused. Rounding adds at most 2^−22/m² to the error.

Bias. The cap is that of w and not of v, which are √d/2^21 apart at most, in parts of the radius. Of u and G
one is in the cap and the other not with 2κ at most, κ of `caps`, so that rounding moves the mean by 5κ/(Q⁻m)
at most: 0.13 % of the radius for d = 10 at ε = 8, and more than the radius where entries are many or ε is
large. What is sent adds 2^−21/m by its finer grid. The bound is far from what is seen: added up for d = 2 and
s = 128, the bias is 40 to thousands of times less than it.

A vector shorter than the radius goes to its own direction or the opposite one, with such chances that the
mean is the vector: unbiased, and by at most 1 more in E‖·‖². A longer one is cut to the radius, and entries
that are no numbers are 0.

Error bars, of each entry by itself, are of the mean of reports, 0.95 or more, by the theorems of Chernoff or
Berry and Esseen (`tails`). The bias of the grid is not in them.

Time. How many vectors a device draws depends on neither the coin nor, but for κ, the vector (`caps.draw`).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import caps, frequency, intervals, tails
from dalenius.local.caps import FINE, ONE
from dalenius.local.randomizer import Estimates, Floats, Ints, Randomizer, ratio_of, read_ratio
from dalenius.local.reading import rows, vectors
from dalenius.local.reports import Rows
from dalenius.losses.fields import Parameter
from dalenius.losses.raw import DiscretePair
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

COARSE = 10
"""Halvings of the grid that is sent."""
FAR = 1 << 15
"""What is added to an entry, in coarse steps, so that none is negative."""
LEAST_CAP = Fraction(1, 2**16)


@dataclass(frozen=True)
class PrivUnit(Randomizer, kind="privunit"):
    """Vectors of `dimension` entries and of length `radius` at most; `cut` is c. See the module."""

    _: KW_ONLY
    ratio: Fraction
    dimension: Parameter[int] = Parameter(lambda value, name: numbers.count(value, name, most=1 << 16))
    radius: Parameter[Fraction] = Parameter(numbers.measurable)
    cut: Parameter[Fraction] = Parameter(numbers.non_negative)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ratio", read_ratio(self.ratio, "ratio"))
        if self.cut >= 1 or (self.cut * ONE).denominator != 1 or self.cap[0] < LEAST_CAP:
            raise InvalidArgument(
                "cut must be below 1, a multiple of 2^-20, and leave a cap of 2^-16 or more.",
                remedy="Use calibrate, which chooses it.",
            )
        p, (low, high) = self.chance, self.cap
        others = ((1 - p) * high / (p * (1 - high)), high / low, (1 - low) / (1 - high))
        if p * (1 - low) > self.ratio * (1 - p) * low or max(others) > self.ratio:
            raise NotSound(
                "So little privacy loss is not proved on the grid, for vectors of so many entries.",
                remedy="Use a larger epsilon, or fewer entries.",
            )

    @cached_property
    def cap(self) -> tuple[Fraction, Fraction]:
        """Q⁻ and Q⁺."""
        return caps.bounds(self.dimension, self.cut)

    @cached_property
    def chance(self) -> Fraction:
        """p."""
        return self.ratio * self.cap[0] / (1 - self.cap[0] + self.ratio * self.cap[0])

    @property
    def loss(self) -> DiscretePair:
        """Of one report: the worst of what is so private."""
        a, b = self.ratio / (self.ratio + 1), 1 / (self.ratio + 1)
        return DiscretePair((a, b), (b, a), relation=self.relation)

    def worst_case(self) -> tuple[list[float], list[float]]:
        """A vector and its opposite."""
        rest = [0.0] * (self.dimension - 1)
        return [float(self.radius), *rest], [-float(self.radius), *rest]

    def log_ratio(self, draws: NDArray[Any], pair: tuple[Any, Any]) -> Floats:
        """By the caps that a draw is in, to a coarse step."""
        rows = np.asarray(draws, dtype=np.float64).reshape(-1, self.dimension) - FAR
        both = self.read(pair) / float(self.radius)
        cosines = rows @ both.T / (math.sqrt(self.dimension) * 2**COARSE)
        first, second = (cosines >= float(self.cut)).T.astype(np.float64)
        return np.asarray(math.log(self.ratio) * (first - second))

    @cached_property
    def law(self) -> tails.Tilted:
        """That of a report along the vector, without the grid."""
        return tails.Tilted(self.dimension, float(self.cut), float(self.chance))

    # The device.

    @property
    def shape(self) -> tuple[int, int]:
        """A number for each entry."""
        return 2 * FAR, self.dimension

    def read(self, values: Any) -> Floats:
        """Rows of floats."""
        return vectors(values, self.dimension)

    def read_one(self, value: Any) -> Floats:
        """A row; zeros for what is none."""
        return rows([value], self.dimension)

    def key(self, read: NDArray[Any]) -> bytes:
        """By all that is used of a vector: its direction, and how often it is that one."""
        whole, often = self.aimed(read)
        return whole.tobytes() + often.tobytes()

    def directions(self, values: Floats) -> Ints:
        """Unit vectors as integers, of which the mean is the vector, over the radius."""
        whole, often = self.aimed(values)
        drawn = np.asarray(noise.uniform(1 << 48, len(values)), dtype=np.int64)
        return np.where((drawn >= often)[:, None], -whole, whole)

    def aimed(self, values: Floats) -> tuple[Ints, Ints]:
        """The own directions, and of 2^48 draws those with which it is not the opposite one."""
        most = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
        scaled = values / np.where(most > 0, most, 1.0)
        norm = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
        scaled = scaled / np.where(norm > 0, norm, 1.0)
        whole = np.floor(scaled * ONE + 0.5).astype(np.int64)
        off = np.abs((whole**2).sum(axis=1) - ONE**2)
        # ‖w‖ is within 2^20(1 ± ρ) where ‖w‖² is within 2^40(1 ± ρ); rounding takes it half as far.
        bad = off > 2 * ONE * (math.isqrt(self.dimension) + 1)
        whole[bad] = np.eye(1, self.dimension, dtype=np.int64) * ONE
        with np.errstate(over="ignore"):
            long = np.minimum(norm[:, 0] * most[:, 0] / float(self.radius), 1.0)
        return whole, np.floor((1 + np.where(bad, 0.0, long)) * 2**47).astype(np.int64)

    def draw(self, whole: Ints) -> Floats:
        """Fine Gaussian vectors, whole numbers, in the cap of each direction or outside."""
        inside = noise.bernoulli(self.chance, len(whole))
        return caps.draw(self.cut, inside, whole, at_once=math.ceil(self.tries))

    def randomize(self, values: NDArray[Any]) -> Rows:
        """A direction times √d, in coarse steps; floats are of what is private already."""
        fine, shift = self.draw(self.directions(values)), FINE - COARSE
        long = np.sqrt(np.einsum("ij,ij->i", fine, fine)) / (math.sqrt(self.dimension) * ONE)
        whole = np.floor(fine / long[:, None] + 0.5).astype(np.int64)
        spread = np.asarray(noise.uniform(1 << shift, whole.size), dtype=np.int64).reshape(whole.shape)
        return np.asarray(np.clip(((whole + spread) >> shift) + FAR, 0, 2 * FAR - 1))

    # The server.

    @property
    def cells(self) -> int:
        """One for each entry."""
        return self.dimension

    @property
    def lengths(self) -> tuple[int, int]:
        """Squares between which that of a report's length is, in coarse steps.

        An entry is less than a step from √d·2^10 times that of a direction: 1 − 2^−10 by random rounding and
        2^−11 by that to the fine grid. Beyond 2^15 steps it is cut, which takes 32 standard deviations.
        """
        off = 1 if self.dimension > 1 else 0
        return self.dimension * (2**COARSE - off) ** 2, self.dimension * (2**COARSE + off) ** 2

    def possible(self, rows: Rows) -> NDArray[np.bool_]:
        """Those that are as long as a direction."""
        square, (least, most) = ((rows.astype(np.int64) - FAR) ** 2).sum(axis=1), self.lengths
        return np.asarray((square >= least) & (square <= most))

    def adds_up(self, tally: Ints, count: int) -> bool:
        """Where the sum is no longer than all reports together can be."""
        return bool(sum(each**2 for each in tally.tolist()) <= count**2 * self.lengths[1])

    def tally(self, rows: Rows) -> Ints:
        """The sum, in coarse steps."""
        return np.asarray(rows.astype(np.int64).sum(axis=0) - FAR * len(rows))

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """The mean of each entry."""
        scale = float(self.radius) / (math.sqrt(self.dimension) * self.law.mean)
        mean = tally / (count * 2**COARSE) * scale
        wide = scale * self.law.half_width(count, frequency.ALPHA)
        most, variance = float(self.radius), scale**2 * self.law.most_square / count
        low, high, open_ = intervals.held(mean - wide, mean + wide, -most, most)
        columns = {
            "entry": range(self.dimension),
            "mean": mean.tolist(),
            "mean_low": low.tolist(),
            "mean_high": high.tolist(),
            "variance": [variance] * self.dimension,
        }
        notes = "variances are the most that they can be", *intervals.doubts(open_)
        return Estimates(columns, ("mean",), notes)

    def variance(self, *, users: int = 1) -> float:
        """E‖error‖² of the mean of so many vectors of length `radius`, but for the grid; of all entries."""
        if self.dimension == 1:
            own = float(4 * self.chance * (1 - self.chance) / (2 * self.chance - 1) ** 2)
        else:
            own = (1 + 2.0 ** (-2 * COARSE - 2)) / self.law.mean**2 - 1
        return own * float(self.radius) ** 2 / users

    @property
    def tries(self) -> float:
        """Vectors that a device draws for a report, in the mean: thousands for a large ε."""
        cap = float(self.cap[0])
        return 1 / (2 * cap) + 1 / (1 - cap) - 1

    @staticmethod
    def calibrate(*, dimension: int, epsilon: Number, radius: Number = 1) -> PrivUnit:
        """The cap of the least error, of those that one draw in 2^15 is in.

        That binds from ε = 13.3 on with many entries, 14.5 with ten and 20.8 with three: from there the error
        soon stops falling, and a smaller cap would have less, at more draws than a device can make. With two
        entries cuts are too coarse from ε = 18 on.
        """
        ratio, many = ratio_of(epsilon), numbers.count(dimension, "dimension", most=1 << 16)
        return PrivUnit(dimension=many, radius=radius, ratio=ratio, cut=caps.best(many, float(ratio)))
