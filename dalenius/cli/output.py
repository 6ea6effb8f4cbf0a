"""What the commands print: text for people, JSON with stable keys for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction

import typer

from dalenius.cli.grammar import Parser
from dalenius.errors import BadExpression, InvalidArgument
from dalenius.losses.bound import Bound
from dalenius.losses.guarantee import bound_fields
from dalenius.losses.loss import Loss


def exact(text: str, name: str) -> Fraction:
    """A number given as an option: a decimal such as 1e-5, or a fraction such as 1/3."""
    try:
        return Parser(text).number()
    except BadExpression as error:
        raise InvalidArgument(f"{name} must be a number. {error.problem}", remedy=error.remedy) from None


def show(bound: Bound) -> str:
    """The safe side, and a word where it is not known to be attained."""
    return str(bound) if bound.tight else f"{bound} (an upper bound, not known to be tight)"


def emit_json(fields: Mapping[str, object]) -> None:
    """Print one JSON object; infinities become the strings "inf" and "-inf"."""
    typer.echo(json.dumps(_plain(fields), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: object) -> object:
    match value:
        case Bound():
            return _plain(bound_fields(value))
        case Loss():
            return json.loads(value.to_json())
        case Fraction():
            return _plain(float(value))
        case float() if not math.isfinite(value):
            return str(value)
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value
