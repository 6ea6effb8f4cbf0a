"""PrivUnitG, for the mean of vectors: a Gaussian direction, more often than not one that points the same way.

Theorem (Asi, Feldman and Talwar 2022, after PrivUnit of Bhowmick, Duchi, Freudiger, Kapoor and Rogers 2018).
Let v be a unit vector of dimension d, G standard Gaussian, and Q = P(⟨G, v⟩ ≥ γ) = Φ(−γ), whatever v is. The
report is G given ⟨G, v⟩ ≥ γ with probability p, else G given the contrary. It is ε-private with e^ε =
(p/Q)/((1 − p)/(1 − Q)), and over μ = φ(γ)(p/Q − (1 − p)/(1 − Q)) unbiased, of E‖report/μ − v‖² = (d − 1 +
E⟨G, v⟩²)/μ² − 1. With the best γ and among unbiased ones, PrivUnit, which is uniform on a sphere, has the
least worst error, and this one no more but for a part that vanishes with d.

On a grid, exactly. Devices draw G as independent rounded Gaussians u of scale s = 2^20, exact (`noise`); the
vector is first put on integers w, of length 2^20(1 ± ρ), ρ = (√d + 1)/2^19, which is checked in integers,
and what does not pass is a fixed vector. The cap is the u with ⟨u, w⟩ ≥ τ, for a whole number τ = γ·2^40,
compared in integers. As u is s·G rounded, ⟨u, w⟩ is s⟨G, w⟩ up to ‖w‖₁/2 ≤ √d·‖w‖/2, and ⟨G, w⟩/‖w‖ is a
standard normal number. So the cap of every w has a probability from

    Φ(−γ/(1 − ρ) − √d/2^21) − 2^−100   to   Φ(−γ/(1 + ρ) + √d/2^21) + 2^−100,

call them Q⁻ and Q⁺; the last term is for entries beyond 31 standard deviations, which are cut there. A
report u has probability p·P(u)/Q_w in the cap and (1 − p)·P(u)/(1 − Q_w) outside, P the same for all
vectors. So between two vectors it is likelier by at most the largest of p(1 − Q⁻)/((1 − p)Q⁻), (1 −
p)Q⁺/(p(1 − Q⁺)), Q⁺/Q⁻ and (1 − Q⁻)/(1 − Q⁺). Here p = r·Q⁻/(1 − Q⁻ + r·Q⁻), rational, makes the first at
most r = `ratio`, and that the others are not above is checked in rational numbers, else refused. Q⁻ and Q⁺
come from ball arithmetic, rounded outward. No float decides anything of this. The loss charged is that of
randomized response with r, the worst of all that are r-private (Kairouz, Oh and Viswanath 2015).

What is sent is u in steps of 2^−10, rounded at random without bias: post-processing. Rounding leaves a bias
of the order of √d/2^20 of the radius, far below any error.

A vector shorter than the radius goes to its own direction or the opposite one, with such chances that the
mean is the vector: unbiased, and by at most 1 more in E‖·‖². A longer one is cut to the radius, and entries
that are no numbers are 0.

Error bars, of each entry by itself, 0.95 or more. Entry e of the direction has the report e·a + √(1 − e²)·z,
z normal and a of known law; log of its moment generating function is maximized over e and over short
vectors, on a grid and widened by a hundredth, and gives Chernoff's bound. For many people the theorem of
Berry and Esseen is shorter (`sums`).
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
from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument, NotSound
from dalenius.local import frequency, tails, tallies
from dalenius.local.randomizer import Estimates, Floats, Ints, Randomizer, ratio_of, read_ratio
from dalenius.local.reading import rows, vectors
from dalenius.local.reports import Rows
from dalenius.losses.fields import Parameter
from dalenius.losses.raw import DiscretePair
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.profiles.balls import ball, lower, upper

FINE, COARSE = 20, 10
"""Halvings of the grid that is drawn on, and of the one that is sent."""
ONE = 1 << FINE
FAR = 1 << 15
"""What is added to an entry, in coarse steps, so that none is negative."""
CUT = 31
"""Standard deviations at which entries are cut."""
MOST_CUT = 4
"""γ at most: then one in 30,000 draws is in the cap."""
SPARE = Fraction(1, 2**100)


@dataclass(frozen=True)
class PrivUnit(Randomizer, kind="privunit_gaussian"):
    """Vectors of `dimension` entries and of length `radius` at most; `cut` is γ. See the module."""

    _: KW_ONLY
    ratio: Fraction
    dimension: Parameter[int] = Parameter(lambda value, name: numbers.count(value, name, most=1 << 16))
    radius: Parameter[Fraction] = Parameter(numbers.measurable)
    cut: Parameter[Fraction] = Parameter(numbers.non_negative)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ratio", read_ratio(self.ratio, "ratio"))
        if self.cut > MOST_CUT or (self.cut * ONE).denominator != 1:
            raise InvalidArgument(
                "cut must be at most 4 and a multiple of 2^-20.", remedy="Use calibrate, which chooses it."
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
        with workprec(192):
            root = ball(Fraction(self.dimension)).sqrt()
            slack, off = (root + 1) * 2 / ONE, root / (2 * ONE)
            far, near = ball(self.cut) / (1 - slack) + off, ball(self.cut) / (1 + slack) - off
            two = ball(Fraction(2)).sqrt()
            low, high = lower((far / two).erfc() / 2), upper((near / two).erfc() / 2)
        return Fraction(low) - SPARE, Fraction(high) + SPARE

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
        rows = (np.asarray(draws, dtype=np.float64).reshape(-1, self.dimension) - FAR) / 2**COARSE
        both = self.read(pair) / float(self.radius)
        first, second = (rows @ both.T >= float(self.cut)).T.astype(np.float64)
        return np.asarray(math.log(self.ratio) * (first - second))

    @property
    def law(self) -> tails.Tilted:
        """That of a report along the vector, without the grid."""
        return tails.Tilted(float(self.cut), float(self.chance))

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

    def draw(self, whole: Ints) -> Ints:
        """Fine Gaussian vectors, in the cap of each direction or outside."""
        inside, cut = noise.bernoulli(self.chance, len(whole)), int(self.cut * ONE) * ONE
        found, todo, most = np.empty(whole.shape, np.int64), np.arange(len(whole)), CUT * ONE
        while todo.size:
            drawn = noise.rounded_gaussian(ONE, todo.size * self.dimension).reshape(-1, self.dimension)
            drawn = np.clip(drawn, -most, most)
            there = (drawn * whole[todo]).sum(axis=1) >= cut
            fits = there == inside[todo]
            found[todo[fits]] = drawn[fits]
            todo = todo[~fits]
        return found

    def randomize(self, values: NDArray[Any]) -> Rows:
        """A fine vector, in coarse steps."""
        fine = self.draw(self.directions(values))
        shift = FINE - COARSE
        spread = np.asarray(noise.uniform(1 << shift, fine.size), dtype=np.int64).reshape(fine.shape)
        return ((fine + spread) >> shift) + FAR

    # The server.

    @property
    def cells(self) -> int:
        """One for each entry."""
        return self.dimension

    @cached_property
    def longest(self) -> int:
        """The square of the length that a report passes with 2^−60 at most, in coarse steps.

        That of G is above d + 2√(dx) + 2x with e^{−x} at most (Laurent and Massart 2000). A report is at most
        1/Q⁻ < 2^15 times likelier than G, and roundings add two steps to each entry.
        """
        x, d = 56, self.dimension
        far = math.sqrt(d + 2 * math.sqrt(d * x) + 2 * x) * 2**COARSE + 2 * math.sqrt(d)
        return int(far**2) + 1

    def possible(self, rows: Rows) -> NDArray[np.bool_]:
        """Those that are not cut anywhere, nor too long."""
        whole = rows.astype(np.int64) - FAR
        within = (np.abs(whole) <= CUT << COARSE).all(axis=1)
        return np.asarray(within & ((whole**2).sum(axis=1) <= self.longest))

    def adds_up(self, tally: Ints, count: int) -> bool:
        """Where no entry is cut, and the sum is no longer than all reports together can be."""
        most = (CUT << COARSE) * count
        square = sum(each**2 for each in tally.tolist())
        return tallies.between(tally, -most, most) and square <= count**2 * self.longest

    def tally(self, rows: Rows) -> Ints:
        """The sum, in coarse steps."""
        return np.asarray(rows.astype(np.int64).sum(axis=0) - FAR * len(rows))

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """The mean of each entry."""
        scale = float(self.radius) / self.law.mean
        mean = tally / (count * 2**COARSE) * scale
        wide = scale * self.law.half_width(count, frequency.ALPHA)
        most, variance = float(self.radius), scale**2 * self.law.most_square / count
        columns = {
            "entry": range(self.dimension),
            "mean": mean.tolist(),
            "mean_low": np.clip(mean - wide, -most, most).tolist(),
            "mean_high": np.clip(mean + wide, -most, most).tolist(),
            "variance": [variance] * self.dimension,
        }
        return Estimates(columns, ("mean",), ("variances are the most that they can be",))

    def variance(self, *, users: int = 1) -> float:
        """E‖error‖² of the mean of so many vectors of length `radius`, all entries together."""
        own = (self.dimension - 1 + self.law.square) / self.law.mean**2 - 1
        return own * float(self.radius) ** 2 / users

    @property
    def tries(self) -> float:
        """Vectors that a device draws for a report, in the mean: thousands for a large ε."""
        cap = float(self.cap[0])
        return float(self.chance) / cap + float(1 - self.chance) / (1 - cap)

    @staticmethod
    def calibrate(*, dimension: int, epsilon: Number, radius: Number = 1) -> PrivUnit:
        """The γ of the least error, in steps of 1/256."""
        ratio, many = ratio_of(epsilon), numbers.count(dimension, "dimension", most=1 << 16)

        def error(step: int) -> float:
            law = tails.Tilted.of(step / 256, float(ratio))
            return (many - 1 + law.square) / law.mean**2

        best = min(range(256 * MOST_CUT + 1), key=error)
        return PrivUnit(dimension=many, radius=radius, ratio=ratio, cut=Fraction(best, 256))
