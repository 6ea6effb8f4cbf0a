"""The state of a tensor in a private pass: what of it depends on which examples.

A batch holds n examples. Read in row-major order, a tensor with a batch axis is an array of shape
(outer, n, inner), and `outer` says where the axis is, however the tensor was reshaped.

    AXIS      private: entry [:, i, :] depends on example i alone, but for a factor n**power
    COPIES    public: the same for every example along that axis, or drawn anew for each from one law
    POSITION  public: entry [:, i, :] is i, as made by `torch.arange(n)`; only an index may use it
    UNIFORM   public, of equal or of independent and identically distributed random entries
    VARIED    public, as long as a batch, and different from example to example: its length is private
    TOTAL     a sum over examples of per-example values, times a public constant and times n**power
    MIXED     private, and not known by example; absorbs whatever it meets

A tensor without a state is public. States are kept on the tensor object with the number of the pass (the
chunk of a batch) they belong to: a private state of an earlier pass counts as MIXED, since its examples are
others. In-place writes are dated, so that an alias of a tensor that was overwritten counts as MIXED too.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.multiprocessing.reductions import StorageWeakRef

from dalenius.learn.dataflow.provenance import Origin, origin

AXIS, COPIES, POSITION, UNIFORM, TOTAL, MIXED, VARIED = range(1, 8)
PRIVATE = frozenset((AXIS, TOTAL, MIXED))
PLACED = frozenset((AXIS, COPIES, POSITION))
VIRTUAL = 1_386_551
"""The number of examples that shapes are computed with: a large prime that nobody uses.

A loop that does use it, or a multiple of it, gets mixed tensors (`interpreter`).
"""
SELECTED = VIRTUAL - 1
"""The number of rows of a mixed tensor that were selected by private values, in the place of a size."""
STATE = "_dalenius_state"
"""The attribute of a tensor that holds its tag."""


class State(NamedTuple):
    """What is known of a tensor; `shape` is its shape with `VIRTUAL` examples, or None where unknown."""

    kind: int
    outer: int = 0
    shape: tuple[int, ...] | None = None
    power: int = 0
    origin: Origin | None = None
    drawn: bool = False
    """Whether public entries are random, so that one example's are not another's."""


def times_batch(shape: tuple[int, ...]) -> int:
    """Return how often the number of examples is a factor of the number of entries of a virtual shape."""
    return sum(map(multiplicity, shape))


def multiplicity(number: float) -> int:
    """Return how often the number of examples is a factor of a number; not at all of 0 and of infinity."""
    count = 0
    while number and number % VIRTUAL == 0:
        number, count = number // VIRTUAL, count + 1
    return count


def is_long(state: State | None) -> bool:
    """Return whether a tensor has a size that depends on the number of examples."""
    if state is None or state.shape is None:
        return False
    return any(size and size % VIRTUAL == 0 for size in state.shape)


class Tag:
    """A state as kept on a tensor, with the number of its pass and the date of the last write."""

    __slots__ = ("clock", "number", "state")

    def __init__(self, state: State, number: int, clock: int) -> None:
        self.state, self.number, self.clock = state, number, clock


def tag_of(tensor: Tensor) -> Tag | None:
    """Return the tag of a tensor, if it has one."""
    tag: Tag | None = getattr(tensor, STATE, None)
    return tag


def put_tag(tensor: Tensor, tag: Tag | None) -> None:
    """Keep a tag on a tensor, or take it away."""
    if tag is not None:
        setattr(tensor, STATE, tag)
    elif tag_of(tensor) is not None:
        delattr(tensor, STATE)


def mixed(operation: str, reason: str) -> State:
    """Return the state of a tensor that mixes examples, with the user's line."""
    return State(MIXED, origin=origin(operation, reason))


