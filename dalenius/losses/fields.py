"""Fields of a kind of loss that read what they are given: a float, int or Decimal becomes exact.

`scale: Parameter[Fraction] = Parameter(numbers.positive)` declares a field that accepts any number,
holds the rational it prints as, and refuses what is outside its range by name.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable
from dataclasses import fields
from fractions import Fraction
from functools import cache
from typing import Any, Generic, TypeVar, cast, overload

from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import read_relation

Read = TypeVar("Read", Fraction, int)

MOST_LOSS = 10**6
"""Privacy losses beyond this are taken to be mistakes."""


class Field:
    """Keeps what was read in the instance; without a default the field is required.

    `argument` is what the constructor and the disk call it, where a question already has the name:
    `epsilon` and `delta` are methods of every loss.
    """

    name: str
    argument: str

    def __init__(self, read: Callable[[Any, str], object], default: object, argument: str | None) -> None:
        self.read, self.default, self.alias = read, default, argument

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.argument = name, self.alias or name

    def fetch(self, instance: object | None) -> Any:
        """The value of an instance; of the class, the default, which is how dataclasses ask for it."""
        if instance is not None:
            return instance.__dict__[self.name]
        if self.default is None:
            raise AttributeError(self.name)
        return self.default

    def store(self, instance: object, value: object) -> None:
        """Read the value and keep it."""
        instance.__dict__[self.name] = self.read(value, self.argument)


class Parameter(Field, Generic[Read]):
    """One number."""

    def __init__(
        self,
        read: Callable[[object, str], Read],
        default: Read | None = None,
        *,
        argument: str | None = None,
    ) -> None:
        super().__init__(read, default, argument)

    @overload
    def __get__(self, instance: None, owner: type) -> Parameter[Read]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Read: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        return self.fetch(instance)

    def __set__(self, instance: object, value: Number) -> None:
        self.store(instance, value)


class Numbers(Field):
    """A sequence of numbers, kept as a tuple of rationals."""

    def __init__(self, read: Callable[[object, str], Fraction]) -> None:
        super().__init__(lambda values, name: tuple(read(v, name) for v in listed(values, name)), None, None)

    @overload
    def __get__(self, instance: None, owner: type) -> Numbers: ...
    @overload
    def __get__(self, instance: object, owner: type) -> tuple[Fraction, ...]: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        return self.fetch(instance)

    def __set__(self, instance: object, value: Iterable[Number]) -> None:
        self.store(instance, value)


class Described(Loss, ABC):
    """A kind that checks its relation when it is made and prints as it is written."""

    def __post_init__(self) -> None:
        read_relation(self.relation)

    def __repr__(self) -> str:
        shown = [f"{name}={_shown(value)}" for name, value in arguments(self)]
        return f"{type(self).__name__}({', '.join(shown)})".replace(", relation='add_remove'", "")

    def _keep(self, **values: object) -> None:
        """What a frozen dataclass does in its constructor, for those that write their own."""
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self.__post_init__()


@cache
def names(kind: type[Loss]) -> tuple[tuple[str, str], ...]:
    """The fields of a kind, each with the name of its constructor's argument."""
    declared = (field.name for field in fields(cast(Any, kind)) if field.init)
    return tuple((name, getattr(vars(kind).get(name), "argument", name)) for name in declared)


def arguments(loss: Loss) -> list[tuple[str, Any]]:
    """The constructor's arguments that make this loss."""
    return [(argument, getattr(loss, name)) for name, argument in names(type(loss))]


def written(number: Fraction) -> str:
    """The number as an exact text: a decimal where that is finite, else a reduced fraction."""
    top, bottom = number.numerator, number.denominator
    if bottom == 1:
        return str(top)
    digits = _decimals(bottom)
    if digits is None:
        return f"{top}/{bottom}"
    scaled = str(abs(top) * (10**digits // bottom)).rjust(digits + 1, "0")
    return f"{'-' * (top < 0)}{scaled[:-digits]}.{scaled[-digits:]}"


def _decimals(denominator: int) -> int | None:
    """How many decimal places 1/denominator has; None where they do not end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def _shown(value: object) -> str:
    if isinstance(value, Fraction):
        return written(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_shown(item) for item in value)}]"
    return repr(value)


def ratio(value: object, name: str) -> Fraction:
    """A number from 10^−6 to 10^12: noise over sensitivity, so that losses stay below a million."""
    number = numbers.positive(value, name)
    if not Fraction(1, MOST_LOSS) <= number <= MOST_LOSS**2:
        raise InvalidArgument(f"{name} must be from 1e-6 to 1e12.", remedy=f"Choose {name} in that range.")
    return number


def amount(value: object, name: str) -> Fraction:
    """A number from 0 to a million."""
    number = numbers.non_negative(value, name)
    if number > MOST_LOSS:
        raise InvalidArgument(f"{name} must be from 0 to 1e6.", remedy=f"Choose {name} in that range.")
    return number


def check_distance(scale: Fraction, sensitivity: int) -> None:
    """A sensitivity of a million scales or more hides nothing and is refused."""
    if sensitivity > MOST_LOSS * scale:
        raise InvalidArgument(
            "sensitivity must be at most 1e6 times scale.",
            remedy="Choose a larger scale: this one hides nothing.",
        )


def a_loss(value: object, name: str) -> Loss:
    """A loss; anything else is refused by name."""
    if not isinstance(value, Loss):
        raise InvalidArgument(f"{name} must be a loss.", remedy=f"Pass {name} as a loss, such as Pure(1).")
    return value


def whole(value: object, name: str) -> int:
    """A whole number from 1 to 10^12."""
    return numbers.count(value, name)


def listed(values: object, name: str) -> Iterable[object]:
    """The values of a list, tuple or array; anything else is refused by name."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidArgument(
            f"{name} must be a list of numbers.", remedy=f"Pass {name} as a list, tuple or array."
        )
    return values
