"""The ε that two inputs attain at δ, from their exact laws."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dalenius.audits.scores import key
from dalenius.mechanisms.mechanism import Floats, Law


def attainable(laws: Sequence[Law | None], delta: float) -> float | None:
    """The ε of the pair at δ, in the worse direction, where its laws are closed."""
    known = [law for law in laws if law is not None]
    if len(known) != 2:
        return None
    keys = [np.array([key(outcome) for outcome in law.outcomes]) for law in known]
    kinds, place = np.unique(np.concatenate(keys), return_inverse=True)
    ends = np.split(place, [len(keys[0])])
    p, q = np.zeros((2, len(kinds)))
    for side, end, law in zip((p, q), ends, known, strict=True):
        np.add.at(side, end, law.masses)
    rest = 2 * max(law.rest for law in known)
    return max(_epsilon(p, q, delta, rest), _epsilon(q, p, delta, rest))


def _epsilon(p: Floats, q: Floats, delta: float, rest: float) -> float:
    """The least ε ≥ 0 with Σ (p − e^ε q)₊ ≤ δ; a mass of `rest` is what the lists leave out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(p) - np.log(q)
    both = (p > 0) & (q > 0)
    infinite = float(p[q == 0].sum())
    infinite = infinite if infinite > rest else 0.0
    if infinite > delta:
        return math.inf
    order = np.argsort(-ratio[both])
    p, q, ratio = p[both][order], q[both][order], ratio[both][order]
    excess = np.cumsum(p) + infinite - delta
    # On the first i outcomes the equation is linear in e^ε; the best set gives the largest solution.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(np.maximum(excess, 0.0)) - np.log(np.cumsum(q))
    return max(0.0, float(np.max(found))) if len(found) else 0.0
