"""The sparse vector technique as it was published wrongly: Lyu, Su and Li 2017, their Algorithms 3 to 6.

All compare noisy queries with a noisy threshold, here 0, on whole numbers with two-sided geometric noise; the
scales are those of a claim of ε = 1, but where the value is told of ε = 2. Right is their Algorithm 1: half
of ε for the threshold, noise of scale 4c/ε on the queries for c positive answers, and an end after these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dalenius.audits.zoo.drawing import laplace, next_to
from dalenius.audits.zoo.specimen import Specimen
from dalenius.losses.pure import Pure

_whole, _double, _quarter, _three_quarters = laplace(1), laplace(2), laplace(4), laplace("4/3")

Queries = Sequence[int]
Draw = Callable[[], int]


def _none() -> int:
    return 0


def _answers(threshold: Draw, each: Draw, most: int) -> Callable[[Queries], list[bool]]:
    """Whether each query is above, until `most` were."""

    def asked(queries: Queries) -> list[bool]:
        limit, found, left = threshold(), list[bool](), most
        for query in queries:
            found.append(query + each() >= limit)
            left -= found[-1]
            if not left:
                break
        return found

    return asked


def _first(threshold: Draw, each: Draw, *, value: bool) -> Callable[[Queries], Any]:
    """Which query is above first; if `value`, with the number that was compared."""

    def asked(queries: Queries) -> Any:
        limit = threshold()
        for place, query in enumerate(queries):
            noisy = query + each()
            if noisy >= limit:
                return (place, noisy) if value else place
        return None

    return asked


_SOURCE = "Lyu, Su and Li 2017"
_LONG = 10**9
_falling_then_rising = (0,) * 4 + (1,) * 4, (1,) * 4 + (0,) * 4
_long_fall = (0,) * 6 + (1,) * 6, (1,) * 6 + (0,) * 6
_last = (0,) * 10 + (1,), (1,) * 10 + (0,)

SPECIMENS = (
    Specimen(
        name="sparse vector that tells the value",
        wrong="what is above is answered with the number that was compared (Algorithm 3)",
        source=_SOURCE,
        broken=_first(_whole, _whole, value=True),
        twin=_first(_whole, _double, value=False),
        claim=Pure(2),
        inputs=[_last[0]],
        neighbors=next_to(_last[1]),
        trials=80_000,
        leaks=11.0,
    ),
    Specimen(
        name="sparse vector with noise for one answer",
        wrong="the noise of queries does not grow with the number of positive answers (Algorithm 4)",
        source=_SOURCE,
        broken=_answers(_quarter, _three_quarters, 4),
        twin=_answers(_double, laplace(16), 4),
        claim=Pure(1),
        inputs=[_falling_then_rising[0]],
        neighbors=next_to(_falling_then_rising[1]),
        trials=20_000,
        leaks=5.0505,
    ),
    Specimen(
        name="sparse vector without noise on queries",
        wrong="only the threshold has noise, and answers go on for ever (Algorithm 5)",
        source=_SOURCE,
        broken=_answers(_double, _none, _LONG),
        twin=_answers(_double, _quarter, 1),
        claim=Pure(1),
        inputs=[(0, 1)],
        neighbors=next_to((1, 0)),
        trials=5_000,
        leaks=math.inf,
    ),
    Specimen(
        name="sparse vector without an end",
        wrong="answers go on for ever, with noise for one positive (Algorithm 6)",
        source=_SOURCE,
        broken=_answers(_double, _double, _LONG),
        twin=_answers(_double, _quarter, 1),
        claim=Pure(1),
        inputs=[_long_fall[0]],
        neighbors=next_to(_long_fall[1]),
        trials=20_000,
        leaks=5.1006,
    ),
)
