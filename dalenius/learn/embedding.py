"""Rules for tables that are looked up."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.lookups import Lookup
from dalenius.learn.marks import by_example, mark, outer_of, own
from dalenius.learn.tape import Function, Tape


class Embedding(torch.autograd.Function):
    """Rows of a table; what comes back to them goes onto the tape."""

    @staticmethod
    def forward(ctx: Any, tape: Tape, outer: int, rows: Tensor, table: Tensor, padding: int | None) -> Tensor:
        """As torch does it."""
        ctx.tape, ctx.outer, ctx.table, ctx.padding = tape, outer, table, padding
        ctx.examples = tape.examples
        ctx.save_for_backward(rows)
        return own(functional.embedding(rows, table))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, ...]:
        """Onto the tape, without the row of padding."""
        (g,), (rows,) = gradients, ctx.saved_tensors
        examples = ctx.examples
        rows = by_example(rows.unsqueeze(-1), ctx.outer, examples, 1).squeeze(-1)
        if ctx.padding is not None:
            rows = rows.masked_fill(rows == ctx.padding % len(ctx.table), -1)
        ctx.tape.put(ctx.table, Lookup(rows, by_example(g, ctx.outer, examples, 1), len(ctx.table)))
        return None, None, None, None, None


def embedding(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """`functional.embedding(rows, table, padding_idx)`."""
    names = ("input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
    given = dict(zip(names, args, strict=False)) | kwargs
    _plain(given, "max_norm", "scale_grad_by_freq")
    rows, table, outer = given["input"], given["weight"], outer_of(given["input"])
    if not outer:
        raise tape.refused([table], func)
    padding = given.get("padding_idx")
    found: Tensor = Embedding.apply(
        tape, outer, rows, table, None if padding == -1 and func is torch.embedding else padding
    )
    return found


def _plain(given: dict[str, Any], *names: str) -> None:
    """What depends on other examples, or changes the table during the forward pass."""
    for name in names:
        if given.get(name):
            raise NotSound(
                f"An embedding with {name} depends on all examples of a batch.", remedy=f"Leave {name} out."
            )


def embedding_bag(tape: Tape, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """`functional.embedding_bag`: a lookup, and for each bag the sum, mean or maximum of its rows."""
    names = (
        "input",
        "weight",
        "offsets",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "per_sample_weights",
        "include_last_offset",
        "padding_idx",
    )
    given = dict(zip(names, args, strict=False)) | kwargs
    _plain(given, "max_norm", "scale_grad_by_freq")
    rows, table, scale = given["input"], given["weight"], given.get("per_sample_weights")
    padding, mode = given.get("padding_idx"), given.get("mode", "mean")
    if rows.dim() == 1:
        rows, scale, missing = _bags(rows, given["offsets"], scale, bool(given.get("include_last_offset")))
    else:
        missing = torch.zeros_like(rows, dtype=torch.bool)
    if padding is not None:
        missing = missing | (rows == padding % len(table))
    mark(rows, 1)
    looked: Tensor = Embedding.apply(tape, 1, rows.masked_fill(missing, 0), table, None)
    return _pooled(looked, missing.unsqueeze(-1), scale, mode)


def _bags(
    rows: Tensor, offsets: Tensor, scale: Tensor | None, last: bool
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Bags of any lengths as rows of one: (bags, longest), and where one ended before."""
    ends = torch.cat([offsets[1:], offsets.new_tensor([rows.numel()])]) if not last else offsets[1:]
    starts = offsets if not last else offsets[:-1]
    longest = int((ends - starts).max()) if len(starts) else 0
    place = starts.view(-1, 1) + torch.arange(longest, device=rows.device)
    missing = place >= ends.view(-1, 1)
    place = place.masked_fill(missing, 0)
    return rows[place], None if scale is None else scale[place], missing


def _pooled(looked: Tensor, missing: Tensor, scale: Tensor | None, mode: str) -> Tensor:
    if mode == "max":
        empty = missing.all(1)
        return looked.masked_fill(missing, -torch.inf).max(1).values.masked_fill(empty, 0)
    looked = looked.masked_fill(missing, 0)
    if scale is not None:
        looked = looked * scale.unsqueeze(-1)
    total = looked.sum(1)
    return total / (~missing).sum(1).clamp(min=1) if mode == "mean" else total
