"""Values read out of private tensors: they can be printed and added up, and cannot steer the training.

`loss.item()` in a private loop gives a `PrivateNumber`. Text, format and arithmetic work; a comparison, a
branch, a conversion to a plain number and use as a size are refused, because the guarantee covers the noisy
sums of gradients and not what the loop decides by other values. A torch operation that takes a private number
gives a tensor of state MIXED. `x.shape[0]` of a batch is a `BatchSize`: an int that may size tensors and
divide a loss, and whose value is private, since under Poisson sampling it depends on who is in the data.
"""

from __future__ import annotations

import dis
import math
import operator
import sys
from collections.abc import Callable, Iterator
from numbers import Number as AnyNumber
from typing import Any, NoReturn

import numpy as np
import torch

from dalenius.errors import NotSound
from dalenius.learn.dataflow.provenance import user_line
from dalenius.learn.dataflow.states import VIRTUAL

_LOGGERS = "tensorboard tensorboardX wandb mlflow tqdm rich logging matplotlib neptune comet_ml clearml aim"
LOGGERS = frozenset(_LOGGERS.split())
"""Packages that only write values down: they may convert a private number to a float."""
LIBRARIES = frozenset(["torch", "transformers", "peft", "accelerate", "dalenius"])
"""Packages that compare the sizes of tensors to check them, and not to decide what is learned."""
_OPTIMIZING = "torch.optim", "torch.utils.data", "torch.amp", "transformers.trainer", "accelerate.scheduler"
_BUILDING = "torch.nn.modules.container", "torch.nn.modules.transformer"
DECIDING = *_OPTIMIZING, *_BUILDING, "dalenius.learn.dataflow.batch_length"
"""Modules of these packages that decide something by the numbers they are given, or hand them on."""
_MEASURING = frozenset((("torch.nn.modules.rnn", "get_expected_hidden_size"),))
"""Functions of libraries, by module, that make a size an int, and do nothing but compare it with sizes."""
_FORMATS = next(
    step.arg for step in dis.get_instructions(compile("a % b", "", "eval")) if step.opname == "BINARY_OP"
)


def refuse_steering(action: str, source: str = "", after: str = "") -> NoReturn:
    """Raise `NotSound` for a private value that is about to decide something.

    Args:
        action: What is done with the value.
        source: How it was read out of a tensor, such as "item()".
        after: What had mixed examples before.
    """
    value = f"a value that {source} read out of private examples" if source else "private examples"
    raise NotSound(
        f"{action} {value}{after}{user_line()}: what the loop decides by it would depend on people without "
        "noise.",
        remedy="Print private values or add them up, and decide nothing by them. A value to decide by is "
        "released through the account first, for example by dp.learn.evaluate.",
    )


def calling_package(depth: int = 2) -> str:
    """Return the top-level package of the function that called the caller."""
    name: str = sys._getframe(depth).f_globals.get("__name__", "")
    parts = name.split(".")
    return "tensorboard" if "tensorboard" in parts else parts[0]


def _is_own(depth: int = 2) -> bool:
    """Return whether the function that called the caller is one of this library, which needs plain sizes."""
    name: str = sys._getframe(depth).f_globals.get("__name__", "")
    return name.startswith("dalenius.") and not name.startswith(DECIDING)


def _checks_sizes(depth: int = 2) -> bool:
    """Return whether the function that called the caller is one of a library that checks sizes.

    Its comparisons are answered as those of a large batch, which is the same answer for every batch.
    """
    frame = sys._getframe(depth)
    name: str = frame.f_globals.get("__name__", "")
    code = frame.f_code.co_name
    if code == "parse_subscript" or (code == "__init__" and name.startswith("torch.nn.")):
        # Modules are built, and equations written, by the numbers they are given.
        return False
    return name.split(".")[0] in LIBRARIES and not name.startswith(DECIDING)


def _formatting() -> bool:
    """Return whether the caller's caller is evaluating a `%` operator, which formats a text."""
    frame = sys._getframe(2)
    code, at = frame.f_code.co_code, frame.f_lasti
    return dis.opname[code[at]].startswith("BINARY_OP") and code[at + 1] == _FORMATS


