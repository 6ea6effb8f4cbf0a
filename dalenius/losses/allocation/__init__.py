"""Random allocation: every unit takes part in exactly one of the steps of an epoch."""

from __future__ import annotations

from dalenius.losses.allocation.random_allocation import RandomAllocation, allocate

__all__ = ["RandomAllocation", "allocate"]
