"""What an account fixes beside its budget: allowances within it, and divisions of its units.

An `Allowance` is a smaller budget for one analyst, one purpose, or each calendar window, or what several of
these have in common. Allowances may add up to more than the account, whose own limit always holds, so nothing
is gained by sharing them out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache

from dalenius.ledger.budget import read_filter
from dalenius.losses.cost import Cost
from dalenius.losses.filters import Filter
from dalenius.losses.loss import Loss
from dalenius.privacy.unit import Window


@dataclass(frozen=True)
class Allowance:
    """A filter of its own for charges by `by`, for `purpose`, in each `window`; None means any."""

    number: int
    limit: Filter
    by: str | None = None
    purpose: str | None = None
    window: Window | None = None

    @cached_property
    def cost(self) -> Callable[[Loss], Cost]:
        """What a loss costs the allowance, remembered."""
        return lru_cache(maxsize=1024)(self.limit.cost)

    def covers(self, by: str, purpose: str) -> bool:
        """Whether a charge counts against it."""
        return self.by in (None, by) and self.purpose in (None, purpose)

    def scope(self, at: str) -> str:
        """The scope its total is kept under, which for a window depends on the time of the charge."""
        return f"allowance {self.number}" + (f" {window_of(at, self.window)}" if self.window else "")

    def __str__(self) -> str:
        named = (f"{name} {value}" for name, value in (("by", self.by), ("purpose", self.purpose)) if value)
        return " and ".join([*named, *([f"each {self.window}"] if self.window else [])]) or "everything"

    def to_json(self) -> str:
        """As it is kept."""
        plain = {"number": self.number, "by": self.by, "purpose": self.purpose, "window": self.window}
        return json.dumps(plain | {"filter": self.limit.to_json()}, sort_keys=True)

    @staticmethod
    @lru_cache(maxsize=256)
    def from_json(text: str) -> Allowance:
        """Read one back."""
        plain = json.loads(text)
        limit = read_filter(plain.pop("filter"))
        return Allowance(limit=limit, **plain)


def window_of(at: str, window: Window) -> str:
    """The calendar window that a moment is in, by its name: 2026-11, 2026-W46, 2026-Q4."""
    day = datetime.fromisoformat(at)
    if window == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02}"
    if window == "quarter":
        return f"{day.year}-Q{(day.month + 2) // 3}"
    return at[: {"hour": 13, "day": 10, "month": 7, "year": 4}[window]]
