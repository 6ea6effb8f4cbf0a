"""`PanPrivateDensity`: how many of the `items` appeared at least once, in a table that may be seized.

The table has one bit for each item of a public universe (Dwork, Naor, Pitassi, Rothblum and Yekhanin 2010,
Section 3). At first each bit is drawn from D₀ = Bernoulli(½). Whenever an item appears its bit is drawn
again, from D₁ = Bernoulli(½ + bias). An item that appeared a thousand times has the same law as one that
appeared once, so all appearances of an item together, a whole unit, are protected. An answer is the number of
ones plus discrete Laplace noise of scale 1/`answer_epsilon`, from which the number of items that appeared
follows: (ones − items/2)/bias.

Theorem. Between two announced intrusions let the table be seen once, between two calls, and up to `answers`
answers. For a unit that is one item (`items_are_units` where a column tells units apart) this is ε-private,
ε = −ln(1 − 2·bias) + answers·`answer_epsilon`. Proof. With b the item's bit at the intrusion and τ the course
of its bit, what is seen has the probability Σ_τ P(τ)·1[τ is b there]·f(answers | τ). One bit moves a count of
ones by one, so f changes by a factor of at most e^{answers·answer_epsilon} from any course to any other, and
P(b) is that of D₀ or D₁, whose ratios are from 1 − 2·bias to 1/(1 − 2·bias). After an announced intrusion
(`intruded`) the table is drawn anew from D₀ and counting begins anew: each such phase costs the same again,
`intrusions` + 1 of them at most.

Error. The ones are a sum of independent bits, within √(items·ln(4/α)/2) of their mean by Hoeffding's
inequality, plus the noise of the answer; both over the bias.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Parameter, whole
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.mechanisms.above_threshold import Single, paid
from dalenius.mechanisms.mechanism import Mechanism, Payer, Stamp, risk
from dalenius.noise import fresh
from dalenius.noise.coins import bernoulli
from dalenius.noise.lazy import ball
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.records import whole_codes
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Release
from dalenius.streams.participants import whom_of_items

HALF = Fraction(1, 2)
BITS = 40
"""A bias is a multiple of 2^−BITS, rounded down."""


@dataclass(frozen=True)
class PanPrivateDensity(Mechanism, kind="pan_private_density"):
    """How many of `items` appeared, in a table of bits that `state_epsilon` hides."""

    _: KW_ONLY
    items: Parameter[int] = Parameter(whole)
    state_epsilon: Parameter[Fraction] = Parameter(numbers.epsilon)
    answer_epsilon: Parameter[Fraction] = Parameter(numbers.epsilon)
    answers: Parameter[int] = Parameter(whole, 1)
    intrusions: int = 0

    def __post_init__(self) -> None:
        numbers.count(self.intrusions, "intrusions", least=0)
        numbers.count(self.items, "items", most=10**8)

    @property
    def bias(self) -> Fraction:
        """(1 − e^{−state_epsilon})/2, rounded down."""
        with workprec(200):
            far = ((1 - (-ball(min(self.state_epsilon, Fraction(20)))).exp()) * 2 ** (BITS - 1)).lower()
            return Fraction(int(far.floor().unique_fmpz() or 1) or 1, 2**BITS)

    @property
    def loss(self) -> Loss:
        """Of all answers and all tables that are seen."""
        phase = self.state_epsilon + self.answers * self.answer_epsilon
        return Pure(phase * (self.intrusions + 1))

    def start(
        self,
        account: Payer | None = None,
        *,
        unit: Unit | None = None,
        by: str = "",
        purpose: str = "",
        items_are_units: bool = False,
    ) -> DensityTable:
        """A table, all of whose answers and states together cost `loss`: charged now."""
        whom = whom_of_items(self.loss, account, unit, items_are_units=items_are_units)
        return DensityTable(self, whom, paid(self, account, whom, by, purpose))

    def release(self, value: Any, *, unit: Unit | None = None, items_are_units: bool = False) -> Release:
        """The number of different items in a list of them."""
        table = self.start(unit=unit, items_are_units=items_are_units)
        table.add(value)
        return table.value()

    def released(self, ones: Any, unit: Unit | None) -> Release:
        """Noisy counts of ones as numbers of items, with error bars."""
        reach = self.error() or 0.0
        found = [(int(one) - self.items / 2) / float(self.bias) for one in ones]
        columns = {
            "value": found,
            "value_low": [each - reach for each in found],
            "value_high": [each + reach for each in found],
        }
        made = self._released(columns, ("value",), unit)
        note = f"{self.answers} answers in each of {self.intrusions + 1} phases; the table is private too"
        # Its noise is of the operating system's, also within a seed.
        return replace(
            made, receipt=replace(made.receipt, bounds=(note, "a unit is one item"), tainted=False)
        )

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float | None:
        """Half of the risk for the bits, half for the answer."""
        chance = float(risk(alpha))
        bits = math.sqrt(self.items * math.log(4 / chance) / 2)
        answer = math.log(2 / chance) / float(self.answer_epsilon) + 1
        return (bits + answer) / float(self.bias) * (1 + 1e-9)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """The noisy ones of a public list of items."""
        there = len({item for item in whole_codes(value).tolist() if 0 <= item < self.items})
        found = fresh.discrete_laplace(1 / self.answer_epsilon, size)
        for place, _ in enumerate(found):
            here = bernoulli(HALF + self.bias, there, bits=fresh.Fresh())
            rest = bernoulli(HALF, self.items - there, bits=fresh.Fresh())
            found[place] += here.sum() + rest.sum()
        return found

    def worst_case(self) -> tuple[Any, Any]:
        """Nothing, and one item."""
        return [], [0]


class DensityTable(Single):
    """A session of `PanPrivateDensity`: `bits` is all it holds of the data."""

    def __init__(self, mechanism: PanPrivateDensity, unit: Unit | None, stamp: Stamp) -> None:
        super().__init__()
        self.mechanism, self.unit, self._stamp = mechanism, unit, stamp
        self._phases, self._answers = mechanism.intrusions + 1, 0
        self._renew()

    def _renew(self) -> None:
        self.bits = bernoulli(HALF, self.mechanism.items, bits=fresh.Fresh())
        self._answers = self.mechanism.answers

    def add(self, items: Any) -> None:
        """Items that appear; those outside of the universe, and what is no whole number, are left out."""
        found = np.unique(whole_codes(items))
        inside = found[(found >= 0) & (found < self.mechanism.items)]
        with self._lock:
            self._check(1)
            with self._change():
                self.bits[inside] = bernoulli(HALF + self.mechanism.bias, inside.size, bits=fresh.Fresh())

    def value(self) -> Release:
        """How many items appeared since the last announced intrusion."""
        with self._lock:
            self._check(1)
            if not self._answers:
                raise NotSound(
                    "This table has given all the answers it was charged for.",
                    remedy="Start another, with more answers.",
                )
            with self._change():
                self._answers -= 1
                ones = int(self.bits.sum()) + fresh.discrete_laplace(1 / self.mechanism.answer_epsilon, 1)
            return self._stamp(self.mechanism.released(ones, self.unit))

    def intruded(self) -> None:
        """Say that somebody saw the memory: the table begins anew."""
        with self._lock:
            self._check(1)
            if self._phases == 1:
                raise InvalidArgument(
                    "More intrusions were announced than this table was charged for.",
                    remedy="Drop it and start another, with more intrusions.",
                )
            with self._change():
                self._phases -= 1
                self._renew()

    def state(self) -> list[int]:
        """What an intruder finds of the data."""
        found: list[int] = self.bits.astype(np.int64).tolist()
        return found
