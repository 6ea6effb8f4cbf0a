"""`Processes`: those that train one model together, by torch.distributed; one alone where that is not begun.

What only one may do (the charge, the journal, files) the first does, and all get what came of it, or the
error. What all must have in common is compared before anything follows from it. Every exchange has a name:
processes that are not at the same place find out, and none goes on.

What is exchanged are the key of the run, sums before their noise, and weights: the network between processes
sees as much as they do.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

from dalenius.errors import InvalidArgument, NotSound

T = TypeVar("T")
Outcome = tuple[str, Any, Exception | None]
"""The name of an exchange, an answer, and an error in its place."""


@dataclass(frozen=True, eq=False)
class Processes:
    """So many, of which this one is number `rank`; `begun` says whether torch.distributed is."""

    rank: int = 0
    count: int = 1
    begun: bool = False
    group: Any = None

    @classmethod
    def of(cls, group: Any = None) -> Processes:
        """Those of a group, by default all."""
        if not distributed.is_available() or not distributed.is_initialized():
            if group is None:
                return cls()
            raise InvalidArgument(
                "There is a group, and torch.distributed was not initialized.",
                remedy="Leave group out, or call torch.distributed.init_process_group first.",
            )
        rank = distributed.get_rank(group)
        if rank < 0:
            raise InvalidArgument(
                "This process is not in the group.", remedy="Make the run in the processes of its group only."
            )
        return cls(rank, distributed.get_world_size(group), True, group)

    # Answers.

    def first(self, what: str, make: Callable[[], T]) -> T:
        """What the first process makes, or the error that it raises, in all of them."""
        if self.count == 1:
            return make()
        found: list[Outcome] = [_tried(what, make) if self.rank == 0 else (what, None, None)]
        distributed.broadcast_object_list(found, self._global(0), self.group)
        return _answers(what, found)[0]

    def each(self, what: str, make: Callable[[], T]) -> list[T]:
        """What each process makes, in all of them; the error of any is raised in all."""
        if self.count == 1:
            return [make()]
        found: list[Outcome] = [(what, None, None)] * self.count
        distributed.all_gather_object(found, _tried(what, make), self.group)
        return _answers(what, found)

    def agree(self, what: str, facts: Mapping[str, Any]) -> None:
        """Refuse where not all processes were given the same."""
        one, *others = self.each(what, lambda: {name: repr(value) for name, value in facts.items()})
        apart = [name for name in one if any(other.get(name) != one[name] for other in others)]
        if apart:
            raise InvalidArgument(
                f"Processes of {what} were given another {', another '.join(apart)}.",
                remedy="Give the same to all. For a run of its own in each process pass each a group of one, "
                "group=torch.distributed.new_group([rank], use_local_synchronization=True).",
            )

    # Tensors.

    def spread(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite each with that of the first process."""
        for one in tensors if self.count > 1 else ():
            # Of any type, and however it lies.
            sent = one.detach().contiguous().view(-1)
            distributed.broadcast(sent.view(torch.uint8), self._global(0), self.group)
            one.detach().copy_(sent.view(one.shape))

    def summed(self, vector: Tensor, sizes: Sequence[int]) -> Tensor:
        """Of the sum of all vectors, cut into parts of such sizes, the part of this process.

        They are added in the order of processes, and not in one of a network's choice: a step that is made
        again has the same bits.
        """
        if self.count == 1:
            return vector
        own = sizes[self.rank]
        parts = torch.empty(self.count * own, dtype=vector.dtype, device=vector.device)
        distributed.all_to_all_single(parts, vector, [own] * self.count, list(sizes), self.group)
        total, *others = parts.view(self.count, own)
        for other in others:
            total += other
        return total.clone()

    def gathered(self, own: Tensor, vector: Tensor, sizes: Sequence[int]) -> None:
        """Overwrite a vector with the parts that processes have, of such sizes; the first is the largest."""
        if self.count == 1:
            return
        mine = torch.zeros(sizes[0], dtype=own.dtype, device=own.device)
        mine[: own.numel()] = own
        parts = [torch.empty_like(mine) for _ in sizes]
        distributed.all_gather(parts, mine, self.group)
        torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)], out=vector)

    def even(self, size: int) -> tuple[int, ...]:
        """Sizes of parts of a vector, the first of them the largest."""
        part = -(-size // self.count)
        return tuple(max(0, min(part, size - part * rank)) for rank in range(self.count))

    def _global(self, rank: int) -> int:
        return rank if self.group is None else distributed.get_global_rank(self.group, rank)


def plain(model: nn.Module) -> nn.Module:
    """The model in a DistributedDataParallel, which waits for gradients that nobody gives here."""
    modules = model.modules() if isinstance(model, nn.Module) else ()
    if any(type(one).__name__ == "FullyShardedDataParallel" for one in modules):
        raise NotSound(
            "FullyShardedDataParallel lays parameters together so that they cannot be told apart.",
            remedy="Call torch.distributed.fsdp.fully_shard(model), which keeps each by itself.",
        )
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model


def _tried(what: str, make: Callable[[], Any]) -> Outcome:
    try:
        return what, make(), None
    except Exception as error:
        return what, None, _sent(error)


def _sent(error: Exception) -> Exception:
    """As it can be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"A process failed with {type(error).__name__}.")
    return error


def _answers(what: str, found: Sequence[Outcome]) -> list[Any]:
    if any(name != what for name, _, _ in found):
        raise NotSound(
            "Processes of one run are not at the same place: what one adds another would not know of.",
            remedy="Let all of them run the same loop; after an error in one, end all and resume the run.",
        )
    for _, _, error in found:
        if error is not None:
            raise error
    return [answer for _, answer, _ in found]
