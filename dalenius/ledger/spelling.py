"""A loss as the expression that makes it: what `dalenius ledger charge` reads, as short as that allows.

    >>> from dalenius.losses import Gaussian, Pure
    >>> spelled(Gaussian(4).poisson(0.01) * 10_000 + Pure(0.1))
    'pure(0.1) + gaussian(4).poisson(0.01) * 10000'

A loss that no expression makes is spelled as its JSON, which is read in the same place.
"""

from __future__ import annotations

import inspect
from fractions import Fraction

from dalenius.losses.allocation.random_allocation import RandomAllocation
from dalenius.losses.composition import Composition
from dalenius.losses.fields import arguments, written
from dalenius.losses.group import Group
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Poisson
from dalenius.losses.shuffling.shuffled import Shuffled

UNWRITTEN = (
    "carried",
    "dominated",
    "poisson_selected",
    "selected",
    "shuffled_same_others",
    "sighting",
    "truncated_poisson",
    "without_replacement",
)
"""Kinds that arise from others and have no word of their own."""
LONGEST = 100
"""Digits of a number that an expression may have."""


def spelled(loss: Loss) -> str:
    """The expression of a loss, or its JSON."""
    return _expression(loss) or loss.to_json()


def _expression(loss: Loss) -> str | None:
    match loss:
        case Composition():
            parts = [_repeated(part, times) for part, times in loss.terms]
            return None if None in parts else " + ".join(filter(None, parts))
        case Poisson():
            return _method(loss.loss, "poisson", _number(loss.sampling_rate))
        case Group():
            return _method(loss.loss, "group", str(loss.size))
        case RandomAllocation():
            return _method(loss.loss, "random_allocation", str(loss.steps))
        case Shuffled():
            return _method(loss.loss, "shuffled", str(loss.reporters))
    return None if loss.kind in UNWRITTEN else _call(loss)


def _repeated(loss: Loss, times: int) -> str | None:
    part = _expression(loss)
    return part if part is None or times == 1 else f"{part} * {times}"


def _method(loss: Loss, name: str, number: str | None) -> str | None:
    inner = _expression(loss)
    if inner is None or number is None:
        return None
    return f"({inner}).{name}({number})" if isinstance(loss, Composition) else f"{inner}.{name}({number})"


def _call(loss: Loss) -> str | None:
    """The kind with its arguments: the first ones without their names, defaults left out."""
    parameters = inspect.signature(type(loss)).parameters
    words, named = [], False
    for name, value in arguments(loss):
        parameter, text = parameters[name], _shown(value)
        if text is None:
            return None
        if value == parameter.default:
            named = True
        elif named or parameter.kind is parameter.KEYWORD_ONLY:
            words.append(f"{name}={text}")
        else:
            words.append(text)
            named = True
    return f"{loss.kind}({', '.join(words)})"


def _shown(value: object) -> str | None:
    match value:
        case Fraction():
            return _number(value)
        case int() | str():
            return str(value)
        case Loss():
            return _expression(value)
        case tuple():
            items = [_shown(item) for item in value]
            return None if None in items else f"[{', '.join(filter(None, items))}]"
    return None


def _number(value: Fraction) -> str | None:
    """Exact, with an exponent where that is shorter: 1e-09."""
    whole, short = written(value), repr(float(value))
    text = short if len(short) < len(whole) and Fraction(short) == value else whole
    return text if len(text) <= LONGEST else None
