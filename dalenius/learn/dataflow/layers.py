"""Rules for normalization, convolution, pooling, embeddings and losses."""

from __future__ import annotations

import torch
from torch import Tensor

from dalenius.learn.dataflow.operations import Operation
from dalenius.learn.dataflow.states import (
    AXIS,
    COPIES,
    MIXED,
    TOTAL,
    UNIFORM,
    VIRTUAL,
    State,
    is_long,
    mixed,
    times_batch,
)

REDUCTIONS = ("none", "mean", "sum")
_SPATIAL = {"1d": 1, "2d": 2, "3d": 3}


def _first(op: Operation, tensor: Tensor, *, at: int = 0) -> int:
    """Return AXIS or COPIES where a tensor holds the batch in dimension `at`, MIXED or 0 otherwise."""
    kind, place = op.kind(tensor), op.place(tensor)
    if place is not None and place[0] == at and kind in (AXIS, COPIES, UNIFORM):
        return AXIS if kind == AXIS else COPIES
    return MIXED if kind in (AXIS, TOTAL) else 0


def _put_first(op: Operation, tensor: Tensor, others: list[Tensor | None], *, at: int = 0) -> None:
    """Keep the batch in dimension `at` of all results; other tensors are public and without a batch."""
    kind, place = _first(op, tensor, at=at), op.place(tensor)
    # A kernel as long as the batch adds up as many entries as there are examples.
    foreign = any(
        op.kind(other) in (AXIS, TOTAL) or times_batch(tuple(other.shape))
        for other in others
        if other is not None
    )
    if kind in (AXIS, COPIES) and place is not None and not foreign:
        for result in op.results:
            op.put_placed(result, kind, place)
    else:
        op.mix("needs examples in the leading dimension, and parameters that are the same for all")


def convolution(op: Operation) -> None:
    """Convolve: the batch leads, kernel and bias are public."""
    _put_first(op, op["input"], [op["weight"], op["bias"]])


def layer_norm(op: Operation) -> None:
    """Normalize trailing dimensions."""
    source, place = op["input"], op.place(op["input"])
    shape = op["normalized_shape"]
    if place is None or place[0] >= source.dim() - len(shape) or _foreign(op, "weight", "bias"):
        op.mix("normalizes along the batch")
        return
    for result in op.results:
        op.put_placed(result, op.joint(source), place)


def _foreign(op: Operation, *names: str) -> bool:
    return any(op.kind(op[name]) in (AXIS, TOTAL) for name in names)


def group_norm(op: Operation) -> None:
    """Normalize groups of channels of every row: the batch leads, alone in its dimension or not."""
    source = op["input"]
    declared = op["N"], op["C"]
    if _foreign(op, "weight", "bias"):
        op.mix("scales by private values")
    elif "N" in op.given and declared != (source.shape[0], source.shape[1]):
        op.mix("normalizes groups that are not those of a row")
    else:
        _put_first(op, source, [])


def batch_norm(op: Operation) -> None:
    """Normalize channels: by constants, or by statistics if the batch is in the channels' dimension."""
    source, training = op["input"], op["training"] if "training" in op.given else True
    place, names = op.place(source), ("weight", "bias", "running_mean", "running_var")
    others = [op[name] for name in names if isinstance(op[name], Tensor)]
    if place is None or any(op.kind(other) in (AXIS, TOTAL) for other in others):
        op.mix("normalizes every example by all others")
    elif place[0] == 1 and not any(op.varies(other, (0, place[1]), 1) for other in others):
        op.put_placed(op.results[0], _first(op, source, at=1), place)
        for result in op.results[1:]:
            op.put(result, State(op.kind(source), place[1]) if result.numel() else None)
    elif place[0] == 0 and not training:
        op.put_placed(op.results[0], _first(op, source), place)
        for result in op.results[1:]:
            op.put(result, None)
    else:
        op.mix("normalizes every example by all others")


def spatial(op: Operation) -> None:
    """Work on the trailing one, two or three dimensions of every map; shuffles of channels on three."""
    source = op.tensors[0]
    size = next((number for name, number in _SPATIAL.items() if name in op.name), 3)
    place = op.place(source)
    others = op.tensors[1:]
    if place is None or place[0] >= source.dim() - size or any(op.kind(other) for other in others):
        op.mix("works along the batch")
        return
    for result in op.results:
        op.put_placed(result, op.joint(source), place)


