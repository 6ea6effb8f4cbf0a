"""`DistinctCount`: how many different items a stream had, by a sketch whose bits are flipped once.

The sketch has `buckets`·`levels` bits. An item chooses a bucket evenly and level l with probability 2^−l
(what is left goes to the last), by its hash, and sets that bit. When the sketch is released each bit is
flipped with probability f = 1/(1 + e^ε), rounded up (Hehir, Ting and Cormode 2023).

Theorem. All appearances of an item set one bit, the same each time. So two streams that differ in one item
differ in one bit at most, and the flipped sketch, and whatever is made of it, is ε-private for an item, for
any hash function and salt: randomized response on one bit. Flipped sketches may be published and compared.
Units that a column tells apart are protected only where they are the items, which `items_are_units` states.

A sketch of maxima, as HyperLogLog keeps them, is another matter. An item with a rare hash sets a register
that hardly anything else sets, so one item may change an estimate by a large factor, and noise on the
estimate, or on the registers, that is scaled to what an item usually does protects usual items only. Here no
bit is rarer protected than another.

Estimate. A bit of level l is 1 after the flip with probability f + (1 − 2f)(1 − (1 − r_l)^n), r_l = 2^−l over
the buckets; the n that makes the counts of ones likeliest is taken. Error bars are those of its asymptotic
normal law, by the information about n in the bits, a twentieth wider: not exact for few items or buckets.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Parameter, whole
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.mechanisms.above_threshold import Single, paid
from dalenius.mechanisms.mechanism import Floats, Mechanism, Payer, Stamp, risk
from dalenius.noise.lazy import ball
from dalenius.privacy import numbers
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Release
from dalenius.streams.hashing import hashed
from dalenius.streams.participants import whom_of_items
from dalenius.streams.sums import quantile

BITS = 40
"""A probability of a flip is a multiple of 2^−BITS, rounded up."""
WIDER = 1.05


@dataclass(frozen=True)
class DistinctCount(Mechanism, kind="distinct_count"):
    """A sketch of `buckets` by `levels` bits, flipped for `epsilon` when it is released."""

    _: KW_ONLY
    epsilon: Parameter[Fraction] = Parameter(numbers.epsilon)
    buckets: Parameter[int] = Parameter(whole, 1024)
    levels: Parameter[int] = Parameter(whole, 24)
    salt: int = 0

    def __post_init__(self) -> None:
        numbers.count(self.buckets, "buckets", most=2**20)
        numbers.count(self.levels, "levels", most=40)
        numbers.count(self.salt, "salt", least=0)
        if self.buckets == self.levels == 1:
            raise InvalidArgument(
                "One bit alone tells whether there was an item, and not how many.",
                remedy="Pass more buckets or levels, such as buckets=1024.",
            )

    @cached_property
    def flip(self) -> Fraction:
        """1/(1 + e^ε), rounded up."""
        with workprec(200):
            far = 2**BITS / (1 + ball(min(self.epsilon, Fraction(20))).exp())
            return Fraction(int(far.upper().ceil().unique_fmpz()), 2**BITS)

    @property
    def loss(self) -> Loss:
        """Of one release of the sketch."""
        return Pure(self.epsilon)

    def start(
        self,
        account: Payer | None = None,
        *,
        unit: Unit | None = None,
        by: str = "",
        purpose: str = "",
        items_are_units: bool = False,
    ) -> DistinctSketch:
        """A sketch that can be released once: charged now, where there is an account."""
        whom = whom_of_items(self.loss, account, unit, items_are_units=items_are_units)
        return DistinctSketch(self, whom, paid(self, account, whom, by, purpose))

    def release(self, value: Any, *, unit: Unit | None = None, items_are_units: bool = False) -> Release:
        """The number of different items of a list."""
        session = self.start(unit=unit, items_are_units=items_are_units)
        session.add(value)
        return session.value()

    def released(self, sketches: Any, unit: Unit | None, *, tainted: bool = False) -> Release:
        """The estimates of flipped sketches, with error bars; `tainted` where a seed flipped them."""
        pairs = [self.estimate(sketch) for sketch in sketches]
        columns = {
            "value": [n for n, _ in pairs],
            "value_low": [max(0.0, n - far) for n, far in pairs],
            "value_high": [n + far for n, far in pairs],
        }
        found = self._released(columns, ("value",), unit)
        note = "one release of the sketch; a unit is one item, however often it appears"
        return replace(found, receipt=replace(found.receipt, bounds=(note,), tainted=tainted))

    def places(self, items: Any) -> NDArray[np.int64]:
        """The bit of each item."""
        words = hashed(items, self.salt)
        bucket = (words >> np.uint64(40)) * np.uint64(self.buckets) >> np.uint64(24)
        low = (words & np.uint64(2**40 - 1)).astype(np.int64) | 1 << 40
        level = np.log2((low & -low).astype(np.float64)).astype(np.int64)
        return bucket.astype(np.int64) * self.levels + np.minimum(level, self.levels - 1)

    def flipped(self, bits: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Each bit flipped by a coin of its own."""
        return bits ^ noise.bernoulli(self.flip, bits.size)

    def _rates(self) -> Floats:
        share = 0.5 ** np.arange(1, self.levels + 1)
        share[-1] *= 2
        return share / self.buckets

    def estimate(self, bits: NDArray[np.bool_]) -> tuple[float, float]:
        """The likeliest number of items, and how far off it is in 95 of 100 cases."""
        from scipy.optimize import minimize_scalar

        ones = bits.reshape(self.buckets, self.levels).sum(axis=0)
        rates, f = self._rates(), float(self.flip)

        def chances(n: float) -> Floats:
            return f + (1 - 2 * f) * -np.expm1(n * np.log1p(-rates))

        def unlikely(t: float) -> float:
            p = chances(math.expm1(t))
            return -float(ones @ np.log(p) + (self.buckets - ones) @ np.log1p(-p))

        most = math.log(self.buckets) + self.levels * math.log(2)
        starts = np.linspace(0, most, 60)
        best = float(min(starts, key=unlikely))
        step = most / 59
        found = minimize_scalar(unlikely, bounds=(max(0.0, best - step), best + step), method="bounded")
        n = math.expm1(float(found.x))
        p = chances(n)
        slope = (1 - 2 * f) * -np.log1p(-rates) * np.exp(n * np.log1p(-rates))
        information = self.buckets * float(np.sum(slope**2 / (p * (1 - p))))
        return n, WIDER * quantile(risk(1 - CONFIDENCE)) / math.sqrt(information)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Flipped sketches of a public list of items, one row each."""
        bits = np.zeros(self.buckets * self.levels, np.bool_)
        bits[self.places(value)] = True
        coins = noise.bernoulli(self.flip, size * bits.size).reshape(size, bits.size)
        return (bits ^ coins).astype(np.int64)

    def worst_case(self) -> tuple[Any, Any]:
        """Nothing, and one item."""
        return np.empty(0, np.int64), np.array([1])


class DistinctSketch(Single):
    """A session of `DistinctCount`. Until it is flipped the sketch is as secret as the data."""

    def __init__(self, mechanism: DistinctCount, unit: Unit | None, stamp: Stamp) -> None:
        super().__init__()
        self.mechanism, self.unit, self._stamp = mechanism, unit, stamp
        self._bits = np.zeros(mechanism.buckets * mechanism.levels, np.bool_)
        self._flipped: NDArray[np.bool_] | None = None
        self._tainted = False

    def add(self, items: Any) -> None:
        """Items that appear, texts, bytes or whole numbers; all else is one item. Not after the release."""
        places = self.mechanism.places(items)
        with self._lock:
            self._check(1)
            if self._flipped is not None:
                raise NotSound(
                    "This sketch was charged for one release, which it has had.",
                    remedy="Start another sketch.",
                )
            with self._change():
                self._bits[places] = True

    def value(self) -> Release:
        """The number of different items; asked again, the same."""
        with self._lock:
            self._check(1)
            if self._flipped is None:
                with self._change():
                    self._flipped, self._tainted = self.mechanism.flipped(self._bits), noise.tainted()
                    self._bits[:] = False
            found = self.mechanism.released([self._flipped], self.unit, tainted=self._tainted)
            return self._stamp(found)
