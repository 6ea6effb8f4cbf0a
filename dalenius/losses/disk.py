"""The disk format of a loss: a JSON object with its kind, its version and its exact parameters.

    {"kind": "laplace", "version": 1, "relation": "add_remove", "scale": "0.5"}

A rational is a string, "0.1" where the decimal ends and "8/1875" where it does not; counts
are integers, lists are lists, a loss within a loss is an object. `kind` and `version` are never
reused and never change meaning; one that is not known is refused, as nothing sound can be said of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dalenius.errors import DaleniusError, InvalidArgument, UnknownKind
from dalenius.losses.composition import Composition, compose
from dalenius.losses.fields import arguments, names, written
from dalenius.losses.loss import Loss

NUMBER = re.compile(r"-?[0-9]{1,5000}(?:\.[0-9]{1,5000}|/0*[1-9][0-9]{0,4999})?")
MODULES = (
    "allocation.random_allocation",
    "bounded_range",
    "carried",
    "concentrated",
    "discrete_gaussian",
    "discrete_laplace",
    "dominated",
    "gaussian",
    "group",
    "iteration.last_iterate",
    "joint",
    "laplace",
    "mixture",
    "pate.gnmax",
    "pate.lnmax",
    "pate.smooth",
    "poisson",
    "pure",
    "randomized_response",
    "raw",
    "sampling.truncated_poisson",
    "sampling.without_replacement",
    "selection.random_runs",
    "shuffling.randomizer",
    "shuffling.shuffled",
    "skellam",
    "streams.correlated",
)
"""Where the kinds are."""
_HEADER = ("kind", "version", "relation")


def to_dict(loss: Loss) -> dict[str, Any]:
    """The description as plain values, ready for JSON."""
    plain = {"kind": loss.kind, "version": loss.version, "relation": loss.relation}
    plain.update((name, _plain(value)) for name, value in arguments(loss) if name != "relation")
    return plain


def from_text(text: str) -> Loss:
    """Read the JSON of a loss."""
    try:
        description = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise _malformed("it is not JSON") from None
    return from_dict(description)


def from_dict(description: object) -> Loss:
    """Read the plain values of a loss."""
    try:
        return _read(description)
    except DaleniusError:
        raise
    except (TypeError, ValueError, RecursionError):
        raise _malformed("its parameters are not those of its kind") from None


def _read(description: object) -> Loss:
    if not isinstance(description, Mapping):
        raise _malformed("it is not an object")
    kind = _kind(description.get("kind"), description.get("version"))
    given = {name: _value(value) for name, value in description.items() if name not in _HEADER}
    if set(given) != {argument for _, argument in names(kind) if argument != "relation"}:
        raise _malformed("its parameters are not those of its kind")
    given.update(_relation(kind, description))
    loss = _composition(given["terms"]) if kind is Composition else kind(**given)
    if loss.relation != description.get("relation"):
        raise _malformed("its relation is not that of its parts")
    return loss


def _kind(kind: object, version: object) -> type[Loss]:
    if not isinstance(kind, str) or not isinstance(version, int) or isinstance(version, bool):
        raise _malformed("a kind (a name) and a version (a whole number) are needed")
    if (kind, version) not in Loss.kinds:
        _load_all()
    if (kind, version) not in Loss.kinds:
        raise UnknownKind(
            f"No loss of kind {kind[:40]!r}, version {version} is known.",
            remedy="Read it with the version of Dalenius that wrote it, or a later one.",
        )
    return Loss.kinds[kind, version]


def _load_all() -> None:
    """Kinds are known once their modules are imported."""
    from importlib import import_module

    for module in MODULES:
        import_module(f"dalenius.losses.{module}")


def _relation(kind: type[Loss], description: Mapping[str, Any]) -> dict[str, Any]:
    """The relation as an argument, for kinds that hold one of their own rather than of their parts."""
    holds = any(argument == "relation" for _, argument in names(kind))
    return {"relation": description.get("relation")} if holds else {}


def _composition(terms: Any) -> Loss:
    if not terms or any(type(count) is not int or not isinstance(loss, Loss) for loss, count in terms):
        raise _malformed("a composition lists losses, each with its whole count")
    return compose(loss * count for loss, count in terms)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return written(value)
    if isinstance(value, Loss):
        return to_dict(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _value(value: Any) -> Any:
    if isinstance(value, str):
        if not NUMBER.fullmatch(value):
            raise _malformed("a number is not written as a decimal or a fraction")
        return Fraction(value)
    if isinstance(value, Mapping):
        return _read(value)
    return tuple(_value(item) for item in value) if isinstance(value, list | tuple) else value


def _malformed(reason: str) -> InvalidArgument:
    return InvalidArgument(
        f"This is not the description of a loss: {reason}.", remedy="Pass what loss.to_json() wrote."
    )
