"""`plan`: what error each frequency oracle would have, before anything is collected, and its bits.

The error of an oracle is 1.96 standard deviations of the estimated share of a rare item, by the formula of
its variance; by it no oracle has a smaller one than √(4e^ε/(n(e^ε − 1)²)) for many items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dalenius.figures import Figure, Series, Style
from dalenius.local.choosing import ORACLES, Choice, choose
from dalenius.local.frequency import FrequencyOracle, read_domain
from dalenius.local.simulation import MOST_USERS
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

NORMAL = 1.959963984540054
DRAWN = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)
"""Values of ε that the picture shows."""


@dataclass(frozen=True)
class Line:
    """What one oracle would do: the 95 % error of a rare share, and the bits of a report."""

    name: str
    error: float
    bits: int


@dataclass(frozen=True)
class Plan:
    """Lines, the smallest error first, and the oracle to take."""

    domain: int
    users: int
    epsilon: float
    lines: tuple[Line, ...]
    choice: Choice

    @property
    def figure(self) -> Figure:
        """The error of every oracle against ε."""
        found: dict[str, list[tuple[float, float]]] = {}
        for epsilon in DRAWN:
            for name, variance, _ in choose(self.domain, epsilon).considered:
                found.setdefault(name, []).append((epsilon, error_of(variance, self.users)))
        styles: tuple[Style, ...] = ("line", "dashed", "dotted")  # some of them lie on each other
        series = [
            Series(name, [x for x, _ in points], [y for _, y in points], styles[place % 3])
            for place, (name, points) in enumerate(found.items())
        ]
        chosen = Series(f"ε = {self.epsilon:g}", [self.epsilon], [self.lines[0].error], "points")
        return Figure(
            f"{self.domain:,} items, {self.users:,} people",
            "ε of one report",
            "error of a rare share (95 %)",
            series=(*series, chosen),
            x_scale="log",
            y_scale="log",
        )


def plan(domain: int, users: int, epsilon: Number, *, bits: int | None = None) -> Plan:
    """What each oracle would do for so many items and people."""
    many, limit = numbers.count(users, "users", most=MOST_USERS), numbers.epsilon(epsilon)
    choice = choose(read_domain(domain, "domain"), limit, bits=bits)
    lines = [Line(name, error_of(variance, many), size) for name, variance, size in choice.considered]
    return Plan(
        choice.oracle.domain, many, float(limit), tuple(sorted(lines, key=lambda line: line.error)), choice
    )


def error_of(variance: float, users: int) -> float:
    """1.96 standard deviations of a mean of so many."""
    return NORMAL * math.sqrt(variance / users)


def oracle_named(name: str, domain: int, epsilon: Number) -> FrequencyOracle:
    """The oracle of a name of a plan, for so many items."""
    return ORACLES[name](domain=domain, epsilon=epsilon)