def plain(value: Any) -> Any:
    """Return the number inside of a private number, and anything else as it is."""
    return value._value if isinstance(value, PrivateNumber | PrivateInteger) else value


def computed(function: Callable[..., Any], *numbers: Any) -> Any:
    """Return a result of arithmetic, not a number where there is none: an error would tell private values."""
    try:
        result = function(*numbers)
    except (ArithmeticError, ValueError):
        return math.nan
    # The power of a negative number may be complex, which prints in another way.
    typed = any(isinstance(number, complex) for number in numbers)
    return result if typed or not isinstance(result, complex) else math.nan


def _operand(value: Any) -> Any:
    """Return a number as one of Python's own types, None for anything else.

    A subclass of the user's would be handed the plain value by its own arithmetic, and numpy's numbers warn
    of overflows and of divisions by zero.
    """
    kind = type(value)
    if kind in _NUMBERS:
        return value
    if isinstance(value, PrivateNumber | PrivateInteger):
        return value._value
    if issubclass(kind, np.generic):
        return _of_numpy(value) if getattr(np, kind.__name__, None) is kind else None
    if issubclass(kind, int):
        return int.__index__(value)
    return float.__float__(value) if issubclass(kind, float) else None


_NUMBERS = frozenset((int, float, bool, complex))


def _of_numpy(value: Any) -> Any:
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    return complex(value) if isinstance(value, np.complexfloating) else None