def locate(shape: tuple[int, ...], outer: int, examples: int) -> tuple[int, int] | None:
    """Return the dimension that holds the batch axis, and how many blocks precede it within that dimension.

    The dimension has size part · examples · inner. None if the axis does not lie within one dimension, or
    if there is none (`outer` is 0).
    """
    before = 1
    if outer < 1:
        return None
    for dimension, size in enumerate(shape):
        if outer % before == 0 and size > 1 and size % (outer // before * examples) == 0:
            return dimension, outer // before
        before *= size
    return None


def virtual_shape(shape: tuple[int, ...], outer: int, examples: int) -> tuple[int, ...] | None:
    """Return the shape of a tensor with a batch axis, with `VIRTUAL` examples in place of its own."""
    place = locate(shape, outer, examples)
    if place is None:
        return None
    dimension = place[0]
    return (*shape[:dimension], shape[dimension] // examples * VIRTUAL, *shape[dimension + 1 :])


def outer_at(shape: tuple[int, ...], dimension: int, part: int) -> int:
    """Return `outer` for an axis within a dimension of such a shape."""
    return math.prod(shape[:dimension]) * part


PLAIN_CLASSES = frozenset((Tensor, nn.Parameter))
"""Classes of tensors that nobody has extended."""
_SPARSE_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}
"""The methods of sparse tensors that return the tensors which they consist of."""
_WRITTEN: dict[int, StorageWeakRef] = {}
"""All memory of this process that private values were written into, by whichever run."""


def was_written(tensor: Tensor) -> bool:
    """Return whether a loop of this process has written private values into the memory of a tensor."""
    for key in [key for key, kept in _WRITTEN.items() if kept.expired()]:
        del _WRITTEN[key]
    if not _WRITTEN or tensor.layout is not torch.strided:
        return False
    with torch._C.DisableTorchFunction():
        return tensor.untyped_storage()._cdata in _WRITTEN


def note_written(tensor: Tensor) -> None:
    """Note that private values may have been written into the memory of a tensor."""
    if tensor.layout is torch.strided and not is_functorch_wrapped_tensor(tensor):
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
        _WRITTEN[storage._cdata] = StorageWeakRef(storage)


def _tracked_objects() -> list[Any]:
    """Return all objects that the garbage collector knows, also those that `gc.freeze()` hides from it."""
    frozen = gc.get_freeze_count()
    if frozen:
        gc.unfreeze()
    try:
        return gc.get_objects()
    finally:
        if frozen:
            gc.freeze()


def _sparse_storages(tensor: Tensor) -> list[Any]:
    """Return the memory of a sparse tensor: that of its indices and that of its values."""
    with torch._C.DisableTorchFunction():
        parts = [getattr(tensor, name)() for name in _SPARSE_PARTS.get(tensor.layout, ())]
        return [part.untyped_storage() for part in parts]


class Writes:
    """Dates of in-place writes that made public memory private, by storage.

    Whoever wrote gets the date of the write on its tag; another tensor on the same memory has an older tag,
    or none, and counts as MIXED. Storages are held weakly, in a way that keeps their address from being
    used again.
    """

    def __init__(self) -> None:
        self.clock = 0
        self.dates: dict[int, tuple[StorageWeakRef, int]] = {}
        """The storages that were written to, and when, by address."""
        self.held: set[int] = set()
        """Addresses of storages that hold private values."""
        self.lengths: set[int] = set()
        """Addresses of storages of public values, whose size depends on the number of examples."""

    def __del__(self, free: Callable[[int], None] = torch.UntypedStorage._free_weak_ref) -> None:
        """Free the weak references to storages."""
        for address in (*self.held, *self.lengths):
            free(address)

    def __bool__(self) -> bool:
        return bool(self.dates)

    def __reduce__(self) -> tuple[type[Writes], tuple[()]]:
        """Copy nothing: two weak references to one storage that are copies of each other free it twice."""
        return Writes, ()

    def note(self, tensor: Tensor) -> None:
        """Date a write into this tensor."""
        self.clock += 1
        with torch._C.DisableTorchFunction():
            plain = tensor.layout is torch.strided
            storages = [tensor.untyped_storage()] if plain else _sparse_storages(tensor)
        for storage in storages:
            self.dates[storage._cdata] = StorageWeakRef(storage), self.clock
            _WRITTEN[storage._cdata] = StorageWeakRef(storage)

    def date(self, tensor: Tensor) -> int:
        """Return the date of the last write into the memory of a tensor, or 0."""
        if tensor.layout is not torch.strided:
            known_dates = [self.dates.get(storage._cdata) for storage in _sparse_storages(tensor)]
            return max((known[1] for known in known_dates if known is not None), default=0)
        # Not by way of other loops, whose modes may be active.
        with torch._C.DisableTorchFunction():
            known = self.dates.get(tensor.untyped_storage()._cdata)
        return 0 if known is None else known[1]

    def hold(self, tensor: Tensor, *, private: bool = True) -> None:
        """Note that a tensor with a private state, or with a private size, lies in its memory."""
        if tensor.layout is not torch.strided or is_functorch_wrapped_tensor(tensor):
            return
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
        self.hold_storage(storage, private=private)

    def holds(self, tensor: Tensor) -> bool:
        """Return whether the memory of a tensor, which has no tag, is that of a private one.

        Wrappers such as `nn.Parameter(x)` are other tensors on the same memory, which no function returned.
        """
        if not self.held:
            return False
        if tensor.layout is not torch.strided:
            return any(storage._cdata in self.held for storage in _sparse_storages(tensor))
        if is_functorch_wrapped_tensor(tensor):
            return False
        with torch._C.DisableTorchFunction():
            return tensor.untyped_storage()._cdata in self.held

    def has_length(self, tensor: Tensor) -> bool:
        """Return whether the memory of a tensor, which has no tag, is that of one with a private size."""
        if not self.lengths:
            return False
        if tensor.layout is not torch.strided:
            return any(storage._cdata in self.lengths for storage in _sparse_storages(tensor))
        if is_functorch_wrapped_tensor(tensor):
            return False
        with torch._C.DisableTorchFunction():
            return tensor.untyped_storage()._cdata in self.lengths

    def knows(self, tensor: Tensor) -> bool:
        """Return whether the memory of a tensor holds private values, or was written with such."""
        return bool(self.dates and self.date(tensor)) or self.holds(tensor)

    def hold_storage(self, storage: Any, *, private: bool = True) -> None:
        """Note that private values, or a private number of values, lie in some memory."""
        known = self.held if private else self.lengths
        if storage._cdata not in known:
            # A weak reference, which keeps the address from being used again until it is freed.
            known.add(storage._weak_ref())

    def tensors_left(self) -> list[Tensor]:
        """Return all plain tensors of this process that lie in private memory.

        Constructors such as `nn.Parameter(x)` and `torch.Tensor(x)` make tensors on the memory of `x`, and no
        mode sees them.
        """
        if all(map(torch.UntypedStorage._expired, (*self.held, *self.lengths))):
            return []
        plain = [one for one in _tracked_objects() if type(one) in PLAIN_CLASSES]
        return [tensor for tensor in plain if self.holds(tensor) or self.has_length(tensor)]

    def forget_freed(self) -> None:
        """Drop storages that no longer exist."""
        for known in (self.held, self.lengths):
            freed = [address for address in known if torch.UntypedStorage._expired(address)]
            known.difference_update(freed)
            for address in freed:
                torch.UntypedStorage._free_weak_ref(address)
        self.dates = {key: kept for key, kept in self.dates.items() if not kept[0].expired()}