def _led(op: Operation, tensors: list[Tensor]) -> bool:
    """Return whether examples follow each other in every tensor: batches end to end do not."""
    return all(op.kind(tensor) == UNIFORM or op.place(tensor) == (0, 1) for tensor in tensors)


def columns(op: Operation) -> None:
    """Take patches out of images, or put them back (im2col, col2im): the batch leads."""
    _put_first(op, op.tensors[0], list(op.tensors[1:]))


def grid(op: Operation) -> None:
    """Sample images at positions, both with the batch in front."""
    kinds = {_first(op, tensor) for tensor in op.tensors}
    if kinds <= {AXIS, COPIES} and kinds and _led(op, op.tensors):
        for result in op.results:
            op.put_placed(result, AXIS if AXIS in kinds else COPIES, (0, 1))
    else:
        op.mix("works along the batch")


def _is_drawn(op: Operation, tensor: Tensor) -> bool:
    """Return whether a tensor holds random numbers, some for each example."""
    state = op.state(tensor)
    return state is not None and state.drawn and is_long(state)


def _is_table(op: Operation, tensor: Tensor) -> bool:
    """Return whether a public table has the same rows at all indices for any size of a batch.

    An index that is out of range counts as that of the last row, which is alike where all rows are.
    """
    if op.kind(tensor) == COPIES:
        return op.alike(tensor) and op.place(tensor) == (0, 1) and tensor.shape[0] == VIRTUAL
    return op.kind(tensor) in (0, UNIFORM)


def embedding(op: Operation) -> None:
    """Look rows of a public table up; the result has the batch where the index has it."""
    index, place = op["indices"], op.place(op["indices"])
    if _is_drawn(op, op["weight"]):
        op.mix("gives examples random numbers of others")
    elif not _is_table(op, op["weight"]) or op.kind(index) == TOTAL:
        op.mix("looks up private rows")
    elif place is not None and op.kind(index) in (AXIS, COPIES):
        op.put_placed(op.results[0], op.kind(index), place)
    elif op.kind(index) == AXIS:
        op.mix("needs the batch in one dimension")
    elif op.kind(index) == UNIFORM and place is not None:
        op.put_placed(op.results[0], COPIES, place)
    else:
        op.put_all(None)


def loss(op: Operation) -> None:
    """Compute losses entry by entry, and leave them, average them or add them up."""
    reduction = REDUCTIONS[op["reduction"]]
    dims = max(tensor.dim() for tensor in op.tensors)
    place = op.common(op.tensors, dims)
    shape = torch.broadcast_shapes(*(tensor.shape for tensor in op.tensors))
    if op.private and times_batch(tuple(shape)) > 1:
        op.mix("has an entry for every pair of examples")
        return
    if TOTAL in op.kinds or isinstance(place, str):
        op.mix(place if isinstance(place, str) else "is not linear in a sum over examples")
        return
    at = place or op.copied(op.tensors, dims)
    if at is None:
        op.put_all(None)
    elif reduction == "none":
        op.put_placed(op.results[0], AXIS if place is not None else COPIES, at)
    else:
        op.keep_total(-1 if reduction == "mean" else 0)


def likelihood(op: Operation) -> None:
    """Pick the log-probability of every target: (n, classes, …) and (n, …), with optional class weights."""
    source, target, reduction = op["self"], op["target"], REDUCTIONS[op["reduction"]]
    kinds, place = {_first(op, source), _first(op, target)}, op.place(source)
    if not kinds <= {AXIS, COPIES} or place != op.place(target) or op.kind(op["weight"]) in (AXIS, TOTAL):
        op.mix("needs the batch in front of scores and targets")
    elif reduction == "mean":
        op.mix("divides by the number, or the weight, of all targets of the batch")
    elif reduction == "none":
        assert place is not None
        op.put_placed(op.results[0], AXIS if AXIS in kinds else COPIES, place)
        for result in op.results[1:]:
            op.put(result, None)
    else:
        op.put_all(State(TOTAL))


