"""Private streams: sums and counts that are published while they grow, alarms, sketches, seizable memory.

    >>> from dalenius import streams
    >>> mechanism = streams.ContinualSum.calibrate(horizon=1000, epsilon=1, delta=1e-6)
    >>> counter = mechanism.start()
    >>> counter.add([1, 1, 0, 1])
    >>> counter.steps, len(counter.value())
    (1, 1)

A mechanism is a frozen value; `start(account)` charges all answers it will ever give and returns a session.
Each `add` is one step, of a number or a batch, and steps are public: a step is taken whether or not anything
happened in it. `ContinualSum` is the one to use where the number of steps is known, `EndlessSum` where it is
not, `TreeSum` where ε must be pure. What of a stream is secret, and what a seized memory shows, stands with
each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.streams.alarms import RateAlarm
    from dalenius.streams.counter import Counter
    from dalenius.streams.decayed import DecayedSum
    from dalenius.streams.density import PanPrivateDensity
    from dalenius.streams.distinct import DistinctCount
    from dalenius.streams.endless import EndlessSum
    from dalenius.streams.heavy import HeavyHitters
    from dalenius.streams.pan_private import PanPrivateCount
    from dalenius.streams.quantiles import StreamQuantiles
    from dalenius.streams.saving import load
    from dalenius.streams.sums import ContinualSum
    from dalenius.streams.trees import TreeSum
    from dalenius.streams.windows import WindowSum
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ContinualSum": "dalenius.streams.sums",
            "Counter": "dalenius.streams.counter",
            "DecayedSum": "dalenius.streams.decayed",
            "DistinctCount": "dalenius.streams.distinct",
            "EndlessSum": "dalenius.streams.endless",
            "HeavyHitters": "dalenius.streams.heavy",
            "PanPrivateCount": "dalenius.streams.pan_private",
            "PanPrivateDensity": "dalenius.streams.density",
            "RateAlarm": "dalenius.streams.alarms",
            "StreamQuantiles": "dalenius.streams.quantiles",
            "TreeSum": "dalenius.streams.trees",
            "WindowSum": "dalenius.streams.windows",
            "load": "dalenius.streams.saving",
        },
    )

__all__ = [
    "ContinualSum",
    "Counter",
    "DecayedSum",
    "DistinctCount",
    "EndlessSum",
    "HeavyHitters",
    "PanPrivateCount",
    "PanPrivateDensity",
    "RateAlarm",
    "StreamQuantiles",
    "TreeSum",
    "WindowSum",
    "load",
]
