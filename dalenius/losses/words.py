"""The sentences of `meaning`: plain words, and numbers rounded to the side that promises less."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from dalenius.losses.deployments import Deployment
from dalenius.privacy.unit import Relation

LIMITS = (
    "What is not promised: facts about people in general, learned from everyone else's records, may "
    "still apply to you; and what is already known about you stays known."
)
_CLAIM: dict[Relation, str] = {
    "add_remove": "your record is in the data",
    "zero_out": "your record is in the data rather than left blank",
    "replace": "your record says one particular thing rather than another",
}


def belief(relation: Relation, prior: Fraction, after: tuple[float, float], delta: Fraction) -> str:
    """What a belief may become."""
    save = ", save for the exception below" if delta else ""
    return (
        f"Someone who holds it {float(100 * prior):.4g}% likely, before the result, that "
        f"{_CLAIM[relation]}, may hold it between {percent(after[0], ROUND_FLOOR)} and "
        f"{percent(after[1], ROUND_CEILING)} likely after it, whatever else they know{save}."
    )


def exception(delta: Fraction, factor: float, epsilon: float) -> str:
    """The odds, and when they may move further."""
    if math.isinf(factor):
        return "The odds are not bounded at this δ: some results may reveal everything."
    odds = f"the odds move by a factor of at most {at_most(factor)} either way (ε = {at_most(epsilon)})"
    if delta == 0:
        return f"In every case {odds}."
    return (
        f"At worst it is as if the result revealed everything with probability {chance(delta)} "
        f"(δ = {float(delta):.3g}), and otherwise {odds}."
    )


def guessing(relation: Relation, advantage: float) -> str:
    """The best guess at even odds."""
    right = percent((1 + advantage) / 2, ROUND_CEILING)
    if right == "50%":
        claim = _CLAIM[relation]
        return f"A guess whether {claim}, at even odds, is right half of the time, as without the result."
    return f"A guess whether {_CLAIM[relation]}, at even odds, is right at most {right} of the time, not 50%."


def attack(found: float, false_positive_rate: Fraction) -> str:
    """The power of an attack that seldom accuses wrongly."""
    return (
        f"An attacker who allows one false accusation in {round(1 / false_positive_rate):,} recognizes a "
        f"true case at most {percent(found, ROUND_CEILING)} of the time."
    )


def company(share: float, listed: int, close: Deployment) -> str:
    """The rank among public deployments."""
    return (
        f"Of {listed} deployments with a public ε, {share:.0%} state one this large or smaller; the nearest "
        f"is {close.name} ({close.publisher}, {close.year}: ε = {close.epsilon:g} per {close.unit}). They "
        "protect different units, so this shows what has been accepted, not what is safe."
    )


def percent(share: float, rounding: str) -> str:
    """A share in percent, with enough digits that neither end of the scale is reached by rounding."""
    edge = min(share, 1 - share)
    digits = 1 if edge >= 0.01 or edge <= 0 else min(12, 2 - math.floor(math.log10(edge * 100)))
    quantum = Decimal(1).scaleb(-digits)
    rounded = (Decimal(share) * 100).quantize(quantum, rounding=rounding)
    return f"{rounded.normalize():f}%"


def at_most(number: float) -> str:
    """Four significant digits, rounded up."""
    if math.isinf(number):
        return "∞"
    shown = Decimal(number).normalize(Context(prec=4, rounding=ROUND_CEILING))
    return f"{shown:f}" if number < 1e6 else f"{shown:.3e}"


def chance(delta: Fraction) -> str:
    """A probability as one in so many, rounded so that it is not understated."""
    times = math.floor(1 / delta)
    return f"1 in {times:,}" if times < 10**10 else f"1 in 10^{math.floor(math.log10(times))}"
