"""`audit_callable`: the claim of anybody's mechanism, of which nothing is known but its outputs.

Pairs of neighbouring inputs are tried on a few draws each, the more promising half on twice as many, until
one is left (Jamieson and Talwalkar 2016). On that pair scores are learned from draws that serve for nothing
else, and fresh ones are bet on as in `claims`: whatever was searched for before, the evidence is that of the
bets.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.audits.boosting import boosted
from dalenius.audits.families import Floats
from dalenius.audits.hunt import Draw, Hunt
from dalenius.audits.outcomes import Layout, Raised
from dalenius.audits.report import Audit
from dalenius.audits.scores import Case, Scores, learned
from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss

MOST_PAIRS = 256
"""So many pairs are tried at the most."""
FIRST_LOOK, LONGEST_LOOK = 64, 2048
"""Draws a side by which pairs are first compared, at least and at most; between them a quarter of all."""

Function = Callable[[Any], Any]
Neighbors = Callable[[Any], Iterable[Any]]


def audit_callable(
    function: Function,
    pairs: Sequence[Case],
    claim: Loss,
    *,
    delta: Fraction,
    trials: int,
    confidence: Fraction,
    until: float,
) -> Audit:
    """Attack a claim about a function, each call of which is one draw."""
    hunt = Hunt(claim, delta, float(1 - confidence))
    case = _most_telling(function, pairs, hunt, trials)
    draw = _draws(function, case)
    drawn = hunt.run(draw, {}, trials, until, learn=_learned)
    return hunt.report(confidence, drawn, None)


def pairs_of(inputs: Iterable[Any], neighbors: Neighbors | None, claim: Loss) -> list[Case]:
    """Each input with each of its neighbours, evenly chosen where there are too many."""
    if not isinstance(inputs, Iterable):
        raise InvalidArgument("inputs is not a list of inputs.", remedy="Pass inputs=[…].")
    known = list(inputs)
    near = neighbors or _by_relation(known, claim)
    found = [(one, other) for one in known for other in near(one)]
    if not found:
        raise InvalidArgument(
            "There are no neighbouring inputs to try.",
            remedy="Pass inputs=[…] and neighbors=a function that lists those of one.",
        )
    return (
        [found[len(found) * k // MOST_PAIRS] for k in range(MOST_PAIRS)] if len(found) > MOST_PAIRS else found
    )


def _by_relation(known: Sequence[Any], claim: Loss) -> Neighbors:
    """Lists with a record less, or with one in the place of another, as the claim's relation says."""
    if not all(isinstance(each, list | tuple | np.ndarray) for each in known):
        raise InvalidArgument(
            "What is next to an input is only known of lists of records.",
            remedy="Pass neighbors=a function that lists the neighbours of an input.",
        )
    if claim.relation == "zero_out":
        raise InvalidArgument(
            "Which record stands for none is not known.",
            remedy="Pass neighbors=a function that lists the inputs with one record zeroed out.",
        )
    records = [record for each in known for record in each]

    def removed(one: Any) -> Iterable[Any]:
        return (_without(one, place) for place in range(len(one)))

    def replaced(one: Any) -> Iterable[Any]:
        return (_with(one, place, record) for place in range(len(one)) for record in _ends(records))

    return removed if claim.relation == "add_remove" else replaced


def _ends(records: Sequence[Any]) -> list[Any]:
    """The least and the largest record, as those are the farthest apart."""
    try:
        return [min(records), max(records)]
    except (TypeError, ValueError):
        return list(records[:4])


def _without(one: Any, place: int) -> Any:
    return np.delete(one, place, axis=0) if isinstance(one, np.ndarray) else one[:place] + one[place + 1 :]


def _with(one: Any, place: int, record: Any) -> Any:
    changed = one.copy() if isinstance(one, np.ndarray) else list(one)
    changed[place] = record
    return tuple(changed) if isinstance(one, tuple) else changed


def _most_telling(function: Function, pairs: Sequence[Case], hunt: Hunt, trials: int) -> Case:
    left = list(pairs)
    size = min(max(FIRST_LOOK, trials // (4 * len(left))), LONGEST_LOOK)
    while len(left) > 1:
        promises = [hunt.promise(_draws(function, case), {}, size, learn=_learned) for case in left]
        order = sorted(range(len(left)), key=lambda k: -promises[k])
        left, size = [left[k] for k in order[: (len(left) + 1) // 2]], 2 * size
    return left[0]


def _draws(function: Function, case: Case) -> Draw:
    """Pair by pair, in an order by coins: what changes from call to call must not tell inputs apart."""
    coins = random.Random()

    def draw(size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        found = np.empty((2, size), dtype=object)
        for place in range(size):
            for side in (0, 1) if coins.getrandbits(1) else (1, 0):
                found[side, place] = _called(function, case[side])
        return found[0], found[1]

    return draw


def _called(function: Function, value: Any) -> Any:
    """An error is an output like any other: who sees it has learned something."""
    try:
        # What a function does to its input, or later to its output, is not to be seen by other calls.
        return deepcopy(function(deepcopy(value)))
    except Exception as error:
        return Raised(type(error).__name__)


def _learned(first: NDArray[Any], second: NDArray[Any], *, exact: bool) -> dict[str, Scores]:
    """Scores over outputs as rows of numbers."""
    layout = Layout.of([*first.tolist(), *second.tolist()])
    rows = layout.rows(first.tolist()), layout.rows(second.tolist())
    found = learned(*rows, exact=exact) | boosted(*rows)
    return {name: _over(layout, score) for name, score in found.items()}


def _over(layout: Layout, score: Scores) -> Scores:
    def ranked(draws: NDArray[Any]) -> Floats:
        return score(layout.rows(draws.tolist()))

    return ranked
