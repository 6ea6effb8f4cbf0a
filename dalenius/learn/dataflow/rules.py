"""The table of rules by operator name; an operator that is not in it mixes what is private in it."""

from __future__ import annotations

from collections.abc import Callable

from dalenius.learn.dataflow import factories, indexing, layers, pointwise, products, reductions, views
from dalenius.learn.dataflow.operations import Operation

RULES: dict[str, Callable[[Operation], None]] = {
    **pointwise.RULES,
    **factories.RULES,
    **views.RULES,
    **reductions.RULES,
    **products.RULES,
    **indexing.RULES,
    **layers.RULES,
}
