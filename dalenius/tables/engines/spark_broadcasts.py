"""Free what Spark has broadcast for a question, once the question is answered.

Spark frees a broadcast some time after the driver's collector of garbage found it unused. A table of keys of
a few rows takes up to 32 MB of a driver, so that some hundred questions could fill it before it is collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any


def free_broadcasts(frame: Any) -> None:
    """Free all that was broadcast while a DataFrame was computed; it is not to be computed again.

    What belongs to data that somebody else keeps in memory is left alone.

    Args:
        frame: A DataFrame of our own, which may be kept in memory itself.
    """
    plan = frame._jdf.queryExecution().executedPlan()
    if _name(plan) == "InMemoryTableScanExec" and frame.is_cached:
        plan = plan.relation().cachedPlan()
    for stage in _broadcast_stages(plan):
        result = stage.resultOption().get()
        if result.isDefined():
            with suppress(Exception):
                # Two stages may share one broadcast, which is freed once.
                result.get().destroy()


def _broadcast_stages(plan: Any) -> Iterator[Any]:
    """Yield the stages of an adaptive plan in which something was broadcast."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        name = _name(node)
        if name == "BroadcastQueryStageExec":
            yield node
        if name == "AdaptiveSparkPlanExec":
            waiting.append(node.executedPlan())
        elif name.endswith("QueryStageExec"):
            waiting.append(node.plan())
        elif name != "InMemoryTableScanExec":
            children = node.children()
            waiting += [children.apply(i) for i in range(children.size())]


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())
