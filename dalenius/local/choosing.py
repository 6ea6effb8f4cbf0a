"""Which frequency oracle to use: the one of the least variance for a rare item, in the bits that there are.

Variances within a fiftieth of the least are taken as equal; then the oracle is taken whose reports are drawn
and decoded the fastest, and of these the one of the shortest reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dalenius.errors import InvalidArgument
from dalenius.local.frequency import FrequencyOracle, read_domain
from dalenius.local.hadamard import HadamardResponse
from dalenius.local.hashing import LocalHashing
from dalenius.local.kary import KaryResponse
from dalenius.local.projective import ProjectiveResponse
from dalenius.local.subset import SubsetSelection
from dalenius.local.unary import UnaryEncoding
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

ALIKE = 1.02
# The fastest first.
ORACLES: dict[str, Callable[..., FrequencyOracle]] = {
    "k-ary randomized response": KaryResponse.calibrate,
    "Hadamard response": HadamardResponse.calibrate,
    "projective geometry response": ProjectiveResponse.calibrate,
    "local hashing": LocalHashing.calibrate,
    "optimized unary encoding": UnaryEncoding.optimized,
    "symmetric unary encoding": UnaryEncoding.symmetric,
    "subset selection": SubsetSelection.calibrate,
}


@dataclass(frozen=True)
class Choice:
    """An oracle and why it is this one; `considered` has each by name with its n·variance and bits."""

    oracle: FrequencyOracle
    why: str
    considered: tuple[tuple[str, float, int], ...]


def choose(
    domain: int, epsilon: Number, *, bits: int | None = None, most_shift: Number | None = None
) -> Choice:
    """Return the oracle of the least variance of a share that is the mean of all.

    Args:
        domain: The number of items.
        epsilon: What a report may cost.
        bits: The most bits of a report.
        most_shift: The most that a fraction of forged reports may move a share, over that fraction.
    """
    many, limit = read_domain(domain, "domain"), numbers.epsilon(epsilon)
    most = None if bits is None else numbers.count(bits, "bits")
    made = {name: _made(make, many, limit) for name, make in ORACLES.items()}
    there = {name: one for name, one in made.items() if one is not None}
    if most_shift is not None:
        shifts = {name: one.forged_shift(1) for name, one in there.items()}
        shift = float(numbers.positive(most_shift, "most_shift"))
        there = {name: one for name, one in there.items() if shifts[name] <= shift}
        if not there:
            least_shift = math.ceil(100 * min(shifts.values())) / 100
            raise InvalidArgument(
                f"With every oracle forged reports can move a share by more than {shift:g} times their "
                "fraction.",
                remedy=f"Allow most_shift={least_shift:g}, or a larger epsilon.",
            )
    considered = tuple((name, one.variance(1 / many), one.bits) for name, one in there.items())
    fits = [(name, v, b) for name, v, b in considered if most is None or b <= most]
    if not fits:
        raise InvalidArgument(
            f"No oracle for so many items has reports of {most} bits.",
            remedy=f"Allow {min(b for _, _, b in considered)} bits, or join items.",
        )
    least = min(v for _, v, _ in fits)
    name, variance, size = next(row for row in fits if row[1] <= ALIKE * least)
    within = "" if most is None else f" of those within {most} bits"
    why = (
        f"{name}: n·variance {variance:.4g}, the least{within} is {least:.4g}; {size} bits a report; "
        f"the fastest of those within {ALIKE - 1:.0%} of the least"
    )
    return Choice(there[name], why, considered)


def _made(make: Callable[..., FrequencyOracle], domain: int, epsilon: Number) -> FrequencyOracle | None:
    """None where an oracle has no parameters for so many items."""
    try:
        return make(domain=domain, epsilon=epsilon)
    except InvalidArgument:
        return None