def margin(op: Operation) -> None:
    """Compute one loss for every row of scores and targets (multi-class margins)."""
    kinds = {_first(op, op["self"]), _first(op, op["target"])}
    reduction = REDUCTIONS[op["reduction"]]
    # Scores of one dimension are those of one row, however long the batch is.
    led = op["self"].dim() == 2 and _led(op, [op["self"], op["target"]])
    if not kinds <= {AXIS, COPIES} or op.kind(op["weight"]) in (AXIS, TOTAL) or not led:
        op.mix("needs the batch in front of scores and targets")
    elif reduction == "none":
        for result in op.results:
            op.put_placed(result, AXIS, (0, 1))
    else:
        op.put(op.results[0], State(TOTAL, power=-1 if reduction == "mean" else 0))
        for result in op.results[1:]:
            op.put_placed(result, AXIS, (0, 1))


def ctc(op: Operation) -> None:
    """Compute alignment losses: (time, n, classes) against (n, labels)."""
    lengths = [op[name] for name in ("input_lengths", "target_lengths")]
    scores, targets = _first(op, op["log_probs"], at=1), _first(op, op["targets"])
    tensors = [length for length in lengths if isinstance(length, Tensor)]
    if scores != AXIS or targets not in (AXIS, COPIES) or any(_first(op, one) == MIXED for one in tensors):
        op.mix("needs the batch second in scores and first in targets")
        return
    for result in op.results:
        op.put_placed(result, AXIS, (0, 1))


def draw(op: Operation) -> None:
    """Draw categories for every row of weights, or as many of public weights as there are examples."""
    source, place = op["self"], op.place(op["self"])
    if op.batch_factor():
        alone = not op.private and op["replacement"] and not times_batch(tuple(source.shape))
        for result in op.results:
            if alone:
                op.put_placed(result, COPIES, (result.dim() - 1, 1))
            else:
                op.put(result, mixed(op.name, "draws a number of categories that depends on the batch"))
    elif source.dim() == 2 and place is not None and place[0] == 0:
        op.put_placed(op.results[0], op.joint(source), place)
    else:
        op.mix("draws along the batch")


def sorted_search(op: Operation) -> None:
    """Find where values fall between public boundaries."""
    boundaries = op["boundaries"] if op.name == "bucketize" else op["sorted_sequence"]
    if op.kind(boundaries) or boundaries.dim() != 1 or op.kind(op["sorter"]):
        op.mix("compares with private boundaries")
    else:
        op.follow([op["self"]])


def member(op: Operation) -> None:
    """Tell whether entries are among public values."""
    if op.kind(op["test_elements"]) not in (0, UNIFORM, COPIES) or _is_drawn(op, op["test_elements"]):
        op.mix("compares with the values of other examples")
    else:
        op.follow([op["elements"]])


_SPATIAL_NAMES = " ".join(
    f"{name}{size}d"
    for size in (1, 2, 3)
    for name in (
        "adaptive_avg_pool",
        "_adaptive_avg_pool",
        "avg_pool",
        "reflection_pad",
        "replication_pad",
        "upsample_nearest",
        "_upsample_nearest_exact",
        "adaptive_max_pool",
    )
)
_MORE_SPATIAL = (
    "max_pool2d_with_indices max_pool3d_with_indices upsample_linear1d upsample_bilinear2d "
    "upsample_bicubic2d upsample_trilinear3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa pixel_shuffle "
    "pixel_unshuffle native_channel_shuffle"
)
_LOSSES = (
    "mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits "
    "soft_margin_loss"
)
RULES = (
    dict.fromkeys((*_SPATIAL_NAMES.split(), *_MORE_SPATIAL.split()), spatial)
    | dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit", "batch_norm"), batch_norm)
    | dict.fromkeys(_LOSSES.split(), loss)
    | dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), likelihood)
    | dict.fromkeys(("multi_margin_loss", "multilabel_margin_loss_forward"), margin)
    | {
        "convolution": convolution,
        "native_layer_norm": layer_norm,
        "_fused_rms_norm": layer_norm,
        "native_group_norm": group_norm,
        "im2col": columns,
        "col2im": columns,
        "grid_sampler_2d": grid,
        "grid_sampler_3d": grid,
        "affine_grid_generator": grid,
        "embedding": embedding,
        "_ctc_loss": ctc,
        "multinomial": draw,
        "bucketize": sorted_search,
        "searchsorted": sorted_search,
        "isin": member,
    }
)
