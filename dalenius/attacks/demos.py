"""Demonstrations: each attack twice, on data "nobody counting" protects and on the same "under an account".

    >>> open_data, counted = demo("tabulation", seed=1)
    >>> open_data.success
    1.0

People are made up, so that a demonstration runs anywhere; noise and accounts are the library's own. `seed`
fixes the people and the questions, never the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

from dalenius.attacks.result import Attack
from dalenius.errors import InvalidArgument

Pair = tuple[Attack, Attack]
"""The attack with nobody counting, and under an account. The second one's figure shows both."""


@dataclass(frozen=True)
class Demo:
    """Where a demonstration is, and what it shows."""

    module: str
    shows: str


DEMOS: Mapping[str, Demo] = MappingProxyType(
    {
        "reconstruct": Demo("demo_reconstruction", "a secret bit of 1,000 people from 4,000 noisy sums"),
        "differencing": Demo("demo_differencing", "one person's secret from two counts of many people"),
        "linkage": Demo("demo_linkage", "diagnoses of named people from rows without names"),
        "tabulation": Demo("demo_tabulation", "the people of small blocks from published tables"),
        "tracing": Demo("demo_tracing", "who was in a study, from its allele frequencies"),
        "membership": Demo("membership", "whose records a model was trained on"),
    }
)


def demo(name: str, *, seed: int | None = None) -> Pair:
    """Run one: the attack with nobody counting, and under an account."""
    if name not in DEMOS:
        raise InvalidArgument(
            f"There is no demonstration {name!r}.", remedy=f"Choose among {', '.join(DEMOS)}."
        )
    found: Pair = import_module(f"dalenius.attacks.{DEMOS[name].module}").demo(seed=seed)
    return found