def _arithmetic(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a method and its reflection that compute with private numbers."""

    def forward(self: PrivateNumber, other: Any) -> Any:
        number = _operand(other)
        if number is None:
            return NotImplemented
        return PrivateNumber(computed(function, self._value, number), self.source)

    def reflected(self: PrivateNumber, other: Any) -> Any:
        number = _operand(other)
        if number is None:
            return NotImplemented
        return PrivateNumber(computed(function, number, self._value), self.source)

    return forward, reflected


def _text(value: Any) -> str:
    """Return a number as text; very long ones have none."""
    try:
        return repr(value)
    except ValueError:
        return "a number of many digits"


def _formatted(value: Any, how: str) -> str:
    """Return a number in a format, or as it is: an error could tell a value."""
    try:
        return format(value, how)
    except (ValueError, TypeError, OverflowError):
        return _text(value)


def _float(value: Any) -> float:
    """Return a number as a float for a text, infinite where it is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _int(value: Any) -> int:
    """Return a number as an int for a text, 0 where there is none."""
    try:
        return int(value)
    except (ValueError, OverflowError):
        return 0


def _float_power(base: Any, exponent: Any) -> Any:
    """Return a power as a float: a power of whole numbers may be whole or not, and of any size, by values."""
    return (base if isinstance(base, complex) else float(base)) ** exponent


class PrivateNumber:
    """A number computed from private examples; see the module's description for what it can do.

    Args:
        value: The number.
        source: How it was read out of a tensor, such as "item()".
    """

    __slots__ = ("_value", "source")

    def __init__(self, value: Any, source: str = "item()") -> None:
        self._value, self.source = plain(value), source

    __add__, __radd__ = _arithmetic(operator.add)
    __sub__, __rsub__ = _arithmetic(operator.sub)
    __mul__, __rmul__ = _arithmetic(operator.mul)
    __truediv__, __rtruediv__ = _arithmetic(operator.truediv)
    __floordiv__, __rfloordiv__ = _arithmetic(operator.floordiv)
    __pow__, __rpow__ = _arithmetic(_float_power)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        """Refuse: outside of a private loop no operation knows what the result may be used for."""
        refuse_steering("A torch operation takes")

    def __neg__(self) -> PrivateNumber:
        return PrivateNumber(-self._value, self.source)

    def __abs__(self) -> PrivateNumber:
        return PrivateNumber(abs(self._value), self.source)

    def __round__(self, digits: int | None = None) -> PrivateNumber:
        return PrivateNumber(computed(round, self._value, digits), self.source)

    def __repr__(self) -> str:
        return _text(self._value)

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        return _formatted(self._value, how)

    def item(self) -> PrivateNumber:
        """Return the number itself."""
        return self

    def for_logging(self) -> Any:
        """Return the plain number, to be written down. The receipt assumes that it decides nothing."""
        return self._value

    def __float__(self) -> float:
        if _formatting() or calling_package() in LOGGERS:
            return _float(self._value)
        refuse_steering("float() of", self.source)

    def __int__(self) -> int:
        if _formatting() or calling_package() in LOGGERS:
            return _int(self._value)
        refuse_steering("int() of", self.source)

    def __index__(self) -> int:
        refuse_steering("An index or a size from", self.source)

    def __bool__(self) -> bool:
        refuse_steering("A branch on", self.source)

    def __trunc__(self) -> int:
        refuse_steering("A whole number of", self.source)

    __floor__ = __ceil__ = __trunc__

    def __hash__(self) -> int:
        refuse_steering("A look-up by", self.source)

    def __reduce__(self) -> NoReturn:
        refuse_steering("A copy in bytes of", self.source)

    def __deepcopy__(self, _: Any) -> PrivateNumber:
        return self

    def _compare(self, other: object) -> Any:
        refuse_steering("A comparison of", self.source)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare


AnyNumber.register(PrivateNumber)


class PrivateArray:
    """The values of a private tensor, as `tolist()` and `numpy()` give them: to print, and to add up.

    Args:
        values: A list, nested as the tensor's dimensions are.
        source: How they were read out of a tensor.
        countable: For each dimension, whether it is public how many entries it has; by default it is not.
    """

    __slots__ = ("_values", "countable", "source", "tensor")

    def __init__(
        self, values: list[Any], source: str = "tolist()", *, countable: tuple[bool, ...] = ()
    ) -> None:
        self._values, self.source, self.countable = values, source, countable
        self.tensor: Any = None
        """The same values as a tensor of known state, where they can be made one again."""

    def __repr__(self) -> str:
        return repr(self._values)

    def __iter__(self) -> Iterator[Any]:
        if not any(self.countable[:1]):
            refuse_steering("A loop over", self.source)
        return (private(value, self.source, countable=self.countable[1:]) for value in self._values)

    def __getitem__(self, place: Any) -> Any:
        if not any(self.countable[:1]):
            refuse_steering("An entry of", self.source)
        return private(self._values[place], self.source, countable=self.countable[isinstance(place, int) :])

    def sum(self, *_: Any, **__: Any) -> PrivateNumber:
        """Return the sum of all entries."""
        return PrivateNumber(sum(_flat(self._values)), self.source)

    def mean(self, *_: Any, **__: Any) -> PrivateNumber:
        """Return the mean of all entries."""
        flat = _flat(self._values)
        return PrivateNumber(computed(operator.truediv, sum(flat), len(flat)), self.source)

    def tolist(self) -> PrivateArray:
        """Return the values as they are."""
        return self

    def for_logging(self) -> list[Any]:
        """Return the plain values, to be written down. The receipt assumes that they decide nothing."""
        return self._values

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        refuse_steering("A plain array of", self.source)

    def __len__(self) -> int:
        if not any(self.countable[:1]):
            refuse_steering("The length of", self.source)
        return len(self._values)

    def __contains__(self, value: object) -> bool:
        refuse_steering("A comparison of", self.source)

    def __hash__(self) -> int:
        refuse_steering("A look-up by", self.source)

    def __reduce__(self) -> NoReturn:
        refuse_steering("A copy in bytes of", self.source)

    def __copy__(self) -> PrivateArray:
        return self

    def __deepcopy__(self, _: Any) -> PrivateArray:
        return self

    def _compare(self, other: object) -> Any:
        refuse_steering("A comparison of", self.source)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare


def _flat(values: Any) -> list[Any]:
    return [leaf for value in values for leaf in _flat(value)] if isinstance(values, list) else [values]


def private(value: Any, source: str, *, countable: tuple[bool, ...] = ()) -> Any:
    """Return a plain value, or nested lists of them, as private ones.

    Args:
        value: A number, or nested lists of numbers.
        source: How they were read out of a tensor.
        countable: For each dimension, whether it is public how many entries it has; by default it is not.
    """
    if isinstance(value, list):
        return PrivateArray(value, source, countable=countable)
    return PrivateNumber(value, source)


def _is_whole(number: Any) -> bool:
    """Return whether arithmetic of a whole number with a number of this type gives whole numbers."""
    return isinstance(number, int | np.integer | PrivateInteger)


def _whole(
    function: Callable[..., Any], *, whole: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a method and its reflection that compute with private integers.

    Args:
        function: Computes with plain numbers.
        whole: Whether it gives a whole number of whole ones.
    """

    def forward(self: PrivateInteger, other: Any) -> Any:
        number = _operand(other)
        if number is None:
            return NotImplemented
        return self._result(computed(function, self._value, number), whole and _is_whole(other))

    def reflected(self: PrivateInteger, other: Any) -> Any:
        number = _operand(other)
        if number is None:
            return NotImplemented
        return self._result(computed(function, number, self._value), whole and _is_whole(other))

    return forward, reflected


class PrivateInteger(torch.SymInt):
    """A whole number that follows from the size of a batch.

    It is a `torch.SymInt`, and not an int, because Python computes with ints inside of floats without asking:
    `1.0 / x.shape[0]` would be a plain number. Functions of torch take it for a size while a pass is watched.

    Args:
        value: The number.
        source: How it was read, "shape" or "len()".
    """

    def __init__(self, value: int, source: str = "shape") -> None:
        self._value, self.source = int(value), source

    def _result(self, result: Any, whole: bool) -> Any:
        """Return a result of arithmetic, whose type follows from the types that went in, not from values."""
        if not whole:
            return PrivateNumber(result, self.source)
        # A division by zero has no result.
        return PrivateInteger(result if isinstance(result, int) else 0, self.source)

    __add__, __radd__ = _whole(operator.add)
    __sub__, __rsub__ = _whole(operator.sub)
    __mul__, __rmul__ = _whole(operator.mul)
    __floordiv__, __rfloordiv__ = _whole(operator.floordiv)
    __mod__, __rmod__ = _whole(operator.mod)
    __truediv__, __rtruediv__ = _whole(operator.truediv, whole=False)
    __pow__, __rpow__ = _whole(_float_power, whole=False)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return PrivateInteger(abs(self._value), self.source)

    def __round__(self, digits: Any = None) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__ = __pos__

    def _bits(self, other: Any) -> NoReturn:
        refuse_steering("Bits of", self.source)

    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _bits
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _bits

    def __repr__(self) -> str:
        return _text(self._value)

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        return _formatted(self._value, how)

    def __int__(self) -> int:
        if _formatting() or calling_package() in LOGGERS or _is_own():
            return self._value
        refuse_steering("int() of", self.source)

    def __index__(self) -> int:
        if _is_own():
            return self._value
        refuse_steering("A plain number of", self.source)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        refuse_steering("A plain number of", self.source)

    def __float__(self) -> float:
        if _formatting() or calling_package() in LOGGERS:
            return _float(self._value)
        refuse_steering("float() of", self.source)

    def __bool__(self) -> bool:
        if _is_own():
            return self._value != 0
        refuse_steering("A branch on", self.source)

    def __hash__(self) -> int:
        # Elsewhere all private sizes have one hash: it tells nothing of the value.
        return hash(self._value) if _is_own() else 0

    def __deepcopy__(self, _: Any) -> PrivateInteger:
        return self

    def __copy__(self) -> PrivateInteger:
        return self

    # vars() asks for this attribute, and would list the number.
    __dict__: Any = property(lambda self: refuse_steering("The attributes of", self.source))

    def __reduce__(self) -> NoReturn:
        refuse_steering("A copy in bytes of", self.source)

    def for_logging(self) -> int:
        """Return the plain number, to be written down. The receipt assumes that it decides nothing."""
        return self._value

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse the attributes of an int, and the symbol that torch looks for outside of a watched call."""
        if name.startswith("__"):
            raise AttributeError(name)
        refuse_steering(f"{name}, a plain number, of", self.source)

    def _known(self, other: Any, function: Callable[[int, int], bool]) -> bool | None:
        """Return the outcome of a comparison that is the same for every batch, or None."""
        return None

    def _compared(self, other: Any, function: Callable[[Any, Any], bool]) -> Any:
        if isinstance(other, PrivateNumber):
            return NotImplemented
        other = other if isinstance(other, PrivateInteger) else _operand(other)
        if not isinstance(other, int | float | PrivateInteger):
            return NotImplemented
        known = self._known(other, function)
        if known is not None:
            return known
        if _is_own(3):
            return function(self._value, plain(other))
        if _checks_sizes(3):
            large = self._of_large(other, function)
            if large is not None:
                return large
        refuse_steering("A comparison of", self.source)

    def _of_large(self, other: Any, function: Callable[[Any, Any], bool]) -> bool | None:
        """Return the outcome of a comparison for a large batch, None if it does not follow from its size."""
        return None

    def __eq__(self, other: object) -> Any:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, operator.ge)


class BatchSize(PrivateInteger):
    """A multiple of the number of examples of a batch, as `x.shape[0]` or `x.numel()` give it.

    Args:
        value: The size.
        ratio: The size over the number of examples, a public int.
        source: How it was read, "shape" or "len()".
        number: The number of the pass whose examples it counts. In any other pass it is a private integer
            like others: the examples of that pass are others, and as many as they are.
    """

    def __init__(self, value: int, ratio: int = 1, source: str = "shape", *, number: int = 0) -> None:
        super().__init__(value, source)
        self.ratio, self.number = ratio, number

    def __int__(self) -> int:
        if _formatting() or calling_package() in LOGGERS or _is_own():
            return self._value
        frame = sys._getframe(1)
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) in _MEASURING:
            return self.ratio * VIRTUAL
        refuse_steering("int() of", self.source)

    def __bool__(self) -> bool:
        # A batch has two examples or more.
        return self.ratio != 0

    def _of_large(self, other: Any, function: Callable[[Any, Any], bool]) -> bool | None:
        if isinstance(other, PrivateInteger):
            return None
        return function(self.ratio * VIRTUAL, other)

    def _known(self, other: Any, function: Callable[[int, int], bool]) -> bool | None:
        if isinstance(other, BatchSize):
            return function(self.ratio, other.ratio) if self.number == other.number else None
        # A batch has two examples or more, and at most any number.
        least = 2 * self.ratio
        if not isinstance(other, int) or self.ratio < 0 or other > least:
            return None
        if other < least:
            return function(least, other)
        return function is operator.ge if function in (operator.lt, operator.ge) else None

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            return BatchSize(self._value * other, self.ratio * other, self.source, number=self.number)
        return super().__mul__(other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if type(other) is int and other and self.ratio % other == 0:
            return BatchSize(self._value // other, self.ratio // other, self.source, number=self.number)
        return super().__floordiv__(other)

    __hash__ = PrivateInteger.__hash__


def whole_sizes(value: Any) -> Any:
    """Return arguments with plain ints in place of private integers, as torch's own kernels need them."""
    return _with_sizes(value, plain)


def virtual_sizes(value: Any) -> Any:
    """Return arguments with plain ints for private integers: sizes of a batch of `VIRTUAL` examples."""

    def virtual(size: PrivateInteger) -> int:
        return size.ratio * VIRTUAL if isinstance(size, BatchSize) else size._value

    return _with_sizes(value, virtual)


def present_sizes(value: Any, number: int) -> Any:
    """Return arguments in which sizes of the batches of other passes are private integers like others.

    Args:
        value: A value, or lists, tuples, slices and dicts of such.
        number: The number of the present pass.
    """

    def present(size: PrivateInteger) -> PrivateInteger:
        stale = isinstance(size, BatchSize) and size.number != number
        return PrivateInteger(size._value, size.source) if stale else size

    return _with_sizes(value, present)


def _with_sizes(value: Any, new: Callable[[Any], Any]) -> Any:
    """Return arguments with other values in place of private integers."""
    if isinstance(value, PrivateInteger):
        return new(value)
    if isinstance(value, slice):
        return slice(*(_with_sizes(entry, new) for entry in (value.start, value.stop, value.step)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_with_sizes(entry, new) for entry in value))
    if isinstance(value, torch.Size):
        return torch.Size([_with_sizes(entry, new) for entry in value])
    if isinstance(value, tuple | list):
        return type(value)(_with_sizes(entry, new) for entry in value)
    if type(value) is dict:
        return {key: _with_sizes(entry, new) for key, entry in value.items()}
    return value
