"""A privacy filter: what may still be released when every loss is chosen in view of what came before.

    >>> from dalenius.losses import Filter, Pure
    >>> limit = Filter(epsilon=1, delta=0)
    >>> total = limit.nothing
    >>> for _ in range(10):
    ...     total = total + limit.cost(Pure(0.1))
    >>> limit.accepts(total), limit.accepts(total + limit.cost(Pure(0.1)))
    (True, False)

Theorem. Fix ε and gauges with limits Bⱼ, conversions δⱼ and slacks sⱼ before the first release. Let every
next loss be any function of what was released, and stop before the first one with which no gauge holds all
of them: each gauge j has its measures above Bⱼ, or its slacks above sⱼ. Then all that was released is
(ε, Σ(δⱼ + sⱼ))-differentially private.

Proof. Let J be the first gauge that held everything to the end; it is a function of the outcome. Where J = j
the releases are those of the process that stops when gauge j does, which is (ε, δⱼ + sⱼ)-differentially
private (`gauges`, and docs/proofs/filter.md). So for any set S of outcomes,
P(S) = Σⱼ P(S, J = j) ≤ Σⱼ (e^ε Q(S, J = j) + δⱼ + sⱼ) = e^ε Q(S) + Σⱼ (δⱼ + sⱼ). ∎
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from dalenius.errors import InvalidArgument, UnknownKind
from dalenius.losses.cost import STEP, Amount, Cost, steps
from dalenius.losses.gauges import (
    ConcentratedGauge,
    Gauge,
    GaussianGauge,
    PureGauge,
    RenyiGauge,
    round_down,
    round_up,
)
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation

AROUND = (Fraction(6, 10), 1, Fraction(17, 10), 3)
"""Orders of the Rényi gauges, over the one that is best for Gaussians."""
SHARES: Mapping[str, tuple[int, int]] = {
    "pure": (0, 5),
    "gaussian": (45, 15),
    "zcdp": (12, 3),
    "renyi": (17, 3),
}
"""Hundredths of δ for the conversion and for the slack of each gauge; those of all Rényi orders together."""
SIMPLE: Mapping[str, type[GaussianGauge] | type[ConcentratedGauge]] = {
    "gaussian": GaussianGauge,
    "zcdp": ConcentratedGauge,
}
LEAST = Fraction(1, 10**12)
"""Less than this is not called a release."""


@dataclass(frozen=True, init=False)
class Filter:
    """Gauges with their limits, fixed for good. `shares` gives the δ of each in place of `SHARES`."""

    epsilon: Fraction
    delta: Fraction
    limits: tuple[tuple[Gauge, Fraction], ...]

    def __init__(
        self, *, epsilon: Number, delta: Number = 0, shares: Mapping[str, tuple[int, int]] | None = None
    ) -> None:
        limit, chance = numbers.positive(epsilon, "epsilon"), numbers.delta(delta)
        gauges = _gauges(limit, chance, SHARES if shares is None else shares)
        self._set(limit, chance, tuple((gauge, gauge.limit(limit)) for gauge in gauges))

    def _set(self, epsilon: Fraction, delta: Fraction, limits: tuple[tuple[Gauge, Fraction], ...]) -> None:
        for name, value in (("epsilon", epsilon), ("delta", delta), ("limits", limits)):
            object.__setattr__(self, name, value)

    @property
    def nothing(self) -> Cost:
        """The cost of no release at all."""
        return Cost({gauge.label: (0, 0) for gauge, _ in self.limits})

    def cost(self, loss: Loss) -> Cost:
        """What a loss costs on each gauge."""
        found = {gauge.label: _measured(gauge, loss, limit) for gauge, limit in self.limits}
        return Cost({label: amount for label, amount in found.items() if amount is not None})

    @cached_property
    def _most(self) -> dict[str, Amount]:
        """The limits and slacks in steps, rounded down."""
        return {
            gauge.label: (math.floor(limit / STEP), math.floor(gauge.slack / STEP))
            for gauge, limit in self.limits
        }

    def accepts(self, total: Cost) -> bool:
        """Whether some gauge holds the total."""
        most = self._most
        for label, (measure, slack) in total.amounts.items():
            if measure <= most[label][0] and slack <= most[label][1]:
                return True
        return False

    def _holds(self, label: str, amount: Amount) -> bool:
        limit, slack = self._most[label]
        return amount[0] <= limit and amount[1] <= slack

    def _room(self, gauge: Gauge, limit: Fraction, total: Cost) -> Fraction | None:
        """What is left on a gauge, or None where it does not hold the total."""
        amount = total.amounts.get(gauge.label)
        if amount is None or not self._holds(gauge.label, amount):
            return None
        return limit - amount[0] * STEP

    def left(self, total: Cost, relation: Relation = "add_remove") -> Loss | None:
        """The largest single loss that would be accepted next, by its ε at this δ; None for nothing."""
        rooms = ((gauge, self._room(gauge, limit, total)) for gauge, limit in self.limits)
        known = [(gauge, room) for gauge, room in rooms if room is not None and room >= LEAST]
        losses = [gauge.as_loss(round_down(room), relation) for gauge, room in known]
        return max(losses, key=lambda loss: loss.epsilon(self.delta).upper, default=None)

    def spent(self, total: Cost) -> Fraction:
        """The least ε at which gauges with the same δ would hold the total, which one of them must."""
        held = [gauge for gauge, limit in self.limits if self._room(gauge, limit, total) is not None]
        return min(_epsilon(gauge, total.amounts[gauge.label][0] * STEP) for gauge in held)

    def left_epsilon(self, total: Cost) -> float:
        """Return the ε, at this δ, of the largest single loss that would be accepted next; 0 for none."""
        loss = self.left(total)
        return 0.0 if loss is None else loss.epsilon(self.delta).upper

    def left_share(self, total: Cost) -> float:
        """Return `left_epsilon` as a share of ε; never more than 1.

        This counts what can still be released. Slack that is used up only excludes losses that need slack.
        """
        return min(1.0, float(Fraction(repr(self.left_epsilon(total))) / self.epsilon))

    def share(self, label: str, cost: Cost) -> Fraction:
        """Return the share of a gauge's limit that the measure of a cost takes, slack aside."""
        limit = next(limit for gauge, limit in self.limits if gauge.label == label)
        return cost.amounts[label][0] * STEP / limit if limit else Fraction(1)

    def emptiest(self, total: Cost) -> str | None:
        """Return the label of the gauge with the least share used, of those that hold the total."""
        held = [gauge.label for gauge, limit in self.limits if self._room(gauge, limit, total) is not None]
        return min(held, key=lambda label: self.share(label, total), default=None)

    def to_json(self) -> str:
        """With its limits, so that what was fixed stays fixed."""
        rows = [{**_fields(gauge), "limit": str(limit)} for gauge, limit in self.limits]
        whole = {"version": 1, "epsilon": str(self.epsilon), "delta": str(self.delta), "gauges": rows}
        return json.dumps(whole, separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Filter:
        """Read one back as it was fixed, nothing computed anew."""
        whole = json.loads(text)
        if whole.get("version") != 1:
            raise UnknownKind(
                "This filter was written by a newer version of Dalenius.", remedy="Install a newer version."
            )
        found = object.__new__(Filter)
        limits = tuple((_read(row), Fraction(row["limit"])) for row in whole["gauges"])
        found._set(Fraction(whole["epsilon"]), Fraction(whole["delta"]), limits)
        return found


def _gauges(epsilon: Fraction, delta: Fraction, shares: Mapping[str, tuple[int, int]]) -> list[Gauge]:
    """The pure one, and all that have a share of δ."""
    unknown = sorted(set(shares) - set(SHARES))
    parts = [part for pair in shares.values() for part in pair]
    if unknown or not all(type(part) is int and part >= 0 for part in parts) or sum(parts) > 100:
        raise InvalidArgument(
            f"shares must be whole hundredths of delta for {', '.join(SHARES)}, at most 100 in all.",
            remedy='Pass for example shares={"gaussian": (80, 20)}.',
        )
    each = {name: (delta * first / 100, delta * second / 100) for name, (first, second) in shares.items()}
    found: list[Gauge] = [PureGauge(Fraction(0), sum(each.get("pure", ()), Fraction(0)))]
    for name, (conversion, slack) in each.items():
        if name == "renyi" and conversion:
            orders = _orders(epsilon, conversion)
            found += [RenyiGauge(conversion / len(orders), slack / len(orders), order) for order in orders]
        elif name in SIMPLE and conversion:
            found.append(SIMPLE[name](conversion, slack))
    return found


def _orders(epsilon: Fraction, delta: Fraction) -> list[int]:
    """A few orders about the one that is best for Gaussians of this (ε, δ)."""
    best = Fraction(1, 2) + epsilon / GaussianGauge(delta, Fraction(0)).limit(epsilon)
    return sorted({max(2, round(best * factor)) for factor in AROUND})


@lru_cache(maxsize=4096)
def _measured(gauge: Gauge, loss: Loss, limit: Fraction) -> Amount | None:
    found = gauge.measure(loss, limit)
    return found and (steps(found[0]), steps(found[1]))


@lru_cache(maxsize=4096)
def _epsilon(gauge: Gauge, amount: Fraction) -> Fraction:
    if isinstance(gauge, PureGauge) or not amount:
        return amount
    return Fraction(gauge.as_loss(round_up(amount), "add_remove").epsilon(gauge.delta).upper)


def _fields(gauge: Gauge) -> dict[str, str | int]:
    order = {"order": gauge.order} if isinstance(gauge, RenyiGauge) else {}
    return {"gauge": gauge.name, "delta": str(gauge.delta), "slack": str(gauge.slack), **order}


def _read(row: dict[str, str]) -> Gauge:
    delta, slack = Fraction(row["delta"]), Fraction(row["slack"])
    if row["gauge"] == "renyi":
        return RenyiGauge(delta, slack, int(row["order"]))
    return PureGauge(delta, slack) if row["gauge"] == "pure" else SIMPLE[row["gauge"]](delta, slack)
