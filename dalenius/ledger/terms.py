"""What an account was opened with, as it is kept."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

from dalenius.ledger.budget import read_filter
from dalenius.losses.cost import Cost
from dalenius.losses.filters import Filter
from dalenius.losses.loss import Loss
from dalenius.privacy.unit import Relation, Unit


class Price(NamedTuple):
    """What a loss costs, and the loss as JSON, as an entry states it."""

    cost: Cost
    loss: str


@dataclass(frozen=True)
class Terms:
    """Its name, whom it protects, its filter, and which data it belongs to."""

    name: str
    unit: Unit
    limit: Filter
    source: str | None = None
    profile: str | None = field(default=None, compare=False, repr=False)
    """What was kept about the data when the account was opened, as its owner's JSON; None for nothing."""
    stored: str | None = field(default=None, compare=False, repr=False)
    """The text that the entry of its opening holds, where it was read from one."""

    @cached_property
    def price(self) -> Callable[[Loss], Price]:
        """What a loss costs the account, remembered."""
        return lru_cache(maxsize=1024)(lambda loss: Price(self.limit.cost(loss), loss.to_json()))

    @cached_property
    def cell_price(self) -> Callable[[Loss], Price]:
        """The same for a loss about one cell, remembered."""
        return lru_cache(maxsize=1024)(
            lambda loss: Price(cell_cost(self.limit, loss, self.unit.relation), loss.to_json())
        )

    def promises(self) -> tuple[object, ...]:
        """What its owner chose; how a filter divides it further is fixed once, at opening."""
        shares: defaultdict[str, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
        for gauge, _ in self.limit.limits:
            shares[gauge.name][0] += gauge.delta
            shares[gauge.name][1] += gauge.slack
        return self.unit, self.source, self.limit.epsilon, self.limit.delta, dict(shares)

    def to_json(self) -> str:
        """As it is kept, the name aside."""
        if self.stored is not None:
            return self.stored
        plain = {"unit": self.unit.plain(), "filter": self.limit.to_json(), "source": self.source}
        if self.profile is not None:
            plain["profile"] = self.profile
        return json.dumps(plain, sort_keys=True)

    @staticmethod
    def from_json(name: str, text: str) -> Terms:
        """Read them back."""
        plain = json.loads(text)
        unit, limit = Unit(**plain["unit"]), read_filter(plain["filter"])
        return Terms(name, unit, limit, plain["source"], plain.get("profile"), text)


def cell_cost(limit: Filter, loss: Loss, relation: Relation) -> Cost:
    """What a loss about a cell, for units that leave or enter it, costs where the largest cell is charged.

    Under replace a unit may move to another cell, or change in its own: docs/proofs/filter.md, Section 4.
    """
    once = limit.cost(loss)
    return Cost.largest((once + once, limit.cost(loss.under(relation)))) if relation == "replace" else once
