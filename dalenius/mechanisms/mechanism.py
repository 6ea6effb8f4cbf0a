"""`Mechanism`: a randomized map from private values to releases, its parameters exact and public.

A mechanism is a frozen value. It knows what one use costs (`loss`), how far off it is (`error`), on which
neighbouring inputs it leaks the most (`worst_case`), its law there where that is closed (`probabilities`),
and how to draw from it (`sample`, for audits on public inputs; `release` for private ones). Its JSON names
its kind and version, which never change in meaning. What answers more than once is a `Session`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument, RelationMismatch, UnknownKind
from dalenius.losses.disk import NUMBER
from dalenius.losses.fields import written
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, EXACT, Cell, Receipt, Release

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Law:
    """A law on finitely many outcomes, in order, as floats; `rest` bounds what is left out."""

    outcomes: tuple[Any, ...]
    masses: Floats
    rest: float = 0.0


class Mechanism(ABC):
    """A randomized map. See the module."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    kinds: ClassVar[dict[tuple[str, int], type[Mechanism]]] = {}

    def __init_subclass__(cls, *, kind: str | None = None, version: int = 1) -> None:
        super().__init_subclass__()
        if kind is not None:
            cls.kind, cls.version = kind, version
            Mechanism.kinds[kind, version] = cls

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What one use costs."""

    @abstractmethod
    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """Draw once on a private value."""

    @abstractmethod
    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Independent draws on a public value, for audits: one row each."""

    @abstractmethod
    def worst_case(self) -> tuple[Any, Any]:
        """Neighbouring values between which it leaks the most of all it was charged for."""

    def cases(self) -> Sequence[tuple[Any, Any]]:
        """The worst case first, then other neighbouring values that by its claim tell no more."""
        return [self.worst_case()]

    def log_ratio(self, draws: NDArray[Any], pair: tuple[Any, Any]) -> Floats | None:
        """The logarithm of how much likelier each draw is on the first value than on the second, if known."""
        return None

    def probabilities(self, value: Any) -> Law | None:
        """Its law on a value, where that is closed."""
        return None

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float | None:
        """How far off a released number is with probability at most `alpha`; None where data decide."""
        return None

    @property
    def numerics(self) -> str:
        """The numerical model its receipts name."""
        return EXACT

    # The disk format.

    def to_json(self) -> str:
        """The mechanism as JSON."""
        plain = {"kind": self.kind, "version": self.version}
        plain |= {field.name: _plain(getattr(self, field.name)) for field in _fields(type(self))}
        return json.dumps(plain, separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Mechanism:
        """Read a mechanism back. An unknown kind or version is refused."""
        try:
            plain = json.loads(text)
            kind, version = plain.pop("kind"), plain.pop("version")
        except (ValueError, TypeError, KeyError, AttributeError):
            raise _malformed("it is no JSON object with a kind and a version") from None
        if (kind, version) not in Mechanism.kinds:
            _load_all()
        if (kind, version) not in Mechanism.kinds:
            raise UnknownKind(
                f"No mechanism of kind {str(kind)[:40]!r}, version {version!r} is known.",
                remedy="Read it with the version of Dalenius that wrote it, or a later one.",
            )
        found = Mechanism.kinds[kind, version]
        if set(plain) != {field.name for field in _fields(found)}:
            raise _malformed("its parameters are not those of its kind")
        return cast(Callable[..., Mechanism], found)(**{name: _value(value) for name, value in plain.items()})

    # What most of them share.

    @cached_property
    def _receipt(self) -> Receipt:
        """That of any use of it."""
        return Receipt(self.loss, self.to_json(), self.numerics)

    def _released(
        self,
        columns: Mapping[str, Sequence[Cell]],
        measures: tuple[str, ...],
        unit: Unit | None,
        *,
        tainted: bool = False,
    ) -> Release:
        """A release of these columns with the receipt of one use."""
        if unit is not None and unit.relation != self.loss.relation:
            raise RelationMismatch(
                f"The unit is protected under {unit.relation}, the mechanism's loss holds under "
                f"{self.loss.relation}.",
                remedy=f"State the sensitivity for relation={unit.relation!r}, or the unit for the other.",
            )
        receipt = replace(self._receipt, unit=unit, tainted=tainted or noise.tainted())
        return Release({k: tuple(v) for k, v in columns.items()}, measures, receipt)


Stamp = Callable[[Release], Release]
"""What puts the entry of the account that paid onto the receipt of an answer."""


class Payer(Protocol):
    """An account, as a session sees it."""

    def unit_for(self, loss: Loss) -> Unit:
        """Whom it protects, under the relation of a loss."""

    def pay(self, mechanism: Mechanism, *, by: str, purpose: str) -> Stamp:
        """Charge a whole session now."""


class Session(Protocol):
    """What answers more than once on one charge."""

    def ask(self, value: Any) -> Release:
        """One more answer."""
        ...


def _fields(kind: type[Mechanism]) -> tuple[Any, ...]:
    return tuple(field for field in fields(cast(Any, kind)) if field.init)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return written(value)
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return {"text": value}
    if isinstance(value, Grid):
        return {"grid": value.exponent}
    if isinstance(value, Sensitivity):
        norms = {name: getattr(value, name) for name in ("l0", "l1", "l2", "linf")}
        kind = {"relation": value.relation} | (
            {"of_one_number": value.of_one_number} if value.l0 == 1 else {}
        )
        return kind | {k: _plain(v) for k, v in norms.items() if v is not None}
    if isinstance(value, Mechanism):
        return {"mechanism": json.loads(value.to_json())}
    if isinstance(value, Loss):
        return {"loss": json.loads(value.to_json())}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return Fraction(value) if NUMBER.fullmatch(value) else value
    if isinstance(value, Mapping):
        return _nested(value)
    return tuple(_value(item) for item in value) if isinstance(value, list) else value


def _nested(value: Mapping[str, Any]) -> Any:
    if "text" in value:
        return value["text"]
    if "grid" in value:
        return Grid(value["grid"])
    if "mechanism" in value:
        return Mechanism.from_json(json.dumps(value["mechanism"]))
    if "loss" in value:
        return Loss.from_json(json.dumps(value["loss"]))
    # Early texts do not tell a number from a vector of which one entry changes: a number is the safe reading.
    stated: dict[str, Any] = {"of_one_number": value.get("l0") == 1}
    return Sensitivity(**stated | {name: _value(item) for name, item in value.items()})


def _load_all() -> None:
    """Kinds are known once their modules are imported; those of layers above by their names."""
    for name in ("dalenius.mechanisms", "dalenius.local", "dalenius.streams"):
        for module in iter_modules(import_module(name).__path__):
            import_module(f"{name}.{module.name}")


def _malformed(reason: str) -> InvalidArgument:
    return InvalidArgument(
        f"This is not the description of a mechanism: {reason}.",
        remedy="Pass what mechanism.to_json() wrote.",
    )


def risk(alpha: Number) -> Fraction:
    """A probability of error strictly between 0 and 1."""
    found = numbers.probability(alpha, "alpha")
    if not 0 < found < 1:
        raise InvalidArgument("alpha must be between 0 and 1.", remedy="Choose alpha such as 0.05.")
    return found
