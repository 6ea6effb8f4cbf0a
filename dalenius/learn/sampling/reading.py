"""A sampling by its name or as it is, and from its public fields, as `Sampling.plain` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from numpy.typing import ArrayLike

from dalenius.errors import InvalidArgument, NotSound, UnknownKind
from dalenius.learn.library_code import is_library_class
from dalenius.learn.sampling.cyclic import Cyclic
from dalenius.learn.sampling.fixed import WithoutReplacement
from dalenius.learn.sampling.poisson import TruncatedPoisson
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


def asked(
    sampling: str | Sampling, rows: int, *, cap: int | None, bands: int | None, **given: Any
) -> Sampling:
    """A sampling of so many rows, by its name; one that was made is taken if it was made for them."""
    if isinstance(sampling, Sampling):
        if not is_library_class(type(sampling)):
            raise NotSound(
                f"{type(sampling).__name__} is a sampling of your own: it is not known to draw as it is "
                "accounted for.",
                remedy='Pass sampling="poisson", or another sampling of this library.',
            )
        if sampling.members.rows != rows:
            raise InvalidArgument(
                "This sampling was made for data of another length.",
                remedy="Make it with len(dataset) rows, or pass its name.",
            )
        _check_agrees(sampling, {**given, "cap": cap, "bands": bands})
        return sampling
    names = sorted(name for name, kind in Sampling.kinds.items() if kind is not WithoutReplacement)
    if sampling not in names:
        raise InvalidArgument(
            f"sampling is one of {', '.join(names)}.", remedy='Pass sampling="poisson", or a sampling.'
        )
    kind = Sampling.kinds[sampling]
    more: dict[str, Any] = {"cap": cap, "bands": bands}
    for name, owner in (("cap", TruncatedPoisson), ("bands", Cyclic)):
        if more[name] is None:
            del more[name]
        elif kind is not owner:
            raise InvalidArgument(
                f"{name} is for sampling={owner.kind!r}.", remedy=f"Leave {name} out, or pass that sampling."
            )
    if kind is TruncatedPoisson and cap is None:
        raise InvalidArgument(
            f"sampling={sampling!r} cuts batches to a cap.", remedy="Pass cap, such as 1.5 times batch_size."
        )
    return kind(rows, **given, **more)


def _check_agrees(sampling: Sampling, given: Mapping[str, Any]) -> None:
    """Refuse arguments beside a sampling that say something else than it does.

    Args:
        sampling: The sampling.
        given: Arguments of `Private` by name, None where they were left out.
    """
    if given["units"] is not None:
        raise InvalidArgument(
            "units is given beside a sampling that was made, which knows its own units.",
            remedy="Leave units and rows_per_unit out, and pass them to the sampling.",
        )
    steps = None
    if given["steps"] is not None or given["epochs"] is not None:
        steps = sampling.steps_of(given["steps"], given["epochs"])
    size = sampling.size if sampling.declared else None
    said = {
        "steps or epochs": (steps, sampling.steps),
        "batch_size": (given["batch_size"], sampling.batch_size),
        "public_size": (given["public_size"], size),
        "rows_per_unit": (given["rows_per_unit"], sampling.rows_per_unit),
        "cap": (given["cap"], getattr(sampling, "cap", None)),
        "bands": (given["bands"], getattr(sampling, "bands", None)),
    }
    for name, (value, own) in said.items():
        if value is not None and value != own:
            raise InvalidArgument(
                f"{name} is not that of the sampling: {value} is given, and the sampling has {own}.",
                remedy=f"Pass {name} to the sampling, and leave it out here or pass the same.",
            )
