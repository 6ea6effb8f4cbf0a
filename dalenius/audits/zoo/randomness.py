"""Noise of the right law that is not drawn afresh."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalenius.audits.zoo.drawing import beside, laplace, next_to, noisy, one_by_one
from dalenius.audits.zoo.specimen import Specimen
from dalenius.losses.pure import Pure

_whole, _double = laplace(1), laplace(2)
_RATE = 1 - math.exp(-0.5)


def _two_sided(generator: np.random.Generator, size: int) -> Any:
    return generator.geometric(_RATE, size) - generator.geometric(_RATE, size)


_PARENT = np.random.default_rng()
_CHILD = copy.deepcopy(_PARENT)
_in_parent = one_by_one(lambda size: _two_sided(_PARENT, size))
_in_child = one_by_one(lambda size: _two_sided(_CHILD, size))


def _reused(values: Sequence[int]) -> list[int]:
    shift = _double()
    return [value + shift for value in values]


def _seeded(seed: int, value: int) -> int:
    return value + int(_two_sided(np.random.default_rng(seed), 1)[0])


SPECIMENS = (
    Specimen(
        name="noise used twice",
        wrong="two counts have the same noise, and their difference none",
        source="Dwork and Roth 2014",
        broken=_reused,
        twin=lambda values: noisy(values, _double),
        claim=Pure(0.5),
        inputs=[(3, 3)],
        neighbors=next_to((4, 3), (3, 4)),
        leaks=math.inf,
    ),
    Specimen(
        name="generator that was forked",
        wrong="two processes begin with the same state, and draw the same noise",
        source="Garfinkel and Leclerc 2020",
        broken=lambda values: [values[0] + _in_parent(), values[1] + _in_child()],
        twin=lambda values: noisy(values, _double),
        claim=Pure(0.5),
        inputs=[(3, 3)],
        neighbors=next_to((4, 3), (3, 4)),
        leaks=math.inf,
    ),
    Specimen(
        name="generator with a fixed seed",
        wrong="every answer has the same noise",
        source="Garfinkel and Leclerc 2020",
        broken=lambda value: _seeded(1977, value),
        twin=lambda value: value + _double(),
        claim=Pure(0.5),
        neighbors=beside,
        leaks=math.inf,
    ),
    Specimen(
        name="generator seeded by the data",
        wrong="the same data always have the same noise, and other data another",
        source="Gadotti, Houssiau, Rocher, Livshits and de Montjoye 2019",
        broken=lambda value: _seeded(abs(value), value),
        twin=lambda value: value + _double(),
        claim=Pure(0.5),
        neighbors=beside,
        leaks=math.inf,
    ),
)
