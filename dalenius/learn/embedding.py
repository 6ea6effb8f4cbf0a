"""Rules for tables that are looked up."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.lookups import Lookup
from dalenius.learn.marks import by_example, mark, outer_of, own, ragged
from dalenius.learn.tape import Function, Tape

_BAG_NAMES = (
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
    given = dict(zip(_BAG_NAMES, args, strict=False)) | kwargs
    _plain(given, "max_norm", "scale_grad_by_freq")
    rows, table, scale = given["input"], given["weight"], given.get("per_sample_weights")
    padding, mode = given.get("padding_idx"), given.get("mode", "mean")
    if rows.dim() == 1:
        rows, scale, missing = _bags(tape, rows, given, scale)
    else:
        missing = torch.zeros_like(rows, dtype=torch.bool)
    if padding is not None:
        missing = missing | (rows == padding % len(table))
    mark(rows, 1)
    valid = rows.masked_fill(missing, 0).clamp(0, len(table) - 1)
    looked: Tensor = Embedding.apply(tape, 1, valid, table, None)
    return _pooled(looked, missing.unsqueeze(-1), scale, mode)


def bag_form(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Function, tuple[Any, ...], dict[str, Any]]:
    """Return a function with the data flow of an embedding bag: one bag for each example."""
    given = dict(zip(_BAG_NAMES, args, strict=False)) | kwargs
    rows, scale = given["input"], given.get("per_sample_weights")
    if rows.dim() == 1:
        known, weights = ragged(rows), None if scale is None else ragged(scale)
        if known is None:
            length = rows.shape[0] // max(given["offsets"].shape[0], 1)
            return _regular_bag, (rows, given["weight"], scale, length), {}
        if scale is not None:
            scale = scale.unsqueeze(1) if weights is None else weights[0]
        return _one_bag, (known[0], given["weight"], scale, known[1]), {}
    return _one_bag, (rows, given["weight"], scale), {}


def _one_bag(rows: Tensor, table: Tensor, scale: Tensor | None, mask: Tensor | None = None) -> Tensor:
    looked = functional.embedding(rows, table)
    looked = looked if mask is None else looked * mask.unsqueeze(-1)
    return (looked if scale is None else looked * scale.unsqueeze(-1)).sum(1)


def _regular_bag(rows: Tensor, table: Tensor, scale: Tensor | None, length: int) -> Tensor:
    scale = None if scale is None else scale.view(-1, length)
    return _one_bag(rows.view(-1, length), table, scale)


def _bags(
    tape: Tape, rows: Tensor, given: dict[str, Any], scale: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Return the words of bags as (bags, longest), their weights, and where a bag ended before."""
    offsets, known = given["offsets"], ragged(rows)
    if known is not None:
        # Which words are whose is known from the mask that picked them, whatever the offsets say.
        weights = None if scale is None else ragged(scale)
        if scale is None or (weights is not None and weights[1] is known[1]):
            return known[0], None if weights is None else weights[0], ~known[1]
    elif outer_of(rows) == 1 and outer_of(offsets) != 0 and not given.get("include_last_offset"):
        length = len(rows) // max(len(offsets), 1)
        regular = torch.arange(len(offsets), device=offsets.device) * length
        if len(offsets) == tape.examples and tape.is_public(offsets) and torch.equal(offsets, regular):
            shaped = rows.view(len(offsets), length)
            return (
                shaped,
                None if scale is None else scale.view_as(shaped),
                torch.zeros_like(shaped, dtype=torch.bool),
            )
    raise NotSound(
        "embedding_bag with offsets: it is not known which words belong to which example.",
        remedy="Pick the words of a padded batch by a mask, as in bag(tokens[mask], offsets), or pass tokens "
        "of shape (batch, length).",
    )


def _pooled(looked: Tensor, missing: Tensor, scale: Tensor | None, mode: str) -> Tensor:
    if mode == "max":
        empty = missing.all(1)
        return looked.masked_fill(missing, -torch.inf).max(1).values.masked_fill(empty, 0)
    looked = looked.masked_fill(missing, 0)
    if scale is not None:
        looked = looked * scale.unsqueeze(-1)
    total = looked.sum(1)
    return total / (~missing).sum(1).clamp(min=1) if mode == "mean" else total
