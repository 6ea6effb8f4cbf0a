"""A sampling from its public fields, as `Sampling.plain` gives them, and the data they are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from numpy.typing import ArrayLike

from dalenius.errors import InvalidArgument, UnknownKind
from dalenius.learn.sampling.scheme import VERSION, Sampling


def read(plain: Mapping[str, Any], *, rows: int, units: ArrayLike | None = None) -> Sampling:
    """The sampling of these public fields, of data that are given again."""
    given = dict(plain)
    kind, version = given.pop("kind", None), given.pop("version", None)
    known = Sampling.kinds.get(kind) if isinstance(kind, str) else None
    if known is None or version != VERSION:
        raise UnknownKind(
            "This sampling is of a kind or version that this library cannot read.",
            remedy="Use the version of the library that wrote it.",
        )
    if set(given) != {part.name for part in fields(known) if part.compare}:
        raise InvalidArgument("Fields of the sampling are missing or unknown.", remedy="Pass it as written.")
    size, declared = given.pop("size"), given.pop("declared")
    found = known(rows, units=units, public_size=size if declared else None, **given)
    if found.size != size:
        raise InvalidArgument(
            "The number of units was taken as public, and is another now.",
            remedy="Pass the same data, or start a new run.",
        )
    return found
